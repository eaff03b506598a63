"""The GPU kernels, where they run; the only importer of ``kernels_pallas``."""

import kernels_pallas
from jaxalign.runtime.devices import first_device


def kernels():
    """The package of kernels where it runs, else None; and why (not)."""
    works, why = kernels_pallas.supported(first_device())
    return kernels_pallas if works else None, why
