# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public function that takes what is near to a test set out of a training set."""

from __future__ import annotations

import time
from functools import partial
from typing import Unpack

from jaxalign import inputs
from jaxalign.corpus import Corpus
from jaxalign.homology import purge_scan
from jaxalign.homology.options import cut_of
from jaxalign.homology.purge_scan import Purge, PurgeState
from jaxalign.inputs import SetLike
from jaxalign.io.corpus_files import files_of
from jaxalign.io.runs import Arrays, SavedRun
from jaxalign.keywords import PurgeKeywords
from jaxalign.model.alphabet import reading_of
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
    """Find the sequences of a training set that are near to any test sequence.

    Every pair is compared, exactly: what stays has no pair at the cut or beyond.

    Parameters
    ----------
    train : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A path is FASTA, plain or gz, bz2, xz, zst, an index (``index_database``), or a
        folder of such files; they are read in blocks and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
    min_identity : float
        The cut, a fraction: a sequence goes that has this identity or more with a test
        sequence.
    min_score, max_evalue : float
        In place of it, for local homology: the best local alignment has this score or
        more, or this E-value or less in a search of all ``train``. A sequence that a
        test sequence equals goes whatever its score.
        Beside ``min_identity``, ``min_score`` is what a pair has to score as well.
    link : {"whole", "local"}, optional
        As in ``nearest``, with the same default and the same score: what goes has its
        nearest test sequence at ``min_identity`` or more.
    min_cov : float, optional
        Only alignments count that have at least this share of both sequences, in mode
        local or with free ends. Then identities are those of the path.
    unknown : {"error", "X", "mask"}
        For files: what to do with a letter the alphabet lacks.

    Returns
    -------
    Purge
        ``removed`` and ``kept`` say who goes and who stays.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError

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
) -> Purge:
    """``purge``, its options packed.

    records : the first of the training set, and one beyond the last, that are looked at
    checkpoint : a file that takes the state about once a minute
    arrays : the state that a run is to go on with
    """
    # 1 check and encode, 2 scan the training set, 3 who goes
    start, scoring = time.perf_counter(), as_scoring(scoring)
    reading = reading_of(options)
    (encoded,) = inputs.sets(scoring, tests, reading=reading)
    inputs.tell_of_file(scoring, train, tests, encoded)
    cut = cut_of(options, scoring, encoded)
    corpus = Corpus(train, scoring, reading, options.memory_budget)
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
    index, test, value = purge_scan.joined(state)
    names, size = tuple(state.names), state.sequences
    return Purge(encoded, index, names, test, value, size, cut, info)


__all__ = [
    "Corpus",
    "Purge",
    "PurgeOptions",
    "cut_of",
    "files_of",
    "purge",
    "purge_of",
]
