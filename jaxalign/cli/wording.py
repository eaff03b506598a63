"""Errors of functions in the words of the command line: ``--min-identity`` where Python
says ``min_identity``."""

import re
from collections.abc import Collection

NAME = r"(?<![\w-])([a-z][a-z0-9]*(?:_[a-z0-9]+)*)"
DICT = r"\{[^{}]*\}"
# name=value, as a call has it, and "name = value" or a name with an underscore, as the
# message of a value begins.
CALL = re.compile(NAME + rf"=({DICT}|'[^']*'|[\w.+-]+)")
SAYS = re.compile(NAME + r"(?= = )")
SNAKE = re.compile(r"(?<![\w-])([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w(.])")


def spoken(message: str, options: Collection[str]) -> str:
    """A message whose options are those of a command.

    Parameters
    ----------
    message : str
        Of a function of Python.
    options : collection of str
        Of the command, as ``--min-identity``.
    """

    def option(name: str) -> str | None:
        flag = "--" + name.replace("_", "-")
        return flag if flag in options else None

    def of_call(match: re.Match[str]) -> str:
        flag = option(match[1])
        return f"{flag} {_value(match[2])}" if flag else match[0]

    def of_name(match: re.Match[str]) -> str:
        return option(match[1]) or match[0]

    for pattern, change in ((CALL, of_call), (SAYS, of_name), (SNAKE, of_name)):
        message = pattern.sub(change, message)
    return message


def _value(text: str) -> str:
    """A value of Python as a word: {'a': 1} is a=1."""
    if text.startswith("{"):
        pairs = (pair.split(":", 1) for pair in text[1:-1].split(","))
        return ",".join(f"{k.strip(' ' + chr(39))}={v.strip()}" for k, v in pairs)
    return text.strip("'")
