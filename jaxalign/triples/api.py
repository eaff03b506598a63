# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Three sequences: ``align_three`` and ``align_triples``, numbered straight lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, Unpack

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.inputs import SequenceLike
from jaxalign.keywords import (
    AlignThreeKeywords,
    AlignTriplesKeywords,
    PlanThreeKeywords,
)
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.triple import TripleAlignment
from jaxalign.options import TripleOptions
from jaxalign.runtime.devices import show_bytes
from jaxalign.signatures import with_options
from jaxalign.triples import plan
from jaxalign.triples.options import TripleRequest, check, make_request


@with_options(TripleOptions)
def align_three(
    a: SequenceLike,
    b: SequenceLike,
    c: SequenceLike,
    scoring: ScoringLike = None,
    **options: Unpack[AlignThreeKeywords],
) -> TripleAlignment:
    """Align three sequences exactly: the sum of the scores of the three induced pairs.

    Parameters
    ----------
    a, b, c : str, (name, str), Path, uint8 codes, biotite or Biopython sequence
        See ``jaxalign.inputs``; a file has one record.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62, 11/1 by default.
    gap_model : {"quasi-natural", "natural", "linear"}
        How gaps are counted in the induced pairs. ``quasi-natural`` (Altschul 1989):
        affine, a run of residue/gap columns cut by a gap/gap column opens twice.
        ``natural``: affine, gap/gap columns dropped first. ``linear``: the paper's
        recurrence; needs ``gap_open == gap_extend``.
    mode : {"global", "semiglobal", "local"}
        ``semiglobal``: residue/gap pairs before the first or after the last residue of
        the sequence with the gap are free, pairs of residues still count.
    schedule : {"auto", "sloped", "layered"}
        The order of the cells (Li, Ranka and Sahni, section 4); the result does not
        depend on it. ``auto`` is ``layered`` on a CPU, else ``sloped``, or the GPU
        kernels' own.
    traceback : {"auto", "store", "split", "bt1", "bt2", "bt3"} or None
        None computes the score only. ``store`` keeps the choices of all cells;
        ``split`` divides the longest sequence and conquers; ``auto`` stores what fits
        the budget and splits until it does; ``bt1`` to ``bt3`` are the paper's
        (section 5). Their scores are equal, co-optimal rows may differ.
    memory_budget : int or str, optional
        Bytes, or ``"2GiB"``; by default half of the free memory, on a GPU most of it.
    chunk, height : int, optional
        s and h of the paper, for ``bt1`` to ``bt3``; by default 31 and 100 sloped, 47
        and 40 layered, as there.
    depth : int, optional
        Cells of a chunk along the longest sequence, a multiple of ``height``: cubes of
        s x s x depth, of which a GPU fills more at once. By default all, as in the
        paper; on a GPU, where memory holds their faces and no ``height`` is asked for,
        s x s x s, sub-chunks as high.
    implementation : {"planes", "layers", "pallas"}, optional
        By default the GPU kernels where they run and know what is asked for (``linear``
        and ``quasi-natural`` in all modes), else planes or layers. What is named is not
        exchanged for another.
    progress : callable (cells done, cells in all), optional
        Called after each fill, and within a large one.

    Returns
    -------
    TripleAlignment

    Raises
    ------
    InputError
        A letter is not in the alphabet.
    UsageError
        An unknown word, ``linear`` with ``gap_open != gap_extend``, or ``pallas`` for
        what its kernels do not know.
    DeviceError
        ``pallas`` where there is no GPU for it.
    MemoryPlanError
        The plan exceeds the budget; the message names one that would do.

    Examples
    --------
    >>> import jaxalign
    >>> found = jaxalign.align_three("MKTAYIAKQR", "MKTAIAKQR", "MRTAYLAR")
    >>> found.score, found.rescore(), found.pair_scores
    (57, 57, (31, 22, 4))
    >>> print(*found.rows(), sep="\\n")
    MKTAYIAKQR
    MKTA-IAKQR
    MRTAYLA--R
    """
    # 1 check and encode, 2 plan and run
    scoring, settings = as_scoring(scoring), TripleOptions(**options)
    sequences, request = _request([(a, b, c)], scoring, settings)
    return plan.run(sequences, scoring, request, settings.progress)


@with_options(TripleOptions, like=(align_three,))
def plan_three(
    a: SequenceLike,
    b: SequenceLike,
    c: SequenceLike,
    scoring: ScoringLike = None,
    **options: Unpack[PlanThreeKeywords],
) -> plan.TriplePlan:
    """Plan ``align_three``: who computes, and in how many bytes.

    Raises
    ------
    InputError, UsageError, MemoryPlanError

    Examples
    --------
    >>> import jaxalign
    >>> plan = jaxalign.plan_three("MKTAY", "MKTA", "MRTAY", memory_budget="64MiB")
    >>> plan["cells"], plan["states"], plan["traceback"], plan["dtype"]
    (180, 7, 'store', 'int32')
    """
    scoring = as_scoring(scoring)
    sequences, request = _request([(a, b, c)], scoring, TripleOptions(**options))
    (triple,) = plan.triples_of(sequences, scoring, request)
    return plan.make_plan(triple, request)


@with_options(TripleOptions, like=(align_three,))
def align_triples(
    triples: Iterable[Any],
    scoring: ScoringLike = None,
    *,
    traceback: Literal["auto"] | None = "auto",
    **options: Unpack[AlignTriplesKeywords],
) -> list[TripleAlignment]:
    """Align many triples; those of similar lengths share one compiled program.

    Parameters
    ----------
    triples : iterable of (a, b, c)
        Each sequence as in ``align_three``; a triple may also be a mapping of three
        names to sequences, or the ``Path`` of a file with three records.
    traceback : "auto" or None
        None computes scores only.

    Returns
    -------
    list of TripleAlignment
        In input order. A triple too large for a batch is aligned as by
        ``align_three``.

    Raises
    ------
    InputError, UsageError, MemoryPlanError

    Examples
    --------
    >>> import jaxalign
    >>> triples = [("MKTAY", "MKTA", "MRTAY"), ("MKV", "MRV", "MK")]
    >>> [found.score for found in jaxalign.align_triples(triples)]
    [36, 6]
    """
    scoring = as_scoring(scoring)
    settings = TripleOptions(**options, traceback=traceback)
    if settings.traceback not in ("auto", None):
        raise UsageError(f"traceback {traceback!r}: auto or None for many triples")
    if settings.implementation == "layers":
        raise UsageError("implementation layers: many triples run by planes or pallas")
    sequences, request = _request(triples, scoring, settings)
    # A batch is filled by planes, whatever one triple would be filled by.
    request = replace(request, options=replace(request.options, schedule="sloped"))
    return plan.run_many(sequences, scoring, request, settings.progress)


def _request(
    triples: Iterable[Any], scoring: Scoring, options: TripleOptions
) -> tuple[Sequences, TripleRequest]:
    """Encoded sequences, and the checked options with the fill that runs."""
    check(scoring, options)
    sequences = inputs.threes(scoring, triples)
    return sequences, make_request(options)


__all__ = [
    "TripleOptions",
    "align_three",
    "align_triples",
    "check",
    "plan_three",
    "show_bytes",
]
