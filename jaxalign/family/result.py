"""An alignment of a query with its relatives, and how it came about."""

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxalign.family import aligned_rows, diversity, formats
from jaxalign.model.profile import Profile
from jaxalign.model.table import Table


@dataclass(frozen=True)
class PassSummary:
    """One pass: how many hits it has, how many of them are new in the next profile, and
    the statistics of its scores.

    ``fitted_to`` is ``database``, ``shuffled`` or ``none``, as in ``search``.
    """

    hits: int
    included: int
    new: int
    lambda_: float
    k: float
    fitted_to: str
    seconds: float


@dataclass(frozen=True, eq=False)
class FamilyAlignment:
    """The relatives of a query, aligned to its positions.

    Attributes
    ----------
    name, query : str
    table : Table
        The hits, from the smallest E-value, with paths. Beside the columns of
        ``search``, ``bias`` is what the composition of a hit costs its score.
    codes : int8 (hits + 1, m)
        Of the residues at the query's positions, -1 where there is none; the first row
        is the query.
    profile : Profile
        Of the hits that are included, for ``search`` and ``align``.
    passes : tuple of PassSummary
    converged : bool
        Whether the last pass included the same hits as the one before.
    """

    name: str
    query: str
    table: Table
    codes: np.ndarray
    profile: Profile
    passes: tuple[PassSummary, ...]
    converged: bool

    def __len__(self) -> int:
        """Rows, the query included."""
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<FamilyAlignment of {self.name!r}: {len(self)} rows, {self._state()}>"

    def _state(self) -> str:
        count = len(self.passes)
        return f"{count} pass{'es' * (count != 1)}, Neff {self.neff:.1f}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the rows, the query's first."""
        targets = self.table.targets.names
        return (self.name, *(targets[k] for k in self.table["target"].tolist()))

    def rows(self) -> list[str]:
        """Rows of a3m: upper case and - at the query's positions, lower case between
        them."""
        return [self.query, *aligned_rows.a3m_rows(self.table, len(self.query))]

    @cached_property
    def neff(self) -> float:
        """The exponential of the mean entropy of the columns, as HH-suite's Neff."""
        return diversity.by_entropy(self.codes)

    def neff_of_clusters(self, identity: float = diversity.CLUSTER_IDENTITY) -> float:
        """The median over positions of rows there, alike ones counted as one: the depth
        of AlphaFold 2."""
        return diversity.by_clusters(self.codes, identity)

    def write(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        force: bool = False,
    ) -> None:
        """Write it as ``a3m``, ``stockholm``, ``hmm`` or ``pssm``.

        Parameters
        ----------
        path : path
            ``-`` is standard output.
        format : str, optional
            By default that of the suffix: .a3m, .sto, .hmm or .pssm.
        force : bool
            Replace an existing file.

        Raises
        ------
        UsageError
            No such format, or the file exists.
        """
        formats.write(self.as_text(), os.fspath(path), format, force)

    def as_text(self) -> formats.AlignedText:
        """Names, places and rows, for the writers."""
        names = ("target_start", "target_end", "evalue", "bits")
        columns = (self.table[name].tolist() for name in names)
        details = zip(self.names[1:], *columns, strict=True)
        headings = [self.name]
        headings += [
            f"{name} {start + 1}-{end} E={evalue:.2g} bits={bits:.1f}"
            for name, start, end, evalue, bits in details
        ]
        first, last = (self.table[x].tolist() for x in ("target_start", "target_end"))
        spans = [(1, len(self.query))]
        spans += [(a + 1, b) for a, b in zip(first, last, strict=True)]
        return formats.AlignedText(
            self.names, headings, spans, self.rows(), self.profile, self.table.scoring
        )
