# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Find the nearest sequences of a corpus to each test sequence."""

from __future__ import annotations

import time
from functools import partial
from typing import Unpack

from jaxalign import inputs
from jaxalign.corpus import Corpus
from jaxalign.database import nearest_result, nearest_scan, nearest_state
from jaxalign.database.hits import with_room
from jaxalign.database.nearest_result import Nearest, histogram
from jaxalign.database.nearest_result import nearest_report as html
from jaxalign.database.nearest_state import NearestState
from jaxalign.database.options import LOCAL, check_nearest, linked
from jaxalign.database.pieces import Hits, Records
from jaxalign.inputs import SetLike
from jaxalign.io.corpus_files import files_of
from jaxalign.io.runs import Arrays, SavedRun
from jaxalign.keywords import NearestKeywords
from jaxalign.model.alphabet import Sequences, reading_of
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.options import By, Execution, NearestOptions, PairOptions, shared
from jaxalign.runtime.pipeline import read_ahead
from jaxalign.signatures import with_options


@with_options(NearestOptions)
def nearest(
    tests: SetLike,
    corpus: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[NearestKeywords],
) -> Nearest:
    """Find the nearest sequence of a corpus to every test sequence.

    Every pair is compared: a pair is not aligned only if it is provably no nearer.

    Parameters
    ----------
    corpus : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A path is FASTA (plain, gz, bz2, xz or zst), an index (``index_database``), or a
        folder of such files. Files are read in blocks, and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default.
    by : {"identity", "score", "bits"}
        What nearest means. ``identity``: the largest identity. ``score``: the best
        local alignment (Smith-Waterman). ``bits``: the same, for scorings with
        published statistics.
    top : int
        Number of nearest sequences to list. Among equal ones, those first in the
        corpus.
    bands : sequence of float
        Edges of the bands of identity, 0 to 1.
    identity : {"longer", "shorter", "mean"}
        The length that the number of identical pairs is divided by.
    mode : {"global", "semiglobal", "local"}, optional
        How sequences are aligned. Identical pairs are counted in the optimal alignment
        that has most of them.
    link : {"whole", "local"}, optional
        Replaces mode, free ends and ``identity``; ``local`` if none of them is given.
        ``local`` uses the best local alignment, over the shorter length, of pairs that
        score at least ``min_score``. A pair with a sequence too short to score twice
        that is also compared as ``whole``, and the larger identity counts. ``whole``
        aligns from end to end, over the longer length.
    min_score : float, optional
        With ``by="identity"``: the score that a pair must reach. For ``local`` links
        the default is the score with E = 0.001 in a search of the test set by a
        sequence of its mean length; it does not depend on the corpus.
    min_length_ratio : float, optional
        With ``by="identity"``: compare only pairs whose shorter length is at least this
        share of the longer one.
    min_cov : float, optional
        With ``by="identity"``: consider only sequences whose alignment covers at least
        this share of the sequences that ``coverage`` names, in either order of the two,
        in mode local or with free ends. Identities are then those of a path.
    coverage : {"both", "query", "target", "shorter"}
        Query and target mean either of the two.
    filter : bool
        Skip pairs that are provably no nearer. Results do not depend on it.
    unknown : {"error", "X", "mask"}
        For files: what to do with a letter that the alphabet lacks.
    progress : callable, optional
        Called with (cells done, cells in all or None).

    Returns
    -------
    Nearest
        A row per test sequence and rank. Score, bits, E-value and coverages are those
        of the best local alignment of the two sequences.

    Raises
    ------
    InputError
        If a file cannot be read, a letter is not in the alphabet, or a name is
        repeated.
    UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.

    Examples
    --------
    >>> import jaxalign
    >>> corpus = [("a", "MKTAYIAKQR"), ("b", "GGGG"), ("c", "MKTAIAKQR")]
    >>> near = jaxalign.nearest(["MKTAYIA", "GGAG"], corpus)
    >>> near.columns()["nearest"].tolist(), near.identity.round(3).tolist()
    (['a', 'b'], [1.0, 0.75])
    """
    return nearest_of(tests, corpus, scoring, NearestOptions(**options))


def nearest_of(
    tests: SetLike,
    corpus: SetLike,
    scoring: ScoringLike,
    options: NearestOptions,
    checkpoint: SavedRun | None = None,
    arrays: Arrays | None = None,
) -> Nearest:
    """``nearest``, its options packed.

    checkpoint : a file that takes the state about once a minute
    arrays : the state that a run is to go on with
    """
    # 1 check and encode, 2 scan the corpus, 3 the rows
    start, scoring = time.perf_counter(), as_scoring(scoring, tracks=True)
    check_nearest(options, scoring)
    reading = reading_of(options)
    (encoded,) = inputs.sets(scoring, tests, reading=reading)
    inputs.tell_of_file(scoring, corpus, tests, encoded)
    options = linked(options, scoring, encoded)
    source = Corpus(corpus, scoring, reading, options.memory_budget)
    state = scanned(encoded, source, scoring, options, checkpoint, arrays)
    about = {"substituted": source.substituted, "began": start}
    return nearest_result.result(encoded, state, scoring, options, about)


def scanned(
    tests: Sequences,
    source: Corpus,
    scoring: Scoring,
    options: NearestOptions,
    checkpoint: SavedRun | None = None,
    arrays: Arrays | None = None,
) -> NearestState:
    """Find the nearest sequences of the whole corpus."""
    report_progress = source.teller(options.progress, tests)
    local = PairOptions(mode=LOCAL, output="stats", **shared(options, Execution))
    fitting = partial(
        with_room, queries=tests, scoring=scoring, options=local, top=options.top
    )
    if options.by != "identity":
        saved_hits = None if arrays is None else nearest_state.hits_of(arrays)
        blocks = read_ahead(
            fitting(source.blocks(saved_hits[0].sequences if saved_hits else 0))
        )
        on_block = None if checkpoint is None else partial(_save_hits, checkpoint)
        sides = tests, blocks, scoring
        return nearest_scan.scan_by_score(
            *sides, options, report_progress, saved_hits, on_block
        )
    state = nearest_state.no_state(len(tests), options.top)
    if arrays is not None:
        state = nearest_state.state_of(arrays)
    blocks = read_ahead(fitting(source.blocks(state.sequences)))
    for so_far in nearest_scan.scan_by_identity(
        tests, blocks, scoring, options, state, report_progress
    ):
        if checkpoint is not None:
            checkpoint.save(partial(nearest_state.arrays_of, so_far))
    return state


def _save_hits(checkpoint: SavedRun, hits: Hits, first: Records) -> None:
    checkpoint.save(partial(nearest_state.arrays_of_hits, hits, first))


__all__ = [
    "By",
    "Nearest",
    "NearestOptions",
    "check_nearest",
    "files_of",
    "histogram",
    "html",
    "linked",
    "nearest",
    "nearest_of",
]
