"""How far a job is, on standard error: cells done, GCUPS, time left by cells."""

import json
import sys
import time
from contextlib import contextmanager

BAR_AFTER = 2.0  # seconds; shorter work needs no bar
EVERY = {"auto": 60.0, "plain": 10.0, "json": 1.0}


@contextmanager
def reporting(kind: str, quiet: bool = False):
    """Yield a callable (cells done, cells in all), or None for no report.

    ``auto`` is a bar on a terminal and a line each minute elsewhere.
    """
    if kind == "none" or (kind == "auto" and quiet):
        yield None
    elif kind == "bar" or (kind == "auto" and sys.stderr.isatty()):
        with _bar(0.0 if kind == "bar" else BAR_AFTER) as report:
            yield report
    else:
        yield _lines(_as_json if kind == "json" else _as_text, EVERY[kind], kind)


def state(done: int, total: int | None, seconds: float) -> dict:
    """Cells, speed and the time left if the rest goes as fast; total None: unknown."""
    speed = done / seconds if seconds > 0 else 0.0
    return {
        "cells_done": done,
        "cells_total": total,
        "gcups": round(speed / 1e9, 4),
        "eta_seconds": round((total - done) / speed, 1) if speed and total else None,
    }


def text(now: dict) -> str:
    """A state for people."""
    done, total, eta = now["cells_done"], now["cells_total"], now["eta_seconds"]
    if total is None:
        return f"{done:.3g} cells, {now['gcups']:.3g} GCUPS"
    left = "?" if eta is None else _clock(eta)
    share = 100 * done / total if total else 100
    cells = f"{share:3.0f}% of {total:.3g} cells"
    return f"{cells}, {now['gcups']:.3g} GCUPS, ETA {left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _as_text(now: dict) -> str:
    return f"jaxalign: {text(now)}"


def _as_json(now: dict) -> str:
    return json.dumps({"progress": now})


def _lines(show, every: float, kind: str):
    """A callable that prints at most each ``every`` seconds, and at the end."""
    began = last = time.monotonic()

    def report(done, total):
        nonlocal last
        now = time.monotonic()
        over = total is not None and done >= total
        if now - last >= every or (over and kind != "auto"):
            last = now
            print(show(state(done, total, now - began)), file=sys.stderr, flush=True)

    return report


@contextmanager
def _bar(after: float):
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(file=sys.stderr, force_terminal=True)
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.fields[text]}"))
    bar = Progress(*columns, console=console, transient=True)
    began, task = time.monotonic(), bar.add_task("", total=None, text="")

    def report(done, total):
        seconds = time.monotonic() - began
        line = text(state(done, total, seconds))
        bar.update(task, completed=done, total=total, text=line)
        if seconds >= after:
            bar.start()  # no effect on a bar that is shown

    try:
        yield report
    finally:
        bar.stop()
