"""A reader who follows one warm call meets few files (``benchmarks/entered_files.py``).

A limit falls when files are merged; a new file on a path has to be worth a higher one.
"""

import pytest

from benchmarks import entered_files

CALLS = {
    "all": (entered_files.command_line, 45),
    "align_all": (lambda _: entered_files.set_of_proteins(), 28),
    "triple": (lambda _: entered_files.triple(), 25),
    "soft gradient": (lambda _: entered_files.soft_gradient(), 10),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warm_call_enters_few_files(name, tmp_path):
    call_of, limit = CALLS[name]
    files = entered_files.entered(call_of(tmp_path))
    assert 0 < len(files) <= limit, "\n".join(files)
