"""The loop of the verbs that compute: say, compute with progress, write, say, JSON.

A verb checks its options and outputs and reads its inputs; ``run`` does the rest.
"""

from collections.abc import Callable, Iterable
from typing import Any

from jaxalign.cli import report, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.terminal import Messages, Report


def run(
    given: Given,
    messages: Messages,
    heading: Iterable[str],
    compute: Callable[[Report | None], Any],
    finish: Callable[[Any], Iterable[str]],
    about: Callable[[Any], dict] | None = None,
) -> int:
    """Run a verb whose inputs are read; its exit code.

    Parameters
    ----------
    heading : messages that say what will be done
    compute : from the report of progress, None for none, to the result
    finish : writes the result, and yields messages that say what was done
    about : the run as plain values, for ``--json``; None for verbs without one
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
    return 0
