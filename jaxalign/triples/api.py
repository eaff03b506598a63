# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Three sequences: ``align_three`` and ``align_triples``, numbered straight lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
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
from jaxalign.model.triple import TripleAlignment, TripleTable
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
    """Align three sequences with the maximum sum of the three induced pair scores.

    Parameters
    ----------
    a, b, c : str, (name, str), Path, uint8 codes, biotite or Biopython sequence
        See ``jaxalign.inputs``; a file must have one record.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default.
    gap_model : {"quasi-natural", "natural", "linear"}
        How gaps are counted in the induced pairs. ``quasi-natural`` (Altschul 1989):
        affine; a gap interrupted by a gap/gap column opens twice. ``natural``: affine,
        after dropping gap/gap columns. ``linear``: the paper's recurrence, which needs
        ``gap_open == gap_extend``.
    mode : {"global", "semiglobal", "local"}
        How sequences are aligned. ``semiglobal``: residue/gap pairs before the first or
        after the last residue of the sequence with the gap are free; pairs of residues
        still count.
    schedule : {"auto", "sloped", "layered"}
        Order of the cells (Li, Ranka and Sahni, section 4); the result does not depend
        on it. ``auto`` is ``layered`` on a CPU, and on a GPU the order of the kernels
        or ``sloped``.
    traceback : {"auto", "store", "split", "bt1", "bt2", "bt3"} or None
        How the path is found; None computes only the score. ``store`` keeps the choices
        of all cells. ``split`` divides the longest sequence and conquers. ``auto``
        splits until the choices fit the budget, and stores them. ``bt1`` to ``bt3`` are
        the paper's (section 5). All have the same score; co-optimal rows may differ.
    memory_budget : int or str, optional
        Bytes, or text such as ``"2GiB"``. By default half of the free memory, and on a
        GPU most of it.
    chunk, height : int, optional
        s and h of the paper, for ``bt1`` to ``bt3``. By default, as in the paper, 31
        and 100 sloped, 47 and 40 layered.
    depth : int, optional
        Cells of a chunk along the longest sequence, a multiple of ``height``. Chunks of
        s x s x depth let a GPU fill more of them at once. By default the longest
        sequence, as in the paper; on a GPU, if memory holds their faces and no
        ``height`` is given, chunks are s x s x s, and sub-chunks as high.
    implementation : {"planes", "layers", "pallas"}, optional
        Use this implementation or fail. By default the GPU kernels if they can run
        (all gap models and modes), otherwise planes or layers.
    devices : "all", int, or sequence of int or JAX devices, optional
        Devices that share the work. Two fill the halves of a score (not of a local
        one) and of each division by ``split``, all of them the pieces that a path is
        divided into; a path of ``store`` is filled by one. The result does not depend
        on them. By default the first device.
    progress : callable, optional
        Called with (cells done, cells in all), after each fill and within large ones.

    Returns
    -------
    TripleAlignment

    Raises
    ------
    InputError
        If a letter is not in the alphabet.
    UsageError
        If an option is unknown, ``gap_open != gap_extend`` with ``linear``, or
        ``pallas`` does not support the request.
    DeviceError
        If ``pallas`` is named, and no GPU can run it.
    MemoryPlanError
        If the job exceeds the budget; the message names a sufficient one.

    Notes
    -----
    Li, Ranka and Sahni; see the page of papers. Altschul, J. Theor. Biol. 138:297
    (1989).

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
    return align_saved((a, b, c), as_scoring(scoring), TripleOptions(**options))


def align_saved(
    triple: Any, scoring: Scoring, options: TripleOptions, saved: Any = None
) -> TripleAlignment:
    """``align_three``, its options in a record.

    saved : the state of a run that was interrupted, or may be
    """
    # 1 check and encode, 2 plan and run
    sequences, request = _request([triple], scoring, options)
    return plan.run(sequences, scoring, request, options.progress, saved)[0]


@with_options(TripleOptions, like=(align_three,))
def plan_three(
    a: SequenceLike,
    b: SequenceLike,
    c: SequenceLike,
    scoring: ScoringLike = None,
    **options: Unpack[PlanThreeKeywords],
) -> plan.TriplePlan:
    """Plan ``align_three`` without running it: the implementation, traceback and bytes.

    Returns
    -------
    TriplePlan

    Raises
    ------
    InputError, UsageError, DeviceError, MemoryPlanError
        As ``align_three``.

    Examples
    --------
    >>> import jaxalign
    >>> plan = jaxalign.plan_three("MKTAY", "MKTA", "MRTAY", memory_budget="64MiB")
    >>> plan["cells"], plan["states"], plan["traceback"], plan["dtype"]
    (180, 7, 'store', 'int32')
    """
    scoring = as_scoring(scoring)
    sequences, request = _request([(a, b, c)], scoring, TripleOptions(**options))
    return plan.make_plan(plan.triples_of(sequences, scoring, request)[0], request)


@with_options(TripleOptions, like=(align_three,))
def align_triples(
    triples: Iterable[Any] | Sequences | PathLike[str],
    scoring: ScoringLike = None,
    *,
    traceback: Literal["auto"] | None = "auto",
    **options: Unpack[AlignTriplesKeywords],
) -> TripleTable:
    """Align many triples; triples of similar lengths share one compiled program.

    Parameters
    ----------
    triples : iterable of (a, b, c), or Path
        Each sequence as in ``align_three``; a triple may also be a mapping of three
        names to sequences, or the ``Path`` of a file with three records. ``Sequences``,
        or the ``Path`` of a file, are triples of records: 1 to 3, 4 to 6 and so on.
    traceback : "auto" or None
        How the path is found; None computes only scores.
    devices : "all", int, or sequence of int or JAX devices, optional
        Devices that share the batches, largest first. By default the first device.

    Returns
    -------
    TripleTable
        Columns in input order; each triple as a ``TripleAlignment`` by ``table[k]`` or
        a ``for`` loop. A triple too large for a batch is aligned as by ``align_three``.

    Raises
    ------
    InputError, UsageError, DeviceError, MemoryPlanError
        As ``align_three``.

    Examples
    --------
    >>> import jaxalign
    >>> triples = [("MKTAY", "MKTA", "MRTAY"), ("MKV", "MRV", "MK")]
    >>> [found.score for found in jaxalign.align_triples(triples)]
    [36, 6]
    >>> jaxalign.align_triples(triples).to_pandas(["score", "cigar_ab"])
       score cigar_ab
    0     36     4M1I
    1      6       3M
    """
    scoring = as_scoring(scoring)
    settings = TripleOptions(**options, traceback=traceback)
    if settings.traceback not in ("auto", None):
        raise UsageError(
            f"traceback {traceback!r}: give 'auto' or None, or use align_three"
        )
    if settings.implementation == "layers":
        raise UsageError(
            "implementation 'layers' aligns one triple: give 'planes' or 'pallas', or "
            "use align_three"
        )
    sequences, request = _request(triples, scoring, settings)
    # A batch is filled by planes, whatever one triple would be filled by.
    request = replace(request, options=replace(request.options, schedule="sloped"))
    return plan.run_many(sequences, scoring, request, settings.progress)


def _request(
    triples: Any, scoring: Scoring, options: TripleOptions
) -> tuple[Sequences, TripleRequest]:
    """Encoded sequences, and the checked options with the fill that runs."""
    check(scoring, options)
    sequences = inputs.threes(scoring, triples)
    return sequences, make_request(options)


__all__ = [
    "TripleOptions",
    "align_saved",
    "align_three",
    "align_triples",
    "check",
    "plan_three",
    "show_bytes",
]
