"""The result of an audit: the pairs across parts, counted, and the worst of them."""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import combinations
from typing import Any

import numpy as np

from jaxalign.homology import certificate
from jaxalign.homology.across import (
    NearestAcross,
    OtherMeasure,
    WorstPairs,
    compare,
    likely_across,
    no_pairs,
    other_measures,
    zipped_pairs,
)
from jaxalign.homology.certificate import sha256_of
from jaxalign.homology.evidence import divided_groups, located
from jaxalign.homology.links import (
    BINS,
    EDGES,
    PairCounts,
    components,
    kept_together,
    stream_links,
)
from jaxalign.homology.options import (
    LOCAL,
    Definition,
    everything,
    judges_of,
    pair_options,
)
from jaxalign.homology.result import Split
from jaxalign.model import frames, show
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.identity import denominator
from jaxalign.model.names import written
from jaxalign.model.numbers import check_whole, exact, printed_beside
from jaxalign.model.show import page
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.model.system import package_versions
from jaxalign.model.table import along_plus
from jaxalign.pairs import jobs
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import SavedState
from jaxalign.pairs.proofs import proof
from jaxalign.runtime.pipeline import in_background

# ------------------------------------------------------------------------------
# The figures of a report beyond an audit: the pairs within parts, and components.


@dataclass(frozen=True, eq=False)
class Within:
    """Pairs of sequences of one part.

    Attributes
    ----------
    pairs : int
    histogram : int64 (bins,)
        Of identities (``links.EDGES``); of the others it is proved that they are below
        the cut.
    component_sizes : int64 (components,)
    """

    pairs: int
    histogram: np.ndarray
    component_sizes: np.ndarray


def within_parts(
    parts: tuple[Sequences, ...],
    definition: Definition,
    split: Split | None,
    saved: SavedState | None = None,
) -> Within:
    """Compare the sequences of every part with each other.

    What a split knows of its links is not computed again, unless all identities are
    wanted.

    saved : the state of a run that was interrupted, or may be
    """
    full = definition.options.full_histogram
    if split is not None and not full and not len(split.removed):
        sizes = [len(sequences) for sequences in parts]
        pairs = sum(n * (n - 1) // 2 for n in sizes)
        return Within(pairs, split.info["histogram"], np.bincount(split.groups))
    counts, sizes = PairCounts(), []
    shown, cut = everything(definition), definition.cut
    for number, sequences in enumerate(parts):
        state = None if saved is None else saved.part(f"within{number}")
        before = {} if state is None else state.all()
        if "sizes" in before:
            counts.restore(before)
            sizes.append(before["sizes"])
            continue
        links = stream_links(sequences, shown, counts, saved=state, least=cut)
        linked = ((x.i[x.identity >= cut], x.j[x.identity >= cut]) for x in links)
        together = kept_together(sequences, definition)
        sizes.append(np.bincount(components(len(sequences), linked, together)))
        if state is not None:
            state.put({"sizes": sizes[-1]} | counts.saved(), without=before)
    return Within(counts.pairs, counts.histogram, np.concatenate(sizes))


# ------------------------------------------------------------------------------
# A report of an audit for people: one page of HTML, which needs no network.

# Options that leave out rows: of the worst pairs all are shown.
FILTERS = ("min_identity", "identity", "min_length_ratio", "min_score",
           "min_relative_score")  # fmt: skip

PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "scipy")
SHOWN = 3  # names in a message
MOST_LABELS = 12  # with a colour; the others are counted together


def verdict(
    heading: str, definition: Definition, holds: bool, measures: list[OtherMeasure]
) -> Iterator[str]:
    """Say whether the split holds, by which definition and which question, and what
    other measures find; a split with fragments across is none that holds."""
    yield "<h1>Audit of a split</h1>"
    hits = [x for x in measures if x.mode == LOCAL and x.score is not None and x.linked]
    kind, says = ("ok", "holds") if holds else ("leak", "does not hold")
    if holds and hits:
        kind, says = "warn", "holds for this question alone"
    yield f'<p class="{kind}"><strong>The split {says}: {escape(heading)}.'
    yield "</strong></p>"
    yield f"<p>The question: {escape(definition.question())}.</p>"
    yield "<p>A leak is a pair of sequences of different parts with "
    yield f"<code>{escape(str(definition))}</code>.</p>"
    if measures:
        described = "; ".join(map(str, measures))
        yield f"<p>By other measures, of likely pairs alone: {escape(described)}.</p>"


def report_parts(
    names: Iterable[str],
    sets: Collection[Sequences],
    leaking: Iterable[np.ndarray],
    split: Split | None,
) -> Iterator[str]:
    """List the parts, and how many of their sequences are in a leak."""
    yield "<h2>Parts</h2><table><tr><th>part</th><th class=n>sequences</th>"
    yield "<th class=n>share</th><th class=n>asked for</th>"
    yield "<th class=n>in a leak</th></tr>"
    count = max(sum(map(len, sets)), 1)
    shares, reached = [""] * len(sets), [len(x) / count for x in sets]
    if split is not None:
        shares = [f"{share:.2%}" for share in split.shares.tolist()]
        reached = split.kept_shares.tolist()
    rows = zip(names, sets, reached, shares, leaking, strict=True)
    for name, sequences, part, share, leaks in rows:
        size = len(sequences)
        yield (
            f"<tr><td>{escape(name)}</td><td class=n>{size:,}</td>"
            f"<td class=n>{part:.2%}</td><td class=n>{share}</td>"
            f"<td class=n>{int(leaks.sum()):,}</td></tr>"
        )
    yield "</table>"
    if split is not None:
        yield f"<p>{escape(split.heading())}; {escape(split.nearness())}.</p>"


def identities(
    info: dict, within: Within | None, definition: Definition
) -> Iterator[str]:
    """Histograms of identities within parts and across them."""
    yield "<h2>Identities</h2>"
    across = "across parts", info["all"], info["histogram"]
    if within is not None:
        inside = "within parts", within.pairs, within.histogram
        yield _histogram(*inside, show.COLOURS[0], definition)
    yield _histogram(*across, show.COLOURS[1], definition)


def _histogram(
    name: str, pairs: int, histogram: np.ndarray, colour: str, definition: Definition
) -> str:
    """Draw bars of identities; the leftmost bar is the pairs known to be below."""
    below, cut = pairs - int(histogram.sum()), definition.cut
    remainder = definition.unshown
    labels = [remainder, "", *(f"{edge:.2f}" for edge in EDGES[:-1])]
    tenths = (f"{k / BINS:.1f}" if k % (BINS // 10) == 0 else "" for k in range(BINS))
    colours = [show.PROVED, "", *[colour] * len(histogram)]
    at = 2 + cut * len(histogram)
    bars = show.log_bars(
        f"Identities of pairs {name}",
        labels,
        [below, 0, *histogram.tolist()],
        colours,
        at,
        ["", "", *tenths],
    )
    above = int(histogram[EDGES[:-1] >= cut - 1e-12].sum())
    caption = (
        f"Identities of {show.counted(pairs, 'pair')} {name}, on a logarithmic scale. "
        f"The grey bar is {show.counted(below, 'pair')} {remainder}; the dashed line "
        f"is the cut, {exact(cut)}"
    )
    return show.figure(bars, f"{caption}; {above:,} pairs are in bars above it.")


def report_components(sizes: np.ndarray) -> Iterator[str]:
    """The sizes of components as a chart."""
    if not len(sizes):
        return
    powers = np.ceil(np.log2(sizes)).astype(int)
    counts = np.bincount(powers).tolist()
    names = ["1", "2", *(f"{2 ** (k - 1) + 1}–{2**k}" for k in range(2, len(counts)))]
    yield "<h2>Components</h2>"
    bars = show.log_bars(
        "Sizes of components",
        names[: len(counts)],
        counts,
        [show.COLOURS[2]] * len(counts),
        unit="components",
    )
    yield show.figure(
        bars,
        f"{len(sizes):,} components of sequences that are connected by pairs at or "
        f"above the cut, by their size; the largest has {int(sizes.max()):,}.",
    )


def labels(split: Split | None) -> Iterator[str]:
    """Shares of labels in every part, where a split has labels."""
    if split is None or split.labels is None or split.label_counts is None:
        return
    names, counts = list(split.labels.names), split.label_counts
    if len(names) > MOST_LABELS:
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        first, remaining = order[: MOST_LABELS - 1], order[MOST_LABELS - 1 :]
        last = counts[:, remaining].sum(axis=1, keepdims=True)
        counts = np.concatenate([counts[:, first], last], axis=1)
        names = [*(names[k] for k in first.tolist()), f"{len(remaining)} others"]
    rows = list(zip(split.names, counts.tolist(), strict=True))
    rows.append(("all", counts.sum(axis=0).tolist()))
    yield "<h2>Labels</h2>"
    yield show.figure(
        show.stacked_bars("Labels of every part", rows, names),
        "Shares of each label in every part and in all parts together; they differ by "
        f"{split.label_error:.2%} at most.",
    )


def worst_pairs(
    lines: Collection[str], alignments: Iterable[Alignment]
) -> Iterator[str]:
    """The worst pairs, each with its alignment."""
    yield f"<h2>The {len(lines)} worst pairs across parts</h2>"
    yield (
        "<p>They are exact below the cut too. The identity is that of the optimal "
        "alignment with the most identical pairs; another optimal one may be "
        "shown.</p>"
    )
    for line, alignment in zip(lines, alignments, strict=True):
        yield f"<details><summary>{escape(written(line))}</summary>"
        yield f"<pre>{escape(str(alignment))}</pre></details>"


def computation(
    names: Iterable[str], sets: Iterable[Sequences], info: dict
) -> Iterator[str]:
    """Pairs that were aligned or excluded, digests of the parts, and versions."""
    yield "<h2>How it was computed</h2>"
    yield f"<p>{info['all']:,} pairs across, {info['aligned']:,} of them aligned.</p>"
    yield "<ul>"
    for bound, count in info["excluded"].items():
        yield f"<li>{count:,} excluded by proof: {escape(bound)}</li>"
    yield "</ul><table>"
    for name, sequences in zip(names, sets, strict=True):
        yield f"<tr><td>SHA-256 of {escape(name)}</td>"
        yield f"<td><code>{sha256_of(sequences)}</code></td></tr>"
    for name, number in package_versions(PACKAGES).items():
        yield f"<tr><td>{escape(name)}</td><td>{escape(number)}</td></tr>"
    yield "</table>"


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """An exact comparison of every pair across the parts of a split.

    Attributes
    ----------
    names : tuple of str
        Names of the parts.
    parts : tuple of Sequences
        The parts.
    leaks : int
        Number of linked pairs across parts: at or above the cut, or by an edge.
    leaking : tuple of bool arrays, one per part
        Which sequences are in a leaking pair.
    worst : dict of arrays
        The worst pairs, worst first: ``query`` and ``target`` (names), ``query_part``,
        ``target_part``, ``identity``, and ``identities``, its numerator; of both
        strands also ``strand``, 1, or -1 of the reverse complement of the query.
    alignments : tuple of Alignment
        An optimal alignment of each worst pair. It may have fewer identical pairs than
        the optimal alignment with most of them, which ``identities`` counts.
    definition : Definition
        When a pair is a leak; ``str`` is the sentence.
    info : dict
        Numbers of pairs, in total, aligned, and excluded by each bound. With edges or
        groups also ``evidence``: ``leaks_by_edges_alone``; ``edges_across``, of each
        table; and names of ``divided`` groups, by column.
    left_out : dict
        Numbers of sequences in no part: ``removed`` by the author of the split, and
        ``unlisted`` in its file.
    nearest : tuple of NearestAcross, one per part
        The nearest sequence in another part, for every sequence: exact for those in a
        leak, and for all with ``full_histogram``.
    reaching : WorstPairs
        Pairs across parts that reach the score of a link, which other measures may
        link.
    edges : WorstPairs
        Pairs across parts that edges alone link, as many as of ``worst``.
    """

    names: tuple[str, ...]
    parts: tuple[Sequences, ...]
    leaks: int
    leaking: tuple[np.ndarray, ...]
    worst: dict
    alignments: tuple[Alignment, ...]
    definition: Definition
    info: dict
    left_out: dict
    nearest: tuple[NearestAcross, ...]
    reaching: WorstPairs = field(default_factory=no_pairs)
    edges: WorstPairs = field(default_factory=no_pairs)
    future_others: Future | None = None  # where a thread computes ``others``

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    @property
    def holds(self) -> bool:
        """Whether no pair across is linked, and no group divided."""
        return self.leaks == 0 and not any(self.divided.values())

    @property
    def divided(self) -> dict[str, list[str]]:
        """Names of the groups with members in several parts, by column."""
        return self.info.get("evidence", {}).get("divided", {})

    def certificate(
        self, inputs: list[dict] | None = None, split: dict | None = None
    ) -> dict[str, Any]:
        """Return the claim of this audit and its evidence, as plain values for JSON.

        Parameters
        ----------
        inputs : list of dict, optional
            Files that were read: ``path``, ``sha256``, ``records``, and what was done
            with ``unknown`` letters.
        split : dict, optional
            The file that assigns sequences to parts: ``path``, ``sha256``.

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
            **({"evidence": self.info["evidence"]} if "evidence" in self.info else {}),
            "worst_count": len(self.worst["identity"]),
            "worst": [dict(zip(self.worst, row, strict=True)) for row in rows],
        }

    def leak_columns(self) -> dict[str, Any]:
        """Return a row for each sequence in a leak, with its nearest one of another
        part; with ``full_histogram`` a row for every sequence."""
        full = self.definition.options.full_histogram
        rows = [
            (a, k)
            for a, (neighbours, leaking) in enumerate(
                zip(self.nearest, self.leaking, strict=True)
            )
            for k in np.flatnonzero((neighbours.part >= 0) & (leaking | full)).tolist()
        ]
        neighbours = [(self.nearest[a], k) for a, k in rows]
        partners = [(int(x.part[k]), int(x.place[k])) for x, k in neighbours]
        return {
            "name": np.array([self.parts[a].names[k] for a, k in rows], object),
            "part": np.array([self.names[a] for a, _ in rows], object),
            "leaks": np.array([bool(self.leaking[a][k]) for a, k in rows], bool),
            "nearest": np.array([self.parts[b].names[j] for b, j in partners], object),
            "nearest_part": np.array([self.names[b] for b, _ in partners], object),
            "identity": np.array([float(x.identity[k]) for x, k in neighbours], float),
        }

    def others(self) -> list[OtherMeasure]:
        """Compare likely pairs across parts, and those that reach the score of a link,
        by other measures, without a proof."""
        if self.future_others is not None:
            return self.future_others.result()
        sets = list(self.parts)
        _, likely = likely_across(sets, self.definition)
        measures = other_measures(sets, self.definition, likely)
        return _with_reaching(sets, self.definition, likely, measures, self.reaching)

    def report(
        self,
        split: Split | None = None,
        within: bool = True,
        saved: SavedState | None = None,
    ) -> str:
        """Write a page of HTML for people; for a split it also shows shares and labels.

        Parameters
        ----------
        split : Split, optional
            The split that was audited.
        within : bool
            Also compare pairs within parts, for their identities and the sizes of
            components.
        saved : SavedState, optional
            State of a run that was interrupted or may be.
        """
        inside = None
        if within:
            inside = within_parts(self.parts, self.definition, split, saved)
        sizes = np.zeros(0, int) if inside is None else inside.component_sizes
        sections = (
            verdict(self.heading(), self.definition, self.holds, self.others()),
            report_parts(self.names, self.parts, self.leaking, split),
            identities(self.info, inside, self.definition),
            report_components(sizes),
            labels(split),
            worst_pairs(self.lines(), self.alignments),
            computation(self.names, self.parts, self.info),
        )
        return page(self.heading(), sections)

    def columns(self) -> dict[str, Any]:
        """Return the worst pairs, worst first."""
        return self.worst

    def __str__(self) -> str:
        lines = *self.lines(), *self.evidence_lines()
        return "\n".join((self.heading(), f"a leak: {self.definition}", *lines))

    def heading(self) -> str:
        """Say how many pairs and leaks there are, and how many sequences are in no
        part."""
        pairs = show.counted(self.info["all"], "pair")
        parts = zip(self.names, self.parts, strict=True)
        sizes = [f"{written(name)} {len(sequences):,}" for name, sequences in parts]
        leaks = show.counted(self.leaks, "leak") if self.leaks else "no leak"
        text = f"{leaks} in {pairs} across {show.listed(sizes)}"
        if by_edges := self.info.get("evidence", {}).get("leaks_by_edges_alone"):
            text += f"; {by_edges:,} by edges alone"
        for title, groups in self.divided.items():
            if groups:
                names = ", ".join(map(written, groups[:SHOWN]))
                names += ", …" * (len(groups) > SHOWN)
                text += f"; {len(groups):,} of {written(title)} divided ({names})"
        incomplete = any(self.left_out.values())
        return (
            f"{text}; {certificate.coverage(self.parts, self.left_out)}"
            if incomplete
            else text
        )

    def lines(self) -> list[str]:
        """Format the worst pairs, one per line."""
        *names, identities, _ = list(self.worst.values())[:6]
        shown = printed_beside(identities, 4, self.definition.cut, 1).tolist()
        strand = self.worst.get("strand", np.full(len(shown), PLUS)).tolist()
        rows = zip(
            *(map(written, column) for column in names), shown, strand, strict=True
        )
        return [
            f"{identity:.4f} {query} ({a}{', minus' * (sign == MINUS)}), {target} ({b})"
            for query, target, a, b, identity, sign in rows
        ]

    def evidence_lines(self) -> list[str]:
        """Format pairs that edges alone link, and groups in several parts."""
        lines, pairs = [], self.edges
        sides = (pairs.a, pairs.i), (pairs.b, pairs.j)
        ends = [
            [
                f"{written(self.parts[a].names[i])} ({written(self.names[a])})"
                for a, i in zip(of_sets.tolist(), places.tolist(), strict=True)
            ]
            for of_sets, places in sides
        ]
        for a, b, identity in zip(*ends, pairs.identity.tolist(), strict=True):
            lines.append(f"{identity:.4f} {a}, {b}, by edges")
        for title, groups in self.divided.items():
            shown = groups[: self.definition.options.worst]
            lines += [f"{written(title)} {written(x)} is divided" for x in shown]
        return lines


def _with_reaching(
    sets: list[Sequences],
    definition: Definition,
    pairs: WorstPairs,
    measures: list[OtherMeasure],
    reaching: WorstPairs,
) -> list[OtherMeasure]:
    """Compare pairs that reach the score of a link, too."""
    further = other_measures(sets, definition, reaching.without(pairs))
    if not (measures and further):
        return measures or further
    return [x.and_of(y) for x, y in zip(measures, further, strict=True)]


def audit_of(
    parts: dict[str, Sequences],
    definition: Definition,
    removed: int = 0,
    unlisted: int = 0,
    with_others: bool = False,
    saved: SavedState | None = None,
) -> Audit:
    """Compare every pair across some parts; align the worst with their paths.

    removed, unlisted : sequences in no part, which the result says
    with_others : compute ``others`` of the result in a thread meanwhile
    saved : the state of a run that was interrupted, or may be
    """
    counts, names, sets = PairCounts(), tuple(parts), list(parts.values())
    definition, options = definition.of_sets(sets), definition.options
    check_whole("worst", options.worst)
    plain = dict.fromkeys(FILTERS)
    # The worst pairs have paths: is there room for that of the longest?
    by_longest = sorted(sets, key=lambda x: int(x.lengths.max(initial=0)))[-2:]
    a, b = by_longest[0], by_longest[-1]
    for judge in judges_of(definition):
        if judge.minus:  # whose lengths are those of the other strand
            continue
        path_options = replace(pair_options(judge, 0.0), output="alignment", **plain)
        task = make_task("cross", a, b, definition.scoring, path_options)
        proof.with_room(replace(task, top=options.worst))
    likely = measures = future_others = None
    if with_others:
        (likely,) = in_background(partial(likely_across, sets), [definition], 1)
        measure = partial(other_measures, sets, definition)
        (measures,) = in_background(lambda x: measure(x.result()[1]), [likely], 1)
    across_state = None if saved is None else saved.part("across")
    result = compare(sets, definition, options.worst, counts, across_state, likely)
    if likely is not None and measures is not None:
        compute = partial(_with_reaching, sets, definition, reaching=result.reaching)
        futures = likely, measures
        (future_others,) = in_background(
            lambda x: compute(x[0].result()[1], x[1].result()), [futures], 1
        )
    worst, sides = result.worst, []
    for which, index in ((worst.a, worst.i), (worst.b, worst.j)):
        pairs = list(zip(which.tolist(), index.tolist(), strict=True))
        ids = [sets[a].names[i] for a, i in pairs]
        sides.append(from_parts(ids, [sets[a][i] for a, i in pairs], sets[0].alphabet))
    a, b = sides
    alignments: dict[int, Alignment] = {}
    below = np.zeros(len(a))
    which = np.zeros(len(a), np.int64)
    stranded = definition.options.strand == "both"
    strand = np.full(len(a), PLUS, np.int8)
    if definition.short or stranded:
        _, which = zipped_pairs(definition, a, b, 0)
    for number, judge in enumerate(judges_of(definition)):
        (rows,) = np.nonzero(which == number)
        zipped = a.take(rows), b.take(rows)
        path_options = replace(pair_options(judge, 0.0), output="alignment", **plain)
        path_options = replace(path_options, equals_alike=False)
        table = jobs.run("zip", *zipped, definition.scoring, path_options)
        if judge.minus:
            strand[rows] = MINUS
            table = along_plus(table, zipped[0], strand[rows])
        alignments |= zip(rows.tolist(), table.alignments(), strict=True)
        below[rows] = denominator(judge.length, {}, *table.lengths())
    about = counts.about() | {"implementation": counts.implementation}
    if (evidence := definition.evidence) is not None:
        places = [evidence.places(x) for x in sets]
        couples = list(combinations(places, 2))
        tables = [
            sum(located(x.pairs, *couple).shape[1] for couple in couples)
            for x in evidence.tables
        ]
        about["evidence"] = {
            "leaks_by_edges_alone": result.by_edges,
            "edges_across": tables,
            "divided": divided_groups(evidence.groupings, places),
        }
    columns = {
        "query": np.array(a.names, object),
        "target": np.array(b.names, object),
        "query_part": np.array([names[k] for k in worst.a], object),
        "target_part": np.array([names[k] for k in worst.b], object),
        "identity": worst.identity,
        "identities": np.rint(worst.identity * below).astype(np.int64),
        **({"strand": strand} if stranded else {}),
    }
    return Audit(
        names=names,
        parts=tuple(sets),
        leaks=result.leaks,
        leaking=result.leaking,
        worst=columns,
        alignments=tuple(alignments[k] for k in range(len(a))),
        definition=definition,
        info=about,
        left_out={"removed": removed, "unlisted": unlisted},
        nearest=result.nearest,
        reaching=result.reaching,
        edges=result.edges,
        future_others=future_others,
    )
