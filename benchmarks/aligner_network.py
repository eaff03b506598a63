"""What smurf.py and dedal.py share: a network of residues, its training, its judge.

The network sees residues in their context, and the product of two embeddings is the
similarity of two residues. It starts as BLOSUM62 with 11/1, in nats.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import measure
import numpy as np
import optax

from jaxalign import (
    Scoring,
    bucket_lengths,
    hard_alignment,
    mea_alignment,
    soft_posterior,
)
from jaxalign.model.profile import agreement

NATS = np.log(2) / 2  # BLOSUM62 counts half bits
GAPS = {"gap_open": 11 * NATS, "gap_extend": 1 * NATS}
BLOSUM62 = Scoring().scores.astype(np.float32)
LETTERS, CHANNELS, WIDTH = len(BLOSUM62), 64, 7


def square_root() -> tuple[np.ndarray, np.ndarray]:
    """(table, signs) such that (table * signs) @ table.T is BLOSUM62 in nats.

    A symmetric matrix has real eigenvalues; those below 0 need the sign.
    """
    values, vectors = np.linalg.eigh(BLOSUM62.astype(float) * NATS)
    table = vectors * np.sqrt(np.abs(values))
    return table.astype(np.float32), np.sign(values).astype(np.float32)


TABLE, SIGNS = square_root()


class ResidueEncoder(eqx.Module):
    """Codes (n,) and a length -> embeddings (n, 24), gap_open (n,), gap_extend (n,)."""

    table: jax.Array
    layers: list[eqx.nn.Conv1d]

    def __init__(self, key):
        sizes = (LETTERS, CHANNELS, CHANNELS, LETTERS + 2)
        keys = jax.random.split(key, 3)
        self.table = jnp.asarray(TABLE)
        self.layers = [
            eqx.nn.Conv1d(before, after, WIDTH, padding="SAME", key=key)
            for before, after, key in zip(sizes[:-1], sizes[1:], keys, strict=True)
        ]
        # Nearly nothing at first: the start is BLOSUM62.
        self.layers[-1] = jax.tree.map(lambda x: 0.01 * x, self.layers[-1])

    def __call__(self, codes, length):
        inside = jnp.arange(codes.shape[0]) < length  # padding must not be seen
        letters = self.table[codes]
        x = letters.T
        for layer in self.layers[:-1]:
            x = jax.nn.gelu(layer(x * inside))
        *change, more, extend = self.layers[-1](x * inside)
        extend = GAPS["gap_extend"] * jnp.exp(extend)
        more = (GAPS["gap_open"] - GAPS["gap_extend"]) * jnp.exp(more)
        return letters + jnp.stack(change, -1), extend + more, extend


def embedded(net, a, b, lengths):
    """What the network says of both sides of a batch; the signs are in the first."""
    (x, *left), (y, *right) = (
        jax.vmap(net)(codes, lengths[:, k]) for k, codes in enumerate((a, b))
    )
    return (x * SIGNS, y), tuple(zip(left, right, strict=True))


def blosum62(_, a, b, lengths):  # noqa: ARG001
    """The aligner to compare with: the scores themselves, 11/1, T = 2 / log 2."""
    return (a, b, BLOSUM62), {"gap_open": 11.0, "gap_extend": 1.0}, 1 / NATS


@functools.cache
def optimiser(rate: float, steps: int):
    """Adam; the rate falls to 0 as a cosine."""
    rates = optax.cosine_decay_schedule(rate, steps)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rates))


@eqx.filter_jit
def step(net, state, moves, loss, *batch):
    """One step of the optimiser ``moves``: (network, state, loss)."""
    value, gradient = eqx.filter_value_and_grad(loss)(net, *batch)
    change, state = moves.update(gradient, state)
    return eqx.apply_updates(net, change), state, value


@eqx.filter_jit
def decoded(aligner, net, a, b, lengths, mode):
    """Partners (k, m) of the optimal path, and of the most accurate alignment."""
    similarity, gaps, temperature = aligner(net, a, b, lengths)
    options = gaps | {"mode": mode}
    path = hard_alignment(similarity, lengths, **options)
    p = soft_posterior(similarity, lengths, temperature=temperature, **options)
    return path.partners, mea_alignment(p, lengths=lengths).partners


def judged(aligner, net, data, mode, chunk: int = 24) -> np.ndarray:
    """[[recall, precision] of the path, of the posterior]: means over pairs."""
    a, b, lengths, truth = data
    marks = []
    for (m, n), every in bucket_lengths(*lengths.T, shapes=3, multiple=96):
        for begin in range(0, len(every), chunk):
            rows = np.resize(every[begin:], chunk)  # one shape: the last ones repeat
            batch = a[rows, :m], b[rows, :n], lengths[rows]
            ways = [np.asarray(x) for x in decoded(aligner, net, *batch, mode)]
            count = min(chunk, len(every) - begin)
            marks += [
                [agreement(way[k], truth[rows[k], :m]) for way in ways]
                for k in range(count)
            ]
    return np.mean(marks, axis=0)


def train(net, loss, data, judge, rng, *, steps, batch, rate=1e-3, every=10):
    """(network, losses (steps,), [(step, judge(network))] of every few steps)."""
    moves = optimiser(rate, steps)
    state, losses, marks = moves.init(eqx.filter(net, eqx.is_array)), [], []
    for k in range(steps):
        if k % every == 0:
            marks.append((k, judge(net)))
        rows = rng.choice(len(data[0]), batch, replace=False)
        net, state, value = step(net, state, moves, loss, *(x[rows] for x in data))
        losses.append(float(value))
    return net, losses, [*marks, (steps, judge(net))]


def rows_of(name: str, pairs: int, marks: dict) -> list[dict]:
    """Rows of a table from {aligner: marks of every seed}, of which one is "learned".

    ``least gain`` is the smallest over seeds of its recall less the best other's.
    """
    marks, rows = {key: np.array(every) for key, every in marks.items()}, []
    others = [every[..., 0] for key, every in marks.items() if key != "learned"]
    gain = (marks["learned"][..., 0] - np.max(others, axis=0)).min(0)
    for way, label in enumerate(("path", "posterior")):
        for key, every in marks.items():
            recall, precision = every[:, way].T
            row = {"held out": name, "pairs": pairs, "aligner": key, "by": label}
            row |= {"recall": recall.mean(), "sd": recall.std()}
            row |= {"precision": precision.mean()}
            row["least gain"] = gain[way] if key == "learned" else None
            rows.append(row)
    return rows


def arguments(text: str | None, steps: int):
    """The options of both scripts."""
    parser = measure.arguments(text, "plot", "json")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    parser.add_argument("--steps", type=int, default=steps)
    return parser


def finish(asked, report: dict, curves: dict) -> None:
    """Print the rows, draw the curves, and write the figures."""
    measure.show(report["rows"])
    if asked.plot:
        draw(asked.plot, report["losses"], curves)
    measure.save(asked.json, report)


def draw(path: str, losses: dict, curves: dict) -> None:
    """Loss and recall (of posteriors) by step; a thin line is a seed, a dashed one is
    where training began, BLOSUM62."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for k, (name, runs) in enumerate(losses.items()):
        left.plot(np.mean(runs, 0), color=f"C{k}", label=name)
        left.plot(np.transpose(runs), color=f"C{k}", lw=0.4)
    for k, (name, runs) in enumerate(curves.items()):
        steps = [at for at, _ in runs[0]]
        recall = np.array([[mark[1, 0] for _, mark in run] for run in runs])
        right.plot(steps, recall.mean(0), ".-", color=f"C{k}", label=name)
        right.plot(steps, recall.T, color=f"C{k}", lw=0.4)
        right.axhline(recall[:, 0].mean(), color=f"C{k}", ls="--", lw=1)
    left.set(xlabel="step", ylabel="loss, nats")
    right.set(xlabel="step", ylabel="recall, held out")
    for axis in (left, right):
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=90)
