# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The definition that the options of a repertoire graph amount to, checked."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.numbers import check_between, check_whole
from jaxalign.model.scoring import Scoring, as_scoring
from jaxalign.model.show import brief
from jaxalign.options import Bad, Chains, Metric, RepertoireOptions
from jaxalign.repertoire.metrics import (
    PositionMetric,
    hamming,
    letter_scores,
    tcrdist_table,
)

METRICS: tuple[str, ...] = get_args(Metric)
CHAINS: tuple[str, ...] = get_args(Chains)
BAD: tuple[str, ...] = get_args(Bad)
CUTOFFS = {"tcrdist": 20, "hamming": 2, "levenshtein": 2, "alignment": 10}
MAX_CUTOFF = 2**20
MAX_NUMBER = 1000  # of the others: sums of distances are int32
GAP_OF_ALIGNMENT = 4  # of each letter, as in scirpy's ``needleman_wunsch``
# Options that mean something for some metrics alone, and their defaults there.
TCRDIST = {
    "weight": 3,
    "gap_penalty": 4,
    "ntrim": 3,
    "ctrim": 2,
    "fixed_gap": True,
    "offset": 4,
    "cap": 4,
}


@dataclass(frozen=True, eq=False)
class GraphDefinition:
    """Which pairs have an edge.

    cutoff : a pair at exactly the cutoff has an edge.
    positions : of ``tcrdist`` and ``hamming``.
    scoring : of ``alignment``, and that whose matrix ``tcrdist`` reads.
    """

    metric: str
    cutoff: int
    positions: PositionMetric | None
    scoring: Scoring | None
    numbers: dict[str, Any]

    __repr__ = brief

    def __str__(self) -> str:
        """The sentence for a methods section."""
        details = ", ".join(f"{name} {x}" for name, x in self.numbers.items())
        matrix = f"{self.scoring.matrix_name}, " if self.scoring else ""
        about = f" ({matrix}{details})" if details else ""
        return f"{self.metric}{about} <= {self.cutoff}"

    def about(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        matrix = {"matrix": self.scoring.matrix_name} if self.scoring else {}
        return {"metric": self.metric, "cutoff": self.cutoff, **matrix, **self.numbers}


def define(options: RepertoireOptions) -> GraphDefinition:
    """A checked definition."""
    for name, choices in (("metric", METRICS), ("bad", BAD), ("chains", CHAINS)):
        value = getattr(options, name)
        if value not in choices and not (name == "chains" and value is None):
            raise UsageError(f"{name} = {value!r}: one of {', '.join(choices)}")
    check_whole("threads", options.threads)
    cutoff = options.cutoff
    cutoff = CUTOFFS[options.metric] if cutoff is None else cutoff
    check_between("cutoff", cutoff, 0, MAX_CUTOFF)
    # Refuse options that mean nothing for the metric.
    uses = {
        "tcrdist": {*TCRDIST, "scoring"},
        "alignment": {"scoring", "gap_penalty"},
    }.get(options.metric, set[str]())
    for name in (*TCRDIST, "scoring"):
        if getattr(options, name) is not None and name not in uses:
            raise UsageError(f"{name} has no effect with metric {options.metric!r}")
    if options.metric == "tcrdist":
        return _tcrdist(options, int(cutoff))
    if options.metric == "alignment":
        return _alignment(options, int(cutoff))
    positions = hamming() if options.metric == "hamming" else None
    return GraphDefinition(options.metric, int(cutoff), positions, None, {})


def _tcrdist(options: RepertoireOptions, cutoff: int) -> GraphDefinition:
    known = {name: getattr(options, name) for name in TCRDIST}
    numbers = {n: TCRDIST[n] if x is None else x for n, x in known.items()}
    if type(numbers["fixed_gap"]) is not bool:
        raise UsageError(f"fixed_gap = {numbers['fixed_gap']!r}: must be True or False")
    for name in numbers.keys() - {"fixed_gap"}:
        least = -MAX_NUMBER if name == "offset" else 0
        check_between(name, numbers[name], least, MAX_NUMBER)
    scoring = as_scoring(options.scoring)
    of_letters = numbers["offset"], numbers["cap"], numbers["weight"]
    positions = PositionMetric(
        tcrdist_table(scoring, *of_letters),
        numbers["gap_penalty"],
        numbers["ntrim"],
        numbers["ctrim"],
        numbers["fixed_gap"],
    )
    return GraphDefinition("tcrdist", cutoff, positions, scoring, numbers)


def _alignment(options: RepertoireOptions, cutoff: int) -> GraphDefinition:
    gap, scoring = options.gap_penalty, options.scoring
    if isinstance(scoring, Scoring) and gap is not None:
        raise UsageError(
            "leave out gap_penalty: the Scoring has gap costs; or give a matrix's name"
        )
    if not isinstance(scoring, Scoring):
        gap = GAP_OF_ALIGNMENT if gap is None else gap
        check_between("gap_penalty", gap, 0, MAX_NUMBER)
        matrix = "BLOSUM62" if scoring is None else as_scoring(scoring).matrix
        scoring = Scoring(matrix, gap, gap)
    # Refuse a scoring by which a sequence is not nearest to itself.
    scores = letter_scores(scoring)
    best = np.diag(scores)
    if (scores > np.minimum(best[:, None], best[None, :])).any() or best.min() < 0:
        raise UsageError(
            f"{scoring.matrix_name}: a letter scores more with another than with "
            "itself, so scores give no distances"
        )
    if (scores != scores.T).any():
        raise UsageError(f"{scoring.matrix_name}: distances need a symmetric matrix")
    numbers = {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend}
    return GraphDefinition("alignment", cutoff, None, scoring, numbers)
