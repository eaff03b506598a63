"""Lambda and K of every query of a search, fitted to its scores with the database.

The scores are those of up to ``SAMPLE`` sequences of the database, which a hash of
their numbers chooses: the same ones, however the database is read. Where it has fewer
than ``LEAST``, its sequences are scored with their letters in random orders, too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.fitted_statistics import Fit, fit
from jaxalign.model.scoring import Scoring
from jaxalign.pairs import tables
from jaxalign.pairs.options import PairOptions

SAMPLE, LEAST = 4000, 1000  # sequences
QUERIES = 256  # whose scores are in memory at a time
# Constants of SplitMix64 (Steele, Lea and Flood 2014).
ADDED, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass
class Sample:
    """Some sequences of a database, while its blocks go by."""

    seen: int = 0
    hashes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    parts: list[np.ndarray] = field(default_factory=list)

    def watch(self, blocks: Iterable[Sequences]) -> Iterator[Sequences]:
        """The same blocks."""
        for block in blocks:
            self._add(block)
            yield block

    def _add(self, block: Sequences) -> None:
        hashes = _hashes(self.seen, len(block))
        self.seen += len(block)
        new = np.argsort(hashes)[:SAMPLE]
        parts = [*self.parts, *(np.array(block[k]) for k in new.tolist())]
        hashes = np.concatenate([self.hashes, hashes[new]])
        kept = np.argsort(hashes)[:SAMPLE]
        self.hashes, self.parts = hashes[kept], [parts[k] for k in kept.tolist()]

    def sequences(self, alphabet) -> Sequences:
        """They, and where they are few their letters in random orders."""
        parts = [one for one in self.parts if len(one)]
        dice, first = np.random.default_rng(0), parts
        while first and len(parts) < LEAST:
            parts = parts + [dice.permutation(one) for one in first]
        return from_parts([str(k) for k in range(len(parts))], parts, alphabet)


def _hashes(first: int, count: int) -> np.ndarray:
    """uint64 of numbers from ``first`` on."""
    x = np.arange(first + 1, first + 1 + count, dtype=np.uint64) * np.uint64(ADDED)
    for shift, factor in ((30, FIRST), (27, SECOND)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def fits(
    queries: Sequences, sample: Sample, scoring: Scoring, options: PairOptions
) -> Fit:
    """Lambda and K of each query, float64 (queries,) each."""
    some = sample.sequences(scoring.alphabet)
    found = []
    for start in range(0, len(queries), QUERIES):
        part = queries.between(start, min(start + QUERIES, len(queries)))
        scores = tables.run("cross", part, some, scoring, options)["score"]
        rows = scores.reshape(len(part), len(some))
        lengths = part.lengths.tolist()
        found += [fit(*x, some.lengths) for x in zip(rows, lengths, strict=True)]
    values = np.array(found, np.float64).reshape(-1, 2).T
    return Fit(*values)
