"""Queries that stand one below the other in the strips of a fill.

A lane has K rows of one query. Local scores of several queries may share a strip: where
a query begins, a lane takes nothing from the lane above. So at most K - 1 rows of a
query are computed in vain, and not those of half a strip.
"""

import heapq
from typing import NamedTuple

import numpy as np

from kernels_pallas.pairs.shapes import Fill

NO_QUERY = -1
LEAST_STRIPS, STRIPS_RATIO = 2, 4  # room for the strips of an item


class Stacks(NamedTuple):
    """Which rows of which query a lane has, int32: I items, of each table of a register
    S strips of lanes."""

    query: np.ndarray  # (I, tables, S * lanes), or NO_QUERY
    chunk: np.ndarray  # (I, tables, S * lanes): its K rows from row K * chunk on
    strips: np.ndarray  # (I,), in use


def stack(lengths, s: Fill) -> Stacks:
    """Queries of these lengths in ``s.stacks`` items; S is 2, 8, 32 …"""
    chunks = -(-np.asarray(lengths, np.int64) // s.rows)
    tables = _tables(chunks, s)
    strips = _strips(chunks, tables, s)
    strip_room = LEAST_STRIPS
    while strip_room < strips.max():
        strip_room *= STRIPS_RATIO
    query = np.full((len(tables), strip_room * s.lanes), NO_QUERY, np.int32)
    chunk = np.zeros_like(query)
    for owner, place, taken in zip(query, chunk, tables, strict=True):
        each = [np.arange(chunks[q], dtype=np.int32) for q in taken]
        count = sum(map(len, each))
        owner[:count] = np.repeat(taken, [len(x) for x in each])
        place[:count] = np.concatenate([place[:0], *each])
    shape = s.stacks, s.tables, strip_room * s.lanes
    return Stacks(query.reshape(shape), chunk.reshape(shape), strips.astype(np.int32))


def stacked_strips(lengths, s: Fill) -> np.ndarray:
    """The strips of every item, int64 (I,)."""
    chunks = -(-np.asarray(lengths, np.int64) // s.rows)
    return _strips(chunks, _tables(chunks, s), s)


def _tables(chunks, s: Fill) -> list[list[int]]:
    """The queries of every table of every item, fullest first: longest first, each to
    the table with the least."""
    least = [(0, k) for k in range(s.stacks * s.tables)]
    tables: list[list[int]] = [[] for _ in least]
    for q in np.argsort(-chunks, kind="stable").tolist():
        load, k = heapq.heappop(least)
        tables[k].append(q)
        heapq.heappush(least, (load + int(chunks[q]), k))
    return [tables[k] for _, k in sorted(least, reverse=True)]


def _strips(chunks, tables, s: Fill) -> np.ndarray:
    loads = np.array([sum(chunks[q] for q in taken) for taken in tables])
    return -(-loads.reshape(s.stacks, s.tables).max(1) // s.lanes)
