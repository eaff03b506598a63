# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Jitted functions whose compiled programs outlive the process.

JAX's own cache folder saves the compiling; tracing and lowering remain, and these hold
Python's lock. A serialised executable needs neither: it loads in hundredths of a
second (docs/kernels.md). A ``Program`` looks for it in memory, then in a pack and in
the folder of ``runtime.program_folder``, and compiles only where none has it.

While an ``outline`` is drawn in a thread, a ``Program`` notes its call and returns
shapes in place of arrays: the functions that call programs are those that list them.
So packs are made of programs for a GPU that is not there: JAX's plugin for CUDA
compiles for the *topology* of a card that is described in words, and needs neither a
GPU nor a driver.

``explained`` makes errors of a device readable: one line, and what to try.
"""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial, update_wrapper
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any
from weakref import WeakSet

import jax
from jax.core import Tracer
from jax.sharding import SingleDeviceSharding

from jaxalign.errors import DeviceError, DeviceFailure, JaxalignError, MemoryPlanError
from jaxalign.runtime import executable_parts, program_folder, program_key
from jaxalign.runtime.devices import first_device, maps_run_short
from jaxalign.runtime.pipeline import COUNTS

_errors: Any = jax.errors
RuntimeFailure = _errors.JaxRuntimeError
OUT_OF_MEMORY_WORDS = "RESOURCE_EXHAUSTED", "OUT_OF_MEMORY"  # of XLA, of CUDA
MAX_LETTERS = 200  # of JAX's message
REMEDY = (
    "`--device cpu` (in Python jax.default_device) does without the GPU; with "
    "XLA_PYTHON_CLIENT_ALLOCATOR=platform the launch at fault is named; please report "
    "it"
)

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


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is out of memory, so that smaller launches may help."""
    return any(word in str(error) for word in OUT_OF_MEMORY_WORDS)


@contextmanager
def explained(subject: str, device: object = None) -> Generator[None]:
    """Raise errors of a device as those of the project, where no launch is to blame.

    ``subject`` is the work that failed, or that found no memory.
    """
    try:
        yield
    except RuntimeFailure as error:
        plain: JaxalignError
        device, line = device or "the device", first_line(error)
        if out_of_memory(error):
            plain = MemoryPlanError(
                f"{device}: no memory for {subject}: {line}; free memory of the GPU, "
                "compute less at a time, or use `--device cpu`"
            )
        else:
            plain = DeviceFailure(f"{device} failed at {subject}: {line}; {REMEDY}")
        raise plain from error


def first_line(error: BaseException) -> str:
    """The first line of a message of JAX, not all of it."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return line if len(line) <= MAX_LETTERS else f"{line[:MAX_LETTERS]} …"


# Its ``calls`` are those of the outline that is drawn in a thread.
THREAD = threading.local()


@dataclass(frozen=True, eq=False)
class ProgramCall:
    """A call of a program: its arrays, or their shapes, and static arguments."""

    program: Any  # ``programs.Program``
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.program.__name__.strip("_")


def shapes_of(tree: Any) -> Any:
    """Shapes and dtypes of the arrays of a tree; all else as it is."""

    def shape_of(leaf: Any) -> Any:
        if not hasattr(leaf, "shape"):
            return leaf
        weak = getattr(leaf, "weak_type", False)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)

    return jax.tree.map(shape_of, tree)


@contextmanager
def outline() -> Generator[list[ProgramCall]]:
    """Note the calls of programs in this thread, each of them in the list it gives."""
    calls: list[ProgramCall] = []
    before, THREAD.calls = getattr(THREAD, "calls", None), calls
    try:
        yield calls
    finally:
        THREAD.calls = before


def note(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The shapes of the result of a call, which is noted in the thread's outline."""
    call = ProgramCall(program, shapes_of(args), shapes_of(kwargs))
    THREAD.calls.append(call)
    return program.jitted.eval_shape(*call.args, **call.kwargs)


class Program:
    """A jitted function; called like it, and inside other transformations the same.

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
        if _config.jax_disable_jit:  # which is meant for the code of the caller
            with jax.disable_jit(False):
                return self(*args, **kwargs)
        if getattr(THREAD, "calls", None) is not None:
            return note(self, args, kwargs)
        compiled, arrays, named = self._find(args, kwargs)
        if compiled is None:
            return self.jitted(*args, **kwargs)
        return compiled(*arrays, **named)

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Have the program for these arguments ready, without running it."""
        with jax.disable_jit(False):
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
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return None, arrays, named
        devices = {d for x in leaves if isinstance(x, jax.Array) for d in x.devices()}
        if len(devices) > 1:
            return None, arrays, named
        device = devices.pop() if devices else first_device()
        types = tuple(map(type_of, leaves))
        # A thread may have changed these settings for a while.
        mode = _config.jax_enable_x64, _config.jax_default_matmul_precision
        key = device, tree, types, tuple(sorted(static.items())), mode
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
        """Load the executable from the folder, or compile and store it."""
        (device, tree, types, *_), name = key, ""
        call = executable_parts.CallArrays(tree, types)
        if device.platform == "cpu" and maps_run_short():
            clear()
        function, program = self.jitted.__wrapped__, None
        pack, folder = program_folder.pack_of(device), program_folder.program_folder()
        try:
            if pack is not None:
                kind = pack.architecture
                name = program_key.pack_name_of(function, static, tree, types, kind)
                program = _loaded(program_folder.read_packed(pack, name), call, device)
            if program is None and folder is not None:
                name = program_key.name_of(function, static, tree, types, device)
                program = _loaded(
                    program_folder.read_program(folder, name), call, device
                )
        except program_key.Unnamed:  # no other process would know its arguments
            folder = None
        if program is not None:
            return program
        _compiling.loaded_by_jax = False
        with jax.default_device(device):
            compiled = _compiled(partial(self.jitted.trace, *args, **kwargs))
        if _compiling.loaded_by_jax:  # which JAX may remember, and not say again
            self._loaded_by_jax.add(key)
        if folder is None or key in self._loaded_by_jax:
            return compiled
        with COUNTS.timed("store"):
            try:
                about, executable = executable_parts.parts_of(compiled, call, device)
            except Exception:  # this backend cannot, or the program calls Python
                return compiled
            about["made_for"] = program_key.made_for(device)
            program_folder.write_program(folder, name, about, executable)
        return compiled


def clear() -> None:
    """Have all ``Program`` objects forget what they have in memory."""
    for program in list(_programs):
        program.clear_cache()


@cache
def stored(jitted: Any, static_argnames: tuple[str, ...] = ()) -> Program:
    """Wrap a jitted function of code that does not import this file."""
    return Program(jitted, static_argnames)


def program(static_argnames: tuple[str, ...] = (), **options: Any):
    """Decorate a function: ``jax.jit`` with these options, as a ``Program``."""

    def decorate(function: Callable[..., Any]) -> Program:
        jitted = jax.jit(function, static_argnames=static_argnames, **options)
        return Program(jitted, static_argnames)

    return decorate


def type_of(leaf: Any) -> tuple[Any, ...]:
    kind: Any = leaf
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        kind = jax.typeof(leaf)
    return kind.shape, kind.dtype, kind.weak_type


def _loaded(content: Any, call: executable_parts.CallArrays, device: Any) -> Any:
    """Load the executable of a file; None if it is missing or unusable."""
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


def topology_device(configuration: str) -> Any:
    """A GPU that need not be there, by its target configuration."""
    from jax.experimental import topologies

    # What JAX has in a folder of its own cannot be loaded without a GPU.
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=configuration, topology="1x1x1"
        )
    except Exception as error:
        raise DeviceError(
            f"programs for GPUs need JAX's plugin for CUDA: {error}\nhint: pip install "
            f'"jax[cuda12]=={jax.__version__}", or with [cuda13]; no GPU is needed'
        ) from error
    return topology.devices[0]


def key_of_call(call: ProgramCall, architecture: str) -> str:
    """The name of the program of a call in a pack."""
    function = call.program.jitted.__wrapped__
    static, arrays = _split(call)
    return program_key.pack_name_of(
        function, static, arrays.tree, arrays.types, architecture
    )


def modules_of_call(call: ProgramCall) -> set[str]:
    """The modules that make the program of a call."""
    function, static = call.program.jitted.__wrapped__, _split(call)[0]
    return {*program_key.modules_text(function, static).split()}


def make_program(
    call: ProgramCall, device: Any, architecture: str, folder: Path
) -> int:
    """Compile the program of a call, and add it to a pack; the bytes of its file."""
    there = SingleDeviceSharding(device)

    def on_device(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=there, weak_type=leaf.weak_type
        )

    args, kwargs = jax.tree.map(on_device, (call.args, call.kwargs))
    # Mosaic takes the capability of the default device for that of the target.
    with jax.default_device(device):
        traced = call.program.jitted.trace(*args, **kwargs)
        compiled = traced.lower(lowering_platforms=("cuda",)).compile()
    _, arrays = _split(call)
    about, executable = executable_parts.parts_of(compiled, arrays, device)
    about["made_for"] = program_key.pack_makers() | {"architecture": architecture}
    name = key_of_call(call, architecture)
    return program_folder.write_packed(folder, name, about, executable)


def _split(call: ProgramCall) -> tuple[dict[str, Any], executable_parts.CallArrays]:
    """The static arguments of a call, and its arrays."""
    static, *dynamic = call.program.split(call.args, call.kwargs)
    leaves, tree = jax.tree.flatten(tuple(dynamic))
    types = tuple(map(type_of, leaves))
    return static, executable_parts.CallArrays(tree, types)
