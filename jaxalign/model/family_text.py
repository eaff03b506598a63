"""The lines of a text file of a family, and errors that name one of them."""

import os
from typing import Any

from jaxalign.errors import InputError
from jaxalign.model.input_files import is_endless


def lines_of(source: Any) -> list[str]:
    """The lines of a file of ASCII, as an editor counts them.

    Raises
    ------
    InputError
        It cannot be read, or has another letter.
    """
    if is_endless(source):
        raise InputError(f"{source}: is a device that has no end")
    try:
        with open(os.fspath(source), "rb") as file:
            data = file.read()
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{source}: cannot be read as text ({why})") from error
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return data.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise wrong(source, line, f"{data[error.start]:#x} is no ASCII") from error


def wrong(source: Any, line: int, why: str) -> InputError:
    """An error in a line, which is counted from 1."""
    return InputError(f"{source}, line {line}: {why}")
