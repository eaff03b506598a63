# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Remove from a training set the sequences that are similar to a test set."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Unpack

from jaxalign import inputs
from jaxalign.corpus import Corpus
from jaxalign.homology import purge_scan
from jaxalign.homology.api import with_evidence
from jaxalign.homology.options import PurgeCut, cut_of
from jaxalign.homology.purge_scan import Purge, PurgeState
from jaxalign.inputs import SetLike
from jaxalign.io.corpus_files import files_of
from jaxalign.io.runs import Arrays, SavedRun
from jaxalign.keywords import PurgeKeywords
from jaxalign.model.alphabet import Sequences, reading_of
from jaxalign.model.scoring import ScoringLike, as_scoring
from jaxalign.options import PurgeOptions
from jaxalign.runtime.pipeline import read_ahead
from jaxalign.signatures import with_options


@with_options(PurgeOptions)
def purge(
    train: SetLike,
    tests: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[PurgeKeywords],
) -> Purge:
    """Find the sequences of a training set that are similar to any test sequence.

    Every pair is compared, exactly: no kept sequence reaches the cut with any test
    sequence.

    Parameters
    ----------
    train : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A path is FASTA (plain, gz, bz2, xz or zst), an index (``index_database``), or a
        folder of such files. Files are read in blocks, and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
    min_identity : float
        The cut, 0 to 1: remove sequences with at least this identity to a test
        sequence.
    min_score, max_evalue : float
        Other cuts, instead of ``min_identity``: remove sequences whose best local
        alignment has at least this score, or at most this E-value in a search of the
        whole training set. A sequence equal to a test sequence is always removed. With
        ``min_identity``, ``min_score`` is the score that a pair must reach as well.
    link : {"whole", "local"}, optional
        As in ``nearest``, with the same default and the same score: a sequence is
        removed if its nearest test sequence has ``min_identity`` or more.
    min_relative_score : float, optional
        The least score over a self score, as in ``cluster``; without ``min_identity``
        it is the cut.
    edges : Edges, or a list of them, optional
        Tables of pairs with values, in which one name is that of a test sequence.
        Joined by ``or``, a sequence is removed too if a table pairs it with a test
        sequence; its value is nan where no alignment reaches the cut. Joined by
        ``and``, alignments count only with test sequences that the table pairs with
        it. The training set is read once more for its names, which are held in memory.
    min_cov : float, optional
        Count only alignments that cover at least this share of the sequences that
        ``coverage`` names, in either order of the two, in mode local or with free ends.
        Identities are then those of a path.
    coverage : {"both", "query", "target", "shorter"}
        Query and target mean either of the two.
    unknown : {"error", "X", "mask"}
        For files: what to do with a letter that the alphabet lacks.

    Returns
    -------
    Purge
        ``removed`` has the indices of removed sequences, ``kept`` a mask of the others.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``nearest``; UsageError also if the cut is missing or not unique.

    Examples
    --------
    >>> import jaxalign
    >>> train = [("a", "MKTAYIAKQR"), ("b", "GGGG"), ("c", "MKTAYLAKR")]
    >>> clean = jaxalign.purge(train, ["MKTAYIAKR"], min_identity=0.8)
    >>> clean.names, clean.value.round(3).tolist(), clean.kept.tolist()
    (('a', 'c'), [0.9, 0.889], [False, True, False])
    """
    return purge_of(train, tests, scoring, PurgeOptions(**options))


def purge_of(
    train: SetLike,
    tests: SetLike,
    scoring: ScoringLike,
    options: PurgeOptions,
    records: tuple[int, int | None] = (0, None),
    checkpoint: SavedRun | None = None,
    arrays: Arrays | None = None,
    cut: PurgeCut | None = None,
) -> Purge:
    """``purge``, its options packed.

    records : the first of the training set, and one beyond the last, that are looked at
    checkpoint : a file that takes the state about once a minute
    arrays : the state that a run is to go on with
    cut : that of the options, ``with_edges``, where the caller has it
    """
    # 1 check and encode, 2 scan the training set, 3 who goes
    start, scoring = time.perf_counter(), as_scoring(scoring, tracks=True)
    reading = reading_of(options)
    (encoded,) = inputs.sets(scoring, tests, reading=reading)
    inputs.tell_of_file(scoring, train, tests, encoded)
    corpus = Corpus(train, scoring, reading, options.memory_budget)
    if cut is None:
        cut = with_edges(cut_of(options, scoring, encoded), train, encoded, corpus)
    state = PurgeState() if arrays is None else purge_scan.state_of(arrays)
    size = corpus.size() if cut.column == "evalue" else (0, 0)
    report_progress = corpus.teller(options.progress, encoded)
    first, stop = records
    blocks = read_ahead(corpus.blocks(first + state.sequences, stop))
    for so_far in purge_scan.scan(encoded, blocks, cut, size, state, report_progress):
        if checkpoint is not None:
            checkpoint.save(partial(purge_scan.arrays_of, so_far))
    info = {
        "sequences": state.sequences,
        "residues": state.residues,
        "compared": state.sequences * len(encoded),
        "aligned": min(state.aligned, state.sequences * len(encoded)),
        "substituted": corpus.substituted,
        "implementation": state.implementation,
        "seconds": time.perf_counter() - start,
    }
    index, test, value, strand = purge_scan.joined(state)
    names, size = tuple(state.names), state.sequences
    return Purge(encoded, index, names, test, value, strand, size, cut, info)


def with_edges(
    cut: PurgeCut, train: SetLike, tests: Sequences, corpus: Corpus
) -> PurgeCut:
    """Read the tables of a cut with edges; their names are those of two sets.

    Raises InputError: as ``with_evidence``
    """
    if cut.options.edges is None:
        return cut
    assert cut.definition is not None
    path = str(train) if isinstance(train, inputs.PATH) else None
    sets = (tests.names, None), (corpus.names(), path)
    return replace(cut, definition=with_evidence(cut.definition, sets))


__all__ = [
    "Corpus",
    "Purge",
    "PurgeOptions",
    "cut_of",
    "files_of",
    "purge",
    "purge_of",
    "with_edges",
]
