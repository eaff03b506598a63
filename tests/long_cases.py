"""Pairs that are aligned block by block, and what the oracle says of them."""

from functools import partial

import numpy as np
import oracle

from jaxalign.model.scoring import Scoring, as_scoring, resolve_ends
from jaxalign.pairs.cpu.execute import problem_of
from jaxalign.pairs.long import align, path, pruning
from jaxalign.pairs.long import align as long_align
from jaxalign.pairs.long import fill as tile_fill
from jaxalign.pairs.long.align import Halves
from jaxalign.pairs.long.blocks import LongPair
from jaxalign.pairs.long.fill import fill_by_tiles

TILE = (64, 64)
KINDS = ("random", "near", "repeats")
LETTERS = np.array(list("ARNDCQEGHILKMFPSTWYV"))
DNA = as_scoring(Scoring("NUC", 5, 2))


def have_long_pairs(monkeypatch):
    """Pairs of some ten thousand cells are long, and computed by XLA in small tiles."""
    monkeypatch.setenv("JAXALIGN_ROWS", "off")
    monkeypatch.setattr(align, "LONG_CELLS", 10_000)
    monkeypatch.setattr(tile_fill, "TILE_ROWS", 64)
    monkeypatch.setattr(tile_fill, "SMALL_TILE_COLUMNS", 64)


def have_small_blocks(monkeypatch, lines=3, lanes=48):
    """Paths of some hundred letters go through many blocks and bands; all prune."""
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    monkeypatch.setattr(path, "LEAF_ROWS", 64)
    monkeypatch.setattr(path, "LEAF_COLUMNS", 64)
    monkeypatch.setattr(tile_fill, "LINES", lines)
    monkeypatch.setattr(path, "ROWS", 128)
    monkeypatch.setattr(path, "LANES", lanes)


def texts(seed=0):
    """Two proteins, and two that differ from the first by a deletion or not at all."""
    rng = np.random.default_rng(seed)
    first = "".join(rng.choice(LETTERS, 260))
    return [first, "".join(rng.choice(LETTERS, 150))], [first[:90] + first[97:], first]


def pair_of(query, target, scoring, mode, free_ends=None):
    free = resolve_ends(mode, free_ends)
    problem = problem_of(scoring, free, "int32")
    costs = scoring.open, scoring.extend
    scores = scoring.scores.astype(np.int32)
    return LongPair(query, target, scores, *costs, free, mode == "local", problem)


def sequences(kind, seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(150, 330, 2)
    query = rng.integers(0, 20, m).astype(np.uint8)
    if kind == "near":
        target = np.concatenate([query[: m // 2], query[m // 2 + 9 :], query[:30]])
        target[::19] = 4
    elif kind == "repeats":
        query, target = np.tile(query[:7], m // 7), np.tile(query[:7], n // 7)
    else:
        target = rng.integers(0, 20, n).astype(np.uint8)
    return query, target


def dna(seed, length):
    return np.random.default_rng(seed).integers(0, 4, length).astype(np.uint8)


def evolved(rng, query, substitutions, indels):
    """A copy with a tenth as many letters inserted or deleted at a time as 30."""
    copy = query.copy()
    at = rng.random(len(copy)) < substitutions
    copy[at] = (copy[at] + rng.integers(1, 4, at.sum())) % 4
    for cut in sorted(rng.integers(0, len(copy), indels).tolist())[::-1]:
        if rng.random() < 0.5:
            copy = np.delete(copy, slice(cut, cut + 7))
        else:
            copy = np.insert(copy, cut, rng.integers(0, 4, 9))
    return copy.astype(np.uint8)


def wanted(pair, mode, free):
    score, start, end, operations = oracle.align(
        pair.query, pair.target, pair.scores, pair.open, pair.extend, mode, free
    )
    steps = [op for op, length in operations for _ in range(length)]
    return score, tuple(start), tuple(end), steps


def answer(pair, pruned=True, fill=None, **options):
    """(score, start, end, operations) by blocks, which has to be those ``wanted``."""
    fill = fill or partial(fill_by_tiles, tile=TILE)
    result = long_align.align(pair, fill, True, pruned, **options)
    assert result.columns == len(result.steps)
    start, end = (result.start_i, result.start_j), (result.end_i, result.end_j)
    return result.score, start, end, ["MID"[x] for x in result.steps]


def score_by_halves(pair, pruned, fill=None):
    both, fill = Halves(pair, pruned), fill or partial(fill_by_tiles, tile=TILE)
    first, score = (both.fill(number, fill) for number in (1, 0))
    assert first is None
    return score
