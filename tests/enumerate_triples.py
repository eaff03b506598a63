"""Every alignment of three tiny sequences, scored by the definition on the rows.

Shares nothing with the oracle it checks: rows are texts, gaps are found by regular
expressions. Lengths 2, 2, 2 have 409 alignments, 3, 2, 2 have 1 281.
"""

import re
from itertools import combinations, product


def alignments(a, b, c):
    """All (row, row, row) without a column of three gaps."""
    if not (a or b or c):
        yield "", "", ""
        return
    for takes in product((0, 1), repeat=3):
        parts = [(s[:take], s[take:]) for s, take in zip((a, b, c), takes, strict=True)]
        texts = (a, b, c)
        if not any(takes) or any(take and not texts[n] for n, take in enumerate(takes)):
            continue
        for rest in alignments(*(tail for _, tail in parts)):
            heads = (head or "-" for head, _ in parts)
            yield tuple(h + row for h, row in zip(heads, rest, strict=True))


def cost(word, open, ext):
    """Of all runs of a letter g in a word."""
    return sum(open + (len(run) - 1) * ext for run in re.findall("g+", word))


def pair_score(x, y, sub, open, ext, model, free):
    """One induced pair of rows."""
    columns = [
        p for p in zip(x, y, strict=True) if model == "quasi-natural" or p != ("-", "-")
    ]
    total = sum(sub(p, q) for p, q in columns if p != "-" and q != "-")
    for side in (0, 1):
        # 'g' a gap that pays, 'r' a residue of the gapped row, '.' neither
        word = "".join(
            "r" if p[side] != "-" else "." if p[1 - side] == "-" else "g"
            for p in columns
        )
        if free:
            inner = re.search("r.*r|r|$", word)
            word = inner.group()
        total -= cost(word, open, ext)
    return total


def score(rows, sub, open, ext, model, mode):
    free = mode == "semiglobal"
    pairs = combinations(rows, 2)
    return sum(pair_score(x, y, sub, open, ext, model, free) for x, y in pairs)


def best(texts, sub, open, ext, model, mode):
    """The greatest score of all alignments, in local mode of all substrings too."""
    if mode != "local":
        return max(score(r, sub, open, ext, model, mode) for r in alignments(*texts))
    pieces = [
        {t[i:j] for i in range(len(t) + 1) for j in range(i, len(t) + 1)} for t in texts
    ]
    return max(
        score(rows, sub, open, ext, model, mode)
        for three in product(*pieces)
        for rows in alignments(*three)
    )
