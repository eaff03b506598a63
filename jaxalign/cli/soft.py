"""``jaxalign soft``: the model of one pair, computed, printed and saved."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.cli import inputs, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.request import mode_of, scoring_of
from jaxalign.cli.terminal import Messages
from jaxalign.errors import InputError, UsageError
from jaxalign.io import output, picture
from jaxalign.model.alignment import Alignment
from jaxalign.model.names import written
from jaxalign.model.scoring import Scoring
from jaxalign.similarity.soft import api
from jaxalign.similarity.soft.api import mea_alignment

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
    a, b, scoring, force = given.a, given.b, given.scoring, given.force
    out, plot, temperature = given.out, given.plot, given.temperature
    scored, (named, ends) = scoring_of(scoring), mode_of(given)
    for path in filter(None, (out, plot)):
        output.check(path, force)
        output.check_inputs(path, (a, b, scoring.matrix))
    if plot:
        picture.check(plot)
    messages = Messages(given.quiet)
    read = inputs.read((a, b), scored, scoring, False, messages.warn)
    scored = read.scoring
    if not all(map(len, read.sequences)):
        raise InputError(f"{a}, {b}: a record is needed in each")
    query, target = (sequences.take([0]) for sequences in read.sequences)
    model: dict[str, Any] = {"mode": named, "free_ends": ends}
    model["temperature"] = temperature
    model["adjacent_gaps"] = not given.forbid_adjacent_gaps
    report = compute(query, target, scored, model, given.threshold)
    kind = f"{scored.alphabet.kind} alphabet"
    messages.say(f"{scored}; {named}; {kind}; temperature {temperature:g}")
    if out:
        save(out, report)
    if plot:
        draw(plot, report)
    terminal.answer(lines(report))
    return 0


def compute(
    query: Any, target: Any, scoring: Scoring, model: dict[str, Any], threshold: float
) -> SoftReport:
    """Score, posterior, expected identities, entropy and alignment of two single
    sequences.

    Raises
    ------
    UsageError
        Scores are too large for the temperature.
    """
    codes = query[0].astype(np.int32), target[0].astype(np.int32)
    scores = np.asarray(scoring.scores / scoring.scale, np.float32)
    model = model | {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend}
    values = api.soft_summary((*codes, scores), **model)
    score, posterior, entropy = map(np.asarray, values)
    if np.isnan(score) or np.isnan(posterior).any():
        temperature = model["temperature"]
        raise UsageError(f"--temperature {temperature:g}: scores are too large for it")
    texts = query.text(0), target.text(0)
    ends = {name: model[name] for name in ("mode", "free_ends")}
    return SoftReport(
        (query.names[0], target.names[0]),
        posterior,
        float(score),
        float(posterior[scoring.identical[np.ix_(*codes)]].sum()),
        float(entropy),
        mea_alignment(posterior, *texts, scoring, threshold=threshold, **ends),
    )


def lines(report: SoftReport) -> Iterator[str]:
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


def save(path: str, report: SoftReport) -> None:
    """The npz file: ``posterior`` (m, n), ``score``, ``entropy``, ``names``, ``rows``
    and ``cigar`` of the most accurate alignment."""

    def fill(temporary: str):
        with open(temporary, "wb") as handle:
            np.savez_compressed(
                handle,
                posterior=report.posterior,
                score=report.score,
                entropy=report.entropy,
                names=np.array(report.names),
                rows=np.array(report.alignment.rows()),
                cigar=np.array(report.alignment.cigar()),
            )

    output.write_file(path, fill)


def draw(path: str, report: SoftReport) -> None:
    """The picture of the posterior."""
    picture.heat_map(path, report.posterior, *report.names)
