"""The result of an audit: the pairs across parts, counted, and the worst of them."""

from concurrent.futures import Future
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from jaxalign.homology import certificate, report
from jaxalign.homology.across import Across
from jaxalign.homology.links import PairCounts
from jaxalign.homology.nearest_across import NearestAcross
from jaxalign.homology.options import Definition, pair_options
from jaxalign.homology.other_measures import OtherMeasure, other_measures
from jaxalign.homology.result import Split
from jaxalign.homology.within import within_parts
from jaxalign.model import frames, show
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.names import written
from jaxalign.model.page import page
from jaxalign.model.table import Table
from jaxalign.pairs import jobs


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Every pair across the parts of a split, compared exactly.

    Attributes
    ----------
    names : tuple of str
        Of the parts.
    parts : tuple of Sequences
    leaks : int
        Pairs across at or above the cut.
    leaking : tuple of bool arrays, one a part
        Which sequences are in one.
    worst : dict of arrays
        The worst pairs, the worst first: ``query``, ``target`` (names), ``query_part``,
        ``target_part``, ``identity`` and ``identities``, the count that it divides.
    alignments : Table
        One alignment of each of them, an optimal one; its path may have fewer
        identical pairs than the best of all optimal paths.
    definition : Definition
    info : dict
        Pairs, and how many of them were aligned, or excluded by which bound.
    left_out : dict
        How many sequences are in no part: those ``removed`` by who made the split, and
        those that its list has ``unlisted``.
    nearest : tuple of NearestAcross, one a part
        Of every sequence the nearest one of another part: exact for those in a leak,
        and with ``full_histogram`` for all.
    """

    names: tuple[str, ...]
    parts: tuple[Sequences, ...]
    leaks: int
    leaking: tuple[np.ndarray, ...]
    worst: dict
    alignments: Table
    definition: Definition
    info: dict
    left_out: dict
    nearest: tuple[NearestAcross, ...]
    future_others: Future | None = None  # where a thread computes ``others``

    @property
    def holds(self) -> bool:
        """Whether no pair across is at or above the cut."""
        return self.leaks == 0

    def certificate(
        self, inputs: list[dict] | None = None, split: dict | None = None
    ) -> dict[str, Any]:
        """The claim of this audit and all that it rests on, as plain values for JSON.

        Parameters
        ----------
        inputs : list of dict, optional
            Files that were read: their ``path``, ``sha256``, ``records``, and what
            became of ``unknown`` letters.
        split : dict, optional
            The file that says which sequence is in which part: ``path``, ``sha256``.

        Returns
        -------
        dict
            Definition, SHA-256 of the parts, pairs, leaks and worst pairs.
        """
        parts = dict(zip(self.names, self.parts, strict=True))
        left_out = self.left_out
        about = certificate.subject(self.definition, parts, left_out, inputs, split)
        rows = zip(*(column.tolist() for column in self.worst.values()), strict=True)
        return about | {
            "pairs": self.info["all"],
            "leaks": self.leaks,
            "holds": self.holds,
            "worst_count": len(self.worst["identity"]),
            "worst": [dict(zip(self.worst, row, strict=True)) for row in rows],
        }

    def leak_columns(self) -> dict[str, Any]:
        """A row a sequence that is in a leak, with its nearest one of another part;
        with ``full_histogram`` a row every sequence."""
        full = self.definition.options.full_histogram
        rows = [
            (a, k)
            for a, (near, leaking) in enumerate(
                zip(self.nearest, self.leaking, strict=True)
            )
            for k in np.flatnonzero((near.part >= 0) & (leaking | full)).tolist()
        ]
        near = [(self.nearest[a], k) for a, k in rows]
        others = [(int(x.part[k]), int(x.place[k])) for x, k in near]
        return {
            "name": np.array([self.parts[a].names[k] for a, k in rows], object),
            "part": np.array([self.names[a] for a, _ in rows], object),
            "leaks": np.array([bool(self.leaking[a][k]) for a, k in rows], bool),
            "nearest": np.array([self.parts[b].names[j] for b, j in others], object),
            "nearest_part": np.array([self.names[b] for b, _ in others], object),
            "identity": np.array([float(x.identity[k]) for x, k in near], float),
        }

    def others(self) -> list[OtherMeasure]:
        """Some pairs across by the measures that were not asked for: no proof."""
        if self.future_others is not None:
            return self.future_others.result()
        return other_measures(list(self.parts), self.definition)

    def report(self, split: Split | None = None, within: bool = True) -> str:
        """A page of HTML for people; of a split it also says shares and labels.

        Parameters
        ----------
        split : Split, optional
        within : bool
            Whether pairs within parts are compared too, for their identities and the
            sizes of components.
        """
        inside = within_parts(self.parts, self.definition, split) if within else None
        sizes = np.zeros(0, int) if inside is None else inside.component_sizes
        sections = (
            report.verdict(self.heading(), self.holds, self.definition),
            report.parts(self.names, self.parts, self.leaking, split),
            report.identities(self.info, inside, self.definition),
            report.components(sizes),
            report.labels(split),
            report.worst_pairs(self.lines(), self.alignments),
            report.computation(self.names, self.parts, self.info),
        )
        return page(self.heading(), sections)

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` of the worst pairs (needs pandas)."""
        return frames.to_pandas(self.worst)

    def __repr__(self) -> str:
        return f"<Audit: {self.heading()}>"

    def __str__(self) -> str:
        return "\n".join((self.heading(), f"a leak: {self.definition}", *self.lines()))

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self)).replace(chr(10), '<br>')}</p>"

    def heading(self) -> str:
        """How many pairs there are, how many leaks, and what is in no part."""
        pairs = show.counted(self.info["all"], "pair")
        parts = zip(self.names, self.parts, strict=True)
        sizes = (f"{written(name)} {len(sequences):,}" for name, sequences in parts)
        leaks = show.counted(self.leaks, "leak") if self.leaks else "no leak"
        text = f"{leaks} in {pairs} across {', '.join(sizes)}"
        left = any(self.left_out.values())
        return (
            f"{text}; {certificate.coverage(self.parts, self.left_out)}"
            if left
            else text
        )

    def lines(self) -> list[str]:
        """The worst pairs, one a line."""
        *names, identities, _ = self.worst.values()
        rows = zip(*(map(written, one) for one in names), identities, strict=True)
        return [
            f"{identity:.4f} {query} ({a}), {target} ({b})"
            for query, target, a, b, identity in rows
        ]


def with_alignments(
    names: tuple[str, ...],
    sets: list[Sequences],
    definition: Definition,
    across: Across,
    counts: PairCounts,
    left_out: dict[str, int],
) -> Audit:
    """The audit of a comparison; the worst pairs are aligned with their paths."""
    worst, kind = across.worst, definition.options.identity
    queries = [sets[a].between(i, i + 1) for a, i in zip(worst.a, worst.i, strict=True)]
    targets = [sets[b].between(j, j + 1) for b, j in zip(worst.b, worst.j, strict=True)]
    sides = [_joined(side, sets[0]) for side in (queries, targets)]
    chosen = replace(
        pair_options(definition, 0.0),
        output="alignment",
        min_identity=None,
        identity=None,
        min_length_ratio=None,
    )
    a, b = sides
    table = jobs.run("zip", a, b, definition.scoring, chosen)
    m, n = a.lengths, b.lengths
    below = {"longer": np.maximum(m, n), "shorter": np.minimum(m, n)}
    below = below.get(kind, (m + n) / 2)
    columns = {
        "query": np.array(sides[0].names, object),
        "target": np.array(sides[1].names, object),
        "query_part": np.array([names[a] for a in worst.a], object),
        "target_part": np.array([names[b] for b in worst.b], object),
        "identity": worst.identity,
        "identities": np.rint(worst.identity * below).astype(np.int64),
    }
    about = counts.about() | {"implementation": counts.implementation}
    return Audit(
        names=names,
        parts=tuple(sets),
        leaks=across.leaks,
        leaking=across.leaking,
        worst=columns,
        alignments=table,
        definition=definition,
        info=about,
        left_out=left_out,
        nearest=across.nearest,
    )


def _joined(singles: list[Sequences], like: Sequences) -> Sequences:
    """Sets of one, as a set."""
    names = [single.names[0] for single in singles]
    return from_parts(names, [single[0] for single in singles], like.alphabet)
