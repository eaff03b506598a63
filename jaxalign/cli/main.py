"""``jaxalign``: verbs, exit codes, and one clear message for every failure."""

import errno
import os
import re
import sys
from typing import NoReturn

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    UnusedCliTokensError,
)

from jaxalign import __version__
from jaxalign.cli import process, terminal, verbs
from jaxalign.cli.derive import command
from jaxalign.cli.process import VERBOSE
from jaxalign.cli.terminal import spoken
from jaxalign.errors import (
    EXIT_CODES,
    JaxalignError,
    MemoryPlanError,
    UsageError,
)
from jaxalign.io import output
from jaxalign.model.source import streams_kept
from jaxalign.options import OLD_WORDS, current_word, why_absent

FAILED, USAGE, INTERRUPTED = JaxalignError.exit_code, UsageError.exit_code, 130
NO_CACHE, CACHE = "--no-cache", "JAXALIGN_CACHE_DIR"
NUMBERS = {int: "a whole number", float: "a number"}
END_OF_OPTIONS, HELP_ALL, QUIET = "--", "--help-all", {"-q", "--quiet"}


# By what somebody wants to do, in this order.
VERBS = {
    "Align": (verbs.align, verbs.all_pairs, verbs.three, verbs.soft),
    "Search a database": (
        *(verbs.search, verbs.nearest, verbs.family, verbs.index, verbs.structures),
    ),
    "Split without leaks": (
        *(verbs.cluster, verbs.dedup, verbs.split, verbs.audit, verbs.purge),
    ),
    "Compare receptors": (verbs.repertoire,),
    "This machine": (
        *(verbs.info, verbs.warmup, verbs.selftest, verbs.matrices, verbs.demo),
    ),
}
NAMES = {verbs.all_pairs: "all"}


def app(verb: str | None = None, brief: bool = False) -> App:
    """The verbs.

    verb : the one whose options are wanted; all by default, which takes longer
    brief : leave out of its help what ``--help-all`` shows
    """
    codes = "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    verbs_app = App(
        name="jaxalign",
        help="Exact biological sequence alignment.",
        help_flags=("--help", "-h", HELP_ALL),
        help_epilogue=f"Exit codes: {codes}.",
        version=__version__,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for purpose, bodies in VERBS.items():
        group = Group.create_ordered(purpose)
        for each in bodies:
            name: str = NAMES.get(each) or each.__name__
            body = command(each, brief) if verb in (None, name) else each
            about = {"name": name, "group": group, "help_epilogue": _examples(name)}
            verbs_app.command(body, **about)
    here = Group.create_ordered("This program")
    verbs_app.register_install_completion_command(group=here)
    verbs_app["--help"].group = verbs_app["--version"].group = here
    return verbs_app


def _examples(verb: str) -> str:
    """The end of the help of a verb, as Markdown."""
    lines = [line for line in verbs.EXAMPLES.splitlines() if line.split()[:1] == [verb]]
    examples = "".join(f"`jaxalign {line}`  \n" for line in lines)
    return f"{examples}\n`jaxalign {verb} {HELP_ALL}` shows every option."


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
    argv = _in_words_of_today(argv)
    _prepare(argv)
    try:
        with streams_kept():
            return _run(argv)
    finally:
        terminal.give_up()


def _run(argv: list[str]) -> int:
    """Run a command; its exit code."""
    try:
        called = app(_verb(argv), bool({"-h", "--help"} & {*argv}))
        result = called(argv, exit_on_error=False, print_error=False)
        terminal.finish()
    except BrokenPipeError:  # the reader of a pipe has enough
        return FAILED
    except KeyboardInterrupt:
        return _fail(f"interrupted{output.resumable()}", INTERRUPTED, argv)
    except CycloptsError as error:
        return _fail(_misread(error, argv), USAGE, argv)
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
    output.RESUMABLE.clear()
    if "jax" not in sys.modules:
        process.set_environment(argv)


def _spoken(error: JaxalignError, argv: list[str]) -> str:
    """A message in the words of the command line: what is said of an input stands as it
    is, but for the hint."""
    options, message = _options(argv), str(error)
    if isinstance(error, UsageError):
        function, _, rest = message.partition(": ")  # of Python, whose options are ours
        is_name = re.fullmatch("[a-z]+(_[a-z]+)+", function)
        own = is_name and not os.path.exists(function)
        return spoken(rest if own else message, options)
    text, hint, advice = message.partition("\nhint: ")
    if (named := re.match(r"--[a-z-]+", advice)) and named[0] not in options:
        return text
    return text + hint + spoken(advice, options)


def _misread(error: CycloptsError, argv: list[str]) -> str:
    """Say what is wrong with a command line, and which help says more."""
    verb, argument, said = _verb(argv), error.argument, str(error)
    if isinstance(error, UnusedCliTokensError):
        said = f"{verb}: too many files: {', '.join(error.unused_tokens or ())}"
    if isinstance(error, CoercionError) and error.target_type in (int, float):
        token, number = error.token, NUMBERS[error.target_type]
        said = f"{token.keyword} {token.value}: {number} is needed" if token else said
    unsaid = isinstance(error, MissingArgumentError) and error.keyword is None
    if unsaid and argument is not None and not argument.tokens:
        said = f"{verb}: {argument.name} is missing"
    for flag in {x.partition("=")[0] for x in argv} - _options(argv):
        if reason := why_absent(flag.lstrip("-").replace("-", "_"), verb):
            said = f"{verb} has no option {flag}: {reason}"
    help = f"{verb} --help" if _options(argv) else "--help"
    return f"{said}\nhint: see jaxalign {help}"


def _in_words_of_today(argv: list[str]) -> list[str]:
    """A command line whose old words are replaced, each with a line."""
    verb, words = _verb(argv), []
    end = argv.index(END_OF_OPTIONS) if END_OF_OPTIONS in argv else len(argv)
    for word in argv[:end]:
        flag, equals, value = word.partition("=")
        name = flag.lstrip("-").replace("-", "_")
        old = flag.startswith("-") and name in OLD_WORDS
        if old and (today := current_word(name, verb)):
            option = "--" + today.replace("_", "-")
            if not QUIET & {*argv}:
                terminal.say(f"{verb}: {flag} is now {option}")
            word = option + equals + value
        words.append(word)
    return words + argv[end:]


def _verb(argv: list[str]) -> str:
    return next((word for word in argv if not word.startswith("-")), "")


def _options(argv: list[str]) -> set[str]:
    """The options of the verb of a command line."""
    verb = _verb(argv)
    known = app(verb)
    if verb not in known:
        return set()
    arguments = known[verb].assemble_argument_collection()
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
