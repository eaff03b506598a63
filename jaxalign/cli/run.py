"""The loop of the verbs: check outputs; say, compute with progress, write, say, JSON.

A verb checks its options and reads its inputs in between.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxalign.cli import report, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.runs import SUFFIX, SavedRun
from jaxalign.model.source import is_stream

PRINTED = {output.STDOUT, "/dev/stdout", "/dev/fd/1"}
PAGES = (".html", ".htm")
# Options that no result depends on
FREE = ("implementation", "memory_budget", "threads", "devices", "progress")


def check_outputs(
    given: Given,
    out: str | None,
    others: Iterable[str | None],
    inputs: Iterable[str | None],
    pictures: Iterable[str | None] = (),
) -> None:
    """Refuse outputs that cannot be written, before an input is read.

    Parameters
    ----------
    out : where the answer goes; None is standard output, unless JSON is there
    others : paths of further outputs, None for none
    inputs : paths that no output may replace
    pictures : further outputs, with a suffix of their own

    Raises
    ------
    UsageError
        An output cannot be written, is an input, or is another output.
    """
    drawn = [path for path in pictures if path is not None]
    outs = [path for path in (out, *others, *drawn) if path is not None]
    files, inputs = [path for path in outs if path not in PRINTED], tuple(inputs)
    for path in files:
        output.check_inputs(path, inputs)
    page = getattr(given, "report", None)
    if page is not None and not page.endswith(PAGES):
        raise UsageError(
            f"{page}: --report writes HTML; give a name that ends with .html"
        )
    for path in drawn:
        from jaxalign.io import picture

        picture.check(path)
    printed = [path for path in outs if path in PRINTED]
    json = getattr(given, "json", False)
    if json and printed:
        raise UsageError("--json takes standard output: the result needs -o FILE")
    if len(printed) + (out is None and not json) > 1:
        raise UsageError("two outputs go to the same place: standard output")
    places = [os.path.realpath(path) for path in files]
    same = [x for x, y in zip(files, places, strict=True) if places.count(y) > 1]
    if same:
        raise UsageError(f"two outputs go to the same place: {', '.join(same)}")
    resume, force = (getattr(given, x, False) for x in ("resume", "force"))
    for path in files:
        # An interrupted run may have written the file whose state is there.
        output.check(path, force or (resume and os.path.isfile(path + SUFFIX)))
        if path.endswith(output.COMPRESSED):
            plain, _ = os.path.splitext(path)
            raise UsageError(f"{path}: outputs are not compressed; give {plain}")


def check_resume(given: Given, files: Iterable[str], outs: Sequence[str] = ()) -> None:
    """Raise early if this run cannot be resumed, or has a state that nobody asks for.

    outs : options of further outputs, one of which will do; the state is beside the
        first output that is there
    """
    place, streams = place_of(given, outs), any(map(is_stream, files))
    if given.resume and (place is None or streams):
        flags = [f"--{name.removesuffix('_out')} FILE" for name in outs]
        names = " or ".join(["-o FILE", *flags])
        raise UsageError(f"--resume needs {names}, and inputs that can be read again")
    if place is not None:
        SavedRun(place, {}).is_begun(given.resume, given.force)


def place_of(given: Given, outs: Sequence[str] = ()) -> str | None:
    """The output beside which the state of a run is; None where it has none."""
    paths = (getattr(given, name) for name in ("out", *outs))
    place = next((path for path in paths if path not in (None, output.STDOUT)), None)
    return place and (place.rstrip(os.sep) or place)


def run(
    given: Given,
    messages: Messages,
    heading: Iterable[str],
    compute: Callable[[Report | None], Any],
    finish: Callable[[Any], Iterable[str]],
    about: Callable[[Any], dict] | None = None,
    code: Callable[[Any], int] = lambda _: 0,
    saved: SavedRun | None = None,
    check: Callable[[Any], Iterable[str]] = lambda _: (),
) -> int:
    """Run a verb whose inputs are read; its exit code.

    Parameters
    ----------
    heading : messages that say what will be done
    compute : from the report of progress, None for none, to the result
    finish : writes the result, and yields messages that say what was done
    about : the run as plain values, for ``--json``; None for verbs without one
    code : the exit code of a result that is written
    saved : the state of the run, which goes when all is written
    check : refuses a result that is written, or yields messages about it
    """
    for line in heading:
        messages.say(line)
    kind = getattr(given, "progress", "none")
    with terminal.reporting(kind, given.quiet) as progress:
        result = compute(progress)
    for line in finish(result):
        messages.say(line)
    if about is not None and given.json:
        versions = {"versions": report.versions()}
        warnings = {"warnings": messages.warnings}
        terminal.answer_json(versions | about(result) | warnings)
    if saved is not None:
        saved.remove()
    for line in check(result):
        messages.say(line)
    return code(result)
