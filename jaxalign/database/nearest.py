# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public function that finds what is nearest to each of some sequences."""

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
    """Find, for every test sequence, the sequence of a corpus that is nearest to it.

    Every pair is compared: what is not aligned is proved to be no nearer.

    Parameters
    ----------
    corpus : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A path is FASTA, plain or gz, bz2, xz, zst, an index (``index_database``), or a
        folder of such files; they are read in blocks and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
    by : {"identity", "score", "bits"}
        ``identity``: the largest identity of the definition. ``score``: the best local
        alignment (Smith-Waterman); ``bits`` is the same, where statistics are
        published.
    top : int
        How many of the nearest; of equals the first of the corpus.
    bands : sequence of float
        Edges of the bands of identity.
    identity : {"longer", "shorter", "mean"}
        The length that identical pairs are divided by.
    mode : {"global", "semiglobal", "local"}, optional
        Of the alignment that identical pairs are counted in, the most of all optimal
        ones.
    link : {"whole", "local"}, optional
        In place of these, and ``local`` where none of them is given. ``local`` is the
        best local alignment, over the shorter length, of the sequences whose score with
        the test sequence is ``min_score`` or more. A pair with a sequence that is too
        short for twice such a score is also compared as ``whole``, and the larger
        identity counts. ``whole`` is from end to end, over the longer length.
    min_score : float, optional
        By identity: the score that a pair has to reach. Of ``local`` links the default
        is the score of E = 0.001 in a search of the test set by a sequence of its mean
        length, whatever the corpus.
    min_length_ratio : float, optional
        By identity: compare only pairs whose shorter length is at least this share of
        the longer one.
    filter : bool
        Leave out pairs that provably are no nearer. Results are the same without.
    unknown : {"error", "X", "mask"}
        For files: what to do with a letter the alphabet lacks.
    progress : callable (cells done, cells in all or None), optional

    Returns
    -------
    Nearest
        A row for every test sequence; score, bits, E-value and coverages are those of
        the best local alignment of the two.

    Raises
    ------
    InputError
        A file cannot be read, a letter is not in the alphabet, or a name comes twice.
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
    start, scoring = time.perf_counter(), as_scoring(scoring)
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
