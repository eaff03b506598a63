"""What the groups of ``golden_jobs`` have in common: scorings, letters, names."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from golden_draw import AMBIGUOUS, DNA, PROTEIN, RARE, RNA, Draw

import jaxalign

ENDS = {
    "query_start": "q5",
    "query_end": "q3",
    "target_start": "t5",
    "target_end": "t3",
}
END_SETS = [frozenset(s) for k in range(5) for s in combinations(ENDS, k)]
LONGEST = 250  # residues of most groups: with padding, programs for 256
ALL_PROTEIN, FIVE = "ARNDCQEGHILKMFPSTWYVBZX*", "ABCDE"


@dataclass(frozen=True)
class Group:
    """Some jobs: ``run`` takes a folder for its files and returns their results."""

    name: str
    run: Callable[[Path], list]


def skew_matrix(size: int, factor: int = 1):
    """A matrix that is not symmetric, with a diagonal that pays."""
    values = Draw(f"matrix of {size}").numbers(size * size, 11)
    square = np.array(values).reshape(size, size) - 6
    return factor * (square + 6 * np.eye(size, dtype=int))


def matching(match, mismatch, gap_open, gap_extend, alphabet="dna"):
    costs: dict[str, Any] = {"gap_open": gap_open, "gap_extend": gap_extend}
    return jaxalign.Scoring(match=match, mismatch=mismatch, alphabet=alphabet, **costs)


# name: (makes the scoring, letters of the sequences)
SCORINGS = {
    "affine": (jaxalign.Scoring, RARE),
    "linear": (lambda: jaxalign.Scoring("BLOSUM62", 4, 4), PROTEIN),
    "flat": (lambda: jaxalign.Scoring("PAM250", 3, 0), RARE),
    "free": (lambda: jaxalign.Scoring("BLOSUM45", 0, 0), PROTEIN),
    "half": (lambda: jaxalign.Scoring("EBLOSUM62", 10, 0.5), RARE),
    "fine": (lambda: jaxalign.Scoring("PAM30", 9.75, 0.125), PROTEIN),
    "skew": (lambda: jaxalign.Scoring((ALL_PROTEIN, skew_matrix(24)), 9, 2), RARE),
    "large": (
        lambda: jaxalign.Scoring((ALL_PROTEIN, skew_matrix(24, 200)), 1500, 90),
        PROTEIN,
    ),
    "ties": (lambda: matching(1, -1, 1, 1, "protein"), "ACX"),
    "dna": (lambda: jaxalign.Scoring.blast(5, 2, match=2, mismatch=-3), AMBIGUOUS),
    "dna ties": (lambda: matching(1, 0, 1, 0), DNA),
    "dna full": (lambda: jaxalign.Scoring("EDNAFULL", 10, 0.5), AMBIGUOUS),
    "rna": (lambda: matching(5, -4, 8, 6, "rna"), RNA),
    "five": (lambda: jaxalign.Scoring((FIVE, skew_matrix(5)), 4, 1), FIVE),
}


def short(ends) -> str:
    """Free ends as on the command line."""
    return "+".join(ENDS[end] for end in ENDS if end in ends) or "none"


def name_of(call: str, scoring: str, options: dict, note: str = "") -> str:
    """The name of a group: from it comes the seed, so it says what matters."""
    options = dict(options)
    if "free_ends" in options:
        options["free_ends"] = short(options["free_ends"])
    texts = [f"{name}={value}" for name, value in options.items()]
    return " ".join(filter(None, [f"{call}:", scoring, *texts, note]))
