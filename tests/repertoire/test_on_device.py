"""Edges where the device is a GPU: by its kernels, and by the CPU without them."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import receptor_oracle as oracle

import jaxalign
import kernels_pallas as kp
from jaxalign.repertoire import graph, rectangles

TEXTS = oracle.receptors(60, seed=5, lengths=(10, 13))


@pytest.fixture
def on_gpu(monkeypatch):
    """As if the device were a GPU, and no job small."""
    monkeypatch.setattr(rectangles, "MAX_WITHOUT_JAX", 0)
    monkeypatch.setattr(rectangles, "MAX_LISTED", 0)
    monkeypatch.setattr(rectangles, "on_host", lambda device: False)
    monkeypatch.setattr(graph, "VARIANT_PAIRS", 10**9)


# By the kernels, which plain ``jnp`` stands for (``tests/kernels/test_near.py``)


def near(queries, targets, limits, sizes, edits):
    """bool (R, R), and distances: near pairs of two ``NearRows``."""
    x, y = (side.codes.reshape(-1, 2) for side in (queries, targets))
    differ = jax.lax.population_count(x[:, None] ^ y[None]).sum(-1)
    shape = jax.ShapeDtypeStruct(differ.shape, jnp.int32)
    distances = edit_table if edits else sum_table
    given = queries.letters, targets.letters, limits.table, sizes
    total = jax.pure_callback(distances, shape, *given)
    q, t = jnp.arange(len(x))[:, None], jnp.arange(len(y))[None]
    here = (q >= sizes.first) & (q < sizes.last) & (t < sizes.targets)
    here &= (differ <= limits.bits[None]) & (total <= limits.sums[None])
    return here & ((t > q) | (sizes.triangle == 0)), total


def sum_table(x, y, table, sizes):
    """Sums of the table over the positions, of all pairs."""
    x, y = (
        np.asarray(side).view(np.uint8)[:, : 4 * int(sizes.words)] for side in (x, y)
    )
    place = x[:, None].astype(np.int32) * 32 + y[None]
    return np.asarray(table)[place].sum(-1).astype(np.int32)


def edit_table(match, y, _, sizes):
    """Edit distances of all pairs; queries are match words."""
    match = np.asarray(match)
    queries = [
        [next((c for c in range(31) if row[c] >> k & 1), 31) for k in range(sizes.rows)]
        for row in match.tolist()
    ]
    targets = np.asarray(y).view(np.uint8)[:, : int(sizes.words)].tolist()
    words = [["".join(map(chr, row)) for row in side] for side in (queries, targets)]
    return np.array([[oracle.levenshtein(a, b) for b in words[1]] for a in words[0]],
                    np.int32)  # fmt: skip


@partial(jax.jit, static_argnames="edits")
def near_ends(*given, edits):
    counts = near(*given, edits)[0].sum(1)
    return jnp.cumsum(counts), counts.sum().astype(jnp.float32)


@partial(jax.jit, static_argnames=("room", "edits"))
def near_list(queries, targets, limits, sizes, ends, first, *, room, edits):
    here, total = near(queries, targets, limits, sizes, edits)
    q, t = jnp.nonzero(here, size=here.size)
    pairs = jnp.pad(jnp.stack([q, t, total[q, t]]), ((0, 0), (0, room)))
    return jax.lax.dynamic_slice_in_dim(pairs.astype(jnp.int32), first, room, 1)


PLAIN = SimpleNamespace(
    NearRows=kp.NearRows, NearLimits=kp.NearLimits, NearSizes=kp.NearSizes,
    near_ends=near_ends, near_list=near_list, match_rows=kp.match_rows,
)  # fmt: skip


@pytest.fixture(params=[(32, 2**12, 2**30), (16, 8, 50)], ids=["roomy", "narrow"])
def by_plain_kernels(request, on_gpu, monkeypatch):
    room, listed, most = request.param
    monkeypatch.setattr(rectangles, "_kernels", lambda: PLAIN)
    monkeypatch.setattr(rectangles, "LEAST_ROOM", 16)
    monkeypatch.setattr(rectangles, "MAX_ROOM", room)
    monkeypatch.setattr(rectangles, "LIST_ROOM", listed)
    monkeypatch.setattr(rectangles, "LEAST_LIST", 4)
    monkeypatch.setattr(rectangles, "MAX_NEAR", most)
    monkeypatch.setattr(graph, "LEAST_OF_KERNELS", 0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"fixed_gap": False, "cutoff": 30}, marks=pytest.mark.slow),
        {"metric": "levenshtein", "cutoff": 3},
    ],
    ids=str,
)
def test_edges_by_kernels(by_plain_kernels, options):
    edits = "metric" in options
    texts = oracle.receptors(*(24, 9, (9, 12)) if edits else (70, 9, (8, 24)))
    ours = jaxalign.repertoire_graph(texts, **options).edges
    rectangles.on_host = lambda device: True  # undone by the fixture
    expected = jaxalign.repertoire_graph(texts, **options).edges
    assert len(expected)
    for side, other in zip(ours.sides, expected.sides, strict=True):
        assert side.tolist() == other.tolist()


def test_all_pairs_are_near_by_kernels(by_plain_kernels):
    graph = jaxalign.repertoire_graph(TEXTS[:30], TEXTS[20:], cutoff=10**4)
    assert graph.matrix.nnz == 30 * 40


@pytest.mark.parametrize(
    "metric, kernels",
    [
        ("levenshtein", None),
        ("tcrdist", None),
        ("alignment", None),
        ("alignment", PLAIN),
    ],
)
def test_edges_that_no_kernel_computes(metric, kernels, on_gpu, monkeypatch):
    """Without kernels, and by a metric that they do not have."""
    monkeypatch.setattr(rectangles, "_kernels", lambda: kernels)
    texts = TEXTS[:24]
    edges = jaxalign.repertoire_graph(texts, metric=metric).edges
    cutoff = {"tcrdist": 20, "alignment": 10}.get(metric, 2)
    expected = oracle.edges(texts, getattr(oracle, metric), cutoff)
    assert expected
    pairs = zip(edges.i.tolist(), edges.j.tolist(), strict=True)
    assert dict(zip(pairs, edges.distance.tolist(), strict=True)) == expected


def test_all_pairs_are_near_without_kernels(on_gpu):
    graph = jaxalign.repertoire_graph(TEXTS[:30], TEXTS[20:], cutoff=10**4)
    assert graph.matrix.nnz == 30 * 40
