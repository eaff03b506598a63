"""The arguments of a command, from the records that declare its options.

A record of ``jaxalign.options`` has the options of a public function: their names,
types, defaults and texts. The tables of this file say what a shell needs beside them:
how a value is written, which group of ``--help`` it stands in, and which options the
command line decides by itself. Values arrive in a ``Given``, by their names in Python,
but for the scoring, which is a record.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields
from functools import cache, partial
from importlib import import_module
from itertools import chain
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_type_hints

from cyclopts import CoercionError, Parameter, convert

from jaxalign import options
from jaxalign.cli import arguments
from jaxalign.errors import UsageError, nearest_word
from jaxalign.model.choices import Edges, FreeEnd

Verb = Callable[..., None]
# The value of each option of a command, by its name; those that are ``named`` on the
# command line, and differ from what is usual, as they are written.
Given = SimpleNamespace

# Options of functions that the command line decides.
HIDDEN = {
    "progress", "busy",  # --progress draws them
    "mesh", "window",  # of programs that hold a mesh, and of tests
    "skip",  # the parts that --resume finds
    "align_top",  # --output
    "unknown", "strip_stop", "names",  # stand with the scoring, for one set too
}  # fmt: skip
# Flags that say False: what is usual needs no flag.
NEGATED = {
    "filter": "no_filter",
    "correct_composition": "no_composition",
    "fixed_gap": "sliding_gap",
}
# Values that are written as one word, as it looks in --help.
WORDS = {
    "free_ends": "q5,q3,t5,t3",
    "memory_budget": "2GiB",
    "devices": "0,1",
    "bands": "F,F",
    "shard": "K/N",
    "cluster": "ADDRESS",
}
FILES = {"v_distances": "GENES.tsv", "v_loops": "GENES.tsv"}
FILES |= {"together": "TABLE.tsv", "taxa": "TABLE.tsv"}
FILES |= {"rna_database": "DB"}
SEVERAL = {"edges": "FILE:COLUMN>=F"}  # options that may be given several times
# None until a preset, --link or --max-evalue has spoken.
OPEN = {"mode", "identity", "output", "statistics"}
NUMBERS = {int: "N", float: "F"}
MESSAGES = ("quiet", "verbose", "progress", "no_cache")
MACHINE, LONG = arguments.MACHINE, arguments.LONG
GROUPS = {
    options.AlignedEnds: arguments.ALIGNMENT,
    options.Measure: arguments.ALIGNMENT,
    options.AsLinked: arguments.ALIGNMENT,
    options.FromOutside: arguments.ALIGNMENT,
    options.Divided: arguments.ALIGNMENT,
    options.Tabular: arguments.ALIGNMENT,
    options.Linked: arguments.ALIGNMENT,
    options.TripleModel: arguments.ALIGNMENT,
    options.Host: MACHINE,
    options.Execution: MACHINE,
    options.RunTriples: MACHINE,
    options.Parts: LONG,
}
# What --help-all shows and --help does not: groups, and options by name, of which some
# mean nothing without another option.
BEHIND = {MACHINE, LONG, arguments.MESSAGES, "match", "mismatch", "gap_style"}
BEHIND |= {"strip_stop", "names", "no_filter", "eqx", "full_histogram", "across_only"}
BEHIND |= {"unknown", "json", "worst", "second", "column", "unlabelled", "priority"}
BEHIND |= {"cold", "coverage"}
GROUPS_BY_NAME = {"output": arguments.OUTPUT, "cluster": LONG, "part_rows": LONG}
GROUPS_BY_NAME |= {"memory_budget": MACHINE, "implementation": MACHINE}
ENDS: dict[str, FreeEnd] = {
    "q5": "query_start",
    "q3": "query_end",
    "t5": "target_start",
    "t3": "target_end",
}


@dataclass(frozen=True)
class Spelling:
    """How a verb spells an option, where that differs."""

    name: str | None = None
    metavar: str | None = None
    type: Any = None


def takes(
    body: str, *records: type, hidden: Collection[str] = (), **spelled: Spelling
) -> Callable[[Verb], Verb]:
    """Give a verb its body, and the options of some records beside its own.

    Parameters
    ----------
    body : str
        "module:function", which is imported when the verb runs.
    records : dataclasses
        Of an option that comes twice the first one counts.
    hidden : names of options that this verb decides
    spelled : options that this verb spells in a way of its own
    """

    def note(verb: Verb) -> Verb:
        vars(verb)["taken"] = body, records, {*hidden}, spelled
        return verb

    return note


def command(verb: Verb, brief: bool = False) -> Callable[..., int]:
    """Make the function that cyclopts calls: with every option in its signature.

    Parameters
    ----------
    verb : function that ``takes`` has marked
        Its signature has the files and the options of its own; its docstring their
        texts, and those of others that differ.
    brief : bool
        Whether its help leaves out the options of ``BEHIND``.
    """
    body, records, hidden, spelled = vars(verb)["taken"]
    shown = {x.name: x for x in inspect.signature(verb).parameters.values()}
    texts = inspect.getdoc(verb) or ""
    derived: dict[str, _Argument] = {}
    for record in records:
        for owner, name in _options(record):
            of_function = record.__module__ == options.__name__
            decided = name in hidden or (of_function and name in HIDDEN)
            if decided or name in derived or name in shown:
                continue
            described = re.search(rf"^{name}$", texts, re.MULTILINE) is not None
            spelling = spelled.get(name, Spelling())
            derived[name] = _argument(record, owner, name, spelling, described)
    flags = {x.name: x.shown for x in derived.values()}
    in_python = {x.name: name for name, x in derived.items()}

    def call(*files: Any, **words: Any) -> int:
        bound = signature.bind_partial(*files, **words)
        named = {
            in_python.get(x, x): _flag(signature.parameters[x])
            for x, value in bound.arguments.items()
            if signature.parameters[x].kind is inspect.Parameter.KEYWORD_ONLY
            and value != signature.parameters[x].default
        }
        bound.apply_defaults()
        values = bound.arguments
        for name, argument in derived.items():
            values[name] = argument.read(values.pop(argument.name))
        if arguments.ScoringOptions in records:
            names = {x.name for x in fields(arguments.ScoringOptions)} & derived.keys()
            scoring = {name: values.pop(name) for name in names}
            values["scoring"] = arguments.ScoringOptions(**scoring)
        module, _, function = body.partition(":")
        return getattr(import_module(module), function)(Given(**values, named=named))

    signature = inspect.Signature([*map(_whole, (*shown.values(), *flags.values()))])
    seen = signature.parameters.values()
    if brief:
        seen = [_in_brief(x, texts) for x in seen]
    vars(call)["__signature__"] = inspect.Signature([*seen])
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def _whole(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter that takes 8, 0x10 and 3.0 for whole numbers where it is one, and
    refuses 1.5, which cyclopts rounds."""
    hint = parameter.annotation
    kinds = {*get_args(hint), *chain.from_iterable(map(get_args, get_args(hint))), hint}
    if int not in kinds:
        return parameter

    def read(_: Any, tokens: Any) -> Any:
        number = float(tokens[0].value) if "." in tokens[0].value else 0
        if number % 1:
            raise CoercionError(token=tokens[0], target_type=int)
        return convert(int, tokens)

    whole = Annotated[hint, Parameter(converter=read)]
    return parameter.replace(annotation=whole)


def _in_brief(parameter: inspect.Parameter, texts: str) -> inspect.Parameter:
    """A parameter with the first sentence of its help and its default, or without
    help if it is of ``BEHIND``.

    texts : the docstring of the verb
    """
    hint, name = parameter.annotation, parameter.name
    about = [x for x in get_args(hint) if isinstance(x, Parameter)]
    groups: list[Any] = [x.group for x in about if x.group]
    if not BEHIND.isdisjoint((name, *chain.from_iterable(groups))):
        brief = Parameter(show=False)
    else:
        own = re.search(rf"^{name}\n((?:    .*\n?)+)", texts, re.MULTILINE)
        help = own[1] if own else next((x.help for x in about if x.help), "")
        help = " ".join(help.split())
        default = re.search(r" \[[^]]*\]$", help)
        first = help.split(". ")[0].rstrip(".")
        if default and not first.endswith("]"):
            first += default[0]
        brief = Parameter(help=first)
    return parameter.replace(annotation=Annotated[hint, brief])


@dataclass(frozen=True)
class _Argument:
    """An option as it is written, and how its word is read."""

    name: str
    shown: inspect.Parameter
    read: Callable[[Any], Any]


def _argument(
    record: type, owner: type, name: str, spelling: Spelling, described: bool
) -> _Argument:
    """The argument of a field of a record.

    owner : the class that declares it
    described : whether the verb's docstring has a text of the option
    """
    default = getattr(record, name)
    hint = spelling.type or _hints(record)[name]
    flag, metavar = spelling.name or NEGATED.get(name, name), spelling.metavar
    group = GROUPS_BY_NAME.get(name) or GROUPS.get(owner) or arguments.GROUPS.get(owner)
    read, kinds = READ.get(name, lambda value: value), (hint, *get_args(hint))
    text = next(filter(None, (_text(x, name) for x in record.__mro__)), "")
    if name in OPEN and default is not None:
        default, hint, text = None, hint | None, f"{text} [{default}]"
    text = re.sub(r"\b[a-z]+(_[a-z]+)+\b", lambda x: written(x[0]), text)
    if name in NEGATED:
        text = f"Do not {text[:1].lower()}{text[1:]}".replace(" [True]", "")
        read, default, hint = partial(_negated, default), False, arguments.Flag
    elif name in FILES:
        hint, metavar = Annotated[str | None, arguments.FILE], FILES[name]
    elif name in SEVERAL:
        hint, metavar = list[str] | None, SEVERAL[name]
    elif name in WORDS or metavar:
        default, metavar = _word(default), metavar or WORDS[name]
        hint = str if default else str | None
    elif hint is bool:
        hint = arguments.Flag
    else:
        metavar = next((NUMBERS[x] for x in kinds if x in NUMBERS), None)
    help = None if described else text
    settings = {"metavar": metavar, "group": group, "help": help}
    about: dict[str, Any] = {key: value for key, value in settings.items() if value}
    about |= {"negative": ()} if name in SEVERAL else {}
    given = Parameter(**about)
    shown = inspect.Parameter(
        flag,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[hint, given],
    )
    return _Argument(flag, shown, read)


def _text(record: type, name: str) -> str:
    """The text of a field in the class of a record itself; empty if it inherits it."""
    if "__annotations__" not in vars(record):
        return ""
    return options.field_texts(record.__module__).get((record.__name__, name), "")


def _options(record: type) -> Iterator[tuple[type, str]]:
    """The fields of a record, each with the class that declares it first."""
    owners: dict[str, type] = {}
    for owner in reversed(record.__mro__):
        for name in vars(owner).get("__annotations__", ()):
            owners.setdefault(name, owner)
    yield from ((owner, name) for name, owner in owners.items())


@cache
def _hints(record: type) -> dict[str, Any]:
    return get_type_hints(record, include_extras=True)


def changed(given: Given, **others: Any) -> Given:
    """The options of a command with others in the place of some."""
    return Given(**vars(given) | others)


def refuse(given: Given, options: Collection[str], why: str) -> None:
    """Refuse options that a command line has, though nothing depends on them.

    options : their names in Python
    why : ends the sentence that begins with "--option is"
    """
    flags = [flag for name, flag in given.named.items() if name in options]
    if flags:
        are = "is" if len(flags) == 1 else "are"
        raise UsageError(f"{', '.join(flags)} {are} {why}")


def refuse_others(given: Given, options: Collection[str], why: str) -> None:
    """Refuse all options but some, and those of messages and of the cache."""
    free = {*options, *MESSAGES}
    refuse(given, given.named.keys() - free, why)


def _flag(parameter: inspect.Parameter) -> str:
    """An option as it is written."""
    shown = (x.name for x in get_args(parameter.annotation) if isinstance(x, Parameter))
    name = [*chain.from_iterable(filter(None, shown)), parameter.name][0]
    return name if name.startswith("-") else written(name)


def written(name: str) -> str:
    """The name of an option of Python as it is written."""
    return "--" + name.replace("_", "-")


def _negated(usual: Any, flag: bool) -> Any:
    """The value of an option whose flag says False."""
    return False if flag else usual


def _word(value: Any) -> Any:
    """A default as it is written."""
    return ",".join(f"{x:g}" for x in value) if isinstance(value, tuple) else value


def split_words(text: str | None) -> tuple[str, ...] | None:
    """The words between commas; None for None."""
    if text is None:
        return None
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _ends(text: str | None) -> tuple[FreeEnd, ...] | None:
    """ "q5,t3" -> the ends by their long names."""
    names = split_words(text)
    if names is None:
        return None
    long: dict[str, FreeEnd] = dict(ENDS)
    long.update((end, end) for end in ENDS.values())
    for name in names:
        if name not in long:
            raise UsageError(
                f"--free-ends {name}: unknown end; choose from {', '.join(ENDS)}"
            )
    return tuple(long[name] for name in names)


def fractions(flag: str, text: str) -> tuple[float, ...]:
    """ "0.3,0.5" -> numbers."""
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError as error:
        raise UsageError(
            f"{flag} {text}: fractions are needed, such as 0.3,0.5"
        ) from error


def _shard(text: str | None) -> tuple[int, int] | None:
    """ "2/16" -> (2, 16)."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,99})/(\d{1,99})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text}: K/N with K from 1 to N is needed")
    return int(match[1]), int(match[2])


def _edges(texts: list[str] | None) -> tuple[Edges, ...] | None:
    """Read tables of pairs: ``tm.tsv:TM>=0.5,and``."""
    return None if texts is None else tuple(map(_edge_table, texts))


def _edge_table(text: str) -> Edges:
    rule, *words = text.split(",")
    match = re.fullmatch(r"(.+?)(?::([^:<>=]+))?(>=|<=)([^<>=]+)", rule)
    try:
        path, column, sign, cut = match.groups() if match else ("", "", "", "")
        cuts = {"at_least" if sign == ">=" else "at_most": float(cut)}
    except ValueError:
        raise UsageError(
            f"--edges {text}: FILE:COLUMN>=F or FILE:COLUMN<=F is needed, such as "
            "tm.tsv:TM>=0.5, in quotes"
        ) from None
    about: dict[str, Any] = {}
    for word in words:
        if word not in EDGE_WORDS:
            meant = nearest_word(word, EDGE_WORDS)
            hint = f"; did you mean {meant}?" if meant else ""
            raise UsageError(
                f"--edges {text}: unknown word {word!r}; choose from "
                f"{', '.join(EDGE_WORDS)}{hint}"
            )
        about |= EDGE_WORDS[word]
    return Edges(path, column=column, **cuts, **about)


EDGE_WORDS: dict[str, dict[str, Any]] = {
    "or": {"join": "or"},
    "and": {"join": "and"},
    "unknown=error": {"unknown": "error"},
    "unknown=count": {"unknown": "count"},
}
READ: dict[str, Callable[[Any], Any]] = {
    "edges": _edges,
    "free_ends": _ends,
    "bands": partial(fractions, "--bands"),
    "shard": _shard,
    "columns": split_words,
}
