"""Learn a substitution matrix and gap costs from Pfam seed alignments, from nothing.

    python benchmarks/learn.py --quick
    python benchmarks/learn.py --plot docs/images --json learn.json

A conditional random field: the loss is minus the log probability of the reference
alignments, Adam (optax) its optimiser, the start a matrix of zeros. Trained on pairs of
three families, judged on six others: recall and precision of reference pairs, by the
optimal path and by the most accurate alignment of the posterior, beside BLOSUM62 with
11/1; and whether a pair with posterior p is right in a share p of cases. Needs
jaxalign[docs] (optax, matplotlib).
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import measure
import numpy as np

from jaxalign import (
    Scoring,
    align_pairs,
    alignment_log_prob,
    mea_alignment,
    soft_posterior,
)
from jaxalign.io import fasta
from jaxalign.model.alignment import partners_of
from jaxalign.model.profile import agreement, identity, partners, sequence

TRAINED = ("fn3", "RRM_1", "Cyclin_N")
UNSEEN = ("Pkinase", "LuxC", "Caudal_act", "3Beta_HSD", "ArsP_1", "COX2_TM")
LONGEST, MOST_IDENTICAL = 192, 0.5
BLOSUM = {"gap_open": 11.0, "gap_extend": 1.0}


def pairs_of(family, rng, count: int, longest=LONGEST):
    """Up to ``count`` (i, j) of a family: short enough, at most half identical."""
    lengths = [len(sequence(family, k)) for k in range(len(family))]
    short = [k for k, length in enumerate(lengths) if length <= longest]
    every = [(i, j) for i in short for j in short if i < j]
    every = [every[k] for k in rng.permutation(len(every))]
    chosen = (pair for pair in every if identity(family, *pair) <= MOST_IDENTICAL)
    return [pair for _, pair in zip(range(count), chosen, strict=False)]


def padded(family, pairs, size: int):
    """Codes (k, size) of both sides, lengths (k, 2), partners (k, size)."""

    def pad(x, fill):
        return np.pad(x.astype(np.int32), (0, size - len(x)), constant_values=fill)

    a, b = ([sequence(family, pair[k]) for pair in pairs] for k in (0, 1))
    lengths = np.array([[len(x), len(y)] for x, y in zip(a, b, strict=True)], np.int32)
    truth = [pad(partners(family, *pair), -1) for pair in pairs]
    left, right = (np.stack([pad(x, 0) for x in side]) for side in (a, b))
    return left, right, lengths, np.stack(truth)


def model(theta):
    """Parameters -> (symmetric matrix, gap costs), in nats at T = 1."""
    extend = jnp.exp(theta["extend"])
    gaps = {"gap_open": extend + jnp.exp(theta["more"]), "gap_extend": extend}
    return theta["matrix"] + theta["matrix"].T, gaps


def loss(theta, a, b, lengths, partners):
    """Minus the log probability of the references, a reference pair."""
    matrix, gaps = model(theta)
    log_p = alignment_log_prob(partners, (a, b, matrix), lengths, **gaps)
    return -log_p.sum() / jnp.sum(partners >= 0, dtype=float)


def train(data, steps: int, batch: int, rng):
    """(parameters, [loss, gap_open, gap_extend] of every step)."""
    import optax

    half = jnp.log(0.5)
    theta = {"matrix": jnp.zeros((24, 24)), "extend": half, "more": half}
    optimiser = optax.adam(0.05)
    state, history = optimiser.init(theta), []

    @jax.jit
    def step(theta, state, *data):
        value, gradient = jax.value_and_grad(loss)(theta, *data)
        moves, state = optimiser.update(gradient, state)
        return optax.apply_updates(theta, moves), state, value

    for _ in range(steps):
        chosen = rng.choice(len(data[0]), batch, replace=False)
        theta, state, value = step(theta, state, *(x[chosen] for x in data))
        gaps = model(theta)[1]
        history.append([float(x) for x in (value, *gaps.values())])
    return theta, history


def judged(family, pairs, matrix, gaps, temperature) -> dict:
    """Agreement of optimal path and MEA alignment with a family's reference, and the
    posteriors of all pairs of residues with whether they are right."""
    longest = max(int(x) for x in (family.codes >= 0).sum(1))
    size = -(-longest // 32) * 32
    a, b, lengths, truth = padded(family, pairs, size)
    options = gaps | {"temperature": temperature}
    p = np.asarray(soft_posterior((a, b, np.float32(matrix)), lengths, **options))
    letters = Scoring().alphabet.letters
    rounded = {name: round(float(cost), 2) for name, cost in gaps.items()}
    scoring = Scoring((letters, np.round(np.float64(matrix), 2)), **rounded)
    inside = [(slice(m), slice(n)) for m, n in lengths]
    texts = [
        [scoring.alphabet.decode(side[k, :length]) for k, length in enumerate(column)]
        for side, column in ((a, lengths[:, 0]), (b, lengths[:, 1]))
    ]
    table = align_pairs(*texts, scoring, output="alignment")
    found = {"path": [], "mea": []}
    for k, box in enumerate(inside):
        reference = truth[k, box[0]]
        path = partners_of(table.alignment(k))
        most = partners_of(mea_alignment(p[k][box]))
        found["path"].append(agreement(path, reference))
        found["mea"].append(agreement(most, reference))
    right = truth[:, :, None] == np.arange(size)
    some = p > 0.01
    return found | {"posterior": p[some], "right": right[some]}


def reliability(found: list[dict]) -> list[dict]:
    """Mean posterior and share that is right, in tenths of the posterior."""
    p, right = (
        np.concatenate([one[k] for one in found]) for k in ("posterior", "right")
    )
    tenth = np.minimum((p * 10).astype(int), 9)
    return [
        {
            "from": k / 10,
            "pairs": int((tenth == k).sum()),
            "mean posterior": float(p[tenth == k].mean()),
            "right": float(right[tenth == k].mean()),
        }
        for k in range(10)
        if (tenth == k).any()
    ]


def draw(folder: str, report: dict, matrix) -> None:
    """Two pictures: what was learned, and the reliability diagram."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    Path(folder).mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(np.array(report["history"])[:, 0], label="loss, nats a reference pair")
    left.plot(np.array(report["history"])[:, 1], label="gap_open, nats")
    left.plot(np.array(report["history"])[:, 2], label="gap_extend, nats")
    left.set_xlabel("step")
    left.legend()
    letters = np.triu_indices(20)
    right.plot(Scoring().scores[letters], np.asarray(matrix)[letters], ".", ms=4)
    right.set(xlabel="BLOSUM62, half bits", ylabel="learned, nats")
    figure.savefig(Path(folder) / "learned-scoring.png", dpi=90)
    figure, axis = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
    axis.plot([0, 1], [0, 1], "k:", lw=1)
    for name, bins in report["reliability"].items():
        x, y = ([one[k] for one in bins] for k in ("mean posterior", "right"))
        axis.plot(x, y, ".-", label=name)
    axis.set(xlabel="posterior", ylabel="share in the reference")
    axis.legend()
    figure.savefig(Path(folder) / "reliability.png", dpi=90)


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "plot", "json")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    report: dict = {"machine": measure.machine(), "rows": [], "reliability": {}}
    rng, pfam = np.random.default_rng(asked.seed), fasta.pfam()
    each, steps, batch = (10, 3, 8) if asked.quick else (300, asked.steps, 32)
    sets = [
        padded(pfam[name], pairs_of(pfam[name], rng, each), LONGEST) for name in TRAINED
    ]
    data = [np.concatenate(x) for x in zip(*sets, strict=True)]
    seconds, _, learned = measure.timed(train, data, steps, batch, rng)
    theta, report["history"] = learned
    print(f"# {len(data[0])} pairs, {steps} steps: {seconds:.1f} s")
    matrix, gaps = model(theta)
    matrix, gaps = np.asarray(matrix), {k: float(cost) for k, cost in gaps.items()}
    half_bits = Scoring().scores.astype(float)
    models = {
        "BLOSUM62, 11/1": (half_bits, BLOSUM, 2 / np.log(2)),
        "learned": (matrix, gaps, 1.0),
    }
    names, count = (UNSEEN[2:3], 5) if asked.quick else (UNSEEN, 50)
    tested = {name: pairs_of(pfam[name], rng, count, 999) for name in names}
    for name, one in models.items():
        found = [judged(pfam[f], pairs, *one) for f, pairs in tested.items()]
        row = {"model": name, "pairs": sum(map(len, tested.values()))}
        for way in ("path", "mea"):  # means over families of all pairs
            recall, precision = np.mean(sum((one[way] for one in found), []), axis=0)
            row |= {f"{way} recall": recall, f"{way} precision": precision}
        report["rows"].append(row)
        report["reliability"][name] = reliability(found)
    letters = np.triu_indices(20)
    both = np.corrcoef(half_bits[letters], matrix[letters])
    report |= {"correlation": float(both[0, 1]), "gaps": gaps, "matrix": matrix}
    measure.show(report["rows"])
    costs = ", ".join(f"{name} {cost:.2f}" for name, cost in gaps.items())
    print(f"# {costs} nats; correlation with BLOSUM62 {report['correlation']:.2f}")
    for name, bins in report["reliability"].items():
        print(f"\n{name}")
        measure.show(bins)
    if asked.plot:
        draw(asked.plot, report, matrix)
    measure.save(asked.json, report)


if __name__ == "__main__":
    main()
