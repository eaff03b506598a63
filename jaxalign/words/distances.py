"""Edit distances of some pairs, and who computes them.

Pairs of a small job need no compiler: where many are alike they lie side by side in
arrays of NumPy (``words.rows``), else each word of a pair is one integer of Python.
Others lie side by side in the lanes of compiled words (``words.cpu``), or are computed
by a GPU.
"""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from jaxalign.model import operations
from jaxalign.model.alphabet import LetterCodes
from jaxalign.runtime.devices import by_length, refuse_over, refuse_without_threads
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.match_vectors import (
    FEW_LANES,
    MAX_SPREAD,
    WORD_BITS,
    edit_lanes,
    edit_vectors,
    query_letters,
)
from jaxalign.words.rows import edit_distances, edit_seconds, edit_step

MAX_SECONDS = 0.5  # of a job by integers: about as long as to compile
ROW_SECONDS, LETTER_SECONDS = 5e-7, 2e-10  # of integers: a row, a letter of it
LANE_CELLS = 6e10  # a second, of words in lanes
# A GPU takes a second to load its programs and the letters. A thread of it has a pair,
# and 128 threads are about as fast as a core: fewer pairs are better off on 16 cores.
GPU_SECONDS, GPU_PAIRS = 1.0, 2**12
GPU_LETTERS = 2**17  # of a sequence: a launch has memory for 64 times 128 such pairs
GPU_CODES = 2**31 - 2**28  # letters of all sequences: their places are int32
MAX_CODES = 255  # letters of a table of match words, the padding letter beside them
CELLS_OF_BYTE = 4  # of the rows that a path is read from: two bits of a cell
STEP_CODES = np.zeros(256, np.uint8)  # letters of ``path`` -> operations
STEP_CODES[list(b"=XID")] = operations.EQUAL, operations.DIFFER, 1, 2
Letters = Sequence[Hashable]


def _rows(query: Letters, target: Letters) -> Iterator[tuple[int, int, int]]:
    """D, U and V (``words.dp``) of each row; bit 0 is the column of the first letter of
    the target. Words are integers, and any hashable values are letters."""
    everywhere = (1 << len(target)) - 1
    match: dict[Hashable, int] = {}
    for j, letter in enumerate(target):
        match[letter] = match.get(letter, 0) | 1 << j
    p, n = everywhere, 0
    for letter in query:
        equal = match.get(letter, 0)
        d = ((((equal & p) + p) ^ p) | equal | n) & everywhere
        up, down = n | (everywhere ^ (d | p)), d & p
        yield d, up, down
        h = (up << 1 | 1) & everywhere
        p, n = (down << 1 & everywhere) | (everywhere ^ (d | h)), d & h


def distance(query: Letters, target: Letters) -> int:
    """Edit distance of two sequences."""
    if len(query) > len(target):  # a row costs little more where it is longer
        query, target = target, query
    if not query:
        return len(target)
    last, total = len(target) - 1, len(target)
    for _, up, down in _rows(query, target):
        total += (up >> last) - (down >> last)
    return total


def path(query: Letters, target: Letters) -> tuple[int, bytes]:
    """Edit distance and the operations of an alignment that has it.

    Returns bytes. One letter of ``=XID`` a column. Of several alignments it is the one
    by the usual rule of ties from the end: diagonal, up (I), left (D).
    """
    rows = [(d, up) for d, up, _ in _rows(query, target)]
    i, j, steps = len(query), len(target), bytearray()
    while i and j:
        d, up = (row >> (j - 1) & 1 for row in rows[i - 1])
        if query[i - 1] == target[j - 1]:
            steps += b"="
        elif not d:  # the table rises along the diagonal
            steps += b"X"
        else:
            steps += b"I" if up else b"D"
        i -= steps[-1] != ord("D")
        j -= steps[-1] != ord("I")
    steps += b"I" * i + b"D" * j
    steps.reverse()
    return len(steps) - steps.count(b"="), bytes(steps)


def seconds(m: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Estimate the seconds of pairs of these lengths by integers."""
    rows = np.minimum(m, n)
    return rows * (ROW_SECONDS + LETTER_SECONDS * np.maximum(m, n))


def distances(
    sequences: LetterCodes,
    i: np.ndarray,
    j: np.ndarray,
    threads: int,
    patience: float = 1,
) -> np.ndarray:
    """Distances int32 (P,) of sequences ``i`` to sequences ``j``.

    patience : how many times as long a job without a compiler may take as alone
    """
    m, n = sequences.lengths[i], sequences.lengths[j]
    if seconds(m, n).sum() <= patience * MAX_SECONDS:
        return _without_compiler(sequences, i, j)
    refuse_without_threads()
    on_gpu, launches = _for_a_gpu(sequences, m, n, threads), None
    if on_gpu.any():
        from jaxalign.words.gpu import pair_launches_of

        launches = pair_launches_of(sequences)
    if launches is None:
        return _by_lanes(sequences, i, j, threads)
    edits = np.zeros(len(i), np.int32)
    edits[on_gpu] = launches.distances(*_shorter_first(sequences, i[on_gpu], j[on_gpu]))
    edits[~on_gpu] = distances(sequences, i[~on_gpu], j[~on_gpu], threads)
    return edits


def _for_a_gpu(
    sequences: LetterCodes, m: np.ndarray, n: np.ndarray, threads: int
) -> np.ndarray:
    """Select the pairs that a GPU computes faster.

    None, if the threads finish before a GPU could start.
    """
    fits = np.maximum(m, n) <= GPU_LETTERS
    fits &= (sequences.size <= MAX_CODES) & (len(sequences.codes) <= GPU_CODES)
    cells = (m * n)[fits]
    much = cells.sum() >= GPU_SECONDS * LANE_CELLS * threads
    return fits & (much and len(cells) >= GPU_PAIRS)


def _shorter_first(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose second sequence is the longer one. Bits lie along it: whole words are
    filled better."""
    shorter = sequences.lengths[i] <= sequences.lengths[j]
    return np.where(shorter, i, j), np.where(shorter, j, i)


def _by_lanes(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray, threads: int
) -> np.ndarray:
    """Distances of some pairs, at least one, on the CPU."""
    results = np.zeros(len(i), np.int32)
    if (i == i[0]).all() and sequences.size <= MAX_CODES:
        _one_query(sequences, int(i[0]), j, results, threads)
        return results
    from jaxalign.words import cpu

    i, j = _shorter_first(sequences, i, j)
    letters = cpu.pair_letters(sequences)
    lengths = sequences.lengths

    def run(pairs: tuple[np.ndarray, int, int]):
        places, columns, lanes = pairs
        m, n = lengths[i[places]], lengths[j[places]]
        cells = float(m.max()) * columns * lanes * -(-len(places) // lanes)
        if seconds(m, n).sum() <= cells / LANE_CELLS:
            results[places] = _without_compiler(sequences, i[places], j[places])
        else:
            size = columns, lanes
            results[places] = cpu.edits_zipped(letters, i[places], j[places], *size)

    in_threads(run, cpu.runs(lengths, i, j), threads)
    return results


def paths(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray, budget: int
) -> tuple[np.ndarray, list]:
    """Distances int32 (P,), and the operations of an alignment of each pair."""
    cells = (sequences.lengths[i] * sequences.lengths[j]).max(initial=0)
    refuse_over(int(cells) // CELLS_OF_BYTE, budget, "rows of a path")
    edits = np.zeros(len(i), np.int32)
    steps, texts = [], _texts(sequences, i, j)
    for k, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        edits[k], columns = path(texts[a], texts[b])
        codes = STEP_CODES[np.frombuffer(columns, np.uint8)]
        steps.append(operations.run_lengths(codes, np.array([len(codes)]))[0])
    return edits, steps


def _texts(sequences: LetterCodes, i: np.ndarray, j: np.ndarray) -> dict[int, list]:
    return {k: sequences[k].tolist() for k in {*i.tolist(), *j.tolist()}}


def _without_compiler(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Distances of pairs in NumPy or integers, similar sizes side by side."""
    results = np.zeros(len(i), np.int32)
    i, j = _shorter_first(sequences, i, j)
    m, n = sequences.lengths[i], sequences.lengths[j]
    words = -(-n // WORD_BITS)
    order = by_length(m)
    order = order[by_length(words[order])]
    falling, at = -words[order], 0
    while at < len(order):
        alike = int(np.searchsorted(falling, falling[at], "right"))
        places = order[
            at : min(alike, at + edit_step(-int(falling[at]), sequences.size))
        ]
        at += len(places)
        sides = i[places], j[places]
        by_integers = seconds(m[places], n[places]).sum()
        fits = sequences.size <= MAX_CODES
        if fits and edit_seconds(m[places], -int(falling[at - 1])) < by_integers:
            results[places] = edit_distances(sequences, *sides)
            continue
        texts = _texts(sequences, *sides)
        pairs = zip(*(side.tolist() for side in sides), strict=True)
        edits = (distance(texts[a], texts[b]) for a, b in pairs)
        results[places] = np.fromiter(edits, np.int32, len(places))
    return results


def _one_query(
    sequences: LetterCodes, query: int, j: np.ndarray, results: np.ndarray, threads: int
) -> None:
    """Distances of one sequence to many."""
    from jaxalign.words import cpu

    letters = query_letters(sequences, np.array([query]), sequences.size)
    order = by_length(sequences.lengths[j])
    longest = int(sequences.lengths[query])

    def block(places: np.ndarray):
        vectors = edit_vectors(sequences, j[places], longest)
        (edits,) = cpu.edits_block(letters, slice(0, 1), vectors)
        results[places] = edits[0, : len(places)]

    in_threads(block, blocks_of(sequences.lengths[j], order, longest), threads)


def blocks_of(
    lengths: np.ndarray, order: np.ndarray, longest_query: int
) -> Iterator[np.ndarray]:
    """Runs of an order of falling lengths, as many as are lanes."""
    falling, at = lengths[order], 0
    while at < len(order):
        count = edit_lanes(int(falling[at]), longest_query)
        last = falling[min(at + count, len(falling)) - 1]
        if falling[at] > max(MAX_SPREAD * last, WORD_BITS):  # lengths differ
            count = min(count, FEW_LANES)
        yield order[at : at + count]
        at += count
