"""Distances of CDR3 sequences by their definitions, letter by letter.

It imports nothing of the package, and shares nothing with it but BLOSUM62 of biotite.
"""

import random
from functools import cache

import biotite.sequence.align as align

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
FAR = 10**6
_BLOSUM62 = align.SubstitutionMatrix.std_protein_matrix()


def blosum62(a, b):
    return int(_BLOSUM62.get_score(a, b))


def letter_distance(a, b, offset=4, cap=4):
    return 0 if a == b else min(cap, offset - blosum62(a, b))


def hamming(x, y):
    if len(x) != len(y):
        return FAR
    return sum(a != b for a, b in zip(x, y, strict=True))


@cache
def levenshtein(x, y):
    @cache
    def edits(i, j):
        if not i or not j:
            return i + j
        same = x[i - 1] == y[j - 1]
        return min(
            edits(i - 1, j) + 1, edits(i, j - 1) + 1, edits(i - 1, j - 1) + (not same)
        )

    return edits(len(x), len(y))


def tcrdist(
    x, y, weight=3, gap_penalty=4, ntrim=3, ctrim=2, fixed_gap=True, offset=4, cap=4
):
    """The shorter one gets a gap, and the columns of the ends are struck out."""
    x, y = sorted((x, y), key=len)
    more = len(y) - len(x)
    if not more:
        columns = [*zip(x, y, strict=True)][ntrim : max(len(x) - ctrim, 0)]
        return weight * sum(letter_distance(a, b, offset, cap) for a, b in columns)
    if fixed_gap:
        places = [min(6, 3 + (len(x) - 5) // 2)]
    else:
        first, last = 5, len(x) - 5
        while first > last:
            first, last = first - 1, last + 1
        places = range(first, last + 1)
    sums = []
    for place in places:
        before = [*zip(x[:place], y[:place], strict=True)][ntrim:]
        after = [*zip(x[place:][::-1], y[::-1], strict=False)][ctrim:]
        columns = before + after
        sums.append(sum(letter_distance(a, b, offset, cap) for a, b in columns))
    return weight * min(sums) + gap_penalty * more


@cache
def alignment(x, y, gap_open=4, gap_extend=4):
    """min(S(x, x), S(y, y)) - S(x, y), S by Gotoh's three tables."""

    @cache
    def best(i, j, state):
        if not i and not j:
            return 0 if state == "M" else -FAR
        if state == "M":
            if not i or not j:
                return -FAR
            before = max(best(i - 1, j - 1, s) for s in "MXY")
            return before + blosum62(x[i - 1], y[j - 1])
        di, dj = (1, 0) if state == "X" else (0, 1)
        if i < di or j < dj:
            return -FAR
        others = {"M", "X", "Y"} - {state}
        opened = max(best(i - di, j - dj, s) for s in others) - gap_open
        return max(opened, best(i - di, j - dj, state) - gap_extend)

    score = max(best(len(x), len(y), s) for s in "MXY")
    own = min(sum(blosum62(a, a) for a in text) for text in (x, y))
    return own - score


def receptors(count, seed, lengths=(8, 18)):
    """Unique sequences, many of which are a few changes of others."""
    draw = random.Random(seed)
    found = {"CASSLGQAYEQYF": None}
    while len(found) < count:
        text = [*draw.choice([*found])]
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(text))
            change = draw.random()
            if change < 0.6:
                text[place] = draw.choice(LETTERS)
            elif change < 0.8 and len(text) < lengths[1]:
                text.insert(place, draw.choice(LETTERS))
            elif len(text) > lengths[0]:
                del text[place]
        found["".join(text)] = None
    return [*found]


def edges(texts, distance, cutoff, others=None):
    """{(i, j): distance} of all pairs i < j, or of all pairs of two sets."""
    pairs = (
        (i, j)
        for i in range(len(texts))
        for j in range(i + 1 if others is None else 0, len(others or texts))
    )
    found = {(i, j): distance(texts[i], (others or texts)[j]) for i, j in pairs}
    return {pair: d for pair, d in found.items() if d <= cutoff}
