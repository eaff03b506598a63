"""Random triples, their oracle and checks, for the tests of fills and kernels."""

import enumerate_triples as brute
import numpy as np
import oracle3

from jaxalign.model.scoring import Scoring

AFFINE, LINEAR = Scoring(gap_open=11, gap_extend=1), Scoring(gap_open=4, gap_extend=4)


def costs(model):
    return LINEAR if model == "linear" else AFFINE


def oracle(texts, scoring, model, mode):
    codes = [scoring.alphabet.encode(text) for text in texts]
    return oracle3.score(
        codes, scoring.scores, scoring.open, scoring.extend, model, mode
    )


def check(found, want=None):
    """The rows are the sequences, and score what is said."""
    for row, text, span in zip(found.rows(), found.sequences, found.spans, strict=True):
        assert row.replace("-", "") == text[slice(*span)]
    assert len({len(row) for row in found.rows()}) == 1
    assert ("-",) * 3 not in set(zip(*found.rows(), strict=True))
    assert found.rescore() == found.score
    model = found.gap_model
    sub = found.scoring.scores
    encode = found.scoring.alphabet.encode
    again = brute.score(
        found.rows(),
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
