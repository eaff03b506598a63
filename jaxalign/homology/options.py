# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Check the options of clusters, splits, audits and ``purge``, and define a link.

Two sequences are *linked* where their identity is at or above a cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.homology.evidence import Evidence
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Mode
from jaxalign.model.identity import of_lengths, relative_said
from jaxalign.model.numbers import check_fraction, check_whole, exact, is_number
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.show import counted
from jaxalign.model.statistics import parameters
from jaxalign.model.strands import complement_codes
from jaxalign.model.table import Table
from jaxalign.options import (
    AsLinked,
    Execution,
    FromOutside,
    HomologyOptions,
    LengthIdentity,
    Measure,
    PairOptions,
    PurgeOptions,
    shared,
)
from jaxalign.pairs import jobs
from jaxalign.pairs.options import (
    SHORT_REACH,
    STRANDS_SAID,
    by_reach,
    check_gate,
    coverage_said,
    end_to_end,
    gate_of,
    link_strand,
    reach,
    with_link,
)

Method = Literal["components", "greedy", "complete", "average"]
TooLarge = Literal["error", "keep", "remove"]
METHODS: tuple[str, ...] = get_args(Method)
TOO_LARGE: tuple[str, ...] = get_args(TooLarge)
LENGTHS = ("shorter", "longer", "mean")  # of ``LengthIdentity``
LOCAL = "local"
TWO_PARTS = "an audit needs two or more"
NEEDED = (
    "one cut is needed, and not two: min_identity or min_relative_score, which "
    "min_score may stand beside, min_score alone, or max_evalue"
)


@dataclass(frozen=True, eq=False)
class Definition:
    """When two sequences are linked: their identity is ``cut`` or more.

    Attributes
    ----------
    scoring : Scoring
    options : HomologyOptions
    cut : float
        A fraction. A pair at exactly the cut is linked. 0 where relative scores alone
        decide.
    short : int
        How many of the sequences that are compared are too short for the score of
        ``link="local"``: a pair with one of them is linked, too, if the two are alike
        from end to end. -1 where nobody has counted them.
    evidence : Evidence or None
        Edges and groups beside identities.
    minus : bool
        Of one of ``judges_of``: whether it compares the reverse complements of the
        queries with the targets.
    """

    scoring: Scoring
    options: HomologyOptions
    cut: float
    short: int = 0
    evidence: Evidence | None = None
    minus: bool = False

    def __str__(self) -> str:
        """The sentence for a methods section, without its subject."""
        strands = STRANDS_SAID[self.options.strand]
        return f"{self._aligned()}{strands}{self.evidence or ''}"

    def _aligned(self) -> str:
        """The sentence of alignments along one strand."""
        if not self.short:
            return self._said()
        ends = self.end_to_end()._said(scoring=False)
        few = "a short sequence"
        if self.short > 0:
            few = f"one of {counted(self.short, 'short sequence')}"
        return f"{self._said()}; or, with {few}, {ends}"

    def _said(self, scoring: bool = True) -> str:
        """The sentence of one measure."""
        ratio_text = ""
        if self.options.min_length_ratio is not None:
            least = exact(self.options.min_length_ratio)
            ratio_text = f", length ratio (shorter / longer) >= {least}"
        score = self.options.min_score
        score_text = "" if score is None else f", score >= {exact(score)}"
        score_text += coverage_said(self.options)
        scored = f", {self.scoring}" if scoring else ""
        cuts = [f"identity_{self.length} >= {exact(self.cut)}"] if self.cut else []
        if (least := self.options.min_relative_score) is not None:
            cuts.append(relative_said(self.length, least))
        return f"{', '.join(cuts)}{ratio_text}{score_text}; {self.ends()}{scored}"

    @property
    def mode(self) -> Mode:
        """That of the alignment."""
        return self.options.mode or "global"

    @property
    def length(self) -> LengthIdentity:
        """Whose length identical pairs are divided by."""
        return self.options.identity or "longer"

    @property
    def unshown(self) -> str:
        """Say what the pairs are that no bar of a histogram shows."""
        score, full = self.options.min_score, self.options.full_histogram
        relative = self.options.min_relative_score
        if score is None and relative is None:
            return "not compared" if full else "proved below the cut"
        low = "below the least score"
        if score is not None and relative is None:
            low = f"below score {exact(score)}"
        return low if full else f"{low} or proved below the cut"

    def end_to_end(self) -> Definition:
        """The other definition of pairs with a short sequence: ``link="whole"``."""
        return replace(self, options=end_to_end(self.options), short=0)

    def reach(self, sequences: Sequences) -> np.ndarray:
        """Divide what sequences can score at most, the sum of the best scores of their
        letters, by the least score of ``link="local"``: float64 (n,), infinity where
        there is none."""
        return reach(sequences, self.scoring, self.options)

    def of_sets(self, sets: Iterable[Sequences]) -> Definition:
        """The definition, with the number of the short sequences of some sets."""
        short = (int((self.reach(x) < SHORT_REACH).sum()) for x in sets)
        return replace(self, short=sum(short))

    def question(self) -> str:
        """The question that a link answers."""
        strands = {"both": ", along either strand", "plus": ", along the plus strands"}
        text = self._asked() + strands.get(str(self.options.strand), "")
        if self.evidence is not None:
            text += "; or what edges or groups beside alignments say"
        return text

    def _asked(self) -> str:
        """The question that alignments along one strand answer."""
        length, options = f"over the {self.length} length", self.options
        if not self.cut:
            return f"score of the best {self.ends()}, over a self score"
        if self.mode == "local":
            asks = f"identical residues of the best local alignment, {length}"
            if options.min_cov is None:
                what = "fragments, and domains that make up much of a sequence"
            else:
                whose = {"both": "both", "shorter": "the shorter"}
                covered = whose.get(str(options.coverage), "either")
                what = f"what is aligned over {exact(options.min_cov)} of {covered}"
            asks += f": it links {what}"
            if self.short:
                few = counted(self.short, "short sequence")
                asks += f"; {few} also from end to end, over the longer length"
            return asks
        if self.mode != "global" or options.free_ends:
            asks = f"identical residues of the best alignment with free ends, {length}"
            return f"{asks}: it links overlaps"
        asks = f"identical residues from end to end, {length}"
        if self.length == "shorter" and not options.min_length_ratio:
            return f"{asks}: it links short sequences to unrelated long ones"
        return f"{asks}: it links neither fragments nor shared domains"

    def ends(self) -> str:
        """The mode, and the ends that are free."""
        free, mode = self.options.free_ends, f"{self.mode} alignment"
        return f"{mode} with free {', '.join(sorted(free))}" if free else mode

    def about(self) -> dict[str, Any]:
        """The definition as plain values, for JSON."""
        options, scoring = self.options, self.scoring
        least, score = options.min_length_ratio, options.min_score
        gate: dict[str, Any] = {} if score is None else {"min_score": float(score)}
        if options.min_relative_score is not None:
            gate["min_relative_score"] = float(options.min_relative_score)
        if self.short:
            ends = self.end_to_end()._said(scoring=False)
            gate |= {"short_sequences": self.short, "or_with_a_short_sequence": ends}
        if options.strand is not None:
            gate["strand"] = options.strand
        if options.min_cov is not None:
            gate |= {"min_cov": float(options.min_cov), "coverage": options.coverage}
        return {
            "identity": "the most identical pairs of all optimal alignments / length",
            "denominator": self.length,
            "cut": self.cut,
            "linked": "identity >= cut",
            "min_length_ratio": None if least is None else float(least),
            "mode": self.mode,
            "free_ends": sorted(resolve_ends(self.mode, options.free_ends)),
            "scoring": str(scoring),
            "matrix": scoring.matrix_name,
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "letters": scoring.alphabet.letters,
            **gate,
            **({} if self.evidence is None else self.evidence.about()),
        }


def define(
    scoring: Scoring,
    options: HomologyOptions,
    cut: Any,
    sets: Iterable[Sequences] = (),
) -> Definition:
    """A checked definition.

    cut : of identities; None or 0 where ``min_relative_score`` is the only one
    sets : that are compared, whose short sequences the definition counts

    Raises UsageError: no cut, no fraction, an unknown denominator, no number of
        threads, or an identity that would depend on the order of the two sequences
    """
    relative = options.min_relative_score
    if relative is not None:
        check_fraction("min_relative_score", relative, positive=True)
    elif cut is None:
        raise UsageError("a cut is needed, 0 to 1: min_identity, or min_relative_score")
    if relative is None or cut:
        check_fraction("min_identity", cut, positive=True)
    if (options.identity or "longer") not in LENGTHS:
        names = ", ".join(LENGTHS)
        raise UsageError(
            f"identity {options.identity!r}: choose one of {names}, which depend "
            "neither on a path nor on the order of two sequences"
        )
    if options.min_length_ratio is not None:
        check_fraction("min_length_ratio", options.min_length_ratio)
    score = options.min_score
    if score is not None and not (is_number(score) and isfinite(score)):
        raise UsageError(f"min_score = {score!r}: a finite number is needed")
    check_gate(options, options.mode or "global", options.free_ends)
    check_whole("threads", options.threads)
    definition = Definition(scoring, options, float(cut or 0))
    if not is_symmetric(scoring, resolve_ends(definition.mode, options.free_ends)):
        raise UsageError(
            f"{definition.ends()}, {scoring.matrix_name}: links need a symmetric "
            "matrix and symmetric free ends, the same of both sequences"
        )
    if options.strand == "both":
        codes, scores = complement_codes(scoring.alphabet), scoring.scores
        free = resolve_ends(definition.mode, options.free_ends)
        starts, ends = (
            {x.split("_")[0] for x in free if x.endswith(which)}
            for which in ("start", "end")
        )
        if starts != ends or (scores[np.ix_(codes, codes)] != scores).any():
            raise UsageError(
                f"{definition.ends()}, {scoring.matrix_name}: strand 'both' needs a "
                "matrix in which complements score alike, and sequences whose two ends "
                "are free or not alike; strand 'plus' needs neither"
            )
    return definition.of_sets(sets)


def check_cuts(name: str, cuts: Any) -> None:
    """Refuse a series of cuts that are not fractions, or of which two are one."""
    values = [*cuts]
    if not values or not all(is_number(x) and 0 < x <= 1 for x in values):
        raise UsageError(f"{name} = {cuts!r}: fractions above 0, up to 1, are needed")
    if len(set(values)) < len(values):
        raise UsageError(f"{name} = {cuts!r}: a cut is given twice")


def pair_options(definition: Definition, least: float | None = None) -> PairOptions:
    """The options of the pairs that are linked, or have an identity of ``least``."""
    options = definition.options
    free = None if options.free_ends is None else tuple(options.free_ends)
    relative, cut = options.min_relative_score, definition.cut
    cut = cut if least is None else least
    return PairOptions(
        mode=definition.mode,
        free_ends=free,
        output="identity",
        min_identity=None if relative is not None and not cut else cut,
        min_score=options.min_score,
        min_relative_score=relative,
        equals_alike=True,
        **shared(
            options,
            Measure,
            Execution,
            identity=definition.length,
            min_cov=None,  # of a path, which a job of identities has not
            coverage="both",
            strand="minus" if definition.minus else None,
        ),
    )


class Measured(NamedTuple):
    """Pairs that the same definitions judge, numbered rows with numbered columns, or
    with each other where ``columns`` is None: they are linked if one says so, and the
    larger identity is theirs."""

    judges: tuple[Definition, ...]
    rows: np.ndarray
    columns: np.ndarray | None = None


def judges_of(definition: Definition) -> tuple[Definition, ...]:
    """The definition, and the other one of pairs with a short sequence; then, of both
    strands, the same of reverse complements."""
    return of_strands((definition, definition.end_to_end()))


def of_strands(judges: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Some definitions of the plus strand, and of both strands those of the minus
    strand after them."""
    if judges[0].options.strand != "both":
        return judges
    return (*judges, *(replace(x, minus=True) for x in judges))


def measured(
    definition: Definition, queries: Sequences, targets: Sequences | None = None
) -> list[Measured]:
    """Divide the pairs of a set, or of two, by what judges them; each is in one part.

    A pair with a sequence that cannot reach the score needs the other judge alone.

    Returns one part at least, though it may be empty
    """
    none, few, enough = groups = by_reach(definition.reach(queries))
    each = definition, definition.end_to_end()
    gate, whole, every = (of_strands(x) for x in (each[:1], each[1:], each))
    if targets is None:
        parts = [
            Measured(gate, enough),
            Measured(every, few),
            Measured(every, few, enough),
            Measured(whole, none),
            Measured(whole, none, np.sort(np.concatenate(groups[1:]))),
        ]
    else:
        others = by_reach(definition.reach(targets))
        reaching = np.sort(np.concatenate(others[1:]))
        parts = [
            Measured(gate, enough, others[2]),
            Measured(every, enough, others[1]),
            Measured(every, few, reaching),
            Measured(whole, np.sort(np.concatenate(groups[1:])), others[0]),
            Measured(whole, none, np.arange(len(targets))),
        ]
    filled = [x for x in parts if len(x.rows) and (x.columns is None or len(x.columns))]
    return filled or parts[:1]


def measured_pairs(
    definition: Definition, queries: Sequences, targets: Sequences
) -> tuple[np.ndarray, ...]:
    """Return which pairs (k, k) of two lists each of ``judges_of`` judges, as by
    ``measured``."""
    lower = np.minimum(definition.reach(queries), definition.reach(targets))
    none, few, enough = by_reach(lower)
    gate, whole = np.concatenate([few, enough]), np.concatenate([none, few])
    of_strand = np.sort(gate), np.sort(whole)
    return of_strand * (len(judges_of(definition)) // 2)


def identities(table: Table, definition: Definition) -> np.ndarray:
    """Identities of the rows of a table, float64. With ``min_cov`` they are those of a
    path, the larger of the two orders of a pair; nan where neither passes."""
    if definition.options.min_cov is None:
        counts = table["max_identities"]
        return of_lengths(definition.length, counts, *table.lengths())
    measure = pair_options(definition), gate_of(definition.options), definition.length
    return jobs.of_covered_rows(table, definition.scoring, *measure)[0]


def everything(definition: Definition) -> Definition:
    """The definition by which all pairs are aligned, if all identities are wanted."""
    if not definition.options.full_histogram:
        return definition
    return replace(
        definition, cut=0.0, options=replace(definition.options, filter=False)
    )


def check_audited(count: int) -> None:
    """Refuse an audit of fewer than two parts."""
    if count < 2:
        raise UsageError(f"{counted(count, 'part')}: {TWO_PARTS}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a word that is none of some."""
    if value not in choices:
        raise UsageError(f"{name} = {value!r}: one of {', '.join(choices)} is needed")


@dataclass(frozen=True, eq=False)
class PurgeCut:
    """When a sequence is too near to a test sequence.

    Attributes
    ----------
    scoring : Scoring
    options : PurgeOptions
    definition : Definition or None
        Of a cut by identity.
    minus : bool
        Of a part of ``divided``, whether reverse complements of the tests are compared.
    """

    scoring: Scoring
    options: PurgeOptions
    definition: Definition | None
    minus: bool = False

    @property
    def column(self) -> str:
        """The name of the value that is compared with the cut."""
        if self.definition is not None:
            return f"identity_{self.definition.length}"
        return "score" if self.options.min_score is not None else "evalue"

    def __str__(self) -> str:
        """The sentence for a methods section."""
        options, cov = self.options, coverage_said(self.options)
        if self.definition is not None:
            return str(self.definition)
        if options.min_score is not None:
            cut = f"score >= {exact(options.min_score)}"
        else:
            assert options.max_evalue is not None
            cut = f"E-value <= {exact(options.max_evalue)}"
        strands = STRANDS_SAID[options.strand]
        return f"{cut}{cov}, or equal texts; local alignment, {self.scoring}{strands}"

    def pair_options(self) -> PairOptions:
        """The options of the pairs that may be too near; of a cut by E-value those of
        all pairs."""
        options = self.options
        if self.definition is None:
            least = options.min_score
            chosen = PairOptions(mode=LOCAL, output="score", min_score=least)
        else:
            chosen = pair_options(self.definition)
        strand = "minus" if self.minus else None
        return replace(chosen, strand=strand, **shared(options, Execution))

    def divided(
        self, tests: Sequences, targets: Sequences
    ) -> list[tuple[PurgeCut, np.ndarray, np.ndarray]]:
        """Divide the pairs of two sets as ``measured``: (cut, tests, targets); pairs
        that two cuts are about come twice."""
        if self.definition is None:
            signs = (False, True)[: 1 + (self.options.strand == "both")]
            every = np.arange(len(tests)), np.arange(len(targets))
            return [(replace(self, minus=minus), *every) for minus in signs]
        cuts = []
        for judges, rows, columns in measured(self.definition, tests, targets):
            assert columns is not None
            for judge in judges:
                cut = PurgeCut(self.scoring, self.options, judge, judge.minus)
                cuts.append((cut, rows, columns))
        return cuts


def cut_of(options: PurgeOptions, scoring: Scoring, tests: Sequences) -> PurgeCut:
    """The checked cut of some options.

    tests : a search of these by their mean length says which local score is one of
        chance, so that it is the same whatever the training set
    """
    cuts = options.min_identity, options.min_relative_score
    by_link = cuts != (None, None)
    score = None if by_link else options.min_score
    if by_link + sum(cut is not None for cut in (options.max_evalue, score)) != 1:
        raise UsageError(NEEDED)
    if by_link:
        chosen = shared(options, AsLinked, Measure, FromOutside, Execution)
        own = "mode", "free_ends", "min_score", "min_relative_score"
        ends = {x: getattr(options, x) for x in own}
        links = with_link(HomologyOptions(**chosen, **ends), scoring, [tests])
        definition = define(scoring, links, options.min_identity)
        if links.link == LOCAL and links.min_score is not None:
            definition = replace(definition, short=-1)
        decided = {x: getattr(links, x) for x in ("link", "identity", "strand", *ends)}
        return PurgeCut(scoring, replace(options, **decided), definition)
    if options.link is not None:
        raise UsageError(f"link {options.link} needs a cut by min_identity")
    if options.edges is not None:
        raise UsageError("edges need a cut by min_identity")
    if options.mode not in (None, LOCAL) or options.free_ends is not None:
        raise UsageError(
            "min_score and max_evalue use local alignments: leave out mode and "
            "free_ends"
        )
    if options.min_length_ratio is not None:
        raise UsageError("min_length_ratio needs min_identity")
    for name in ("min_score", "max_evalue"):
        value = getattr(options, name)
        if value is not None and not (is_number(value) and 0 < value < inf):
            raise UsageError(f"{name} = {value!r}: a number above 0 is needed")
    check_gate(options, LOCAL, None)
    if options.min_cov is not None and not is_symmetric(scoring, frozenset()):
        raise UsageError(
            f"min_cov = {exact(options.min_cov)}: {scoring.matrix_name} is not "
            "symmetric, and a coverage is that of either order of two sequences"
        )
    strand = link_strand(options.strand, scoring, LOCAL)
    options = replace(options, strand=strand)
    if options.max_evalue is not None and parameters(scoring, LOCAL) is None:
        raise UsageError(
            f"max_evalue: no statistics are published for {scoring}; use min_score"
        )
    return PurgeCut(scoring, options, None)
