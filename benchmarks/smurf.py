"""Align a family to one of its sequences, learning from its unaligned sequences alone.

    python -m benchmarks.smurf
    python -m benchmarks.smurf --families RRM_1 --seeds 1 --steps 20
    python -m benchmarks.smurf --plot docs/images/smurf.png

After SMURF (Petti et al., Bioinformatics 39:btac724, 2023): a network gives the
similarities, smooth Smith-Waterman aligns every sequence softly to the query, and the
columns of that star alignment say how good it was. No reference is seen. A quarter of
the sequences is held out, and judged by recall: the share of the reference's pairs of
residues of query and sequence that were recovered. Every seed draws another query,
split and network. Needs jaxalign[dev] (equinox, optax, matplotlib).
"""

import time

import aligner_network as an
import jax
import jax.numpy as jnp
import measure
import numpy as np
from learn import padded

from jaxalign import soft_posterior, soft_score
from jaxalign.io import fasta

FAMILIES = ("RRM_1", "fn3", "Cyclin_N", "Pkinase")
PRIOR = 20.0  # sequences that the background of a column weighs as much as


def aligner(net, a, b, lengths):
    """Learned similarities with the gap costs 11/1, in nats."""
    (x, y), _ = an.embedded(net, a, b, lengths)
    return jnp.einsum("sik,sjk->sij", x, y), an.GAPS, 1.0


def loss(net, a, b, lengths):
    """Minus the free energy bound of a profile of the family, a position of the query.

    P is the soft alignment of b (s, n) to the query a (s, m), the same row s times. A
    column's letters are scored by log odds under the same column of all others. Of
    E[log odds] - E[gap costs] + entropy, the last two are log Z - E[similarity].
    """
    similarity, gaps, _ = aligner(net, a, b, lengths)
    log_z = soft_score(similarity, lengths, mode="local", **gaps)
    p = soft_posterior(similarity, lengths, mode="local", **gaps)
    inside = jnp.arange(b.shape[1]) < lengths[:, 1:]
    letters = jax.nn.one_hot(b, an.LETTERS) * inside[..., None]
    background = (letters.sum((0, 1)) + 1) / (letters.sum() + an.LETTERS)
    columns = jnp.einsum("sij,sjc->sic", p, letters)
    others = columns.sum(0) + jax.nn.one_hot(a[0], an.LETTERS) - columns
    odds = (others / background + PRIOR) / (others.sum(-1, keepdims=True) + PRIOR)
    gain = jnp.sum(columns * jnp.log(odds), (1, 2)) - jnp.sum(p * similarity, (1, 2))
    return -jnp.mean(log_z + gain) / lengths[0, 0]


def split(family, rng):
    """(pairs of query and training sequence, pairs of query and held-out sequence)."""
    query, *others = (int(k) for k in rng.permutation(len(family)))
    cut = len(family) // 4
    size = -(-int((family.codes >= 0).sum(1).max()) // 32) * 32
    rest, held = others[cut:], others[:cut]
    return [padded(family, [(query, k) for k in part], size) for part in (rest, held)]


def run(family, seed: int, steps: int):
    """(marks by aligner, [(step, marks)] of training, losses)."""
    rng = np.random.default_rng(seed)
    data, held = split(family, rng)

    def judge(net):
        return an.judged(aligner, net, held, "local")

    net, batch = an.ResidueEncoder(jax.random.key(seed)), min(24, len(data[0]))
    _, losses, curve = an.train(
        net, loss, data[:3], judge, rng, steps=steps, batch=batch
    )
    marks = {
        f"BLOSUM62, {mode}": an.judged(an.blosum62, None, held, mode)
        for mode in ("local", "global")
    }
    return marks | {"learned": curve[-1][1]}, curve, losses


def main(argv=None) -> None:
    parser = an.arguments(__doc__, steps=30)
    parser.add_argument("--families", type=measure.words, default=FAMILIES)
    asked = parser.parse_args(argv)
    report: dict = {"machine": measure.machine(), "rows": [], "losses": {}}
    pfam, began, curves = fasta.pfam(), time.process_time(), {}
    for name in asked.families:
        runs = [run(pfam[name], seed, asked.steps) for seed in range(asked.seeds)]
        marks, curves[name], report["losses"][name] = zip(*runs, strict=True)
        every = {key: [one[key] for one in marks] for key in marks[0]}
        report["rows"] += an.rows_of(name, len(pfam[name]) // 4, every)
        print(f"# {name}: {time.process_time() - began:.0f} CPU seconds", flush=True)
    an.finish(asked, report, curves)


if __name__ == "__main__":
    main()
