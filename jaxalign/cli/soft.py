"""``jaxalign soft A B``: soft score, posterior, most accurate alignment of a pair."""

from typing import Annotated, Any

from cyclopts import Parameter

from jaxalign.cli.options import (
    FILE,
    FLAG,
    Fasta,
    ModeOptions,
    Options,
    ScoringOptions,
)
from jaxalign.errors import InputError
from jaxalign.model.choices import Mode


def soft(
    a: Fasta,
    b: Fasta,
    /,
    *,
    temperature: float = 1.0,
    threshold: float = 0.0,
    mode: Mode | None = None,
    free_ends: Annotated[str | None, Parameter(metavar="q5,q3,t5,t3")] = None,
    forbid_adjacent_gaps: Annotated[bool, FLAG] = False,
    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT.npz")] = None,
    plot: Annotated[str | None, FILE, Parameter(metavar="OUT.png")] = None,
    force: Annotated[bool, FLAG] = False,
    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False,
    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False,
    scoring: ScoringOptions = ScoringOptions(),  # noqa: B008
) -> int:
    """Probability of every pair of residues, over all alignments of two sequences.

    Prints the soft score, the expected identities and the alignment of maximum
    expected accuracy of the first record of A and the first of B.

    Parameters
    ----------
    a
        Query: FASTA, plain, gz, bz2, xz or zst; - is standard input.
    b
        Target.
    temperature
        Scores are divided by it; 2.89 takes half bits such as BLOSUM62's as they are.
    threshold
        Pairs below this probability never pay in the alignment.
    mode
        semiglobal frees all four end gaps. [global]
    free_ends
        Ends that may hang over free of cost, with mode global.
    forbid_adjacent_gaps
        No insertion next to a deletion, as in biotite.
    out
        npz file: posterior, score, entropy, names, and the alignment, which is not
        printed where it has more than 2,000 columns.
    plot
        Picture of the posterior; its suffix is the format. Needs jaxalign[plot].
    force
        Replace existing output files.
    quiet
        Only warnings and errors.
    verbose
        A traceback with an error.
    """
    from jaxalign.cli import inputs, soft_report, terminal
    from jaxalign.cli.job import Messages
    from jaxalign.cli.request import mode_of, scoring_of
    from jaxalign.io import output, picture

    chosen = Options(scoring=scoring, mode=ModeOptions(mode=mode, free_ends=free_ends))
    scored, (named, ends) = scoring_of(scoring), mode_of(chosen)
    for path in filter(None, (out, plot)):
        output.check(path, force)
        output.check_inputs(path, (a, b, scoring.matrix))
    if plot:
        picture.check(plot)
    messages = Messages(quiet)
    read = inputs.read((a, b), scored, scoring, False, messages.warn)
    scored = read.scoring
    if not all(map(len, read.sequences)):
        raise InputError(f"{a}, {b}: a record is needed in each")
    query, target = (sequences.take([0]) for sequences in read.sequences)
    model: dict[str, Any] = {"mode": named, "free_ends": ends}
    model["temperature"] = temperature
    model["adjacent_gaps"] = not forbid_adjacent_gaps
    report = soft_report.compute(query, target, scored, model, threshold)
    kind = f"{scored.alphabet.kind} alphabet"
    messages.say(f"{scored}; {named}; {kind}; temperature {temperature:g}")
    if out:
        soft_report.save(out, report)
    if plot:
        soft_report.draw(plot, report)
    terminal.answer(soft_report.lines(report))
    return 0
