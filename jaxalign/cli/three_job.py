"""The straight line of ``jaxalign three``: options -> input -> plan -> alignment."""

from typing import Any

from jaxalign.cli import inputs, terminal
from jaxalign.cli.job import Messages
from jaxalign.cli.options import ThreeOptions
from jaxalign.cli.request import scoring_of
from jaxalign.errors import UsageError
from jaxalign.io import output, text_formats
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Mode
from jaxalign.model.scoring import Scoring, preset
from jaxalign.model.triple import TripleAlignment
from jaxalign.pairs.api import select_device
from jaxalign.triples import api


def run(path: str, options: ThreeOptions) -> int:
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
    out = options.output.out or "-"
    _check(scoring, options, out)
    output.check_inputs(out, (path, options.scoring.matrix))
    messages = Messages(options.messages.quiet)
    result = inputs.read((path,), scoring, options.scoring, False, messages.warn)
    scoring, read = result.scoring, result.sequences[0]
    if len(read) != 3:
        raise UsageError(f"{path} has {len(read)} records: three are needed")
    select_device(options.machine.device)
    a, b, c = (read.take([n]) for n in range(3))
    words = {name: x for name, x in vars(chosen).items() if name != "progress"}
    messages.say(describe(read, api.plan_three(a, b, c, scoring, **words)))
    wanted = options.messages
    with terminal.reporting(wanted.progress, wanted.quiet) as tell:
        result = api.align_three(a, b, c, scoring, progress=tell, **words)
    text_formats.write_triple(result, out, options.output.format, options.output.force)
    messages.say(_summary(result))
    return 0


def settings(options: ThreeOptions) -> api.TripleOptions:
    """The options of the plan and of the alignment."""
    machine, name = options.machine, options.scoring.preset
    usual: Mode = preset(name).mode if name else "global"
    return api.TripleOptions(
        gap_model=options.mode.gap_model,
        mode=options.mode.mode or usual,
        schedule=machine.schedule,
        traceback=None if machine.traceback == "none" else machine.traceback,
        memory_budget=machine.memory_budget,
        chunk=machine.chunk,
        height=machine.height,
        depth=machine.depth,
        implementation=machine.implementation,
    )


def _check(scoring: Scoring, options: ThreeOptions, out: str) -> None:
    """Refuse what can be, before a file is read."""
    chosen = settings(options)
    api.check(scoring, chosen)
    if chosen.traceback is None and options.output.format in ("fasta", "clustal"):
        raise UsageError(f"--format {options.output.format} needs a traceback")
    output.check(out, options.output.force)


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
