"""PyTorch's tensors as JAX's arrays, and back, without a copy.

On a CPU a tensor is read through NumPy, which is several times as fast as DLPack, and
shares memory too; on a GPU through DLPack, which has the two streams wait for each
other. A result has been computed, or its stream waits for it, before the tensor exists,
so inputs may be changed in place afterwards.
"""

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from jaxalign.errors import DeviceError, UsageError

# XLA reads memory that begins at a multiple of this; what does not is copied.
ALIGNMENT_BYTES = {"cpu": 64, "cuda": 256}


def device_of(tensors: list[torch.Tensor]) -> torch.device:
    """The device that computes: that of the tensors, of which some may be on the CPU.

    Raises
    ------
    UsageError
        Tensors of several other devices.
    DeviceError
        A kind of device that JAX does not share memory with.
    """
    devices = {x.device for x in tensors}
    others = [x for x in devices if x.type != "cpu"]
    if len(others) > 1:
        names = " and ".join(sorted(map(str, others)))
        raise UsageError(f"tensors lie on {names}: one device is needed")
    if not others:
        return torch.device("cpu")
    if others[0].type != "cuda":
        raise DeviceError(f"tensors lie on {others[0]}: a CPU or CUDA is needed")
    return others[0]


def as_array(x: Any) -> Any:
    """A tensor in a form that ``jax.jit`` takes; a number as it is.

    Raises
    ------
    DeviceError
        A CUDA tensor where JAX has no CUDA.
    """
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().contiguous()
    if x.data_ptr() % ALIGNMENT_BYTES[x.device.type] and x.is_cuda:
        x = x.clone()  # on a CPU XLA copies it itself
    if x.is_cuda:
        return _shared(x)
    if x.dtype == torch.bfloat16:  # which NumPy does not know
        return x.view(torch.int16).numpy().view(np.dtype(jnp.bfloat16))
    return x.numpy()


def _shared(x: torch.Tensor) -> jax.Array:
    if x.dtype == torch.int64:
        x = x.to(torch.int32)
    try:
        return jax.dlpack.from_dlpack(x)
    except RuntimeError as error:
        if "cuda" in {device.platform for device in jax.devices()}:
            raise
        raise DeviceError(
            f"a tensor lies on {x.device}, and JAX sees no CUDA device: "
            "pip install 'jaxalign[cuda12]'"
        ) from error


def as_tensor(x: jax.Array) -> torch.Tensor:
    """The same memory."""
    return torch.from_dlpack(x)


def share_gpu_memory() -> None:
    """Have JAX take GPU memory as it needs it, beside PyTorch's, where the user has not
    said otherwise: by default it takes three quarters of all when it starts. Of no
    effect once it has started."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
