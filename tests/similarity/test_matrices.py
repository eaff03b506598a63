"""All-against-all of embeddings: scores of each pair, whatever the blocks."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign
import kernels_pallas
from jaxalign.errors import UsageError
from jaxalign.runtime import backend
from jaxalign.similarity.hard import matrices

COSTS = {"gap_open": 1.5, "gap_extend": 0.5}


def ragged(lengths, width=5, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, width)).astype(np.float32) for n in lengths]


def one_by_one(queries, targets, **options):
    """Each pair of a padded batch."""
    size, batch = 72, (len(queries), len(targets))
    pairs = [(a @ b.T).astype(np.float32) for a in queries for b in targets]
    tables = np.zeros((len(pairs), size, size), np.float32)
    for table, pair in zip(tables, pairs, strict=True):
        table[: pair.shape[0], : pair.shape[1]] = pair
    lengths = np.array([x.shape for x in pairs])
    scores = jaxalign.hard_alignment(tables, lengths, **options).score
    return np.asarray(scores).reshape(batch)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, memory",
    [
        (COSTS, "1GiB"),
        (
            {"gap_open": (2.0, 1.0), "gap_extend": (0.5, 0.25), "mode": "local"},
            24 * 130**2,
        ),
        (COSTS | {"free_ends": ("query_start", "target_end")}, 24 * 130**2),
    ],
)
def test_scores_are_those_of_pairs(options, memory):
    queries, targets = ragged([3, 70, 5, 0]), ragged([4, 66, 1], seed=1)
    scores = jaxalign.hard_matrix(queries, targets, memory=memory, **options)
    want = one_by_one(queries, targets, **options)
    np.testing.assert_allclose(scores, want, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "halved"),
    [(COSTS, True), (COSTS | {"gap_open": (1.5, 2.0)}, False)],
)
def test_a_set_with_itself(options, halved):
    sequences = ragged([3, 70, 5])
    memory = 24 * 130**2
    blocks = list(jaxalign.stream_hard_matrix(sequences, memory=memory, **options))
    matrix = np.full((3, 3), np.nan)
    for block in blocks:
        at = np.ix_(block.queries, block.targets)
        assert np.isnan(matrix[at]).all()
        matrix[at] = block.scores
    want = one_by_one(sequences, sequences, **options)
    np.testing.assert_allclose(matrix, want, rtol=1e-5, atol=1e-5)
    assert np.array_equal(matrix, matrix.T) == halved


@pytest.mark.slow
def test_narrow_embeddings():
    array = jnp.asarray(np.stack(ragged([6, 6])), jnp.bfloat16)
    scores = jaxalign.hard_matrix(array, **COSTS)
    wide = [np.asarray(x, np.float32) for x in array]
    np.testing.assert_allclose(scores, one_by_one(wide, wide, **COSTS), rtol=1e-5)


def test_embeddings_on_a_cpu_beside_a_gpu(monkeypatch):
    """The kernels are there, but not where the embeddings are."""
    sequences = ragged([3, 7, 5])
    want = jaxalign.hard_matrix(sequences, **COSTS)
    monkeypatch.setattr(backend, "kernels", lambda: (kernels_pallas, ""))
    on_cpu = jnp.asarray(np.stack(ragged([6, 6])))
    assert np.isfinite(jaxalign.hard_matrix(on_cpu, **COSTS)).all()
    np.testing.assert_array_equal(jaxalign.hard_matrix(sequences, **COSTS), want)


def test_few_lengths_and_blocks():
    assert [matrices._padded(n) for n in (0, 64, 65, 97, 129, 200, 300)] == [
        64,
        64,
        96,
        128,
        192,
        256,
        384,
    ]
    sequences = ragged(range(1, 200, 3), 2)
    groups = list(matrices._groups(sequences, 1000))
    numbers = np.concatenate([group.indices for group in groups])
    assert sorted(numbers.tolist()) == list(range(len(sequences)))
    for indices, (count, length) in groups:
        assert len(indices) <= count and count * length <= 1000
        assert max(len(sequences[k]) for k in indices) <= length


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((ragged([3]), ragged([3], 4)), COSTS, "widths"),
        (([np.zeros(3)],), COSTS, "shape"),
        ((ragged([3]),), COSTS | {"memory": 0}, "memory"),
        ((ragged([3]),), COSTS | {"gap_open": -1}, "a cost must be 0 or more"),
        ((ragged([3]),), COSTS | {"gap_open": np.ones((3, 3))}, "numbers"),
    ],
)
def test_meaningless_arguments(arguments, options, text):
    for function in (jaxalign.hard_matrix, jaxalign.stream_hard_matrix):
        with pytest.raises(UsageError, match=text):
            function(*arguments, **options)
