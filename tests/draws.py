"""Draw test cases from a grid: few of them, the same on every machine."""

from itertools import combinations, product
from operator import getitem
from random import Random


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
    wanted = {pair for case in grid for pair in _pairs(case)}
    wanted -= {pair for case in cases for pair in _pairs(case)}
    while wanted:
        case = max(grid, key=lambda case: len(wanted & _pairs(case)))
        wanted -= _pairs(case)
        cases.append(case)
    return [tuple(map(getitem, factors, case)) for case in cases]


def _pairs(case: tuple[int, ...]) -> set:
    return set(combinations(enumerate(case), 2))
