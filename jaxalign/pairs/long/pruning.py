"""Which parts of a table no best path enters (docs/recurrences.md has the proof).

Pruning needs the score of some path, the higher the better. Words that stand once in a
sample of each sequence are chained; between them the path is a diagonal, or two with
one gap at the best place between. It is scored letter by letter: where chance or a
clash of hashes puts a word into the chain, the score is lower, and as true.
"""

from bisect import bisect_left

import numpy as np

from jaxalign.pairs.long.blocks import NO_BOUND, LongPair, TableBlock

MOST_WORDS = 2**18  # of the sample of a sequence
ROUNDS = 6
SHORT_WORD = 8
LONGEST_GAP = 2**12
FEW_WORDS = 64  # a chain of one in so many of the sample may be worse than none
MULTIPLIERS = 0x9E3779B1, 0x85EBCA6B


def path_score(pair: LongPair) -> int:
    """The score of a path of the pair."""
    # A power of 2, so that few words of so many letters stand in both by chance.
    counts = np.bincount(pair.query, minlength=2) / max(pair.m, 1)
    letters = max(1 / max((counts**2).sum(), 1e-9), 1.5)  # as if each were as frequent
    size = SHORT_WORD
    while letters**size < 16 * max(pair.m, pair.n) and size < 64:
        size *= 2
    i, j = _shared(_sample(pair, size, pair.query), _sample(pair, size, pair.target))
    # Most words that follow each other in both sequences, but those whose gaps cost
    # more than they gain: their places.
    members = _rising(j)
    words = _without_detours(pair, i[members], j[members], size)
    if len(i) * FEW_WORDS < min(pair.m, pair.n, MOST_WORDS):
        chains = _runs(*words), _runs(i[:0], j[:0])
    else:
        chains = (_runs(*_filled_in(pair, *words)),)
    return max(_score(pair, chain) for chain in chains)


def _hashes(codes: np.ndarray, size: int) -> np.ndarray:
    """Hashes of the words of so many letters, a power of 2, uint32."""
    words = codes.astype(np.uint32) + np.uint32(1)
    factor, width = MULTIPLIERS[0], 1
    while width < size:  # two words side by side are one
        words = words[:-width] * np.uint32(factor) + words[width:]
        factor, width = factor * factor % 2**32, 2 * width
    return _mixed(words)


def _mixed(words: np.ndarray) -> np.ndarray:
    words = words * np.uint32(MULTIPLIERS[1])
    words ^= words >> np.uint32(15)
    words *= np.uint32(MULTIPLIERS[0])
    return words


def _sample(pair: LongPair, size: int, codes: np.ndarray):
    """Hashes of some words, the same of both sequences, and their places."""
    words = _hashes(codes, size)
    limit = min(2**32 - 1, 2**32 * MOST_WORDS // max(pair.m, pair.n, 1))
    places = np.flatnonzero(words <= np.uint32(limit))
    return words[places], places


def _shared(query: tuple, target: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Where words stand that have one place in each sequence, by query position."""
    words, places = zip(_once(*query), _once(*target), strict=True)
    _, a, b = np.intersect1d(*words, True, return_indices=True)
    i, j = places[0][a], places[1][b]
    order = np.argsort(i)
    return i[order], j[order]


def _once(words: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Words that have one place, sorted, and their places."""
    order = np.argsort(words)
    words, places = words[order], places[order]
    starts = np.ones(len(words) + 1, bool)
    starts[1:-1] = words[1:] != words[:-1]
    once = starts[1:] & starts[:-1]
    return words[once], places[once]


def _filled_in(pair: LongPair, i: np.ndarray, j: np.ndarray):
    """A chain with short words between its words, each looked for between the same two
    alone."""
    size, shared = SHORT_WORD, []
    gaps = np.flatnonzero(np.diff(i) != np.diff(j))
    for codes, places in ((pair.query, i), (pair.target, j)):
        lengths = np.maximum(places[gaps + 1] - places[gaps] - 1, 0)
        lengths[lengths > LONGEST_GAP] = 0
        number = np.repeat(np.arange(len(gaps)), lengths)
        starts = places[gaps] + 1 - (np.cumsum(lengths) - lengths)
        inner = np.arange(len(number)) + starts[number]
        words = _hashes(codes, size)
        inside = inner < len(words)
        inner, number = inner[inside], number[inside]
        shared.append((_mixed(words[inner] + number.astype(np.uint32)), inner))
    new_i, new_j = _shared(*shared)
    rising = _rising(new_j)
    i, j = np.append(i, new_i[rising]), np.append(j, new_j[rising])
    order = np.argsort(i)
    return _without_detours(pair, i[order], j[order], size)


def _without_detours(pair: LongPair, i: np.ndarray, j: np.ndarray, size: int):
    for _ in range(ROUNDS):
        runs = _runs(i, j)
        # Whether a run gains more than its gaps cost beyond the one around it. Of two
        # neighbours only the one that gains less may go.
        match = max(int(pair.scores.max(initial=0)), 1)
        gains = np.minimum(runs[:, 4] * size, runs[:, 2] - runs[:, 0] + size) * match
        diagonals = runs[:, 0] - runs[:, 1]
        diagonals = np.concatenate([diagonals[:1], diagonals, diagonals[-1:]])

        def cost(shift: np.ndarray) -> np.ndarray:
            opening = (pair.open - pair.extend) * (shift != 0)
            return pair.extend * np.abs(shift) + opening

        steps = cost(np.diff(diagonals))
        around = cost(diagonals[2:] - diagonals[:-2])
        surplus = gains - (steps[:-1] + steps[1:] - around)
        neighbours = np.concatenate([[0], np.minimum(surplus, 0), [0]])
        worth = (surplus >= 0) | (surplus > np.minimum(neighbours[:-2], neighbours[2:]))
        if worth.all():
            break
        members = np.repeat(worth, runs[:, 4])
        i, j = i[members], j[members]
    return i, j


def _rising(places: np.ndarray) -> np.ndarray:
    """A longest rising subsequence of different numbers: where its members stand."""
    least: list[int] = []  # the least last number of a subsequence of each length
    lengths = []
    for place in places.tolist():
        if not least or place > least[-1]:  # nearly always, in sequences that are alike
            lengths.append(len(least))
            least.append(place)
        else:
            lengths.append(bisect_left(least, place))
            least[lengths[-1]] = place
    members, rank = [], len(least) - 1
    for k in range(len(lengths) - 1, -1, -1):
        if lengths[k] == rank:
            members.append(k)
            rank -= 1
    return np.array(members[::-1], np.int64)


def _runs(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Words by diagonals."""
    if not len(i):
        return np.zeros((0, 5), np.int64)
    starts = np.flatnonzero(np.diff(i - j, prepend=i[0] - j[0] - 1))
    last = np.append(starts[1:], len(i)) - 1
    return np.stack([i[starts], j[starts], i[last], j[last], last - starts + 1], 1)


def _score(pair: LongPair, chain: np.ndarray) -> int:
    """The score of the path through a chain; in local mode of its best part."""
    corners = [tuple(run[:4]) for run in chain.tolist()]
    place, end = (0, 0), (pair.m, pair.n)
    if corners:  # where an end is free, on the diagonal of the first or the last run
        (i, j, *_), (*_, k, h) = corners[0], corners[-1]
        rows, columns = pair.m - k, pair.n - h
        spare = {
            "query_start": i - min(i, j),
            "target_start": j - min(i, j),
            "query_end": rows - min(rows, columns),
            "target_end": columns - min(rows, columns),
        }
        spare = {x: spare[x] * (pair.local or x in pair.free) for x in spare}
        place = spare["query_start"], spare["target_start"]
        end = pair.m - spare["query_end"], pair.n - spare["target_end"]
    reached = best = 0
    for i, j, last_i, last_j in [*corners, (*end, *end)]:
        for target in ((i, j), (last_i, last_j)):
            reached, highest = _go(pair, place, target, reached)
            best, place = max(best, highest), target
    return best if pair.local else reached


def _go(
    pair: LongPair, place: tuple[int, int], target: tuple[int, int], reached: int
) -> tuple[int, int]:
    """(score at the target, the best on the way): a diagonal, a gap, a diagonal."""
    (i, j), (k, h) = place, target
    length = min(k - i, h - j)
    gap = abs((k - i) - (h - j))
    first = _pairs(pair, i, j, length)
    if not gap:
        scores = reached + np.cumsum(first, dtype=np.int64)
        if not pair.local or not length:
            return int(scores[-1]) if length else reached, 0
        scores -= np.minimum(np.minimum.accumulate(scores), 0)
        return int(scores[-1]), int(scores.max())
    second = _pairs(pair, k - length, h - length, length)
    changes = np.cumsum(first - second, dtype=np.int64)
    paired = int(second.sum(dtype=np.int64)) + max(0, int(changes.max(initial=0)))
    reached += paired - (pair.open + pair.extend * (gap - 1))
    return (max(reached, 0), reached) if pair.local else (reached, 0)


def _pairs(pair: LongPair, i: int, j: int, length: int) -> np.ndarray:
    """Scores of letters on a diagonal."""
    return pair.scores[pair.query[i : i + length], pair.target[j : j + length]]


MIN_CELLS = 2**24  # of a pair in which a path is looked for first


def rest(
    pair: LongPair,
    i: np.ndarray | int,
    j: np.ndarray | int,
    until: tuple[int, int] | None = None,
):
    """The most that a path can score from cell (i, j) on, to any end or to the cell
    ``until``: int64.

    No letter scores more than with its best partner. Of the longer rest as many letters
    as it is longer are in gaps, which cost at least ``extend`` each, unless that end is
    free.
    """
    k, h = until or (pair.m, pair.n)
    rows, columns = k - np.asarray(i, np.int64), h - np.asarray(j, np.int64)
    gain = np.minimum(
        pair.most_of_query[i] - pair.most_of_query[k],
        pair.most_of_target[j] - pair.most_of_target[h],
    )
    query, target = end_costs(pair, until)
    cost = query * np.maximum(rows - columns, 0)
    cost = cost + target * np.maximum(columns - rows, 0)
    return gain - cost


def end_costs(pair: LongPair, until: tuple[int, int] | None = None) -> tuple[int, int]:
    """The least that one more letter of the query's rest costs, and of the target's."""
    if until is not None:
        return pair.extend, pair.extend
    if pair.local:
        return 0, 0
    query, target = (
        0 if end in pair.free else pair.extend for end in ("query_end", "target_end")
    )
    return query, target


def reaches(
    pair: LongPair, block: TableBlock, bound: int, until: tuple[int, int] | None = None
) -> bool:
    """Whether a path through the border of a block may score ``bound``."""
    if bound <= NO_BOUND:
        return True
    i, j = block.i, block.j
    along = np.arange(len(block.top.h)) + j, np.arange(len(block.left.h)) + i
    # H is at least E and F, but for cells of minus infinity.
    ends = block.top.h.astype(np.int64) + rest(pair, i, along[0], until)
    best = max(
        int(ends.max()),
        int((block.left.h.astype(np.int64) + rest(pair, along[1], j, until)).max()),
    )
    if pair.local:
        best = max(best, int(rest(pair, i, j, until)))
    return best >= bound


def first_bound(pair: LongPair) -> int:
    """The score of some path, so that one of the best score reaches it. ``NO_BOUND`` of
    a small pair."""
    if pair.m * pair.n < MIN_CELLS:
        return NO_BOUND
    return max(along_border(pair), path_score(pair))


def along_border(pair: LongPair) -> int:
    """The score of an alignment that pairs nothing: the better way round."""
    if pair.local:
        return 0
    m, n = (pair.open + pair.extend * (k - 1) if k else 0 for k in (pair.m, pair.n))
    free = pair.free
    above = n * ("target_start" not in free) + m * ("query_end" not in free)
    below = m * ("query_start" not in free) + n * ("target_end" not in free)
    return -min(above, below)
