"""Draw test cases from a grid, and damage to a file: few, the same on every machine."""

import copy
import json
from collections.abc import Iterator
from itertools import combinations, product
from operator import getitem
from random import Random

import numpy as np


def pairwise(*factors, seed: int = 0, corners=()) -> list[tuple]:
    """
    Cases that hold every value of each factor beside every value of each other one.

    Faults depend on one or two factors far more often than on three. ``corners`` are
    cases that are taken whatever the draw; more are drawn greedily, each the case that
    has most pairs of values which no earlier case has. Factors are sequences of values;
    a value is known by its place, so that it need not be hashable.
    """
    places = [range(len(factor)) for factor in factors]
    grid = list(product(*places))
    Random(seed).shuffle(grid)
    cases = [
        tuple(list(factor).index(x) for factor, x in zip(factors, corner, strict=True))
        for corner in corners
    ]
    pairs = {case: _pairs(case) for case in grid}
    wanted = set().union(*pairs.values())
    wanted -= {pair for case in cases for pair in _pairs(case)}
    while wanted:
        pairs = {case: pairs[case] & wanted for case in pairs}
        case = max(pairs, key=lambda case: len(pairs[case]))
        wanted -= pairs[case]
        cases.append(case)
    return [tuple(map(getitem, factors, case)) for case in cases]


def _pairs(case: tuple[int, ...]) -> set:
    return set(combinations(enumerate(case), 2))


def damaged(data: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    """Bytes that are cut, longer, and with one bit flipped: of every ``step``-th."""
    for size in {0, 1, len(data) // 2, len(data) - 1}:
        yield f"{size} of {len(data)} bytes", data[:size]
    yield "a byte more", data + b"\0"
    for place in range(0, len(data), step):
        flipped = data[place] ^ 1 << place % 8
        text = f"byte {place} flipped"
        yield text, data[:place] + bytes([flipped]) + data[place + 1 :]


def places(value, at=()):
    """Every place in a document of JSON, but the document."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        yield (*at, key)
        yield from places(inner, (*at, key))


def others(value):
    """Values that are nearly this one."""
    yield from (0, "dna", "protein", "", []) if value is None else (None,)
    if isinstance(value, bool):
        yield from (not value, int(value))
    elif isinstance(value, (int, float)):
        yield from (value + 1, -value or 1, str(value), value * (1 + 1e-13) + 1e-13)
        yield float(value) if isinstance(value, int) else value / 2
        if value in (0, 1):
            yield bool(value)
    elif isinstance(value, str):
        yield from (value + "x", value[:-1], "", value.replace("0.5", "0.05", 1))
        yield from ("X", "mask") if value == "error" else ()
    elif isinstance(value, list):
        yield from ([*value, *value[-1:]], [*value, 0], value[:-1], value[::-1], {})
    elif isinstance(value, dict):
        yield from (value | {"new": 1}, {}, [])


def changed(document):
    """(what was changed, the document with one field changed, missing or new)."""
    for *at, key in places(document):
        value = document
        for step in (*at, key):
            value = value[step]
        for new in (*others(value), KeyError):
            again = copy.deepcopy(document)
            place = again
            for step in at:
                place = place[step]
            if new is KeyError:
                del place[key]
            else:
                place[key] = new
            if json.dumps(again) != json.dumps(document):
                yield (*at, key, new), again
    yield ("new",), document | {"new": 1}


def families(random):
    """Texts of ten families of one to five, alike in four letters of five."""
    texts = []
    for _ in range(10):
        first = random.choice([*"ARNDCQEGHILK"], random.integers(20, 40))
        for _ in range(random.integers(1, 6)):
            changed = np.where(random.random(len(first)) < 0.2, "W", first)
            texts.append("".join(changed))
    return texts
