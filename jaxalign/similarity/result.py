"""The result of ``hard_alignment``: arrays in a program, alignments outside of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alignment import SPANS, Alignment, between
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring

FIELDS = ["score", "partners", "spans", "lengths"]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=FIELDS,
    meta_fields=["query_first", "mode", "free_ends"],
)
@dataclass(frozen=True, eq=False)
class HardAlignments:
    """The best alignment of a pair, or of every pair of a batch; a pytree.

    Attributes
    ----------
    score : (...) array of the batch shape
    partners : int32 (..., m)
        For each residue of the query that of the target it is paired with, or -1.
    spans : int32 (..., 4)
        query_start, query_end, target_start, target_end of the core, half-open.
    lengths : int32 (..., 2)
    query_first : bool
        Whether the query's residues come first between two pairs, or the target's.
    mode, free_ends : of the call
    """

    score: jax.Array
    partners: jax.Array
    spans: jax.Array
    lengths: jax.Array
    query_first: bool
    mode: str
    free_ends: frozenset[str]

    def alignment(
        self,
        query: str | None = None,
        target: str | None = None,
        scoring: ScoringLike = None,
    ) -> Alignment:
        """The alignment of one pair, on the host.

        Parameters
        ----------
        query, target : str, optional
            The sequences; wildcards of the alphabet where they are left out.
        scoring : Scoring, or the name or file of a matrix, optional
            For letters and identities; its scores are not those of the similarity.

        Raises
        ------
        UsageError
            A batch, or sequences of other lengths.
        """
        if self.score.ndim:
            raise UsageError("a batch of alignments: call alignments()")
        return self._written(self, query, target, as_scoring(scoring))

    def alignments(
        self,
        queries: Iterable[str] | None = None,
        targets: Iterable[str] | None = None,
        scoring: ScoringLike = None,
    ) -> list[Alignment]:
        """The alignments of a batch, on the host, in the order of its flattened axes;
        otherwise as ``alignment``."""
        scoring = as_scoring(scoring)
        flat = [_on_host(getattr(self, name)) for name in FIELDS]
        rank = self.score.ndim
        rows = [x.reshape(flat[0].size, *x.shape[rank:]) for x in flat]
        nobody = [None] * len(rows[0])
        texts = list(queries or nobody), list(targets or nobody)
        if {len(side) for side in texts} != {len(nobody)}:
            raise UsageError(f"{len(nobody)} alignments need as many sequences a side")
        pairs = (
            replace(self, **dict(zip(FIELDS, row, strict=True)))
            for row in zip(*rows, strict=True)
        )
        return [
            self._written(pair, a, b, scoring)
            for pair, a, b in zip(pairs, *texts, strict=True)
        ]

    @staticmethod
    def _written(
        pair: "HardAlignments",
        query: str | None,
        target: str | None,
        scoring: Scoring,
    ) -> Alignment:
        m, n = _on_host(pair.lengths).tolist()
        letter = scoring.alphabet.wildcard or scoring.alphabet.letters[0]
        a, b = query or letter * m, target or letter * n
        if (len(a), len(b)) != (m, n):
            raise UsageError(f"sequences of {len(a)}, {len(b)} for {m} x {n}")
        spans = _on_host(pair.spans).tolist()
        partners = _on_host(pair.partners)[:m]
        operations = between(partners, spans, pair.query_first)
        return Alignment(
            a,
            b,
            _on_host(pair.score).item(),
            **dict(zip(SPANS, spans, strict=True)),
            operations=operations,
            scoring=scoring,
            mode=pair.mode,
            free_ends=pair.free_ends,
            implementation="scored",
        )


def _on_host(x: Any) -> np.ndarray:
    """Of an array of any library; PyTorch says so for a GPU's in a word of its own."""
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)
