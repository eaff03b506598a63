"""``jaxalign soft``: the model of one pair, computed, printed and saved."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jaxalign.cli import inputs, report, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import mode_of, scoring_of
from jaxalign.cli.run import check_outputs, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import InputError, UsageError
from jaxalign.io import output, picture
from jaxalign.model.alignment import Alignment
from jaxalign.model.choices import FreeEnd, Mode
from jaxalign.model.names import written
from jaxalign.model.numbers import check_fraction
from jaxalign.model.scoring import as_scoring
from jaxalign.options import PairOptions
from jaxalign.pairs.api import expected_seconds
from jaxalign.similarity.soft import api
from jaxalign.similarity.soft.api import mea_alignment

CELL_BYTES = 4  # of a file, before it is compressed
# Lanes of all diagonals, some 400 bytes each: a process that calls once has its values
# from NumPy before a compiler is done.
MAX_LANES = 1 << 19
LONGEST_PRINTED = 2000  # columns of an alignment; a longer one fills screens
HEADING = "query\ttarget\tsoft_score\texpected_pairs\texpected_identities\tentropy"


@dataclass(frozen=True, eq=False)
class SoftReport:
    """The model of one pair: names, (m, n) posterior, scores in the matrix's units, and
    the alignment of maximum expected accuracy."""

    names: tuple[str, str]
    posterior: np.ndarray
    score: float
    identities: float
    entropy: float
    alignment: Alignment


def soft(given: Given) -> int:
    """``jaxalign soft A B``."""
    a, b, out, plot = given.a, given.b, given.out, given.plot
    if out and out.endswith(tuple(f".{x}" for x in picture.FORMATS)):
        raise UsageError(
            f"{out}: -o writes an npz file; --plot {out} draws the posterior"
        )
    check_fraction("threshold", given.threshold)
    scoring, (mode, ends) = as_scoring(scoring_of(given.scoring)), mode_of(given)
    # The alignment is on standard output.
    check_outputs(given, None, [out], (a, b, given.scoring.matrix), [plot])
    messages = Messages(given.quiet)
    read = inputs.read((a, b), scoring, given.scoring, False, messages)
    scoring = read.scoring
    if not all(map(len, read.sequences)):
        raise InputError(f"{a}, {b}: each file must have a record")
    m, n = (len(x[0]) for x in read.sequences)
    heading = f"{scoring}; {mode}; {scoring.alphabet.kind} alphabet; "
    heading += f"temperature {given.temperature:g}"

    def finish(model: SoftReport) -> Iterator[str]:
        # Behind the work, which refuses a temperature.
        yield heading
        if out:
            output.write_file(out, partial(_save, model))
        if plot:
            picture.heat_map(plot, model.posterior, *model.names)
        terminal.answer(_lines(model))

    def compute(progress: Report | None) -> SoftReport:
        tell, cells = progress or (lambda *_: None), m * n
        tell(0, cells)  # one program computes all of them
        model = _model(given, read, mode, ends)
        tell(cells, cells)
        return model

    seconds = expected_seconds(m * n, "posterior", PairOptions(threads=1))
    size = partial(int, m * n * CELL_BYTES) if out else None
    expected = report.long_job(seconds, size, "posterior at most")
    return run(given, messages, expected, compute, finish)


def _model(
    given: Given, read: Inputs, mode: Mode, free_ends: tuple[FreeEnd, ...] | None
) -> SoftReport:
    """Score, posterior, expected identities, entropy and alignment of the first
    records."""
    (query, target), scoring = (x.take([0]) for x in read.sequences), read.scoring
    codes = query[0].astype(np.int32), target[0].astype(np.int32)
    scores = np.asarray(scoring.scores / scoring.scale, np.float32)
    ends: dict[str, Any] = {"mode": mode, "free_ends": free_ends}
    m, n = map(len, codes)
    values = api.soft_summary(
        (*codes, scores),
        temperature=given.temperature,
        adjacent_gaps=not given.forbid_adjacent_gaps,
        gap_open=scoring.gap_open,
        gap_extend=scoring.gap_extend,
        implementation="numpy" if m * (m + n) <= MAX_LANES else None,
        **ends,
    )
    score, posterior, entropy = map(np.asarray, values)
    if np.isnan(score) or np.isnan(posterior).any():
        raise UsageError(
            f"--temperature {given.temperature:g}: scores are too large for this "
            "temperature; raise it"
        )
    texts, threshold = (query.text(0), target.text(0)), given.threshold
    return SoftReport(
        (query.names[0], target.names[0]),
        posterior,
        float(score),
        float(posterior[scoring.identical[np.ix_(*codes)]].sum()),
        float(entropy),
        mea_alignment(posterior, *texts, scoring, threshold=threshold, **ends),
    )


def _lines(report: SoftReport) -> Iterator[str]:
    """The lines for standard output: numbers, then the alignment of its core."""
    yield HEADING
    expected = report.posterior.sum(), report.identities
    numbers = report.score, *expected, report.entropy
    names = map(written, report.names)
    yield "\t".join([*names, *(f"{number:.4f}" for number in numbers)])
    yield ""
    mea = report.alignment
    pairs = f"{mea.score:.2f} pairs expected"
    if mea.columns > LONGEST_PRINTED:
        yield f"most accurate alignment: {mea.columns:,} columns, {pairs}"
        yield "-o OUT.npz keeps it (rows)"
    else:
        yield f"most accurate alignment: {mea.cigar()}, {pairs}"
        yield from mea.rows()


def _save(report: SoftReport, path: str) -> None:
    """Write the npz file, with rows and CIGAR of the most accurate alignment."""
    with open(path, "wb") as handle:
        np.savez_compressed(
            handle,
            posterior=report.posterior,
            score=report.score,
            entropy=report.entropy,
            names=np.array(report.names),
            rows=np.array(report.alignment.rows()),
            cigar=np.array(report.alignment.cigar()),
        )
