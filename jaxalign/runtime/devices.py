"""Which device JAX computes on, in which precision, and the mesh of the caller."""

from collections.abc import Iterable
from contextlib import nullcontext
from operator import index

from jaxalign.errors import DeviceError, UsageError
from jaxalign.runtime.fork import refuse_without_threads


def select_device(asked: str) -> list:
    """Make JAX use the device asked for; returns its devices.

    Raises
    ------
    DeviceError
        There is no such device, or its plugin does not start.
    """
    import jax

    if asked == "cpu":
        jax.config.update("jax_platforms", "cpu")
    try:
        return jax.devices(None if asked == "auto" else asked)
    except RuntimeError as error:
        hint = "\nhint: install jaxalign[cuda12] or [cuda13]" if asked == "gpu" else ""
        raise DeviceError(f"--device {asked}: {error}{hint}") from error


def describe_device(devices: list) -> dict:
    """Platform, kind and number of devices."""
    first = devices[0]
    return {
        "platform": first.platform,
        "kind": first.device_kind,
        "count": len(devices),
    }


def resolve_devices(asked=None) -> tuple:
    """The devices of a run.

    Parameters
    ----------
    asked : "all", int or str of ints ("0,1"), sequence of ints or of jax devices
        Numbers count this process's devices of JAX's platform. None: the one of
        ``jax.default_device``, which threads do not inherit, or none in particular.

    Raises
    ------
    DeviceError
        There is no device of that number.
    UsageError
        No number, or one twice.
    """
    import jax

    if asked is None:
        return () if default_device() is None else (first_device(),)
    local = jax.local_devices()
    if asked == "all":
        return tuple(local)
    asked = asked.split(",") if isinstance(asked, str) else asked
    asked = list(asked) if isinstance(asked, Iterable) else [asked]
    chosen = tuple(_device(one, local) for one in asked)
    if not chosen or len(set(chosen)) < len(chosen):
        raise UsageError(f"devices = {asked}: one or more, each once")
    return chosen


def first_device(devices=()):
    """The first of some devices or names of platforms, or JAX's default device.

    Raises
    ------
    DeviceError
        JAX cannot compute in this process (``fork``). All that compute pass here.
    """
    import jax

    refuse_without_threads()
    first = next(iter(devices), default_device())
    return first if hasattr(first, "platform") else jax.devices(first)[0]


def default_device():
    """This thread's default device or the name of its platform; None if none is set."""
    import jax

    # The types of JAX 0.10 do not name it.
    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]


def _device(one, local):
    if hasattr(one, "platform"):
        return one
    try:
        number = int(one) if isinstance(one, str) else index(one)
    except (TypeError, ValueError):
        raise UsageError(f"device {one!r}: a number or 'all' is needed") from None
    if not 0 <= number < len(local):
        kinds = f"{len(local)} of {local[0].platform}"
        raise DeviceError(f"device {number}: there are {kinds}, counted from 0")
    return local[number]


def precision(dtype: str):
    """The 64-bit mode of JAX, which int64 needs, for some computations only."""
    import jax

    return jax.enable_x64(True) if dtype == "int64" else nullcontext()


def ambient_mesh():
    """The mesh of ``with jax.set_mesh(mesh):``, None outside of one."""
    import jax

    mesh = jax.sharding.get_mesh()
    return None if mesh.empty else mesh
