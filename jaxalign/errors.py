"""Every failure a user can meet: its class, and the exit code of the command line.

A message names the value and the rule; a failure in a file also names the file,
the record, the line and the column. What is too long for a message, as a name of two
million letters, is cut in its middle.
"""

import re
from collections.abc import Iterable

LEAST_LIKENESS = 0.6  # of a word that may be meant, 1 of equal ones
LONGEST_WORD, LONGEST_LINE = 500, 1900  # characters of a message
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
_LONG_LINE = re.compile(rf"[^\n]{{{LONGEST_LINE + 1},}}")

EXIT_CODES = {
    0: "done",
    1: "failed while running",
    2: "usage: an option or an argument is wrong",
    3: "bad input: file, record, line and column are named",
    4: "the plan exceeds the memory; the size that would fit is named",
    5: "the device asked for is absent",
    6: "audit: a pair across parts is at or above the cut",
    7: "audit: a certificate is not what it says",
    130: "interrupted (143 by SIGTERM, 129 by SIGHUP)",
}


class JaxalignError(Exception):
    """Base of all errors that jaxalign raises; exit code 1."""

    exit_code = 1

    def __init__(self, *said: object):
        super().__init__(*(shortened(x) if isinstance(x, str) else x for x in said))


def shortened(message: str) -> str:
    """Cut the middle of words and lines that are too long for a message.

    Examples
    --------
    >>> shortened("the name " + "x" * 5000).replace("x" * 250, "xx")
    'the name xx[4,500 characters]xx'
    """

    def cut(match: re.Match[str], longest: int) -> str:
        text, end = match[0], longest // 2
        return f"{text[:end]}[{len(text) - 2 * end:,} characters]{text[-end:]}"

    message = _LONG_WORD.sub(lambda match: cut(match, LONGEST_WORD), message)
    return _LONG_LINE.sub(lambda match: cut(match, LONGEST_LINE), message)


def nearest_word(word: object, words: Iterable[str]) -> str | None:
    """The word that another one is most like, if it is like any; of two that are as
    near to it, the first."""
    from difflib import SequenceMatcher  # which a process without errors need not load

    likeness = {x: SequenceMatcher(None, x, str(word)).ratio() for x in words}
    nearest = max(likeness, key=lambda x: likeness[x])
    return nearest if likeness[nearest] >= LEAST_LIKENESS else None


class UsageError(JaxalignError, ValueError):
    """An argument or option is invalid; exit code 2."""

    exit_code = 2


class InputError(JaxalignError, ValueError):
    """Input data are invalid or cannot be read; exit code 3."""

    exit_code = 3


class MemoryPlanError(JaxalignError, MemoryError):
    """The plan of a job exceeds the memory budget; exit code 4.

    ``needed`` is the number of bytes that would suffice, if known.
    """

    exit_code = 4
    needed: int | None = None


class DeviceError(JaxalignError, RuntimeError):
    """The requested device or implementation cannot run the job; exit code 5."""

    exit_code = 5


class LeakError(JaxalignError):
    """A split has a pair across parts at or above its cut; exit code 6."""

    exit_code = 6


class VerificationError(JaxalignError):
    """A certificate is not what it says, or its files changed; exit code 7."""

    exit_code = 7


class DeviceFailure(DeviceError):
    """The device failed while running the job; exit code 1."""

    exit_code = 1


class CertificateError(JaxalignError, RuntimeError):
    """A path does not have the score that was computed; exit code 1."""
