"""``jaxalign three``: options -> input -> plan -> alignment."""

import os
from collections.abc import Iterator
from dataclasses import replace

from jaxalign.cli import inputs, report
from jaxalign.cli.derive import Given
from jaxalign.cli.request import scoring_of
from jaxalign.cli.run import FREE, check_outputs, check_resume, place_of, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import UsageError
from jaxalign.io import text_formats
from jaxalign.io.runs import SavedRun, about_file
from jaxalign.model.choices import Mode
from jaxalign.model.scoring import preset
from jaxalign.model.triple import TripleAlignment
from jaxalign.options import TripleOptions, shared
from jaxalign.pairs.api import SavedState, select_device
from jaxalign.triples import api

# Of all cells, that a core fills in a second (Xeon with AVX-512), and a GPU by kernels
# (H100)
STATES_A_SECOND = 6e7, 1e12


def three(given: Given) -> int:
    """Align the three records of a file."""
    scoring, path, out = scoring_of(given.scoring), given.sequences, given.out or "-"
    name = given.scoring.preset
    usual: Mode = preset(name).mode if name else "global"
    traceback = None if given.traceback == "none" else given.traceback
    own = {"mode": given.mode or usual, "traceback": traceback, "progress": None}
    chosen = TripleOptions(**shared(given, TripleOptions, **own))
    api.check(scoring, chosen)
    if traceback is None and given.format in ("fasta", "clustal"):
        raise UsageError(f"--format {given.format} needs a traceback")
    check_resume(given, (path,))
    check_outputs(given, out, (), (path, given.scoring.matrix))
    messages = Messages(given.quiet)
    read = inputs.read((path,), scoring, given.scoring, False, messages)
    scoring, (sequences,) = read.scoring, read.sequences
    if len(sequences) != 3:
        raise UsageError(f"{path} has {len(sequences)} records: three are needed")
    select_device(given.device)
    a, b, c = (sequences.take([n]) for n in range(3))
    words = {name: x for name, x in vars(chosen).items() if name != "progress"}
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
