"""``jaxalign``: verbs, exit codes, and one clear message for every failure."""

import errno
import os
import re
import sys
from typing import NoReturn

from cyclopts import App, CycloptsError, Group

from jaxalign import __version__
from jaxalign.cli import process, terminal
from jaxalign.cli.derive import command
from jaxalign.cli.process import VERBOSE
from jaxalign.cli.terminal import spoken
from jaxalign.cli.verbs import (
    align,
    all_pairs,
    audit,
    cluster,
    dedup,
    demo,
    family,
    index,
    info,
    matrices,
    nearest,
    purge,
    repertoire,
    search,
    selftest,
    soft,
    split,
    three,
    warmup,
)
from jaxalign.errors import (
    EXIT_CODES,
    JaxalignError,
    MemoryPlanError,
    UsageError,
)
from jaxalign.model.source import streams_kept

FAILED, USAGE, INTERRUPTED = JaxalignError.exit_code, UsageError.exit_code, 130
NO_CACHE, CACHE = "--no-cache", "JAXALIGN_CACHE_DIR"
END_OF_OPTIONS = "--"


# By what somebody wants to do, in this order.
VERBS = {
    Group.create_ordered("Align"): (align, all_pairs, three, soft),
    Group.create_ordered("Search a database"): (search, nearest, family, index),
    Group.create_ordered("Split without leaks"): (cluster, dedup, split, audit, purge),
    Group.create_ordered("Compare receptors"): (repertoire,),
    Group.create_ordered("This machine"): (info, warmup, selftest, matrices, demo),
}
HERE = Group.create_ordered("This program")
NAMES = {all_pairs: "all"}


def app(verb: str | None = None) -> App:
    """The verbs.

    verb : the one whose options are wanted; all by default, which takes longer
    """
    verbs_app = App(
        name="jaxalign",
        help="Exact biological sequence alignment.",
        help_epilogue="Exit codes: " + "; ".join(map(_code, EXIT_CODES)) + ".",
        version=__version__,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for purpose, verbs in VERBS.items():
        for each in verbs:
            name = NAMES.get(each, each.__name__)
            body = command(each) if verb in (None, name) else each
            verbs_app.command(body, name=name, group=purpose)
    verbs_app.register_install_completion_command(group=HERE)
    verbs_app["--help"].group = verbs_app["--version"].group = HERE
    return verbs_app


def _code(code: int) -> str:
    return f"{code} {EXIT_CODES[code]}"


def main(argv: list[str] | None = None) -> int:
    """Run one command line.

    Parameters
    ----------
    argv : list of str, optional
        Without the program's name; those of the process by default.

    Returns
    -------
    int
        One of ``jaxalign.errors.EXIT_CODES``.
    """
    argv = _files(sys.argv[1:] if argv is None else argv)
    terminal.prepare()
    _prepare(argv)
    try:
        with streams_kept():
            return _run(argv)
    finally:
        terminal.give_up()


def _run(argv: list[str]) -> int:
    """Run a command; its exit code."""
    try:
        result = app(_verb(argv))(argv, exit_on_error=False, print_error=False)
        terminal.finish()
    except BrokenPipeError:  # the reader of a pipe has enough
        return FAILED
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED, argv)
    except CycloptsError as error:
        return _fail(f"{error}\nhint: see jaxalign --help", USAGE, argv)
    except JaxalignError as error:
        return _fail(_spoken(error, argv), error.exit_code, argv)
    except Exception as error:
        return _fail(_message(error), _exit_code(error), argv)
    return result or 0


def run() -> NoReturn:
    """``main`` of a process that has imported this file, and its end."""
    process.begin()
    process.end(main())


def _prepare(argv: list[str]) -> None:
    """Set what JAX reads when it starts, unless the user has."""
    if NO_CACHE in argv:
        os.environ[CACHE] = "off"
    if "jax" not in sys.modules:
        process.set_environment(argv)


def _spoken(error: JaxalignError, argv: list[str]) -> str:
    """A message in the words of the command line: what is said of an input stands as it
    is, but for the hint."""
    options, message = _options(argv), str(error)
    if isinstance(error, UsageError):
        return spoken(message, options)
    text, hint, advice = message.partition("\nhint: ")
    if (named := re.match(r"--[a-z-]+", advice)) and named[0] not in options:
        return text
    return text + hint + spoken(advice, options)


def _verb(argv: list[str]) -> str:
    return next((word for word in argv if not word.startswith("-")), "")


def _options(argv: list[str]) -> set[str]:
    """The options of the verb of a command line."""
    verb = _verb(argv)
    verbs = app(verb)
    if verb not in verbs:
        return set()
    arguments = verbs[verb].assemble_argument_collection()
    return {name for argument in arguments for name in argument.names}


def _exit_code(error: Exception) -> int:
    out_of_memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
    if isinstance(error, JaxalignError):
        return error.exit_code
    return MemoryPlanError.exit_code if out_of_memory else FAILED


def _message(error: Exception) -> str:
    if _exit_code(error) == MemoryPlanError.exit_code:
        return f"out of memory ({_line(error)}); a smaller --memory-budget needs less"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        # Errors of files were named where they were written.
        place = error.filename or "standard output"
        return f"{place}: cannot be written ({error.strerror})"
    return f"{type(error).__name__}: {_line(error)}\nhint: -v shows where"


def _line(error: Exception) -> str:
    """The first line of a message: XLA appends pages."""
    return next(iter(str(error).splitlines()), "")


def _fail(message: str, code: int, argv: list[str]) -> int:
    if VERBOSE & set(argv) and sys.exc_info()[0]:
        terminal.say_where()
    terminal.say(f"error: {message}")
    return code


def _files(argv: list[str]) -> list[str]:
    """Take the words behind ``--`` as files, even where they begin with a hyphen."""
    if END_OF_OPTIONS not in argv:
        return argv
    first = argv.index(END_OF_OPTIONS) + 1
    hidden = (word.startswith("-") and word != "-" for word in argv[first:])
    pairs = zip(hidden, argv[first:], strict=True)
    return argv[:first] + [f"./{word}" if hide else word for hide, word in pairs]


__all__ = ["App", "app", "main", "run"]
