"""The result of ``purge``: the sequences that are removed, each with its reason."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from jaxalign.homology.purge_options import PurgeCut
from jaxalign.model import frames
from jaxalign.model.alphabet import Sequences
from jaxalign.model.show import counted


@dataclass(frozen=True, eq=False, repr=False)
class Purge:
    """A training set without what is near to a test set.

    Attributes
    ----------
    tests : Sequences
    removed : int64 (removed,)
        Which sequences of the training set, in its order.
    names : tuple of str
        Theirs.
    test : int64 (removed,)
        The test sequence that each is nearest to, of equals the first.
    value : float64 (removed,)
        Identity, score or E-value of the two.
    size : int
        Sequences of the training set.
    cut : PurgeCut
        When a sequence is too near; ``str`` is the sentence.
    info : dict
    """

    tests: Sequences
    removed: np.ndarray
    names: tuple[str, ...]
    test: np.ndarray
    value: np.ndarray
    size: int
    cut: PurgeCut
    info: dict

    def __len__(self) -> int:
        return len(self.removed)

    @property
    def kept(self) -> np.ndarray:
        """Which sequences stay, bool (size,)."""
        stays = np.ones(self.size, bool)
        stays[self.removed] = False
        return stays

    def columns(self) -> dict[str, Any]:
        """A row a removed sequence: its name, the test sequence, the value."""
        return {
            "name": np.array(self.names, object),
            "test": np.array([*self.tests.names, ""], object)[self.test],
            self.cut.column: self.value,
        }

    def to_pandas(self) -> Any:
        """``pandas.DataFrame``, one row a removed sequence (needs pandas)."""
        return frames.to_pandas(self.columns())

    def heading(self) -> str:
        """How many are removed, and how many stay."""
        stay = self.size - len(self)
        removed = counted(len(self), "sequence")
        return (
            f"{removed} removed of {self.size:,}, near to one of {len(self.tests):,}; "
            f"{stay:,} stay"
        )

    def __repr__(self) -> str:
        return f"<Purge: {self.heading()}>"

    def __str__(self) -> str:
        return f"{self.heading()}\nnear: {self.cut}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self)).replace(chr(10), '<br>')}</p>"
