"""All that the command line prints: answers on standard output, messages on standard
error. A name in them cannot command the terminal, or make up a line.

Control characters are printed as escapes. The lines of a message after the first are
indented, but for hints.
"""

import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

from jaxalign.io import output
from jaxalign.io.output import standard_output
from jaxalign.model.names import visible

PROGRAM, HINT = "jaxalign: ", "hint: "
# What JSON leaves as it is, and a terminal would obey or UTF-8 does not hold.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def prepare() -> None:
    """Have answers be UTF-8, as files are, whatever the locale says."""
    stream = sys.stdout
    if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
        stream.reconfigure(encoding="utf-8")


def say(message: str) -> None:
    """A message on standard error, if there is one."""
    print_to(sys.stderr, "\n".join(_lines(PROGRAM + message)))


def say_where() -> None:
    """The traceback of the exception that is being handled, on standard error."""
    print_to(sys.stderr, "\n".join(_lines(traceback.format_exc().rstrip())))


def print_to(stream: TextIO | None, text: str) -> None:
    """A text and the end of its line. What cannot be said stops no job."""
    if stream is not None:
        with suppress(OSError):
            print(text, file=stream, flush=True)


def answer(lines: Iterable[str]) -> None:
    """Lines of an answer on standard output, which may hold names as they are.

    Raises
    ------
    JaxalignError
        It is closed, or takes no more.
    """
    with output.naming(output.STANDARD_OUTPUT):
        print(visible("\n".join(lines)), file=standard_output())


def answer_json(about: dict) -> None:
    """One JSON object on standard output.

    Raises
    ------
    JaxalignError
    """
    answer([as_json(about)])


def as_json(about: dict) -> str:
    r"""JSON for people and programs: letters as they are, and whatever a terminal
    would obey, or UTF-8 does not hold, as ``\uXXXX``."""
    text = json.dumps(about, indent=2, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def finish() -> None:
    """Have standard output written.

    Raises
    ------
    JaxalignError
    """
    if sys.stdout is not None:
        with output.naming(output.STANDARD_OUTPUT):
            sys.stdout.flush()


def give_up() -> None:
    """Write what standard output and error still take, and nothing more after this: a
    reader has left, or a disk is full, and the end of the process would try again."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            _discard(stream)


def _discard(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _lines(message: str) -> Iterator[str]:
    first, *others = message.split("\n")
    yield visible(first)
    for line in others:
        yield visible(line if line.startswith(HINT) else f"  {line}")


__all__ = [
    "answer",
    "answer_json",
    "as_json",
    "finish",
    "give_up",
    "prepare",
    "print_to",
    "say",
    "say_where",
    "standard_output",
]
