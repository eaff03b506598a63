"""Train a network to align as curators do, and decode what it says.

    python -m benchmarks.dedal
    python -m benchmarks.dedal --seeds 1 --steps 10
    python -m benchmarks.dedal --plot docs/images/dedal.png

After DEDAL (Llinares-López et al., Nature Methods 20:104, 2023): a network gives each
residue an embedding and its own gap costs, products of embeddings are the similarities,
and the loss is minus the log probability of the reference alignment. It is trained on
pairs of three quarters of the sequences of three families. Held out are the last
quarter, whose pairs are of seen families, and six families. Every seed draws another
split, other pairs and another network. Needs jaxalign[dev] (equinox, optax,
matplotlib).
"""

import time
from functools import partial

import aligner_network as an
import jax
import jax.numpy as jnp
import measure
import numpy as np
from learn import TRAINED, UNSEEN, padded, pairs_of

from jaxalign import alignment_log_prob
from jaxalign.io import fasta
from jaxalign.model.profile import Family

LONGEST = 160  # of the training sequences, none of which is longer


def aligner(net, a, b, lengths):
    """Learned similarities and gap costs by position."""
    pair, (gap_open, gap_extend) = an.embedded(net, a, b, lengths)
    return pair, {"gap_open": gap_open, "gap_extend": gap_extend}, 1.0


def loss(net, a, b, lengths, partners):
    """Minus the log probability of the references, a reference pair."""
    pair, gaps, _ = aligner(net, a, b, lengths)
    log_p = alignment_log_prob(partners, pair, lengths, **gaps)
    return -log_p.sum() / jnp.sum(partners >= 0, dtype=float)


def part(family, rows) -> Family:
    """Some rows of a family."""
    names = tuple(family.names[k] for k in rows)
    return Family(family.name, names, family.codes[rows])


def examples(drawn: list, count: int, rng, longest: int):
    """Up to ``count`` pairs of each family, as one batch."""
    sets = [
        padded(family, pairs_of(family, rng, count, longest), longest)
        for family in drawn
    ]
    return [np.concatenate(column) for column in zip(*sets, strict=True)]


def split(pfam, rng):
    """(training pairs, {name: held-out pairs})."""
    rows = {name: rng.permutation(len(pfam[name])) for name in TRAINED}
    rest = [part(pfam[name], order[len(order) // 4 :]) for name, order in rows.items()]
    held = [part(pfam[name], order[: len(order) // 4]) for name, order in rows.items()]
    unseen = [pfam[name] for name in UNSEEN]
    return examples(rest, 400, rng, LONGEST), {
        "seen families": examples(held, 30, rng, LONGEST),
        "unseen families": examples(unseen, 15, rng, 448),
    }


def run(pfam, seed: int, steps: int):
    """(marks of BLOSUM62, [(step, marks)] of training, each by name, losses, pairs)."""
    rng = np.random.default_rng(seed)
    data, held = split(pfam, rng)

    def judge(aligner, net):
        return {
            name: an.judged(aligner, net, one, "global") for name, one in held.items()
        }

    net, options = an.ResidueEncoder(jax.random.key(seed)), {"batch": 24, "every": 15}
    judged = partial(judge, aligner)
    _, losses, curve = an.train(net, loss, data, judged, rng, steps=steps, **options)
    counts = {name: len(one[0]) for name, one in held.items()}
    return judge(an.blosum62, None), curve, losses, counts


def main(argv=None) -> None:
    asked = an.arguments(__doc__, steps=60).parse_args(argv)
    report: dict = {"machine": measure.machine(), "rows": []}
    pfam, began, runs, curves = fasta.pfam(), time.process_time(), [], {}
    for seed in range(asked.seeds):
        runs.append(run(pfam, seed, asked.steps))
        print(f"# seed {seed}: {time.process_time() - began:.0f} CPU seconds")
    base, training, losses, counts = zip(*runs, strict=True)
    for name, count in counts[0].items():
        curves[name] = [[(k, mark[name]) for k, mark in one] for one in training]
        marks = {"BLOSUM62": [one[name] for one in base]}
        marks["learned"] = [one[-1][1] for one in curves[name]]
        report["rows"] += an.rows_of(name, count, marks)
    report["losses"] = {"training pairs": losses}
    an.finish(asked, report, curves)


if __name__ == "__main__":
    main()
