"""The examples that train an aligner: they start as BLOSUM62, and they learn."""

import sys
from pathlib import Path

import jax
import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import aligner_network as an  # noqa: E402
import dedal  # noqa: E402
import smurf  # noqa: E402
from learn import TRAINED, UNSEEN, padded  # noqa: E402

from jaxalign.io.fasta import pfam  # noqa: E402


@pytest.fixture(autouse=True)
def usual_promotion():
    """Examples, and optax, promote ranks and dtypes, as JAX does by default."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def pairs_of_one(count: int, size: int = 96):
    """Pairs of one sequence and others of COX2_TM."""
    return padded(pfam()["COX2_TM"], [(0, k + 1) for k in range(count)], size)


@pytest.mark.slow
def test_network_starts_as_blosum62_and_sees_no_padding():
    a, b, lengths, _ = pairs_of_one(1)
    net, embedded = an.ResidueEncoder(jax.random.key(0)), an.eqx.filter_jit(an.embedded)
    (x, y), ((opening, _), (extend, _)) = embedded(net, a, b, lengths)
    m, n = lengths[0]
    similarity, scores = x[0] @ y[0].T, an.BLOSUM62[a[0]][:, b[0]] * an.NATS
    np.testing.assert_allclose(similarity[:m, :n], scores[:m, :n], atol=0.05)
    np.testing.assert_allclose(opening[0, :m], 11 * an.NATS, rtol=0.02)
    np.testing.assert_allclose(extend[0, :m], an.NATS, rtol=0.02)
    other = np.where(np.arange(96) < m, a, 5)
    (again, _), _ = embedded(net, other, b, lengths)
    np.testing.assert_array_equal(x[0, :m], again[0, :m])


@pytest.mark.slow
@pytest.mark.parametrize("example", [dedal, smurf])
def test_few_steps_lower_the_loss(example):
    data = pairs_of_one(4)[: 4 if example is dedal else 3]
    net, moves = an.ResidueEncoder(jax.random.key(0)), an.optimiser(1e-3, 100)
    state, losses = moves.init(an.eqx.filter(net, an.eqx.is_array)), []
    for _ in range(5):
        before = net
        net, state, value = an.step(net, state, moves, example.loss, *data)
        losses.append(float(value))
    assert losses[-1] < losses[0] - 0.01
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(net), strict=True):
        assert np.isfinite(new).all() and (new != old).any()


def test_held_out_sequences_are_not_trained_on():
    def letters(codes, lengths):
        rows = zip(codes, lengths, strict=True)
        return {bytes(row[:n].astype(np.uint8)) for row, n in rows}

    a, b, lengths, _ = smurf.split(pfam()["fn3"], np.random.default_rng(0))[0]
    others = smurf.split(pfam()["fn3"], np.random.default_rng(0))[1]
    assert (a == a[0]).all() and (others[0] == a[0]).all()
    assert not letters(b, lengths[:, 1]) & letters(others[1], others[2][:, 1])
    data, held = dedal.split(pfam(), np.random.default_rng(0))
    seen = [letters(data[k], data[2][:, k]) for k in (0, 1)]
    for one in held.values():
        for k in (0, 1):
            assert not (seen[0] | seen[1]) & letters(one[k], one[2][:, k])
    assert not set(TRAINED) & set(UNSEEN)


def test_least_gain_is_over_the_best_other():
    marks = {
        "x": np.full((2, 2, 2), 0.5),
        "y": np.full((2, 2, 2), 0.6),
        "learned": np.stack([np.full((2, 2), 0.9), np.full((2, 2), 0.7)]),
    }
    rows = an.rows_of("f", 3, marks)
    assert len(rows) == 6 and rows[0]["least gain"] is None
    row = rows[2]
    assert (row["aligner"], row["by"]) == ("learned", "path")
    assert row["recall"] == pytest.approx(0.8) and row["sd"] == pytest.approx(0.1)
    assert row["least gain"] == pytest.approx(0.1)
