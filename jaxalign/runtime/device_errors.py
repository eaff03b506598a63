"""Errors of a device as a user should read them: one line, and what to try."""

from contextlib import contextmanager

import jax

from jaxalign.errors import DeviceFailure, JaxalignError, MemoryPlanError

RuntimeFailure = jax.errors.JaxRuntimeError
MEMORY_SIGNS = "RESOURCE_EXHAUSTED", "OUT_OF_MEMORY"  # of XLA, of CUDA
MESSAGE_LETTERS = 200  # letters of JAX's message
REMEDY = (
    "`--device cpu` (in Python jax.default_device) does without the GPU; with "
    "XLA_PYTHON_CLIENT_ALLOCATOR=platform the launch at fault is named; please report "
    "it"
)


def out_of_memory(error: BaseException) -> bool:
    """Whether memory was missing, which smaller launches may need less of."""
    return any(sign in str(error) for sign in MEMORY_SIGNS)


@contextmanager
def explained(what: str, device=None):
    """Errors of a device as those of the project, where no launch is to blame.

    what : it failed, or found no memory
    """
    try:
        yield
    except RuntimeFailure as error:
        raise _plain(what, device or "the device", error) from error


def first_line(error) -> str:
    """The first line of a message of JAX, not all of it."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return line if len(line) <= MESSAGE_LETTERS else f"{line[:MESSAGE_LETTERS]} …"


def _plain(what, device, error) -> JaxalignError:
    if out_of_memory(error):
        rest = "free memory of the GPU, compute less at a time, or use `--device cpu`"
        return MemoryPlanError(
            f"{device}: no memory for {what}: {first_line(error)}; {rest}"
        )
    return DeviceFailure(f"{device} failed at {what}: {first_line(error)}; {REMEDY}")
