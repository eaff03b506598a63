"""The straight line of ``jaxalign three``: options -> input -> plan -> alignment."""

from typing import Any

from jaxalign.cli import inputs, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.request import scoring_of
from jaxalign.cli.terminal import Messages
from jaxalign.errors import UsageError
from jaxalign.io import output, text_formats
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Mode
from jaxalign.model.scoring import Scoring, preset
from jaxalign.model.triple import TripleAlignment
from jaxalign.options import TripleOptions, shared
from jaxalign.pairs.api import select_device
from jaxalign.triples import api


def three(options: Given) -> int:
    """Align the three records of a file.

    Raises
    ------
    UsageError
        An option breaks a rule, or the file has not three records.
    MemoryPlanError
        The plan exceeds the budget.
    """
    # 1 check options, 2 read, 3 plan and say so, 4 align, 5 write
    scoring, chosen = scoring_of(options.scoring), settings(options)
    path, out = options.sequences, options.out or "-"
    _check(scoring, options, out)
    output.check_inputs(out, (path, options.scoring.matrix))
    messages = Messages(options.quiet)
    result = inputs.read((path,), scoring, options.scoring, False, messages.warn)
    scoring, read = result.scoring, result.sequences[0]
    if len(read) != 3:
        raise UsageError(f"{path} has {len(read)} records: three are needed")
    select_device(options.device)
    a, b, c = (read.take([n]) for n in range(3))
    words = {name: x for name, x in vars(chosen).items() if name != "progress"}
    messages.say(describe(read, api.plan_three(a, b, c, scoring, **words)))
    with terminal.reporting(options.progress, options.quiet) as tell:
        result = api.align_three(a, b, c, scoring, progress=tell, **words)
    text_formats.write_triple(result, out, options.format, options.force)
    messages.say(_summary(result))
    return 0


def settings(given: Given) -> TripleOptions:
    """The options of the plan and of the alignment."""
    name, traceback = given.scoring.preset, given.traceback
    usual: Mode = preset(name).mode if name else "global"
    own = {"mode": given.mode or usual, "progress": None}
    own["traceback"] = None if traceback == "none" else traceback
    return TripleOptions(**shared(given, TripleOptions, **own))


def _check(scoring: Scoring, options: Given, out: str) -> None:
    """Refuse what can be, before a file is read."""
    chosen = settings(options)
    api.check(scoring, chosen)
    if chosen.traceback is None and options.format in ("fasta", "clustal"):
        raise UsageError(f"--format {options.format} needs a traceback")
    output.check(out, options.force)


def describe(sequences: Sequences, plan: Any) -> str:
    """The plan in one line."""
    lengths = " x ".join(str(n) for n in sequences.lengths)
    return (
        f"{lengths} residues, {plan['cells']:.3g} cells of {plan['states']} states "
        f"({plan['gap_model']}); {plan['implementation']}, {plan['schedule']}, "
        f"traceback {plan['traceback'] or 'none'}; "
        f"{api.show_bytes(plan['bytes'])} of {api.show_bytes(plan['budget_bytes'])}"
    )


def _summary(result: TripleAlignment) -> str:
    """Score, time and speed, with what the traceback filled again counted in."""
    seconds = result.seconds["total"]
    speed = result.cells / seconds / 1e6 if seconds else 0.0
    return (
        f"score {result.score:g}; {result.cells:.3g} cells in {seconds:.2f} s, "
        f"{speed:.0f} million a second, compiling included"
    )
