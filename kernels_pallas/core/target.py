"""GPUs that kernels are written for, and how they differ.

A kernel has a ``Target`` among its static arguments and reads its properties, never
the number of a generation. The figures are those of one card of each
generation: NVIDIA's CUDA C++ Programming Guide (technical specifications per compute
capability) and the target configurations of XLA (xla/backends/gpu/target_config).
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import jax

# The largest float16: as bits, and so as an integer of 16 bits, 31,743.
FLOAT16_LIMIT = 0x7C00
# Compute capabilities on which figures and GPU tests were run (H100, H200).
MEASURED = ((9, 0),)


@dataclass(frozen=True)
class Target:
    """A GPU as kernels see it. Sizes are bytes; ``cores`` are multiprocessors."""

    name: str
    capability: tuple[int, int]
    integer_halves: bool  # adds and maxima of two int16 are an instruction each (DPX)
    bulk_copies: bool  # one thread copies a block, and others wait at a barrier (TMA)
    tall_lanes: bool  # 96 rows of local scores fit the registers of a lane
    cores: int
    core_threads: int
    core_shared_bytes: int
    shared_bytes: int  # of a program at most
    l2_bytes: int
    memory_bytes: int
    memory_bandwidth: int  # bytes a second
    clock_ghz: float
    float_units: int  # of a core
    core_registers: int = 65536

    @property
    def architecture(self) -> str:
        """The compilers' name of the architecture, such as sm_90."""
        return "sm_{}{}".format(*self.capability)

    @property
    def form(self) -> str:
        """How two tables share a register, in words."""
        return "int16 (DPX)" if self.integer_halves else "int16 by maxima of float16"

    @property
    def evidence(self) -> str:
        """Whether its kernels were run or only compiled, in words."""
        measured = self.capability in MEASURED
        return "measured" if measured else "compiled and interpreted, not yet run"

    @property
    def half_limit(self) -> int:
        """Exclusive upper bound of values of 16 bits in a register.

        Without maxima of int16 a kernel takes those of float16 of the same bits. Both
        agree from 0 up to the largest float16; above are infinity and NaN.
        """
        return 2**15 - 1 if self.integer_halves else FLOAT16_LIMIT


AMPERE = Target(
    "A100", (8, 0), False, False, False, 108, 2048, 167936, 166912, 41943040,
    85100068864, 2039040000000, 1.41, 64,
)  # fmt: skip
HOPPER = Target(
    "H100", (9, 0), True, True, True, 132, 2048, 233472, 232448, 52428800,
    84942979072, 3352320000000, 1.98, 128,
)  # fmt: skip
TARGETS = (
    AMPERE,
    Target("RTX A6000", (8, 6), False, False, False, 84, 1536, 102400, 101376,
           6291456, 51041271808, 768096000000, 1.8, 128),
    Target("RTX 4090", (8, 9), False, False, False, 128, 1536, 102400, 101376,
           75497472, 25757220864, 1008096000000, 2.52, 128),
    HOPPER,
    Target("B200", (10, 0), True, True, True, 148, 2048, 233472, 232448, 132644864,
           191514411008, 7672320000000, 1.965, 128),
    Target("RTX PRO 6000", (12, 0), True, True, False, 188, 1536, 102400, 101376,
           134217728, 103079215104, 1792000000000, 2.6, 128),
)  # fmt: skip


_named: list[Target] = []  # targets of ``made_for``, innermost last


def target_of(capability: str, cores: int | None = None) -> Target | None:
    """The target of a compute capability such as "8.6"; None if kernels lack it.

    A capability between two targets has the properties of the lower: code for 8.6 runs
    on 8.7. ``cores`` is the number of the card, if known.
    """
    try:
        major, minor = (int(part) for part in capability.split("."))
    except ValueError:
        return None
    lower = [target for target in TARGETS if target.capability <= (major, minor)]
    if not lower:
        return None
    target = replace(lower[-1], capability=(major, minor))
    return replace(target, cores=cores) if cores else target


def this_target() -> Target:
    """Target of ``made_for``, else of JAX's first device; Hopper if that is no NVIDIA
    GPU."""
    return _named[-1] if _named else _target_of_device()


@contextmanager
def made_for(target: Target) -> Generator[None]:
    """Compile programs of this process for a card that need not be present."""
    _named.append(target)
    try:
        yield
    finally:
        _named.pop()


@cache
def _target_of_device() -> Target:
    device = jax.devices()[0]
    capability = str(getattr(device, "compute_capability", ""))
    return target_of(capability, getattr(device, "core_count", None)) or HOPPER


def configuration(target: Target) -> str:
    """``target_config`` of ``jax.experimental.topologies.get_topology_desc``, by which
    JAX compiles for a card that is not present."""
    major, minor = target.capability
    extension = "ACCELERATED_FEATURES" if target.bulk_copies else "NONE"
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {target.core_shared_bytes}
  threads_per_core_limit: {target.core_threads}
  core_count: {target.cores}
  fpus_per_core: {target.float_units}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {target.memory_bandwidth}
  l2_cache_size: {target.l2_bytes}
  clock_rate_ghz: {target.clock_ghz}
  device_memory_size: {target.memory_bytes}
  shared_memory_per_block_optin: {target.shared_bytes}
  cuda_compute_capability {{
    major: {major}
    minor: {minor}
    feature_extension: {extension}
  }}
  registers_per_core_limit: {target.core_registers}
  registers_per_block_limit: {target.core_registers}
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
device_description_str: "{target.name}"
"""


# ------------------------------------------------------------------------------
# Whether the kernels run here; imports as little of Pallas as possible.

# JAX of this version and newer has Mosaic GPU for GPUs before Hopper.
OLDER_GPUS_SINCE = (0, 11)


@cache
def supported(device: Any = None) -> tuple[bool, str]:
    """Whether kernels run on a device (default: JAX's first), and the reason."""
    device = device or jax.devices()[0]
    if device.platform not in ("gpu", "cuda"):
        return False, f"the device is a {device.platform}, not an NVIDIA GPU"
    capability = str(getattr(device, "compute_capability", "0"))
    target = target_of(capability)
    if target is None:
        least = "{}.{}".format(*TARGETS[0].capability)
        return False, f"compute capability {capability} is below {least}"
    if target.capability < HOPPER.capability and jax_version() < OLDER_GPUS_SINCE:
        needed = "{}.{}".format(*OLDER_GPUS_SINCE)
        why = f"JAX {jax.__version__} has kernels for compute capability 9.0 and newer"
        return False, f"{why}, {needed} has them for {capability}, too"
    try:
        import_module("jax.experimental.pallas.mosaic_gpu")
    except ImportError as error:
        return False, f"JAX {jax.__version__} has no Mosaic GPU here: {error}"
    return True, f"compute capability {capability}, {target.form}, {target.evidence}"


def jax_version() -> tuple[int, int]:
    """JAX's major and minor number."""
    major, minor, *_ = jax.__version__.split(".")
    return int(major), int(minor)
