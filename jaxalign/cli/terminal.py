"""All that the command line prints: answers on standard output, messages on standard
error. A name in them cannot command the terminal, or make up a line.

Control characters are printed as escapes. The lines of a message after the first are
indented, but for hints.
"""

import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import TextIO

from jaxalign.errors import shortened
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
    print_to(sys.stderr, "\n".join(_lines(PROGRAM + shortened(message))))


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
    """One JSON object on standard output."""
    answer([as_json(about)])


def as_json(about: dict) -> str:
    r"""JSON for people and programs: letters as they are, and whatever a terminal
    would obey, or UTF-8 does not hold, as ``\uXXXX``."""
    text = json.dumps(about, indent=2, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def finish() -> None:
    """Have standard output written."""
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


@dataclass(frozen=True)
class Messages:
    """Standard error under ``-q``; warnings are shown always and kept."""

    quiet: bool
    warnings: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)

    def warn(self, text: str) -> None:
        self.warnings.append(shortened(text))
        say(f"warning: {text}")

    def warn_of_letters(self, path: str, count: int, wildcard: str | None) -> None:
        """Warn of letters of a file that the alphabet lacks, if there are any."""
        if count:
            self.warn(f"{path}: {count} unknown letters are read as {wildcard}")


# ------------------------------------------------------------------------------
# Errors of functions in the words of the command line: ``--min-identity`` where Python
# says ``min_identity``.

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
        if flag is None or match[2] == "True":
            return flag or match[0]
        return f"{flag} {_value(match[2])}"

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


# ------------------------------------------------------------------------------
# How far a job is, on standard error: cells done, GCUPS, time left by cells.

BAR_AFTER = 2.0  # seconds; shorter work needs no bar
TICK = 1.0  # seconds between two looks at work that reports nothing meanwhile
EVERY = {"auto": 60.0, "plain": 10.0, "json": 1.0}


class Report:
    """Takes (cells done, cells in all, None where unknown); ``busy`` how many devices
    are at work."""

    def __init__(
        self, draw: Callable[[dict], object], every: float = 0.0, final: bool = True
    ):
        self.draw, self.every, self.final = draw, every, final
        self.began = self.last = time.monotonic()
        self.devices, self.compiling, self.cells = None, None, (0, None)
        self.unit = "cells"  # that are counted

    def __call__(self, cells: int, total: int | None):
        self.cells = cells, total
        if total:
            output.SHARE["done"] = cells / total
        over = total is not None and cells >= total
        self.look(at_once=over and self.final)

    def programs(self, ended: int, begun: int):
        """Of so many programs that are being compiled so many are ready."""
        self.compiling = (ended, begun) if ended < begun else None
        self.look()

    def look(self, at_once: bool = False):
        """Draw the state, unless it was drawn a moment ago."""
        now = time.monotonic()
        if now - self.last >= self.every or at_once:
            self.last = now
            seconds = now - self.began
            about = self.devices, self.compiling
            now = progress_state(*self.cells, seconds, *about)
            self.draw(now if self.unit == "cells" else now | {"unit": self.unit})

    def busy(self, at_work: int, devices: int):
        self.devices = at_work, devices


@contextmanager
def reporting(kind: str, quiet: bool = False):
    """Yield a ``Report``, or None for none.

    ``auto`` is a bar on a terminal and a line each minute elsewhere.
    """
    if kind == "none" or (kind == "auto" and quiet):
        yield None
    elif sys.stderr is None:
        yield None
    elif kind == "bar" or (kind == "auto" and sys.stderr.isatty()):
        with _bar(0.0 if kind == "bar" else BAR_AFTER) as draw:
            with _listening(Report(draw)) as report:
                yield report
    else:
        show = _as_json if kind == "json" else _as_text
        every, final = EVERY[kind], kind != "auto"
        report = Report(lambda x: print_to(sys.stderr, show(x)), every, final)
        with _listening(report):
            yield report


@contextmanager
def _listening(report: Report):
    """While programs are compiled the report says so, and it says how long the work
    takes before its first cells are done."""
    from jaxalign.warmup import programs_listener

    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK):
            report.look()

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    try:
        with programs_listener(report.programs):
            yield report
    finally:
        ended.set()
        clock.join()


def progress_state(
    cells: int,
    total: int | None,
    seconds: float,
    devices: tuple[int, int] | None = None,
    compiling: tuple[int, int] | None = None,
) -> dict:
    """Cells, speed, the time left if the rest goes as fast (unknown for a total of
    None), devices at work, programs that are compiled."""
    speed = cells / seconds if seconds > 0 else 0.0
    now = {
        "cells_done": cells,
        "cells_total": total,
        "seconds": round(seconds, 3),
        "gcups": round(speed / 1e9, 4),
        "eta_seconds": round((total - cells) / speed, 1) if speed and total else None,
    }
    if devices is not None:
        now |= {"devices_busy": devices[0], "devices": devices[1]}
    if compiling is not None:
        now |= {"programs_compiled": compiling[0], "programs": compiling[1]}
    return now


def progress_text(now: dict) -> str:
    """A state for people."""
    cell_count, total, eta = now["cells_done"], now["cells_total"], now["eta_seconds"]
    if "programs" in now:
        count = f"{now['programs_compiled'] + 1} of {now['programs']}"
        return f"{cell_count:.3g} cells, compiling {count}"
    if "unit" in now:
        return f"{cell_count:.3g} {now['unit']}, {_clock(now['seconds'])}"
    if total is None:
        return f"{cell_count:.3g} cells, {now['gcups']:.3g} GCUPS"
    left = "?" if eta is None else _clock(eta)
    share = 100 * cell_count / total if total else 100
    cells = f"{share:3.0f}% of {total:.3g} cells"
    line = f"{cells}, {now['gcups']:.3g} GCUPS, ETA {left}"
    if now.get("devices", 1) == 1:
        return line
    return f"{line}, {now['devices_busy']} of {now['devices']} devices busy"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _as_text(now: dict) -> str:
    return f"jaxalign: {progress_text(now)}"


def _as_json(now: dict) -> str:
    return json.dumps({"progress": now})


@contextmanager
def _bar(after: float):
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(file=sys.stderr, force_terminal=True)
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.fields[text]}"))
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=None, text="")

    def draw(now: dict):
        cells, total = now["cells_done"], now["cells_total"]
        bar.update(task, completed=cells, total=total, text=progress_text(now))
        if now["seconds"] >= after:
            bar.start()  # no effect on a bar that is shown

    try:
        yield draw
    finally:
        bar.stop()
