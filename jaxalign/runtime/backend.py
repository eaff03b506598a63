# pyright: strict
"""The GPU kernels, where they run; the only importer of ``kernels_pallas``."""

from typing import Any

import kernels_pallas
from jaxalign.runtime.devices import first_device


def kernels() -> tuple[Any, str]:
    """Return (the package of kernels, or None if it does not run; the reason)."""
    package: Any = kernels_pallas  # it loads its names when they are used
    works, why = package.supported(first_device())
    return package if works else None, why
