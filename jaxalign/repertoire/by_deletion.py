"""Pairs within an edit distance, by variants with letters deleted that they share.

Variants of one length are sorted together: those of sequences of that length, of those
with a letter more after one deletion, and so on. Whoever shares a hash is compared.
"""

from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np

from jaxalign.model.alphabet import LetterCodes, begins
from jaxalign.repertoire.bounds import LengthClasses
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.distances import distances
from jaxalign.words.edges import EdgeList
from jaxalign.words.near_pairs import deletion_hashes, pairs_of_equals, random_numbers

KEY_COPIES = 4  # of 8 bytes: keys, hashes and groups of them
SHARE = 4  # of the memory budget, for the keys of all threads
LEAST_KEYS = 2**20  # of a pass: fewer save no memory worth having


def variant_count(lengths: np.ndarray, deleted: int) -> int:
    """How many variants with up to so many letters deleted some sequences have."""
    known, counts = np.unique(lengths, return_counts=True)
    each = (sum(comb(n, d) for d in range(deleted + 1)) for n in known.tolist())
    return sum(c * v for c, v in zip(counts.tolist(), each, strict=True))


@dataclass(frozen=True, eq=False)
class Join:
    """Sequences that are compared: all pairs of them, or pairs across two sets.

    Attributes
    ----------
    sequences : LetterCodes
        One set, or the first and the second one.
    first : int or None
        How many are of the first of two sets.
    cutoff : int
    """

    sequences: LetterCodes
    first: int | None
    cutoff: int


def add_near(join: Join, edges: EdgeList, threads: int, budget: int) -> None:
    """Add the pairs within the cutoff; those of a second set are numbered from 0."""
    classes = LengthClasses(join.sequences)
    if not classes.members:
        return
    numbers = random_numbers(classes.longest, join.sequences.size)
    shortest = max(min(classes.members) - join.cutoff, 0)
    run = partial(_add_of_length, join, classes, numbers, edges, threads, budget)
    in_threads(run, range(shortest, classes.longest + 1), threads)


def _add_of_length(
    join: Join,
    classes: LengthClasses,
    numbers: np.ndarray,
    edges: EdgeList,
    threads: int,
    budget: int,
    length: int,
) -> None:
    """Add the near pairs whose variants of a length are equal."""
    count = sum(
        len(classes.members.get(length + d, ())) * comb(length + d, d)
        for d in range(join.cutoff + 1)
    )
    room = max(budget // (SHARE * threads * 8 * KEY_COPIES), LEAST_KEYS)
    passes = -(-count // room)
    bits = max(len(join.sequences) - 1, 1).bit_length()
    for number in range(passes):
        hashes = _keys(join, classes, numbers, length, bits, (number, passes))
        for i, j in pairs_of_equals(hashes, bits):
            _check(join, edges, i, j)


def _keys(
    join: Join,
    classes: LengthClasses,
    numbers: np.ndarray,
    length: int,
    bits: int,
    share: tuple[int, int],
) -> np.ndarray:
    """Sorted keys, uint64: hashes of all variants of a length, above the number of the
    sequence; of several passes those of one."""
    keys, mask = [np.zeros(0, np.uint64)], np.uint64(2**64 - 2**bits)
    for deleted in range(join.cutoff + 1):
        some = classes.members.get(length + deleted)
        if some is None:
            continue
        letters = join.sequences.codes[
            join.sequences.offsets[some][:, None] + np.arange(length + deleted)
        ]
        for hashes in deletion_hashes(letters, deleted, numbers):
            key = (hashes & mask) | some.astype(np.uint64)
            if share[1] > 1:
                key = key[(hashes >> np.uint64(32)) % np.uint64(share[1]) == share[0]]
            keys.append(key)
    joined = np.concatenate(keys)
    joined.sort()
    return joined[begins(joined)]


def _check(join: Join, edges: EdgeList, i: np.ndarray, j: np.ndarray) -> None:
    """Add those of some pairs that are near; they may come more than once."""
    if join.first is not None:
        across = (i < join.first) & (j >= join.first)
        i, j = i[across], j[across]
    pairs = (i << np.uint64(32)) | j
    pairs.sort()
    pairs = pairs[begins(pairs)]
    i = (pairs >> np.uint64(32)).astype(np.int64)
    j = (pairs & np.uint64(2**32 - 1)).astype(np.int64)
    if len(i):
        distance = distances(join.sequences, i, j, 1)
        near = distance <= join.cutoff
        edges.add(i[near], j[near] - (join.first or 0), distance[near])
