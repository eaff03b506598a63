"""The words that options take, as types; nothing else is imported for them."""

from collections.abc import Collection
from typing import Literal, TypedDict

Mode = Literal["global", "semiglobal", "local"]
FreeEnd = Literal["query_start", "query_end", "target_start", "target_end"]
Output = Literal["score", "identity", "stats", "alignment"]
Identity = Literal[
    "alignment", "full", "aligned", "shorter", "longer", "mean", "query", "target"
]
Coverage = Literal["both", "query", "target"]
Strand = Literal["both", "plus", "minus"]
Statistics = Literal["published", "fitted"]
UnknownLetters = Literal["error", "X", "mask"]
RepeatedNames = Literal["error", "number"]
GapModel = Literal["quasi-natural", "natural", "linear"]


class EndKeywords(TypedDict, total=False):
    """Options for free end gaps of pair alignment."""

    mode: Mode
    free_ends: Collection[FreeEnd] | None
