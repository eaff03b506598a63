"""Which device JAX computes on."""

from jaxalign.errors import DeviceError


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
