"""Three sequences: ``align_three`` and ``align_triples``, numbered straight lines."""

from dataclasses import replace

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import MODES, as_scoring
from jaxalign.model.triple import GAP_MODELS, TripleAlignment
from jaxalign.runtime.memory import show_bytes
from jaxalign.triples import fill_choice, plan


def align_three(
    a,
    b,
    c,
    scoring=None,
    *,
    gap_model="quasi-natural",
    mode="global",
    schedule="auto",
    traceback="auto",
    memory_budget=None,
    chunk=None,
    height=None,
    depth=None,
    implementation=None,
    progress=None,
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
        and ``quasi-natural``, ``global`` and the core of ``local``), else planes or
        layers. What is named is not exchanged for another.
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
    scoring = as_scoring(scoring)
    words = gap_model, mode, schedule, traceback
    sequences, asked = _asked(
        [(a, b, c)], scoring, words, memory_budget, implementation, chunk, height, depth
    )
    return plan.run(sequences, scoring, asked, progress)


def plan_three(
    a,
    b,
    c,
    scoring=None,
    *,
    gap_model="quasi-natural",
    mode="global",
    schedule="auto",
    traceback="auto",
    memory_budget=None,
    chunk=None,
    height=None,
    depth=None,
    implementation=None,
) -> dict:
    """What ``align_three`` would do and need, without doing it.

    Parameters and errors are those of ``align_three``.

    Examples
    --------
    >>> import jaxalign
    >>> plan = jaxalign.plan_three("MKTAY", "MKTA", "MRTAY", memory_budget="64MiB")
    >>> plan["cells"], plan["states"], plan["traceback"], plan["dtype"]
    (180, 7, 'store', 'int32')
    """
    scoring = as_scoring(scoring)
    words = gap_model, mode, schedule, traceback
    sequences, asked = _asked(
        [(a, b, c)], scoring, words, memory_budget, implementation, chunk, height, depth
    )
    (triple,) = plan.triples_of(sequences, scoring, asked)
    return plan.make_plan(triple, asked)


def align_triples(
    triples,
    scoring=None,
    *,
    gap_model="quasi-natural",
    mode="global",
    traceback="auto",
    memory_budget=None,
    implementation=None,
    progress=None,
) -> list[TripleAlignment]:
    """Align many triples, those of like lengths together in one compiled program.

    Parameters
    ----------
    triples : iterable of (a, b, c)
        Each sequence as in ``align_three``; a triple may also be a mapping of three
        names to sequences, or the ``Path`` of a file with three records.
    traceback : "auto" or None
        None computes scores only.
    gap_model, mode, memory_budget, implementation, progress : as in ``align_three``

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
    if traceback not in ("auto", None):
        raise UsageError(f"traceback {traceback!r}: auto or None for many triples")
    if implementation == "layers":
        raise UsageError("implementation layers: many triples run by planes or pallas")
    words = gap_model, mode, "auto", traceback
    sequences, asked = _asked(triples, scoring, words, memory_budget, implementation)
    asked = replace(asked, schedule="sloped")
    return plan.run_many(sequences, scoring, asked, progress)


def _asked(triples, scoring, words, budget, implementation, *chunks):
    """(encoded sequences, the checked words)."""
    check(scoring, *words)
    chunks = chunks or (None,) * 3
    for name, value in zip(("chunk", "height", "depth"), chunks, strict=True):
        check_whole(name, value)
        if value is not None and words[3] not in plan.CHUNKED:
            raise UsageError(f"{name} = {value}: only bt1, bt2 and bt3 have chunks")
    sequences = inputs.threes(scoring, triples)
    model, mode, schedule, traceback = words
    schedule, kernels, _ = fill_choice.choose(
        implementation, schedule, traceback, plan.CHUNKED
    )
    words = model, mode, schedule, traceback, fill_choice.budget(budget)
    named = implementation == "pallas"
    return sequences, plan.Asked(*words, *chunks, kernels, named)


def check(scoring, gap_model, mode, schedule, traceback) -> None:
    """Refuse unknown words, and affine costs where the model is linear."""
    words = {
        "gap_model": (gap_model, GAP_MODELS),
        "mode": (mode, MODES),
        "schedule": (schedule, plan.SCHEDULES),
        "traceback": (traceback, (*plan.TRACEBACKS, None)),
    }
    for name, (word, known) in words.items():
        if word not in known:
            names = ", ".join(map(str, known))
            raise UsageError(f"unknown {name} {word!r}: one of {names}")
    if gap_model == "linear" and scoring.open != scoring.extend:
        raise UsageError(
            f"gap_model 'linear' needs gap_open == gap_extend, not "
            f"{scoring.gap_open:g} and {scoring.gap_extend:g}"
        )


__all__ = ["align_three", "align_triples", "check", "plan_three", "show_bytes"]
