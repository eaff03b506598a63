# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false
"""A compiled program as JSON and bytes, and back: no pickle is read.

``jax.experimental.serialize_executable`` pickles the Python objects around the bytes of
an executable. Of a program of one device these objects are shapes, dtypes, layouts and
trees, which JSON holds as well. ``parts_of`` makes them, makes the objects again, and
compares: what has more to it is not stored.

JAX has no public call for this. Of its private modules this file needs
``jax._src.compiler`` (``get_compile_options``), ``jax._src.lib`` (``xla_client``) and
``jax._src.interpreters.pxla`` (``UnloadedMeshExecutable``, whose fields ``EMPTY``,
``LAYOUTS`` and ``OTHERS`` name), and of a compiled program ``_executable``,
``_no_kwargs`` and ``_params``. Where a JAX has others, nothing is stored.
"""

import sys
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
from jax._src import compiler, lib
from jax._src.interpreters import pxla
from jax.core import ShapedArray
from jax.experimental.layout import Layout

_library: Any = lib
HOST = "pinned_host"  # memory that a device can write and the host reads
PLAIN = {tuple: "tuple", list: "list", type(None): "none"}
# What a program of one device has none of.
EMPTY = (
    "unordered_effects", "ordered_effects", "keepalive", "host_callbacks", "mut",
    "pgle_profiler",
)  # fmt: skip
LAYOUTS = "xla_in_layouts", "dispatch_in_layouts", "xla_out_layouts"
OTHERS = (
    "xla_executable", "device_list", "backend", "input_avals", "input_shardings",
    "output_avals", "output_shardings", "committed", "name", "kept_var_idx",
    "all_args_info",
)  # fmt: skip


class Unstorable(Exception):
    """A program has parts that JSON does not hold, or this JAX has others."""


@dataclass(frozen=True)
class CallArrays:
    """The arguments of a call that are arrays."""

    tree: Any  # of a list of positional ones and a dict of named ones
    types: tuple[tuple[Any, ...], ...]  # shape, dtype and weak type of each leaf


def parts_of(
    compiled: Any, call: CallArrays, device: Any
) -> tuple[dict[str, Any], bytes]:
    """(what JSON holds of a compiled program, the bytes of its executable)."""
    unloaded: Any = getattr(compiled._executable, "_unloaded_executable", None)
    expected = {*EMPTY, *LAYOUTS, *OTHERS}
    if unloaded is None or {field.name for field in fields(unloaded)} != expected:
        raise Unstorable("this JAX has other parts")
    if any(getattr(unloaded, name) for name in EMPTY):
        raise Unstorable("it has effects")
    about = {
        "function": unloaded.name,
        "inputs": [_from_aval(aval) for aval in unloaded.input_avals],
        "outputs": [_from_aval(aval) for aval in unloaded.output_avals],
        "output_tree": _from_tree(compiled.out_tree),
        "memories": [
            [sharding.memory_kind for sharding in unloaded.input_shardings],
            [
                # A device that is absent has no memories to name.
                HOST if aval.memory_space == jax.memory.Space.Host else x.memory_kind
                for x, aval in zip(
                    unloaded.output_shardings, unloaded.output_avals, strict=True
                )
            ],
        ],
        "committed": unloaded.committed,
        "no_kwargs": compiled._no_kwargs,
        "kept": sorted(unloaded.kept_var_idx),
        "donated": [info.donated for info in jax.tree.leaves(compiled.args_info)],
        "layouts": {
            name: [_from_layout(layout) for layout in getattr(unloaded, name)]
            for name in LAYOUTS
        },
    }
    # What is made again has to be the same program.
    fields_again = _fields(about, device).items()
    whole = (
        all(
            list(getattr(unloaded, name)) == list(value)
            for name, value in fields_again
            if isinstance(value, list)
        )
        and compiled.args_info == _arguments(about, call)
        and compiled.out_tree == jax.tree.structure(_to_tree(about["output_tree"]))
        and not compiled._params.const_args
        and tuple(unloaded.device_list) == (device,)
    )
    if not whole:
        raise Unstorable("JSON does not hold it")
    executable = unloaded.xla_executable
    if hasattr(executable, "serialize"):
        return about, executable.serialize()
    # For a device that is absent it is not loaded.
    return about, device.client.serialize_executable(executable)


def load(
    about: dict[str, Any], executable: bytes, call: CallArrays, device: Any
) -> Any:
    """Load a compiled program from its parts, for given arguments and device."""
    devices: Any = _library.xla_client.DeviceList((device,))
    # Of whichever device of its kind it was made for: it is assigned to this one.
    options = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=1,
        device_assignment=np.array([[device.id]]),
        backend=device.client,
    )
    loaded = device.client.deserialize_executable(
        executable, executable_devices=devices, compile_options=options
    )
    unloaded: Any = pxla.UnloadedMeshExecutable(
        xla_executable=loaded,
        device_list=devices,
        backend=device.client,
        **_fields(about, device),
    )
    tree = jax.tree.structure(_to_tree(about["output_tree"]))
    details = _arguments(about, call), tree, about["no_kwargs"]
    return jax.stages.Compiled(unloaded.load(), [], *details)


def _fields(about: dict[str, Any], device: Any) -> dict[str, Any]:
    """Fields of an executable that are not handles of the runtime."""
    inside, outside = (
        [jax.sharding.SingleDeviceSharding(device, memory_kind=kind) for kind in kinds]
        for kinds in about["memories"]
    )
    layouts = {
        name: [_to_layout(aval) for aval in about["layouts"][name]] for name in LAYOUTS
    }
    nothing: dict[str, Any] = {name: [] for name in EMPTY}
    nothing |= {"mut": None, "pgle_profiler": None, "all_args_info": None}
    return nothing | layouts | {
        "input_avals": [_to_aval(aval) for aval in about["inputs"]],
        "input_shardings": inside,
        "output_avals": [
            _to_aval(aval, kind)
            for aval, kind in zip(about["outputs"], about["memories"][1], strict=True)
        ],
        "output_shardings": outside,
        "committed": about["committed"],
        "name": about["function"],
        "kept_var_idx": set(about["kept"]),
    }  # fmt: skip


def _arguments(about: dict[str, Any], call: CallArrays) -> Any:
    """Tree of argument descriptions that ``Compiled`` expects."""
    infos = [
        jax.stages.ArgInfo(ShapedArray(shape, dtype, weak_type), donated)
        for (shape, dtype, weak_type), donated in zip(
            call.types, about["donated"], strict=True
        )
    ]
    positional, named = jax.tree.unflatten(call.tree, infos)
    return tuple(positional), named


def _from_aval(aval: Any) -> list[Any]:
    return [list(aval.shape), str(aval.dtype), aval.weak_type]


def _to_aval(parts: list[Any], memory: str | None = None) -> Any:
    (shape, dtype, weak_type), space = parts, jax.memory.Space
    return ShapedArray(
        tuple(shape),
        jax.numpy.dtype(dtype),
        weak_type,
        memory_space=space.Host if memory == HOST else space.Device,
    )


def _from_layout(layout: Any) -> list[Any] | None:
    if layout is None:
        return None
    tiling = [list(tile) for tile in layout.tiling or ()]
    return [list(layout.major_to_minor), tiling, layout.sub_byte_element_size_in_bits]


def _to_layout(parts: list[Any] | None) -> Any:
    if parts is None:
        return None
    order, tiling, bits = parts
    return Layout(tuple(order), tuple(map(tuple, tiling)), bits)


def _from_tree(tree: Any) -> Any:
    """A tree of tuples, lists, dicts of texts, named tuples and None as JSON."""
    node = tree.node_data()
    if node is None:
        return "leaf"
    kind, data = node
    children = [_from_tree(child) for child in tree.children()]
    if kind in PLAIN:
        return [PLAIN[kind], children]
    if kind is dict and all(isinstance(key, str) for key in data):
        return ["dict", data, children]
    if _is_named_tuple(kind):
        return ["named", kind.__module__, kind.__qualname__, children]
    raise Unstorable(f"{kind}: a tree of such nodes")


def _to_tree(parts: Any) -> Any:
    """Rebuild a tree from JSON, with leaves of 0."""
    if parts == "leaf":
        return 0
    kind, *about, children = parts
    inner = [_to_tree(child) for child in children]
    match kind:
        case "dict":
            return dict(zip(about[0], inner, strict=True))
        case "named":
            # Any other class is refused, so that a file cannot have code called.
            node: Any = sys.modules[about[0]]
            for part in about[1].split("."):
                node = vars(node)[part]
            if not _is_named_tuple(node):
                raise Unstorable(about[1])
            return node(*inner)
        case "none":
            return None
        case _:
            return {"tuple": tuple, "list": list}[kind](inner)


def _is_named_tuple(kind: Any) -> bool:
    """Whether a class is as ``typing.NamedTuple`` makes it."""
    is_tuple = isinstance(kind, type) and kind.__bases__ == (tuple,)
    return is_tuple and hasattr(kind, "_fields")
