# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Jitted functions whose compiled programs outlive the process.

JAX's own cache folder saves the compiling; tracing and lowering remain, and these hold
Python's lock. A serialised executable needs neither: it loads in hundredths of a
second (docs/kernels.md). A ``Program`` looks for it in memory, then in the folder of
``runtime.program_folder``, and compiles only where both have nothing.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, partial, update_wrapper
from importlib import import_module
from inspect import Parameter, signature
from typing import Any
from weakref import WeakSet

import jax
from jax.core import Tracer

from jaxalign.runtime import (
    executable_parts,
    program_folder,
    program_key,
    program_outline,
    program_pack,
)
from jaxalign.runtime.devices import first_device, maps_run_short
from jaxalign.runtime.program_counts import COUNTS

# What XLA has loaded it cannot serialise again: on a CPU the copy lacks its functions.
# JAX says so where the executable was in its own cache folder.
_compiling = threading.local()
_HIT_OF_JAX = "/jax/compilation_cache/cache_hits"


def _listen(event: str, **_: Any) -> None:
    if event == _HIT_OF_JAX:
        _compiling.loaded_by_jax = True


jax.monitoring.register_event_listener(_listen)

_config: Any = jax.config
_programs: WeakSet["Program"] = WeakSet()


class Program:
    """A jitted function; called like it, and inside other transformations the same.

    Parameters
    ----------
    jitted : what ``jax.jit`` returns
    static_argnames : its static arguments, hashable
    """

    def __init__(self, jitted: Any, static_argnames: tuple[str, ...] = ()):
        update_wrapper(self, jitted)
        self.jitted, self._static = jitted, frozenset(static_argnames)
        positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        parameters = signature(jitted).parameters.values()
        self._names = [x.name for x in parameters if x.kind in positional]
        self._compiled: dict[Any, Future[Any]] = {}
        self._loaded_by_jax: set[Any] = set()
        self._lock = threading.Lock()
        _programs.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if getattr(program_outline.THREAD, "calls", None) is not None:
            return program_outline.note(self, args, kwargs)
        compiled, arrays, named = self._find(args, kwargs)
        if compiled is None:
            return self.jitted(*args, **kwargs)
        return compiled(*arrays, **named)

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Have the program for these arguments ready, without running it."""
        if self._find(args, kwargs)[0] is None:
            self.jitted.lower(*args, **kwargs).compile()

    def clear_cache(self) -> None:
        """Forget the programs in memory."""
        with self._lock:
            self._compiled.clear()
        self.jitted.clear_cache()

    def __getattr__(self, name: str) -> Any:
        if name == "jitted":  # of an object that is being made
            raise AttributeError(name)
        return getattr(self.jitted, name)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """(static arguments, positional ones that are arrays, named ones that are)."""
        static = {name: x for name, x in kwargs.items() if name in self._static}
        named = {name: x for name, x in kwargs.items() if name not in self._static}
        arrays: list[Any] = []
        for place, value in enumerate(args):
            name = self._names[place] if place < len(self._names) else ""
            if name in self._static:
                static[name] = value
            else:
                arrays.append(value)
        return static, arrays, named

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """(executable or None, the positional arguments that are arrays, the named)."""
        static, arrays, named = self.split(args, kwargs)
        leaves, tree = jax.tree.flatten((arrays, named))
        traced = any(isinstance(leaf, Tracer) for leaf in leaves)
        device = None if traced or _disabled() else _device(leaves)
        if device is None:
            return None, arrays, named
        types = tuple(map(type_of, leaves))
        key = device, tree, types, tuple(sorted(static.items())), _mode()
        with self._lock:
            future = self._compiled.get(key)
            mine = future is None
            if future is None:
                future = self._compiled[key] = Future()
        if mine:
            try:
                future.set_result(self._made(args, kwargs, static, key))
            except BaseException as error:
                with self._lock:
                    self._compiled.pop(key, None)  # there may be more memory later
                future.set_exception(error)
        return future.result(), arrays, named

    def _made(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        static: dict[str, Any],
        key: tuple[Any, ...],
    ) -> Any:
        """The executable, from the folder or compiled and put there."""
        (device, tree, types, *_), name = key, ""
        call = executable_parts.CallArrays(tree, types)
        if device.platform == "cpu" and maps_run_short():
            clear()
        function = self.jitted.__wrapped__
        if found := _packed(function, static, call, device):
            return found
        folder = program_folder.program_folder()
        if folder is not None:
            try:
                name = program_key.name_of(function, static, tree, types, device)
            except program_key.Unnamed:
                folder = None
        if folder is not None and (found := _loaded(folder, name, call, device)):
            return found
        _compiling.loaded_by_jax = False
        with jax.default_device(device):
            compiled = _compiled(partial(self.jitted.trace, *args, **kwargs))
        if _compiling.loaded_by_jax:  # which JAX may remember, and not say again
            self._loaded_by_jax.add(key)
        if folder is not None and key not in self._loaded_by_jax:
            _keep(folder, name, compiled, call, device)
        return compiled


def clear() -> None:
    """Have all ``Program`` objects forget what they have in memory."""
    for one in list(_programs):
        one.clear_cache()


@cache
def stored(jitted: Any, static_argnames: tuple[str, ...] = ()) -> Program:
    """The ``Program`` of a jitted function of code that knows nothing of this file."""
    return Program(jitted, static_argnames)


def program(static_argnames: tuple[str, ...] = (), **options: Any):
    """A decorator: ``jax.jit`` with these options, as a ``Program``."""

    def decorate(function: Callable[..., Any]) -> Program:
        jitted = jax.jit(function, static_argnames=static_argnames, **options)
        return Program(jitted, static_argnames)

    return decorate


def type_of(leaf: Any) -> tuple[Any, ...]:
    kind: Any = leaf
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        kind = jax.typeof(leaf)
    return kind.shape, kind.dtype, kind.weak_type


def _device(leaves: list[Any]) -> Any:
    """The only device of some arrays, or the one that JAX would choose; None for
    arrays of several."""
    devices = {d for x in leaves if isinstance(x, jax.Array) for d in x.devices()}
    if len(devices) > 1:
        return None
    return devices.pop() if devices else first_device()


def _disabled() -> bool:
    return bool(_config.jax_disable_jit)


def _mode() -> tuple[Any, ...]:
    """Settings that a thread may have changed for a while."""
    return _config.jax_enable_x64, _config.jax_default_matmul_precision


def _packed(
    function: Any,
    static: dict[str, Any],
    call: executable_parts.CallArrays,
    device: Any,
) -> Any:
    """The executable that a pack has, None where it has none."""
    pack = program_pack.pack_of(device)
    if pack is None:
        return None
    try:
        name = program_key.pack_name_of(
            function, static, call.tree, call.types, pack.architecture
        )
    except program_key.Unnamed:
        return None
    return _of_parts(program_pack.read(pack, name), call, device)


def _loaded(
    folder: str, name: str, call: executable_parts.CallArrays, device: Any
) -> Any:
    """The executable of an entry, None for a miss of any kind."""
    return _of_parts(program_folder.read(folder, name), call, device)


def _of_parts(content: Any, call: executable_parts.CallArrays, device: Any) -> Any:
    """The executable of what a file has, None where that is nothing, or of no use."""
    if content is None:
        return None
    with COUNTS.timed("load"):
        if device.platform == "gpu":
            _name_runtime_of_mosaic()
        try:
            # Nobody else may write to the file, and the digest holds.
            about, executable = content
            return executable_parts.load(about, executable, call, device)
        except Exception:  # of another version, say: compiled again, and replaced
            return None


@cache
def _name_runtime_of_mosaic() -> None:
    """Have Mosaic find the library that its kernels call: JAX says where in a variable
    of the environment, which it sets in this import. A kernel loaded before fails."""
    with suppress(ImportError):
        import_module("jax.experimental.mosaic.gpu")


def _compiled(trace: Callable[[], Any]) -> Any:
    with COUNTS.compiling():
        with COUNTS.timed("trace"):
            traced = trace()
        with COUNTS.timed("lower"):
            lowered = traced.lower()
        with COUNTS.timed("compile"):
            return lowered.compile()


def _keep(
    folder: str,
    name: str,
    compiled: Any,
    call: executable_parts.CallArrays,
    device: Any,
) -> None:
    with COUNTS.timed("store"):
        try:
            about, executable = executable_parts.parts_of(compiled, call, device)
        except Exception:  # this backend cannot, or the program calls Python
            return
        about["made_for"] = program_key.made_for(device)
        program_folder.write(folder, name, about, executable)
