# pyright: strict
"""Errors of a device as a user should read them: one line, and what to try."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import jax

from jaxalign.errors import DeviceFailure, JaxalignError, MemoryPlanError

_errors: Any = jax.errors
RuntimeFailure = _errors.JaxRuntimeError
OUT_OF_MEMORY_WORDS = "RESOURCE_EXHAUSTED", "OUT_OF_MEMORY"  # of XLA, of CUDA
MAX_LETTERS = 200  # of JAX's message
REMEDY = (
    "`--device cpu` (in Python jax.default_device) does without the GPU; with "
    "XLA_PYTHON_CLIENT_ALLOCATOR=platform the launch at fault is named; please report "
    "it"
)


def out_of_memory(error: BaseException) -> bool:
    """Whether memory was missing, which smaller launches may need less of."""
    return any(word in str(error) for word in OUT_OF_MEMORY_WORDS)


@contextmanager
def explained(subject: str, device: object = None) -> Generator[None]:
    """Errors of a device as those of the project, where no launch is to blame.

    ``subject`` is the work that failed, or that found no memory.
    """
    try:
        yield
    except RuntimeFailure as error:
        raise _plain(subject, device or "the device", error) from error


def first_line(error: BaseException) -> str:
    """The first line of a message of JAX, not all of it."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return line if len(line) <= MAX_LETTERS else f"{line[:MAX_LETTERS]} …"


def _plain(subject: str, device: object, error: BaseException) -> JaxalignError:
    if out_of_memory(error):
        advice = "free memory of the GPU, compute less at a time, or use `--device cpu`"
        return MemoryPlanError(
            f"{device}: no memory for {subject}: {first_line(error)}; {advice}"
        )
    return DeviceFailure(f"{device} failed at {subject}: {first_line(error)}; {REMEDY}")
