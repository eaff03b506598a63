# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Programs for a GPU that is not there: compiled from shapes, and put into a pack.

JAX's plugin for CUDA compiles for the *topology* of a card that is described in words.
It needs neither a GPU nor a driver.
"""

from pathlib import Path
from typing import Any

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from jaxalign.errors import DeviceError
from jaxalign.runtime import executable_parts, program_key, program_pack, programs
from jaxalign.runtime.program_outline import ProgramCall


def device_of(configuration: str) -> Any:
    """A GPU that need not be there, by its target configuration.

    Raises
    ------
    DeviceError
        JAX's plugin for CUDA is not installed.
    """
    # What JAX has in a folder of its own cannot be loaded without a GPU.
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=configuration, topology="1x1x1"
        )
    except Exception as error:
        raise DeviceError(
            f"programs for GPUs need JAX's plugin for CUDA: {error}\n"
            "hint: install jaxalign[cuda12] or [cuda13]; no GPU is needed"
        ) from error
    return topology.devices[0]


def key_of(call: ProgramCall, architecture: str) -> str:
    """The name of the program of a call in a pack."""
    function = call.program.jitted.__wrapped__
    static, arrays = _split(call)
    return program_key.pack_name_of(
        function, static, arrays.tree, arrays.types, architecture
    )


def make(call: ProgramCall, device: Any, architecture: str, folder: Path) -> int:
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
    name = key_of(call, architecture)
    return program_pack.write(folder, name, about, executable)


def _split(call: ProgramCall) -> tuple[dict[str, Any], executable_parts.CallArrays]:
    """The static arguments of a call, and its arrays."""
    static, *dynamic = call.program.split(call.args, call.kwargs)
    leaves, tree = jax.tree.flatten(tuple(dynamic))
    types = tuple(map(programs.type_of, leaves))
    return static, executable_parts.CallArrays(tree, types)
