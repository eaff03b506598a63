"""How far a job is, on standard error: cells done, GCUPS, time left by cells."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import partial

from jaxalign.cli.terminal import print_to

BAR_AFTER = 2.0  # seconds; shorter work needs no bar
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

    def __call__(self, done: int, total: int | None):
        self.cells = done, total
        over = total is not None and done >= total
        self._tell(at_once=over and self.final)

    def programs(self, ended: int, begun: int):
        """Of so many programs that are being compiled so many are ready."""
        self.compiling = (ended, begun) if ended < begun else None
        self._tell()

    def _tell(self, at_once: bool = False):
        now = time.monotonic()
        if now - self.last >= self.every or at_once:
            self.last = now
            seconds = now - self.began
            self.draw(state(*self.cells, seconds, self.devices, self.compiling))

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
        report = Report(partial(_line, show), EVERY[kind], kind != "auto")
        with _listening(report):
            yield report


@contextmanager
def _listening(report: Report):
    """While programs are compiled the report says so."""
    from jaxalign.warmup import programs_listener

    with programs_listener(report.programs):
        yield report


def state(
    done: int,
    total: int | None,
    seconds: float,
    devices: tuple[int, int] | None = None,
    compiling: tuple[int, int] | None = None,
) -> dict:
    """Cells, speed, the time left if the rest goes as fast (unknown for a total of
    None), devices at work, programs that are compiled."""
    speed = done / seconds if seconds > 0 else 0.0
    now = {
        "cells_done": done,
        "cells_total": total,
        "seconds": round(seconds, 3),
        "gcups": round(speed / 1e9, 4),
        "eta_seconds": round((total - done) / speed, 1) if speed and total else None,
    }
    if devices is not None:
        now |= {"devices_busy": devices[0], "devices": devices[1]}
    if compiling is not None:
        now |= {"programs_compiled": compiling[0], "programs": compiling[1]}
    return now


def text(now: dict) -> str:
    """A state for people."""
    done, total, eta = now["cells_done"], now["cells_total"], now["eta_seconds"]
    if "programs" in now:
        count = f"{now['programs_compiled'] + 1} of {now['programs']}"
        return f"{done:.3g} cells, compiling {count}"
    if total is None:
        return f"{done:.3g} cells, {now['gcups']:.3g} GCUPS"
    left = "?" if eta is None else _clock(eta)
    share = 100 * done / total if total else 100
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
    return f"jaxalign: {text(now)}"


def _as_json(now: dict) -> str:
    return json.dumps({"progress": now})


def _line(show: Callable[[dict], str], now: dict) -> None:
    with suppress(OSError):
        print_to(sys.stderr, show(now))


@contextmanager
def _bar(after: float):
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(file=sys.stderr, force_terminal=True)
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.fields[text]}"))
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=None, text="")

    def draw(now: dict):
        done, total = now["cells_done"], now["cells_total"]
        bar.update(task, completed=done, total=total, text=text(now))
        if now["seconds"] >= after:
            bar.start()  # no effect on a bar that is shown

    try:
        yield draw
    finally:
        bar.stop()
