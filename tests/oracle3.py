"""The oracle of triples: exact alignment of three sequences by plain loops over cells.

Numpy and the standard library only, nothing of the project. A state is the tuple of
the three pairs' patterns: 'M' residue/residue, 'x' residue/gap, 'y' gap/residue, and,
where the gap model is quasi-natural, '.' gap/gap. Slow on purpose.
"""

from itertools import product

import numpy as np

COLUMNS = [c for c in product((1, 0), repeat=3) if any(c)]
PAIRS = ((0, 1), (0, 2), (1, 2))
NAMES = {(1, 1): "M", (1, 0): "x", (0, 1): "y", (0, 0): "."}


def after(state, column, model):
    """The state once a column is added."""
    new = [NAMES[column[x], column[y]] for x, y in PAIRS]
    if model == "natural":
        new = [old if n == "." else n for n, old in zip(new, state, strict=True)]
    return tuple(new)


def column_score(cell, state, column, seqs, S, open, ext, free):
    """Score of a column that ends at ``cell`` after ``state``."""
    total = 0
    for n, (x, y) in enumerate(PAIRS):
        kind = NAMES[column[x], column[y]]
        if kind == "M":
            total += int(S[seqs[x][cell[x] - 1]][seqs[y][cell[y] - 1]])
        elif kind in "xy":
            gapped = y if kind == "x" else x
            if free and cell[gapped] in (0, len(seqs[gapped])):
                continue
            total -= ext if state[n] == kind else open
    return total


def score(seqs, S, open, ext, model="quasi-natural", mode="global"):
    """The best score of three code arrays; ``S[first][second]``."""
    S, seqs = np.asarray(S).tolist(), [list(map(int, s)) for s in seqs]
    table, best = {}, 0
    first = ("M", "M", "M")
    for cell in product(*(range(len(s) + 1) for s in seqs)):
        here = {first: 0} if mode == "local" or not any(cell) else {}
        for column in COLUMNS:
            came = tuple(c - d for c, d in zip(cell, column, strict=True))
            for state, value in table.get(came, {}).items():
                args = (cell, state, column, seqs, S, open, ext)
                total = value + column_score(*args, mode == "semiglobal")
                new = after(state, column, model)
                if total > here.get(new, total - 1):
                    here[new] = total
        table[cell] = here
        best = max(best, *here.values())
    end = table[tuple(len(s) for s in seqs)]
    return best if mode == "local" else max(end.values())
