"""A reader who follows one warm call meets few files, and seldom turns from one to
another (``benchmarks/entered_files.py``).

A limit falls when files are merged; a new file on a path has to be worth a higher one.
"""

import pytest

from benchmarks import entered_files

# name -> (function of a folder that makes the call, files, moves)
CALLS = {
    "align": (lambda _: entered_files.two_strings(), 14, 40),
    "all": (entered_files.command_line, 37, 220),
    "align_all": (lambda _: entered_files.set_of_proteins(), 23, 130),
    "search": (lambda _: entered_files.search(), 37, 300),
    "split": (lambda _: entered_files.split(), 34, 235),
    "triple": (lambda _: entered_files.triple(), 22, 90),
    "soft gradient": (lambda _: entered_files.soft_gradient(), 11, 40),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            x, marks=pytest.mark.slow if x in ("triple", "soft gradient") else ()
        )
        for x in CALLS
    ],
)
def test_a_warm_call_enters_few_files(name, tmp_path):
    call_of, files, moves = CALLS[name]
    steps = entered_files.trace(call_of(tmp_path))
    assert 0 < len(steps.files) <= files, "\n".join(steps.files)
    assert steps.moves <= moves
