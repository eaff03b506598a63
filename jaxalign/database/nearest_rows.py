"""From a scanned corpus to rows: who is nearest, and how the two align."""

import time
from typing import Any

import numpy as np

from jaxalign.database.hit_list import sequences_of
from jaxalign.database.nearest_options import (
    LOCAL,
    NearestOptions,
    definition,
    identity_options,
    local_options,
)
from jaxalign.database.nearest_result import Nearest
from jaxalign.database.nearest_state import NONE, NearestState
from jaxalign.errors import JaxalignError
from jaxalign.model import statistics
from jaxalign.model.alphabet import Sequences
from jaxalign.model.identity import denominator, ratio
from jaxalign.model.scoring import Scoring
from jaxalign.pairs import jobs


def result(
    tests: Sequences,
    state: NearestState,
    scoring: Scoring,
    options: NearestOptions,
    about: dict[str, Any],
) -> Nearest:
    """The rows of a scanned corpus."""
    indices, corpus = sequences_of(state.records, scoring.alphabet)
    test, rank = _rows_of(state)
    index = state.index[test, rank]
    nearest = np.where(index == NONE, -1, np.searchsorted(indices, index))
    paired = _aligned(tests, corpus, test, nearest, scoring, options)
    m, n = tests.lengths[test], np.append(corpus.lengths, 0)[nearest]
    sizes = state.residues, state.sequences
    known = statistics.parameters(scoring, LOCAL)
    none = nearest < 0
    if options.by == "identity":
        _verify(state.identity[test, rank][~none], paired["identity"][~none])
    score = np.where(none, np.nan, paired["score"])
    positive = np.where(score > 0, score, np.nan)  # else there is no alignment
    return Nearest(
        tests=tests,
        corpus=corpus,
        test=test.astype(np.int32),
        rank=(rank + 1).astype(np.int32),
        nearest=nearest.astype(np.int32),
        index=index,
        identity=np.where(none, np.nan, paired["identity"]),
        identities=paired["identities"].astype(np.int32),
        score=score,
        bits=statistics.bits(positive, known),
        evalue=statistics.evalues(positive, m, *sizes, known),
        test_coverage=ratio(paired["test_span"], np.where(none, 0, m)),
        nearest_coverage=ratio(paired["nearest_span"], np.where(none, 0, n)),
        bands=tuple(float(x) for x in options.bands),
        top=options.top,
        definition=definition(options, scoring),
        by=options.by,
        info={
            "sequences": state.sequences,
            "residues": state.residues,
            "compared": state.sequences * len(tests),
            "aligned": state.aligned,
            "substituted": about["substituted"],
            "implementation": state.implementation,
            "seconds": time.perf_counter() - about["began"],
        },
    )


def _rows_of(state: NearestState) -> tuple[np.ndarray, np.ndarray]:
    """(test, rank from 0 on) of the rows: one where nothing is near."""
    wanted = state.index != NONE
    wanted[:, 0] = True
    tests, ranks = np.nonzero(wanted)
    return tests, ranks


def _verify(scanned: np.ndarray, aligned: np.ndarray) -> None:
    if not np.array_equal(scanned, aligned):
        raise JaxalignError("a pair's identity is not that of its scan: this is a bug")


def _aligned(
    tests: Sequences,
    corpus: Sequences,
    test: np.ndarray,
    nearest: np.ndarray,
    scoring: Scoring,
    options: NearestOptions,
) -> dict[str, np.ndarray]:
    """Identity, and the best local alignment, of the pairs of all rows."""
    names = ("identity", "identities", "score", "test_span", "nearest_span")
    columns = {name: np.zeros(len(test)) for name in names}
    (some,) = np.nonzero(nearest >= 0)
    if not len(some):
        return columns
    sides = tests.take(test[some].tolist()), corpus.take(nearest[some].tolist())
    table = jobs.run("zip", *sides, scoring, identity_options(options))
    below = denominator(options.identity, table.columns, *table.lengths())
    columns["identities"][some] = table["max_identities"]
    columns["identity"][some] = ratio(table["max_identities"], below)
    table = jobs.run("zip", *sides, scoring, local_options(options))
    columns["score"][some] = table["score"]
    columns["test_span"][some] = table["query_end"] - table["query_start"]
    columns["nearest_span"][some] = table["target_end"] - table["target_start"]
    return columns
