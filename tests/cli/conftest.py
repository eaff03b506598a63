"""Fixtures of the command line's tests."""

import pytest

from jaxalign.cli.main import main


@pytest.fixture
def run(folder, capsys):
    """Words of a command line -> (exit code, stdout, stderr); ``folder`` is that of the
    module."""

    def run(*words):
        code = main(list(words))
        return (code, *capsys.readouterr())

    return run
