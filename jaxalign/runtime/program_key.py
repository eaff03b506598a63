# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Name the file of a compiled program by all that the program depends on.

Versions of JAX and of Python; the device with its driver; the flags of XLA and of JAX;
the function with the sources that it and its static arguments are made of; these, and
the shapes and dtypes of the others. Two processes that agree on all of these may run
the same program.
"""

import os
import sys
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from types import FunctionType
from typing import Any

import jax
import numpy as np

from jaxalign.runtime import machine

# Settings of JAX that change no program: folders, messages, places.
INDIFFERENT = (
    "cache", "coordin", "debug_log", "device", "dump", "explain", "log", "platform",
    "timeout", "traceback", "transfer", "visible",
)  # fmt: skip


PACK_SETTINGS = "jax_enable_x64", "jax_default_matmul_precision"
PLUGINS = "jax-cuda12-plugin", "jax-cuda13-plugin"
MAKER = "jaxalign.runtime.programs"  # what is around every program


class Unnamed(Exception):
    """A static argument has no name that another process would know."""


def name_of(function: Any, static: dict[str, Any], tree: Any, types: Any, device: Any):
    """The name of a program's file.

    function : the function that is compiled
    static : its static arguments
    tree, types : structure of the others; shape, dtype and weak type of each leaf
    device : jax.Device
    """
    # JAX's settings, with this thread's overrides.
    values: dict[str, Any] = jax.config.values
    settings = [
        (name, repr(getattr(jax.config, name, value)))
        for name, value in sorted(values.items())
        if not any(word in name for word in INDIFFERENT)
    ]
    text = f"{_call_text(function, static, tree, types)}\n{settings!r}"
    return f"{environment(device)}-{function.__name__.strip('_')}-{_short(text, 16)}"


def pack_name_of(
    function: Any, static: dict[str, Any], tree: Any, types: Any, architecture: str
) -> str:
    """The name of the file of a program in a pack, as of ``name_of``; settings that
    change no program of this project have no part in it.

    architecture : of the GPU, such as sm_90
    """
    settings = [repr(getattr(jax.config, name)) for name in PACK_SETTINGS]
    text = "\n".join([_call_text(function, static, tree, types), *settings])
    # All programs of a pack for a kind of GPU depend on this.
    home = f"{architecture}-{_short(repr(pack_makers()), 6)}"
    return f"{home}-{function.__name__.strip('_')}-{_short(text, 16)}"


@cache
def pack_makers() -> dict[str, str]:
    """Versions on which all programs of a pack depend."""
    makers = {"jax": jax.__version__, "jaxlib": version("jaxlib")}
    for name in PLUGINS:
        with suppress(PackageNotFoundError):
            makers["plugin"] = f"{name} {version(name)}"
    return makers


def _call_text(function: Any, static: dict[str, Any], tree: Any, types: Any) -> str:
    home = f"{function.__module__}.{function.__qualname__}"
    said = [f"{name}={_text(value)}" for name, value in sorted(static.items())]
    code = machine.code_digest(modules_text(function, static))
    return "\n".join([home, *said, str(tree), str(types), code])


def modules_text(function: Any, static: dict[str, Any]) -> str:
    """Name the modules of what makes a program: of what is around every program, of the
    function, and of functions and classes among its static arguments."""
    values = [_text(value) for _, value in sorted(static.items())]
    return " ".join(machine.modules_of(" ".join([MAKER, function.__module__, *values])))


@cache
def environment(device: Any) -> str:
    """A short name of what all programs of a device depend on."""
    client = device.client
    properties = {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "python": sys.version,
        "numpy": np.__version__,
        "platform": device.platform,
        "kind": device.device_kind,
        "capability": getattr(device, "compute_capability", None),
        "runtime": client.platform_version,
        "driver": machine.driver(),
        "cpu": machine.processor() if device.platform == "cpu" else None,
        "flags": [os.environ.get(x) for x in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")],
    }
    return f"{device.platform}-{_short(repr(properties), 6)}"


def made_for(device: Any) -> dict[str, Any]:
    """Describe the device and versions of a program, for the header of its file."""
    return {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "platform": device.platform,
        "kind": device.device_kind,
        "capability": getattr(device, "compute_capability", None),
        "runtime": device.client.platform_version,
    }


def _text(value: Any) -> str:
    """Describe a static argument by text that is the same in every process."""
    kind: Any = type(value)
    home = f"{kind.__module__}.{kind.__qualname__}"
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.dtype)):
        return repr(value)
    if isinstance(value, Enum):
        return f"{home}.{value.name}"
    if isinstance(value, np.generic):
        return f"{value.dtype}({value.item()!r})"
    if isinstance(value, (tuple, list)):
        parts: Any = value
        return f"{home}({', '.join(map(_text, parts))})"
    if isinstance(value, (frozenset, set)):
        members: Any = value
        return f"{home}({', '.join(sorted(map(_text, members)))})"
    if isinstance(value, dict):
        pairs: Any = value
        return (
            f"{home}({', '.join(f'{_text(k)}: {_text(v)}' for k, v in pairs.items())})"
        )
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{home}{_text(values)}"
    if isinstance(value, partial):
        bound: Any = value
        return f"partial({_text((bound.func, bound.args, bound.keywords))})"
    if isinstance(value, (FunctionType, type)) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    wrapped: Any = getattr(value, "__wrapped__", None)  # by jax.jit
    if wrapped is not None:
        return _text(wrapped)
    raise Unnamed(home)


def _short(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
