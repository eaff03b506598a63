# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The signature of a public function shows every option, its type and its default.

A record has the types and defaults of the options of an operation, and a typed
dictionary names those that a function takes (PEP 692): type checkers read the
dictionary, ``help()`` and ``inspect.signature`` what is set here. Any other name is
refused. Its docstring describes every parameter: what it does not say itself comes from
functions ``like`` it, the texts of the record's fields, and the docstring of the
record's module.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import indent
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from warnings import warn

from jaxalign.errors import UsageError, nearest_word
from jaxalign.model.scoring import Scoring, ScoringLike
from jaxalign.options import current_word, field_texts, why_absent

Function = TypeVar("Function", bound=Callable[..., Any])
SCORES = frozenset(signature(Scoring).parameters)


def with_options(
    options: type, named: bool = False, like: tuple[Callable[..., Any], ...] = ()
) -> Callable[[Function], Function]:
    """Give a function of ``**options`` its full signature, and refuse other names.

    Parameters
    ----------
    options : dataclass
        Its fields have the defaults.
    named : bool
        Whether every usage error begins with the name of the function. Such functions
        take arrays, which JAX may trace; the others compute at once, also where they
        are called in a function that is traced.
    like : functions
        Their descriptions of parameters hold for this function too.

    Raises
    ------
    UsageError
        When the function is called with an option that it does not have.
    TypeError
        … or without one that it needs.
    """

    def decorate(function: Function) -> Function:
        name, shown = function.__name__, full_signature(function, options)

        needed = [x.name for x in shown.parameters.values() if _is_needed(x)]

        @wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for option in [*keywords]:
                if option in shown.parameters:
                    continue
                word = current_word(option, name)
                if word is None or word not in shown.parameters or word in keywords:
                    raise UsageError(_refusal(name, option, keywords, shown.parameters))
                warn(f"{name}: {option} is now {word}", DeprecationWarning, 2)
                keywords[word] = keywords.pop(option)
            if missing := [option for option in needed if option not in keywords]:
                raise TypeError(f"{name} needs {' and '.join(missing)}")
            # Options are read several times, and an iterator only once; the order of a
            # set differs from one process to the next.
            for option, value in keywords.items():
                if isinstance(value, Iterator) and not hasattr(value, "read"):
                    raise UsageError(f"{option} is an iterator: give a list or a tuple")
                if isinstance(value, Set):
                    keywords[option] = tuple(sorted(value, key=repr))
            try:
                with nullcontext() if named else _at_once():
                    return function(*arguments, **keywords)
            except UsageError as error:
                if named and not str(error).startswith(f"{name}: "):
                    error.args = (f"{name}: {error}",)
                raise

        vars(checked)["__signature__"] = shown
        checked.__doc__ = _described(function.__doc__, shown, options, like)
        return checked  # pyright: ignore[reportReturnType]

    return decorate


def _at_once() -> AbstractContextManager[Any]:
    """Return a context in which JAX computes eagerly while it traces."""
    jax: Any = sys.modules.get("jax")
    if hasattr(jax, "sharding"):  # imported, and whole
        try:
            jax.sharding.get_mesh()
        except ValueError:  # which is how JAX says that it traces
            return jax.ensure_compile_time_eval()
    return nullcontext()


def full_signature(function: Callable[..., Any], options: type) -> Signature:
    """Expand ``**options`` of a signature into one parameter per option."""
    shown = signature(function)
    parameters = [
        x for x in shown.parameters.values() if x.kind != Parameter.VAR_KEYWORD
    ]
    # Of one annotation: others may be of a library that type checkers alone import.
    hint = {k: x for k, x in function.__annotations__.items() if k == "options"}
    space = vars(sys.modules[function.__module__])
    hints = get_type_hints(SimpleNamespace(__annotations__=hint), space)
    (keywords,) = get_args(hints.get("options")) or (None,)
    defaults = {field.name: _default(field) for field in fields(options)}
    # The module of all records knows ``ScoringLike`` while types are checked alone.
    types = get_type_hints(options, None, {"ScoringLike": ScoringLike})
    names = () if keywords is None else keywords.__annotations__
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
        for name, default in defaults.items()
        if name in names
    ]
    return shown.replace(parameters=parameters)


def _described(
    doc: str | None,
    shown: Signature,
    options: type,
    like: tuple[Callable[..., Any], ...],
) -> str | None:
    """Complete a docstring with the parameters that it does not describe."""
    if doc is None:  # python -OO
        return None
    before, section, after = _divided(cleandoc(doc))
    module = options.__module__
    shared = dict(_entries(_divided(cleandoc(sys.modules[module].__doc__ or ""))[1]))
    for record in reversed(options.__mro__):
        texts = field_texts(record.__module__) if record is not object else {}
        for name in vars(record).get("__annotations__", {}):
            if (text := texts.get((record.__name__, name))) and (
                parameter := shown.parameters.get(name)
            ):
                text = re.sub(r" \[(.*)\]$", r" By default \1.", text, flags=re.S)
                lines = indent(text.replace("*", "``*``"), "    ")
                shared[name,] = f"{name} : {_type_text(parameter)}\n{lines}"
    for function in like:
        shared |= _entries(_divided(cleandoc(function.__doc__ or ""))[1])
    described, entries = dict(_entries(section)), dict[str, None]()
    for name in shown.parameters:
        for source in (described, shared):
            if key := next((names for names in source if name in names), None):
                if all(x in shown.parameters for x in key):
                    entries[source[key]] = None
                else:
                    heading, *lines = source[key].split("\n")
                    heading = f"{name} :{heading.partition(' :')[2]}".removesuffix(" :")
                    entries["\n".join([heading, *lines])] = None
                break
    section = "\n".join(["Parameters", "-" * 10, *entries])
    return "\n\n".join(x for x in (before, section, after) if x)


def _divided(doc: str) -> tuple[str, str, str]:
    """A docstring before its parameters, their entries, and its other sections."""
    before, *sections = re.split(r"^(?=\w[\w ]*\n-{4,}$)", doc, flags=re.M)
    entries = [x for x in sections if x.startswith("Parameters\n")]
    later = [x for x in sections if x not in entries]
    section = "".join(x.partition("-\n")[2] for x in entries)
    return before.rstrip(), section.rstrip(), "".join(later).rstrip()


def _entries(section: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (names, text) of each entry of a section of parameters."""
    for entry in re.split(r"\n(?=\S)", section):
        yield tuple(entry.split("\n")[0].split(" :")[0].split(", ")), entry


def _type_text(parameter: Parameter) -> str:
    """The type of a parameter and its default, in words."""
    text, default = _type_name(parameter.annotation), parameter.default
    if default is None or default is Parameter.empty:
        return text
    return f"{text}, default {default!r}".replace("'", '"')


def _type_name(hint: Any) -> str:
    kinds = get_args(hint)
    if NoneType in kinds:
        names = dict.fromkeys(_type_name(x) for x in kinds if x is not NoneType)
        return f"{' or '.join(names)}, optional"
    if get_origin(hint) is Literal:
        return f"{{{', '.join(map(repr, kinds))}}}".replace("'", '"')
    name = getattr(hint, "__name__", str(hint)).lower()
    if get_origin(hint) is UnionType or get_origin(hint) is Union:
        return " or ".join(map(_type_name, kinds))
    if len(kinds) == 1:
        return f"{name} of {_type_name(kinds[0])}"
    return {"any": "object"}.get(name, name)


def _is_needed(parameter: Parameter) -> bool:
    named = parameter.kind == Parameter.KEYWORD_ONLY
    return named and parameter.default is Parameter.empty


def _default(field: Any) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


def _refusal(
    name: str,
    option: str,
    keywords: Mapping[str, Any],
    parameters: Mapping[str, Parameter],
) -> str:
    """Explain why an option is refused, and suggest the nearest one."""
    text = f"{name} has no option {option!r}"
    if option in SCORES:
        scores = [x for x in keywords if x in SCORES and x not in parameters]
        values = ", ".join(f"{x}={keywords[x]!r}" for x in scores)
        pair = {"match", "mismatch"} - {*scores}
        values += f", {pair.pop()}=…" if len(pair) == 1 else ""
        return f"{text}: it belongs to the scoring, scoring=Scoring({values})"
    if reason := why_absent(option, name):
        return f"{text}: {reason}"
    if meant := nearest_word(option, parameters):
        return f"{text}: did you mean {meant!r}?"
    names = [x.name for x in parameters.values() if x.kind == Parameter.KEYWORD_ONLY]
    return f"{text}; it has {', '.join(names)}"
