"""Three sequences: every model, mode, schedule and traceback against an oracle written
apart, which is itself held to the enumeration of all alignments."""

from itertools import product

import enumerate_triples as brute
import numpy as np
import oracle3
import pytest

import jaxalign
from jaxalign.model.scoring import Scoring

MODELS = ("quasi-natural", "natural", "linear")
MODES = ("global", "semiglobal", "local")
AFFINE, LINEAR = Scoring(gap_open=11, gap_extend=1), Scoring(gap_open=4, gap_extend=4)
CHEAP = Scoring(match=3, mismatch=-2, gap_open=2, gap_extend=1, alphabet="dna")
CASES = list(product(MODELS, MODES))
SOME = ("", "A", "W", "AC", "CA", "AWC", "CCA")


def costs(model):
    return LINEAR if model == "linear" else AFFINE


def cheap(model):
    equal = {"gap_extend": 2} if model == "linear" else {"gap_extend": 1}
    return Scoring(match=3, mismatch=-2, gap_open=2, alphabet="dna", **equal)


def oracle(texts, scoring, model, mode):
    codes = [scoring.alphabet.encode(text) for text in texts]
    return oracle3.score(
        codes, scoring.scores, scoring.open, scoring.extend, model, mode
    )


def brute_best(texts, scoring, model, mode):
    encode, S = scoring.alphabet.encode, scoring.scores

    def sub(x, y):
        return int(S[encode(x)[0], encode(y)[0]])

    return brute.best(texts, sub, scoring.open, scoring.extend, model, mode)


def check(found, want=None):
    """The rows are the sequences, and score what is said."""
    for row, text, span in zip(found.rows, found.sequences, found.spans, strict=True):
        assert row.replace("-", "") == text[slice(*span)]
    assert len({len(row) for row in found.rows}) == 1
    assert ("-",) * 3 not in set(zip(*found.rows, strict=True))
    assert found.rescore() == found.score
    model = found.gap_model
    sub = found.scoring.scores
    encode = found.scoring.alphabet.encode
    again = brute.score(
        found.rows,
        lambda x, y: int(sub[encode(x)[0], encode(y)[0]]),
        found.scoring.open,
        found.scoring.extend,
        model,
        found.mode,
    )
    assert again / found.scoring.scale == found.score
    assert found.score_natural == sum(found.pair_scores) >= found.score
    if want is not None:
        assert found.score == want


def related(seed, lengths, letters="ACDEFGHIKLMNPQRSTVWY"):
    """Three texts cut out of one, with letters changed."""
    rng = np.random.default_rng(seed)
    base = rng.choice(list(letters), max(lengths) + 4)
    out = []
    for length in lengths:
        start = rng.integers(0, len(base) - length + 1)
        text = base[start : start + length].copy()
        change = rng.random(length) < 0.3
        text[change] = rng.choice(list(letters), int(change.sum()))
        out.append("".join(text))
    return out


# The oracle itself -------------------------------------------------------------------


@pytest.mark.parametrize("model, mode", CASES)
def test_oracle_is_the_best_of_all_alignments(model, mode):
    rng = np.random.default_rng(7)
    scoring = cheap(model)
    for lengths in [(2, 2, 2), (1, 2, 2), (2, 0, 1), (0, 0, 2), (2, 1, 2)]:
        texts = ["".join(rng.choice(list("ACG"), n)) for n in lengths]
        want = brute_best(texts, scoring, model, mode)
        assert oracle(texts, scoring, model, mode) == want


@pytest.mark.slow
@pytest.mark.parametrize("model, mode", CASES)
def test_oracle_is_the_best_of_all_alignments_of_more(model, mode):
    rng = np.random.default_rng(8)
    scoring = cheap(model)
    for lengths in [(3, 2, 2), (3, 3, 2), (1, 4, 1), (3, 1, 3)] * 3:
        texts = ["".join(rng.choice(list("ACG"), n)) for n in lengths]
        want = brute_best(texts, scoring, model, mode)
        assert oracle(texts, scoring, model, mode) == want


# Scores and rows ---------------------------------------------------------------------


@pytest.mark.parametrize("model, mode", CASES)
def test_every_tiny_triple_is_the_best_of_all_alignments(model, mode):
    rng = np.random.default_rng(3)
    scoring = cheap(model)
    for lengths in [(2, 2, 2), (0, 1, 2), (2, 1, 0), (0, 0, 0), (1, 1, 1), (2, 0, 0)]:
        texts = ["".join(rng.choice(list("ACG"), n)) for n in lengths]
        found = jaxalign.align_three(*texts, scoring, gap_model=model, mode=mode)
        check(found, brute_best(texts, scoring, model, mode))


@pytest.mark.parametrize("model, mode", CASES)
@pytest.mark.parametrize("traceback", ["store", "split"])
def test_tracebacks_agree_with_the_oracle(model, mode, traceback):
    scoring = costs(model)
    for seed, lengths in enumerate([(9, 12, 7), (4, 13, 1), (11, 11, 11), (0, 5, 9)]):
        texts = related(seed, lengths)
        want = oracle(texts, scoring, model, mode)
        options = {"gap_model": model, "mode": mode}
        found = jaxalign.align_three(*texts, scoring, traceback=traceback, **options)
        check(found, want)
        assert found.traceback == traceback
        bare = jaxalign.align_three(*texts, scoring, traceback=None, **options)
        assert bare.score == want and bare.rows is None


@pytest.mark.parametrize("model, mode", CASES)
def test_layers_agree_with_planes(model, mode):
    scoring = costs(model)
    for seed, lengths in enumerate([(9, 12, 7), (0, 5, 9)]):
        texts = related(seed, lengths)
        options = {"gap_model": model, "mode": mode, "traceback": "store"}
        planes = jaxalign.align_three(*texts, scoring, **options)
        layers = jaxalign.align_three(*texts, scoring, schedule="layered", **options)
        assert layers.rows == planes.rows and layers.spans == planes.spans
        check(layers, planes.score)


@pytest.mark.parametrize("model", MODELS)
def test_layers_split_too(model):
    texts = related(2, (9, 12, 7))
    options = {"gap_model": model, "schedule": "layered", "traceback": "split"}
    found = jaxalign.align_three(*texts, costs(model), **options)
    check(found, oracle(texts, costs(model), model, "global"))


@pytest.mark.parametrize("traceback", ["bt1", "bt2", "bt3"])
@pytest.mark.parametrize("schedule", ["sloped", "layered"])
@pytest.mark.parametrize(
    "model, mode", [("linear", "global"), ("quasi-natural", "semiglobal")]
)
def test_chunks_find_the_stored_path(traceback, schedule, model, mode):
    scoring = costs(model)
    options = {"gap_model": model, "mode": mode, "schedule": schedule}
    for seed, lengths in enumerate([(9, 12, 7), (13, 9, 2)]):
        texts = related(seed, lengths)
        want = jaxalign.align_three(*texts, scoring, traceback="store", **options)
        found = jaxalign.align_three(
            *texts, scoring, traceback=traceback, chunk=3, height=4, **options
        )
        check(found, want.score)
        assert found.rows == want.rows
        assert {"phase 1", "phase 2", "phase 3"} <= set(found.seconds)


@pytest.mark.parametrize("model, mode", CASES)
def test_batches_agree_with_single_triples(model, mode):
    scoring, options = costs(model), {"gap_model": model, "mode": mode}
    triples = [related(s, n) for s, n in enumerate([(9, 12, 7), (0, 5, 9), (3, 3, 3)])]
    found = jaxalign.align_triples(triples, scoring, **options)
    bare = jaxalign.align_triples(triples, scoring, traceback=None, **options)
    for texts, one, score in zip(triples, found, bare, strict=True):
        check(one, oracle(texts, scoring, model, mode))
        assert score.score == one.score and score.rows is None
