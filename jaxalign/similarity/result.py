"""The result of ``hard_alignment``: arrays in a program, alignments outside of it."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alignment import SPANS, Alignment, between
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.show import brief
from jaxalign.similarity.arguments import Array

FIELDS = ["score", "partners", "spans", "lengths"]


@dataclass(frozen=True, eq=False)
class HardAlignments:
    """The best alignment of a pair, or of every pair of a batch; a pytree.

    Attributes
    ----------
    score : (...) array of the batch shape
    partners : int32 (..., m)
        For each query residue, the target residue paired with it, or -1.
    spans : int32 (..., 4)
        query_start, query_end, target_start and target_end of the core, half-open and
        counted from 0.
    lengths : int32 (..., 2)
        Lengths of the query and the target.
    query_first : bool
        Whether unpaired residues of the query precede those of the target between two
        pairs.
    mode, free_ends
        As in the call.
    implementation : {"scored", "numpy"}
        ``numpy`` for small NumPy arrays, which need no compiler.
    """

    score: Array
    partners: Array
    spans: Array
    lengths: Array
    query_first: bool
    mode: str
    free_ends: frozenset[str]
    implementation: str = "scored"

    __repr__ = brief

    def __post_init__(self):
        if hasattr(sys.modules.get("jax"), "tree_util"):
            make_pytree()

    def alignment(
        self,
        query: str | None = None,
        target: str | None = None,
        scoring: ScoringLike = None,
    ) -> Alignment:
        """Return the alignment of one pair, on the host.

        Parameters
        ----------
        query, target : str, optional
            The sequences; wildcards of the alphabet by default.
        scoring : Scoring, or the name or file of a matrix, optional
            For letters and identities; its scores are not those of the similarity.

        Returns
        -------
        Alignment

        Raises
        ------
        UsageError
            If this is a batch, or a sequence has another length.
        """
        if self.score.ndim:
            raise UsageError("this is a batch: alignments() gives each alignment")
        return self._written(query, target, as_scoring(scoring))

    def alignments(
        self,
        queries: Iterable[str] | None = None,
        targets: Iterable[str] | None = None,
        scoring: ScoringLike = None,
    ) -> list[Alignment]:
        """Return the alignments of a batch, on the host, in order of its flattened
        axes.

        Parameters
        ----------
        queries, targets : iterable of str, optional
            The sequences; wildcards of the alphabet by default.
        scoring : Scoring, or the name or file of a matrix, optional
            For letters and identities; its scores are not those of the similarity.

        Returns
        -------
        list of Alignment

        Raises
        ------
        UsageError
            If the number of sequences, or the length of one, differs from the batch.
        """
        scoring = as_scoring(scoring)
        flat = [_on_host(getattr(self, name)) for name in FIELDS]
        rank, count = self.score.ndim, flat[0].size
        rows = zip(*(x.reshape(count, *x.shape[rank:]) for x in flat), strict=True)
        texts = list(queries or [None] * count), list(targets or [None] * count)
        if {len(side) for side in texts} != {count}:
            raise UsageError(
                f"{count} alignments need {count} queries and {count} targets"
            )
        return [
            replace(self, **dict(zip(FIELDS, row, strict=True)))._written(a, b, scoring)
            for row, a, b in zip(rows, *texts, strict=True)
        ]

    def _written(
        self, query: str | None, target: str | None, scoring: Scoring
    ) -> Alignment:
        m, n = _on_host(self.lengths).tolist()
        letter = scoring.alphabet.wildcard or scoring.alphabet.letters[0]
        a, b = query or letter * m, target or letter * n
        if (len(a), len(b)) != (m, n):
            raise UsageError(
                f"sequences of {len(a)} and {len(b)} letters, where the alignment is "
                f"of {m} x {n}"
            )
        spans = _on_host(self.spans).tolist()
        partners = _on_host(self.partners)[:m]
        operations = between(partners, spans, self.query_first)
        return Alignment(
            a,
            b,
            _on_host(self.score).item(),
            **dict(zip(SPANS, spans, strict=True)),
            operations=operations,
            scoring=scoring,
            mode=self.mode,
            free_ends=self.free_ends,
            implementation=self.implementation,
        )


@cache
def make_pytree() -> None:
    """Tell JAX, which has been imported, of the class."""
    import jax

    fields = ["query_first", "mode", "free_ends", "implementation"]
    jax.tree_util.register_dataclass(HardAlignments, FIELDS, fields)


def _on_host(x: Any) -> np.ndarray:
    """Of an array of any library; PyTorch says so for a GPU's in a word of its own."""
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)
