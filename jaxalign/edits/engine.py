"""Edit distances of some pairs.

Pairs of a small job are computed one after the other by integers of Python, which
needs no compiler. Others lie side by side in the lanes of words.
"""

from collections.abc import Iterator

import numpy as np

from jaxalign.edits.dp import edit_integers
from jaxalign.model import operations
from jaxalign.model.letters import LetterCodes
from jaxalign.runtime.devices import refuse_over, refuse_without_threads
from jaxalign.runtime.lengths import by_length
from jaxalign.runtime.pipeline import in_threads

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
STEP_CODES = np.zeros(256, np.uint8)  # letters of ``edit_integers.path`` -> operations
STEP_CODES[list(b"=XID")] = operations.EQUAL, operations.DIFFER, 1, 2


def seconds(m: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Of pairs of these lengths by integers."""
    rows = np.minimum(m, n)
    return rows * (ROW_SECONDS + LETTER_SECONDS * np.maximum(m, n))


def distances(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray, threads: int
) -> np.ndarray:
    """Distances int32 (P,) of sequences ``i`` to sequences ``j``."""
    m, n = sequences.lengths[i], sequences.lengths[j]
    if seconds(m, n).sum() <= MAX_SECONDS:
        return _by_integers(sequences, i, j)
    refuse_without_threads()
    some = _for_a_gpu(sequences, m, n, threads)
    launches = _launches(sequences) if some.any() else None
    if launches is None:
        return _by_lanes(sequences, i, j, threads)
    edits = np.zeros(len(i), np.int32)
    edits[some] = launches.distances(*_shorter_first(sequences, i[some], j[some]))
    edits[~some] = distances(sequences, i[~some], j[~some], threads)
    return edits


def _for_a_gpu(
    sequences: LetterCodes, m: np.ndarray, n: np.ndarray, threads: int
) -> np.ndarray:
    """Which pairs of these lengths are better computed by a GPU: none, if it would take
    longer to start than so many threads to be done."""
    fits = np.maximum(m, n) <= GPU_LETTERS
    fits &= (sequences.size <= MAX_CODES) & (len(sequences.codes) <= GPU_CODES)
    cells = (m * n)[fits]
    much = cells.sum() >= GPU_SECONDS * LANE_CELLS * threads
    return fits & (much and len(cells) >= GPU_PAIRS)


def _launches(sequences: LetterCodes):
    """Launches that compute distances on a GPU; None if there is none."""
    from jaxalign.edits.gpu.edit_pair_launches import launches_of

    return launches_of(sequences)


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
    from jaxalign.edits.cpu import edit_pairs

    i, j = _shorter_first(sequences, i, j)
    letters = edit_pairs.pair_letters(sequences)
    lengths = sequences.lengths

    def run(pairs: tuple[np.ndarray, int, int]):
        some, *size = pairs
        if _fewer_seconds(lengths, i[some], j[some], *size):
            results[some] = _by_integers(sequences, i[some], j[some])
        else:
            results[some] = edit_pairs.edits_zipped(letters, i[some], j[some], *size)

    in_threads(run, edit_pairs.runs(lengths, i, j), threads)
    return results


def _fewer_seconds(
    lengths: np.ndarray, i: np.ndarray, j: np.ndarray, columns: int, lanes: int
) -> bool:
    """Whether a run of pairs takes less time by integers."""
    m, n = lengths[i], lengths[j]
    tiles = -(-len(i) // lanes)
    cells = float(m.max()) * columns * lanes * tiles
    return seconds(m, n).sum() <= cells / LANE_CELLS


def paths(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray, budget: int
) -> tuple[np.ndarray, list]:
    """Distances int32 (P,), and the operations of an alignment of each pair.

    Raises
    ------
    MemoryPlanError
        The rows of a pair exceed a budget of bytes.
    """
    cells = (sequences.lengths[i] * sequences.lengths[j]).max(initial=0)
    refuse_over(int(cells) // CELLS_OF_BYTE, budget, "rows of a path")
    edits = np.zeros(len(i), np.int32)
    steps, texts = [], _texts(sequences, i, j)
    for k, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        edits[k], columns = edit_integers.path(texts[a], texts[b])
        codes = STEP_CODES[np.frombuffer(columns, np.uint8)]
        steps.append(operations.run_lengths(codes, np.array([len(codes)]))[0])
    return edits, steps


def _texts(sequences: LetterCodes, i: np.ndarray, j: np.ndarray) -> dict[int, list]:
    return {k: sequences[k].tolist() for k in {*i.tolist(), *j.tolist()}}


def _by_integers(sequences: LetterCodes, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    texts = _texts(sequences, i, j)
    pairs = zip(i.tolist(), j.tolist(), strict=True)
    edits = (edit_integers.distance(texts[a], texts[b]) for a, b in pairs)
    return np.fromiter(edits, np.int32, len(i))


def _one_query(
    sequences: LetterCodes, query: int, j: np.ndarray, results: np.ndarray, threads: int
) -> None:
    """Distances of one sequence to others."""
    from jaxalign.bits.match_words import query_letters
    from jaxalign.edits.cpu import edit_windows

    letters = query_letters(sequences, np.array([query]), sequences.size)
    order = by_length(sequences.lengths[j])
    longest = int(sequences.lengths[query])

    def block(some: np.ndarray):
        words = edit_windows.target_words(sequences, j[some], longest)
        (edits,) = edit_windows.edits_block(letters, slice(0, 1), words)
        results[some] = edits[0, : len(some)]

    in_threads(block, blocks_of(sequences.lengths[j], order, longest), threads)


def blocks_of(
    lengths: np.ndarray, order: np.ndarray, other: int
) -> Iterator[np.ndarray]:
    """Runs of an order of falling lengths, as many as are lanes."""
    from jaxalign.edits.cpu import edit_windows

    falling, at = lengths[order], 0
    while at < len(order):
        count = edit_windows.block_size(falling, at, other)
        yield order[at : at + count]
        at += count
