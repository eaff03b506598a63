# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The programs that a piece of code would call, listed without running any.

While an outline is drawn in a thread, a ``Program`` notes its call and returns shapes
in place of arrays. So the functions that call programs are those that list them.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax

# Its ``calls`` are those of the outline that is drawn in a thread.
THREAD = threading.local()


@dataclass(frozen=True, eq=False)
class ProgramCall:
    """A call of a program: its arrays, or their shapes, and static arguments."""

    program: Any  # ``programs.Program``
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.program.__name__.strip("_")


def shapes_of(tree: Any) -> Any:
    """Shapes and dtypes of the arrays of a tree; all else as it is."""

    def shape_of(leaf: Any) -> Any:
        if not hasattr(leaf, "shape"):
            return leaf
        weak = getattr(leaf, "weak_type", False)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)

    return jax.tree.map(shape_of, tree)


@contextmanager
def outline() -> Generator[list[ProgramCall]]:
    """Note the calls of programs in this thread, each of them in the list it gives."""
    calls: list[ProgramCall] = []
    before, THREAD.calls = getattr(THREAD, "calls", None), calls
    try:
        yield calls
    finally:
        THREAD.calls = before


def note(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The shapes of the result of a call, which is noted in the thread's outline."""
    call = ProgramCall(program, shapes_of(args), shapes_of(kwargs))
    THREAD.calls.append(call)
    return program.jitted.eval_shape(*call.args, **call.kwargs)
