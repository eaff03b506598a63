"""Lambda and K of every query of a search, fitted to its scores with the database.

The scores are those of up to ``SAMPLE`` sequences of the database, which a hash of
their numbers chooses: the same ones, however the database is read. Where it has fewer
than ``LEAST``, its sequences are scored with their letters in random orders, too.

Where much of the sample is related to a query, as in a database of one family, the fit
would be of no use: random sequences tell, ``DECOYS`` of the sample with their letters
in random orders. Then the fit is to ``LEAST`` of them alone. ``Fits.sources`` says
which.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any, NamedTuple, get_args

import numpy as np

from jaxalign.database.options import pair_options
from jaxalign.database.pieces import Hits
from jaxalign.errors import UsageError
from jaxalign.model import statistics
from jaxalign.model.alphabet import Alphabet, Sequences, from_parts
from jaxalign.model.choices import Statistics
from jaxalign.model.scoring import Scoring
from jaxalign.model.statistics import (
    MAX_DISTANCE,
    NO_FIT,
    Fit,
    fit,
    fit_distance,
    is_trustworthy,
)
from jaxalign.model.table import Table
from jaxalign.options import Implementation, PairOptions, SearchOptions
from jaxalign.pairs import jobs

SAMPLE, LEAST, DECOYS = 4000, 1000, 200  # sequences
DATABASE, SHUFFLED, NONE = "database", "shuffled", "none"
QUERIES = 256  # whose scores are in memory at a time
# Constants of SplitMix64 (Steele, Lea and Flood 2014).
ADDED, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass
class Sample:
    """A random sample of the sequences of a database, taken while its blocks are
    read."""

    limit: int = SAMPLE  # sequences of it
    length: int | None = None  # the first letters of each, at most so many
    seen: int = 0
    hashes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    parts: list[np.ndarray] = field(default_factory=list)
    scan: str = ""  # the implementations that scored the database when it was read
    _scored: Any = None

    def watch(self, blocks: Iterable[Sequences]) -> Iterator[Sequences]:
        """Pass the blocks through, and sample them."""
        for block in blocks:
            self._add(block)
            yield block

    def _add(self, block: Sequences) -> None:
        # the hashes of consecutive numbers
        numbers = np.arange(self.seen + 1, self.seen + 1 + len(block), dtype=np.uint64)
        hashes = numbers * np.uint64(ADDED)
        for shift, factor in ((30, FIRST), (27, SECOND)):
            hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
        hashes ^= hashes >> np.uint64(31)
        self.seen += len(block)
        if len(self.hashes) == self.limit:  # ascending
            entering = np.flatnonzero(hashes < self.hashes[-1])
            entering = entering[np.argsort(hashes[entering])][: self.limit]
        else:
            entering = np.argsort(hashes)[: self.limit]
        heads = (block[k][: self.length] for k in entering.tolist())
        parts = [*self.parts, *map(np.array, heads)]
        hashes = np.concatenate([self.hashes, hashes[entering]])
        lowest = np.argsort(hashes)[: self.limit]
        self.hashes, self.parts = hashes[lowest], [parts[k] for k in lowest.tolist()]

    def saved(self) -> dict[str, np.ndarray]:
        """Return the sample as arrays, for a state."""
        ends = np.cumsum([0, *map(len, self.parts)]).astype(np.int64)
        codes = np.concatenate([np.zeros(0, np.uint8), *self.parts])
        about = {"hashes": self.hashes, "seen": np.array(self.seen)}
        return about | {"sample": codes, "sample_ends": ends}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the sample of a state."""
        self.hashes, self.seen = arrays["hashes"], int(arrays["seen"])
        ends = arrays["sample_ends"]
        self.parts = np.split(arrays["sample"], ends[1:-1]) if len(ends) > 1 else []

    def sequences(self, alphabet: Alphabet) -> Sequences:
        """Return the sample. Where it is small, shuffled copies of its sequences are
        added."""
        parts = [codes for codes in self.parts if len(codes)]
        dice, first = np.random.default_rng(0), parts
        while first and len(parts) < LEAST:
            parts = parts + [dice.permutation(codes) for codes in first]
        return from_parts([str(k) for k in range(len(parts))], parts, alphabet)

    def shuffled(self, alphabet: Alphabet, count: int) -> Sequences:
        """Return ``count`` sequences of the sample with their letters shuffled. A
        smaller count gives the first of a larger one."""
        parts = islice(cycle([codes for codes in self.parts if len(codes)]), count)
        dice = np.random.default_rng(1)
        parts = [dice.permutation(codes) for codes in parts]
        return from_parts([str(k) for k in range(len(parts))], parts, alphabet)

    def scored(self, alphabet: Alphabet) -> tuple[Sequences, Sequences, Sequences]:
        """Return the sample, decoys, and both together; the same objects until more is
        sampled."""
        key = self.seen, alphabet
        if self._scored is None or self._scored[0] != key:
            sampled, decoys = self.sequences(alphabet), self.shuffled(alphabet, DECOYS)
            offsets = decoys.offsets[1:] + sampled.offsets[-1]
            targets = Sequences(
                (*sampled.names, *decoys.names),
                np.concatenate([sampled.codes, decoys.codes]),
                np.concatenate([sampled.offsets, offsets]),
                alphabet,
            )
            self._scored = key, (sampled, decoys, targets)
        return self._scored[1]


class Fits(NamedTuple):
    """Lambda and K of each query, and what they were fitted to.

    Attributes
    ----------
    values : Fit
        float64 (queries,) each; nan where nothing could be fitted.
    sources : (queries,) of str
        ``database``, ``shuffled`` or ``none``.
    """

    values: Fit
    sources: np.ndarray


def fits_scores(
    queries: Sequences,
    sample: Sample,
    scoring: Scoring,
    options: PairOptions,
    scan: str,
) -> Fits:
    """Fit lambda and K of each query.

    scan : the implementations that scored the database; a compiled one scores the
        sample, too, and leaves nothing to NumPy that it does in a tenth of the time
    """
    # The implementation that is named, or scored the database, scores the sample too.
    if options.implementation is None:
        compiled: tuple[Implementation, ...] = ("sweep", "wavefront", "pallas")
        ran = (name for name in compiled if name in scan.split(", "))
        options = replace(options, implementation=next(ran, None))
    sampled, decoys, targets = sample.scored(scoring.alphabet)
    values, sources = [], []
    for start in range(0, len(queries), QUERIES):
        part = queries.between(start, min(start + QUERIES, len(queries)))
        lengths = part.lengths.tolist()
        scores = _scores(part, targets, scoring, options)
        scores = np.split(scores, [len(sampled)], axis=1)
        for m, sample_scores, decoy_scores in zip(lengths, *scores, strict=True):
            estimate = fit(sample_scores, m, sampled.lengths)
            trusted = is_trustworthy(estimate, decoy_scores, m, decoys.lengths)
            values.append(estimate if trusted else NO_FIT)
            sources.append(DATABASE if trusted else NONE)
    # Queries without a fit are fitted to shuffled sequences alone, where possible.
    missing = [k for k, source in enumerate(sources) if source == NONE]
    shuffled = sample.shuffled(scoring.alphabet, LEAST) if missing else sampled
    for start in range(0, len(missing), QUERIES):
        rows = missing[start : start + QUERIES]
        of_rows = _scores(queries.take(rows), shuffled, scoring, options)
        for k, scores in zip(rows, of_rows, strict=True):
            about = scores, len(queries[k]), shuffled.lengths
            estimate = fit(*about)
            if not estimate.lambda_ > 0:  # nan without a fit
                continue
            if fit_distance(estimate, *about) <= MAX_DISTANCE:
                values[k], sources[k] = estimate, SHUFFLED
    columns = np.array(values, np.float64).reshape(-1, 2).T
    return Fits(Fit(*columns), np.array(sources, object))


def _scores(
    queries: Sequences, targets: Sequences, scoring: Scoring, options: PairOptions
) -> np.ndarray:
    """Score every query with every target, (queries, targets)."""
    scores = jobs.run("cross", queries, targets, scoring, options)["score"]
    return scores.reshape(len(queries), len(targets))


# ------------------------------------------------------------------------------
# Bits and E-values of the hits of a search, published or fitted.


def sample_of(options: SearchOptions) -> Sample | None:
    """Make an empty sample if statistics are fitted, else None.

    Raises UsageError: an unknown word, or another mode than local
    """
    if options.statistics not in get_args(Statistics):
        names = ", ".join(get_args(Statistics))
        raise UsageError(f"unknown statistics {options.statistics!r}: one of {names}")
    if options.statistics == "published":
        return None
    if options.mode != "local":
        raise UsageError(f"statistics = 'fitted': needs mode local, not {options.mode}")
    return Sample()


# From scores and the hits that they are of, rows of a table, to bits and E-values
Statistic = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def statistic_of(
    table: Table, hits: Hits, sample: Sample | None, options: SearchOptions
) -> tuple[Statistic, dict[str, Any]]:
    """Find how bits and E-values of the hits of a table are computed; the figures say
    what was fitted."""
    m, query = table.lengths()[0], table.columns["query"]
    database = hits.residues, hits.sequences
    info: dict[str, Any] = dict(zip(("residues", "sequences"), database, strict=True))
    if sample is None:
        published = statistics.parameters(table.scoring, table.mode)
        return lambda score, hit: (
            statistics.bits(score, published),
            statistics.evalues(score, m[hit], *database, published),
        ), info
    scan = pair_options(options, "score")
    about = table.queries, sample, table.scoring, scan
    fits = fits_scores(*about, table.info["implementation"])
    values = fits.values
    info |= {"statistics": "fitted", "lambda": values.lambda_, "K": values.k}
    info |= {"fitted_to": fits.sources}

    def fitted(score: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row = statistics.Fit(*(x[query[hit]] for x in values))
        evalues = statistics.fitted_evalues(score, m[hit], hits.residues, row)
        return statistics.fitted_bits(score, row), evalues

    return fitted, info
