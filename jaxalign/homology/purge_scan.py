"""The sequences of a corpus that are too near to a test sequence, block by block."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, log
from typing import Any

import numpy as np

from jaxalign.database import pieces
from jaxalign.database.pieces import BlockPiece
from jaxalign.homology.evidence import among, located
from jaxalign.homology.options import LOCAL, PurgeCut, identities
from jaxalign.model import frames, statistics
from jaxalign.model.alphabet import Sequences, join_best
from jaxalign.model.show import counted
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.model.table import Table
from jaxalign.pairs import engine, jobs, part_stream
from jaxalign.pairs.jobs import tables_of, with_kernels
from jaxalign.pairs.options import gate_of, make_task
from jaxalign.pairs.result import equal_texts

# ------------------------------------------------------------------------------
# The result of ``purge``: the sequences that are removed, each with its reason.


@dataclass(frozen=True, eq=False, repr=False)
class Purge:
    """The sequences of a training set that are too similar to a test set.

    Attributes
    ----------
    tests : Sequences
        The test sequences.
    removed : int64 (removed,)
        Indices of the removed sequences in the training set, rising.
    names : tuple of str
        Their names.
    test : int64 (removed,)
        Index of the nearest test sequence of each; the first of equally near ones.
    value : float64 (removed,)
        Identity (0 to 1), score or E-value of the two.
    strand : int8 (removed,)
        1, or -1 if the value is that of the reverse complement of the test sequence.
    size : int
        Number of sequences in the training set.
    cut : PurgeCut
        When a sequence is removed; ``str`` is the sentence.
    info : dict
        Numbers of sequences, residues, and pairs compared and aligned; seconds.
    """

    tests: Sequences
    removed: np.ndarray
    names: tuple[str, ...]
    test: np.ndarray
    value: np.ndarray
    strand: np.ndarray
    size: int
    cut: PurgeCut
    info: dict

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    @property
    def cuts(self) -> tuple[float, ...]:
        """The cut, across which no identity or E-value is rounded."""
        options = self.cut.options
        cuts = options.min_identity, options.max_evalue
        return tuple(float(cut) for cut in cuts if cut is not None)

    def __len__(self) -> int:
        return len(self.removed)

    @property
    def kept(self) -> np.ndarray:
        """Mask of the kept sequences, bool (size,)."""
        stays = np.ones(self.size, bool)
        stays[self.removed] = False
        return stays

    def columns(self) -> dict[str, Any]:
        """Return one row per removed sequence: its name, the test sequence, the value;
        of both strands also the strand."""
        stranded = self.cut.options.strand == "both"
        return {
            "name": np.array(self.names, object),
            "test": np.array([*self.tests.names, ""], object)[self.test],
            self.cut.column: self.value,
            **({"strand": self.strand} if stranded else {}),
        }

    def heading(self) -> str:
        """Say how many sequences are removed, and how many are kept."""
        tests = counted(len(self.tests), "test sequence")
        return (
            f"{len(self):,} of {counted(self.size, 'sequence')} removed: similar to at "
            f"least one of {tests}; {self.size - len(self):,} kept"
        )

    def __str__(self) -> str:
        return f"{self.heading()}\nnear: {self.cut}"


@dataclass
class PurgeState:
    """The sequences that are removed so far; it changes while the corpus is read.

    Attributes
    ----------
    index, test : list of int64 arrays
        Which sequence of the corpus, in order, and the test sequence that is nearest.
    value : list of float64 arrays
        Of that pair: identity, score or E-value.
    strand : list of int8 arrays
        Of that pair, 1 or -1.
    names : list of str
    """

    index: list[np.ndarray] = field(default_factory=list)
    test: list[np.ndarray] = field(default_factory=list)
    value: list[np.ndarray] = field(default_factory=list)
    strand: list[np.ndarray] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sequences: int = 0
    residues: int = 0
    aligned: int = 0
    implementation: str = ""


def arrays_of(state: PurgeState) -> dict[str, np.ndarray]:
    """Save the state as arrays, for a file."""
    index, test, value, strand = joined(state)
    names = "\n".join(state.names).encode()
    counts = [state.sequences, state.residues, state.aligned]
    return {
        "index": index,
        "test": test,
        "value": value,
        "strand": strand,
        "names": np.frombuffer(names, np.uint8),
        "counts": np.array(counts, np.int64),
        "implementation": np.array(state.implementation),
    }


def state_of(arrays: dict[str, np.ndarray]) -> PurgeState:
    """Restore the state of an interrupted run."""
    names = arrays["names"].tobytes().decode()
    sequences, residues, aligned = arrays["counts"].tolist()
    return PurgeState(
        index=[arrays["index"]],
        test=[arrays["test"]],
        value=[arrays["value"]],
        strand=[arrays["strand"]],
        names=names.split("\n") if names else [],
        sequences=sequences,
        residues=residues,
        aligned=aligned,
        implementation=str(arrays["implementation"]),
    )


def joined(state: PurgeState) -> tuple[np.ndarray, ...]:
    """Return (index, test, value, strand) of all removed sequences."""
    none = np.zeros(0, np.int64)
    index, test = (np.concatenate([none, *x]) for x in (state.index, state.test))
    strand = np.concatenate([np.zeros(0, np.int8), *state.strand])
    return index, test, np.concatenate([np.zeros(0), *state.value]), strand


def scan(
    tests: Sequences,
    blocks: Iterable[Sequences],
    cut: PurgeCut,
    size: tuple[int, int],
    state: PurgeState,
    report_progress: Callable[[int], object],
) -> Iterator[PurgeState]:
    """Find near sequences in the blocks of a corpus; yield the state after each.

    blocks : those that follow what ``state`` has seen
    size : (sequences, residues) of the corpus, for E-values
    report_progress : takes the cells so far
    """
    by_score, by_evalue = cut.definition is None, cut.column == "evalue"
    evalue, least_score = cut.options.max_evalue, None
    least = cut.options.min_score if by_score else cut.options.min_identity or 0.0
    if by_evalue and len(tests):
        # a score that all pairs below the cut reach
        published: Any = statistics.parameters(cut.scoring, LOCAL)
        sequences, residues = size
        spaces = [
            statistics.search_space(int(m), residues, sequences, published)
            for m in np.unique(tests.lengths)
        ]
        assert evalue is not None
        lowest = log(published.k * min(spaces) / evalue) / published.lambda_
        least_score = max(ceil(lowest) - 1, 1)

    evidence = None if cut.definition is None else cut.definition.evidence
    places = None if evidence is None else evidence.places(tests)

    def edges_with(block: Sequences) -> tuple[np.ndarray, np.ndarray | None]:
        """Pairs (test, sequence of a block) that tables joined by ``or`` link, and
        those that alignments need; None: all."""
        if evidence is None or places is None:
            return np.zeros((2, 0), np.int64), None
        of_block, needed = evidence.places(block), evidence.needed
        return (
            located(evidence.either, places, of_block),
            None if needed is None else located(needed, places, of_block),
        )

    def fold(state: PurgeState, piece: BlockPiece, _report_progress: Any) -> None:
        """Add the sequences of a block that are near, each with its nearest test
        sequence; of equally near ones the first counts."""
        block = piece.targets
        if not len(tests) or not len(block):
            return
        best, best_strand = np.full((2, len(block)), -1, np.int64)
        best_rank, best_value = (
            np.full(len(block), -np.inf),
            np.full(len(block), np.nan),
        )
        columns_of_best = best, best_rank, best_value, best_strand
        tables = tuple(x[:, None] for x in columns_of_best)

        def add(
            query: np.ndarray, target: np.ndarray, value: np.ndarray, minus: bool
        ) -> None:
            rank = -value if by_evalue else value
            query, target = query.astype(np.int64), target.astype(np.int64)
            join_best(
                tables,
                tables[0] >= 0,
                target,
                (query, rank, value, np.full(len(query), MINUS if minus else PLUS)),
                lambda test, rank, _value, strand: (-rank, test, -strand),
            )

        either, needed = edges_with(block)
        parts, sides = cut.divided(tests, block), (tests, block)
        cells = len(tests.codes) * len(block.codes)
        for judge, rows, columns in parts:
            if len(parts) > 1:
                sides = tests.take(rows), block.take(columns)
            options = judge.pair_options()
            if by_evalue:
                options = replace(options, min_score=least_score)
            every = replace(options, min_score=None)
            options = with_kernels(options, cells)
            task = make_task("cross", *sides, cut.scoring, options)
            for table in tables_of(task, options, partial(part_stream.cut_cross, task)):
                info = table.info
                state.aligned += info.get("aligned_pairs", info["pairs"])
                state.implementation = state.implementation or info["implementation"]
                value = _values(table, judge, size)
                within_cut = value <= evalue if by_evalue else value >= least
                i, j, value = (
                    x[within_cut] for x in (table["query"], table["target"], value)
                )
                if by_score and (gate := gate_of(cut.options)):
                    none = np.full(len(i), -1)
                    about = i, j, none, gate, "longer", judge.minus
                    covered = ~np.isnan(jobs.of_covered_paths(task, *about)[0])
                    i, j, value = i[covered], j[covered], value[covered]
                i, j = rows[i], columns[j]
                if needed is not None:
                    paired = among(needed, i, j, len(block)) >= 0
                    paired |= among(either, i, j, len(block)) >= 0
                    i, j, value = i[paired], j[paired], value[paired]
                add(i, j, value, judge.minus)
            if not by_score:
                continue
            test, train = equal_texts(task, every=True)
            if not len(train):
                continue
            # They are alike, whatever they score.
            train, first = np.unique(train, return_index=True)
            equal = tests.take(test[first]), block.take(train)
            plan = engine.plan(make_task("zip", *equal, cut.scoring, every))
            value = _values(engine.run(plan), judge, size)
            add(test[first], train, value, judge.minus)
        test, train = either[:, best[either[1]] < 0]
        train, first = np.unique(train, return_index=True)
        best[train], best_strand[train] = test[first], PLUS  # without a value
        which = np.flatnonzero(best >= 0)
        state.index.append(which + state.sequences)
        state.test.append(best[which])
        state.value.append(best_value[which])
        state.strand.append(best_strand[which].astype(np.int8))
        state.names += [block.names[k] for k in which.tolist()]

    parts = (BlockPiece(block, block) for block in blocks)
    return pieces.scan(
        state, parts, fold, len(tests.codes), report_progress, records=False
    )


def _values(table: Table, cut: PurgeCut, size: tuple[int, int]) -> np.ndarray:
    if cut.column == "score":
        return np.asarray(table["score"], np.float64)
    if cut.column == "evalue":
        published = statistics.parameters(cut.scoring, LOCAL)
        sequences, residues = size
        m = table.lengths()[0]
        return statistics.evalues(table["score"], m, residues, sequences, published)
    assert cut.definition is not None
    return identities(table, cut.definition)
