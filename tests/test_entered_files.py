"""A reader who follows one warm call meets few files, and seldom turns from one to
another (``benchmarks/entered_files.py``).

A limit falls when files are merged; a new file on a path has to be worth a higher one.
"""

from collections import Counter

import pytest

from benchmarks import entered_files

FILES, LINES, STATEMENTS = 259, 80_704, 40_233
# name -> (function of a folder that makes the call, files, moves, depth)
CALLS = {
    "align": (lambda _: entered_files.two_strings(), 12, 34, 9),
    "all": (entered_files.command_line, 39, 392, 20),
    "align_all": (lambda _: entered_files.set_of_proteins(), 21, 158, 12),
    # Paths of hits: a window of scores for each query, then boxes of all, 128 in each
    "search": (lambda _: entered_files.search(), 32, 1220, 18),
    "nearest": (lambda _: entered_files.nearest(), 36, 880, 21),
    "split": (lambda _: entered_files.split(), 33, 434, 20),
    "cluster": (lambda _: entered_files.cluster(), 26, 920, 21),
    "repertoire": (lambda _: entered_files.repertoire(), 17, 160, 16),
    "triple": (lambda _: entered_files.triple(), 20, 180, 14),
    # The kind of the arrays is asked before JAX is imported, and given back behind it.
    "soft gradient": (lambda _: entered_files.soft_gradient(), 8, 36, 12),
}
# Threads take windows in turns, so a call in several of them differs by a few moves;
# more cores are more turns.
MORE, CORES = 1.1, {0, 1}


QUICK = "align", "align_all", "split", "cluster", "repertoire"


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in CALLS],
)
def test_a_warm_call_enters_few_files(name, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: CORES)
    call_of, files, moves, depth = CALLS[name]
    way = entered_files.trace(call_of(tmp_path))
    assert 0 < len(way.files) <= files, "\n".join(way.files)
    assert way.moves <= MORE * moves
    assert 1 < way.depth <= depth
    assert way.functions >= len(way.files) // 2


def test_lines_are_of_one_kind():
    source = '''"""Module."""
import ast


@cache
def f(
    a,
):
    """One.

    Two."""
    # reason
    return a
'''
    assert entered_files.lines_of(source) == {
        "docstring": 4,
        "import": 1,
        "blank": 2,
        "signature": 4,
        "comment": 1,
        "statement": 1,
    }


def test_the_packages_do_not_grow():
    """More files or lines want a reason, and these limits a new line in a log."""
    house = sum(entered_files.sizes().values(), Counter())
    assert house["files"] <= FILES and house["lines"] <= LINES
    assert house["statement"] <= STATEMENTS
