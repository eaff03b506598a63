"""``jaxalign three``: options -> input -> plan -> alignment."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from jaxalign.cli import inputs, report
from jaxalign.cli.derive import Given
from jaxalign.cli.request import scoring_of
from jaxalign.cli.run import FREE, check_outputs, check_resume, place_of, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import InputError, UsageError
from jaxalign.io import delimited, text_formats
from jaxalign.io.runs import SavedRun, about_file
from jaxalign.model import show
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Mode
from jaxalign.model.scoring import Scoring, as_scoring, preset
from jaxalign.model.triple import TripleAlignment, TripleTable
from jaxalign.options import PlanThree, TripleModel, TripleOptions, shared
from jaxalign.pairs.api import SavedState, select_device
from jaxalign.triples import api

# Of all cells, that a core fills in a second (Xeon with AVX-512), and a GPU by kernels
# (H100)
STATES_A_SECOND = 6e7, 1e12


def three(given: Given) -> int:
    """Align the three records of a file, or with ``--all`` every three that follow each
    other."""
    scoring, path, out = scoring_of(given.scoring), given.sequences, given.out or "-"
    name = given.scoring.preset
    usual: Mode = preset(name).mode if name else "global"
    traceback = None if given.traceback == "none" else given.traceback
    own = {"mode": given.mode or usual, "traceback": traceback, "progress": None}
    chosen = TripleOptions(**shared(given, TripleOptions, **own))
    api.check(scoring, chosen)
    if traceback is None and given.format in ("fasta", "clustal"):
        raise UsageError(
            f"--format {given.format} needs a traceback: leave out --traceback none"
        )
    if given.all:
        if given.format != "pretty":
            raise UsageError(
                f"--all writes a table, not {given.format}: the suffix of -o says "
                "which, .tsv, .csv or .parquet"
            )
        delimited.check_list_format(out)
        if given.resume:
            raise UsageError("--resume is for one triple: leave out --all or --resume")
        for word in ("schedule", "chunk", "height", "depth"):
            if getattr(chosen, word) != getattr(TripleOptions(), word):
                raise UsageError(
                    f"--{word} is for one triple: leave it out beside --all"
                )
    check_resume(given, (path,))
    check_outputs(given, out, (), (path, given.scoring.matrix))
    messages = Messages(given.quiet)
    read = inputs.read((path,), as_scoring(scoring), given.scoring, False, messages)
    scoring, (sequences,) = read.scoring, read.sequences
    if given.all:
        select_device(given.device)
        return _all(given, scoring, chosen, sequences, messages)
    if len(sequences) != 3:
        many = "; --all aligns every three" if len(sequences) % 3 == 0 else ""
        raise UsageError(f"{path} has {len(sequences)} records: three are needed{many}")
    select_device(given.device)
    a, b, c = (sequences.take([n]) for n in range(3))
    words = shared(chosen, PlanThree)
    plan = api.plan_three(a, b, c, scoring, **words)
    lengths = " x ".join(str(n) for n in sequences.lengths)
    sweeps = 2 if plan["traceback"] == "split" or chosen.mode == "local" else 1
    speed = STATES_A_SECOND["pallas" in plan["implementation"]]
    expected = report.long_job(sweeps * plan["cells"] * plan["states"] / speed)
    heading = (
        f"{lengths} residues, {plan['cells']:.3g} cells of {plan['states']} states "
        f"({plan['gap_model']}); {plan['implementation']}, {plan['schedule']}, "
        f"traceback {plan['traceback'] or 'none'}; "
        f"{api.show_bytes(plan['bytes'])} of {api.show_bytes(plan['budget_bytes'])}"
    )

    saved, place = None, place_of(given)
    if place is not None and os.path.isfile(path):

        def describe() -> dict:
            said = {x: repr(y) for x, y in words.items() if x not in FREE}
            said |= {"implementation": plan["implementation"]}
            about = said | {"schedule": plan["schedule"], "format": given.format}
            return report.manifest([about_file(path)], scoring, about)

        saved = SavedRun(place, describe)
    arrays = saved and saved.load(given.resume, given.force)
    state = saved and SavedState(arrays or {}, saved.save)

    def compute(progress: Report | None) -> TripleAlignment:
        settings = replace(chosen, progress=progress)
        return api.align_saved((a, b, c), scoring, settings, state)

    def finish(result: TripleAlignment) -> Iterator[str]:
        force = given.force or arrays is not None  # which an interrupted run wrote
        text_formats.write_triple(result, out, given.format, force)
        # The speed has what the traceback filled again counted in.
        seconds = result.seconds["total"]
        speed = result.cells / seconds / 1e6 if seconds else 0.0
        yield (
            f"score {result.score:g}; {result.cells:.3g} cells in {seconds:.2f} s, "
            f"{speed:.0f} million a second, compiling included"
        )

    return run(given, messages, [heading, *expected], compute, finish, saved=saved)


def _all(
    given: Given,
    scoring: Scoring,
    chosen: TripleOptions,
    sequences: Sequences,
    messages: Messages,
) -> int:
    """Align records 1 to 3, 4 to 6 and so on, and write a table."""
    lengths = sequences.lengths
    if len(lengths) % 3:
        raise InputError(
            f"{given.sequences} has {len(lengths):,} records: --all takes three at a "
            "time, so a multiple of three is needed"
        )
    boxes = (lengths.reshape(-1, 3) + 1.0).prod(axis=1)
    cells, words = float(boxes.sum()), shared(chosen, TripleModel)
    words |= {"traceback": chosen.traceback}
    expected: list[str] = []
    if len(boxes):  # the largest triple says how all are computed
        first = 3 * int(boxes.argmax())
        a, b, c = (sequences.take([first + n]) for n in range(3))
        plan = api.plan_three(a, b, c, scoring, **words)
        speed = STATES_A_SECOND["pallas" in plan["implementation"]]
        expected = report.long_job(cells * plan["states"] / speed)
    heading = (
        f"{show.counted(len(lengths) // 3, 'triple')}, {cells:.3g} cells "
        f"({chosen.gap_model}, {chosen.mode})"
    )
    start = time.perf_counter()

    def compute(progress: Report | None) -> TripleTable:
        own = {"devices": chosen.devices, "progress": progress}
        return api.align_triples(sequences, scoring, **own, **words)

    def finish(table: TripleTable) -> Iterator[str]:
        table.write(given.out or "-", given.force)
        seconds = time.perf_counter() - start
        yield (
            f"{show.counted(len(table), 'triple')} in {seconds:.2f} s, "
            f"{cells / seconds / 1e6:.0f} million cells a second, compiling included"
        )

    return run(given, messages, [heading, *expected], compute, finish)
