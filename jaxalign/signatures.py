# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The signature of a public function shows every option, its type and its default.

A record has the types and defaults of the options of an operation, and a typed
dictionary names those that a function takes (PEP 692): type checkers read the
dictionary, ``help()`` and ``inspect.signature`` what is set here. Any other name is
refused.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_args, get_type_hints
from warnings import warn

from jaxalign.errors import UsageError, nearest_word
from jaxalign.model.scoring import Scoring, ScoringLike
from jaxalign.options import current_word

Function = TypeVar("Function", bound=Callable[..., Any])
SCORES = frozenset(signature(Scoring).parameters)


def with_options(options: type, named: bool = False) -> Callable[[Function], Function]:
    """Give a function of ``**options`` its full signature, and refuse other names.

    Parameters
    ----------
    options : dataclass
        Its fields have the defaults.
    named : bool
        Whether every usage error begins with the name of the function. Such functions
        take arrays, which JAX may trace; the others compute at once, also where they
        are called in a function that is traced.

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
    (keywords,) = get_args(get_type_hints(function).get("options")) or (None,)
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
    if meant := nearest_word(option, parameters):
        return f"{text}: did you mean {meant!r}?"
    names = [x.name for x in parameters.values() if x.kind == Parameter.KEYWORD_ONLY]
    return f"{text}; it has {', '.join(names)}"
