"""Arguments of the soft functions -> arrays of one pair, batch axes and settings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Required, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.errors import DeviceError, UsageError
from jaxalign.model.choices import EndKeywords, FreeEnd, Mode
from jaxalign.model.scoring import FREE_ENDS, resolve_ends
from jaxalign.runtime import backend
from jaxalign.runtime.devices import refuse_without_threads
from jaxalign.soft import primitives
from jaxalign.soft.dp.blocks import BLOCK_DIAGONALS, Factors
from jaxalign.soft.dp.ends import Gap, ModeRules
from jaxalign.soft.dp.kernels import Block

MAX_KEPT_BYTES = 128 << 20  # of all diagonals; beyond, ``blocked``
SoftImplementation = Literal["log", "blocked", "scaled", "pallas"]
IMPLEMENTATIONS: tuple[str, ...] = get_args(SoftImplementation)
MAX_KERNEL_ROWS, MAX_KERNEL_COLUMNS = 4096, 2**18  # of the similarity

# A gap cost: one, or a pair (of the query's residues, of the target's).
GapCost = jax.typing.ArrayLike | Sequence[Any]
Lengths = jax.typing.ArrayLike | Sequence[Any] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SoftOptions:
    """Every option of a soft function, with its default; gap costs have none."""

    gap_open: GapCost
    gap_extend: GapCost
    temperature: jax.typing.ArrayLike = 1.0
    mode: Mode = "global"
    free_ends: Iterable[FreeEnd] | None = None
    adjacent_gaps: bool = True
    implementation: SoftImplementation | None = None


class SharedKeywords(EndKeywords, total=False):
    """Options that are no numbers, so that models to be compared share them."""

    adjacent_gaps: bool
    implementation: SoftImplementation | None


class SoftKeywords(SharedKeywords, total=False):
    """Options of the soft functions."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    temperature: jax.typing.ArrayLike


class SoftPair(NamedTuple):
    """The arrays of one pair, or of a batch of them."""

    similarity: jax.Array | Factors
    gap_open: Gap
    gap_extend: Gap
    temperature: jax.Array
    rules: ModeRules


class Settings(NamedTuple):
    """Static while tracing, hashable: the mode and the engine."""

    local: bool
    block: Block


def prepare(similarity: Any, lengths: Any, options: SoftOptions) -> tuple[Any, ...]:
    """Arguments -> (SoftPair, axes of its leaves for vmap, batch shape, Settings)."""
    refuse_without_threads()
    mode, adjacent_gaps = options.mode, options.adjacent_gaps
    free = resolve_ends(mode, options.free_ends)
    s = _similarity(similarity)
    *batch, m, n = s.shape
    batch = tuple(batch)
    fit = partial(_fitted, batch=batch, dtype=s.dtype)
    costs = [
        _gap(cost, fit, batch, m, n) for cost in (options.gap_open, options.gap_extend)
    ]
    _check_temperature(options.temperature)
    block = _block(options.implementation, s, costs, adjacent_gaps)
    settings = Settings(mode == "local", block)
    arrays = (
        Factors(*(fit(x, rank=2) for x in s))
        if isinstance(s, Factors)
        else fit(s, rank=2),
        *costs,
        fit(options.temperature, rank=0),
        ModeRules(*_lengths(lengths, batch, m, n), *_flags(free, mode, adjacent_gaps)),
    )
    pair, axes = (SoftPair(*(_pick(x, k) for x in arrays)) for k in (0, 1))
    return pair, axes, batch, settings


def _pick(x, k):
    """The arrays (k = 0) or the axes (k = 1) of the pairs that ``_fitted`` gives."""
    return (
        type(x)(*(y[k] for y in x))
        if isinstance(x, (Factors, Gap, ModeRules))
        else x[k]
    )


def _flags(free, mode, adjacent):
    """Run-time values, so that one compiled program serves every set of free ends."""
    flags = *(end in free for end in FREE_ENDS), mode == "local", bool(adjacent)
    return [(np.bool_(flag), None) for flag in flags]


def _similarity(similarity):
    if isinstance(similarity, (tuple, list)) and len(similarity) == 3:
        a, b, matrix = map(jnp.asarray, similarity)
        matrix = _floating(matrix)
        return matrix.at[a[..., :, None], b[..., None, :]].get(
            mode="fill", fill_value=0
        )
    if isinstance(similarity, (tuple, list)) and len(similarity) == 2:
        a, b = (_floating(jnp.asarray(x)) for x in similarity)
        return Factors(a, b)
    s = _floating(jnp.asarray(similarity))
    if s.ndim < 2:
        raise UsageError(f"similarity of shape {s.shape}: (..., m, n) is needed")
    return s


def _floating(x):
    """float32 and float64 as they are, everything else as the default float."""
    if x.dtype in (jnp.float32, jnp.float64):
        return x
    return x.astype(jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else float)


def _fitted(x, *, batch, dtype, rank):
    """(array with all batch axes flattened, 0), or (the same for all pairs, None)."""
    x = jnp.asarray(x).astype(dtype)
    if x.ndim == rank:
        return x, None
    x = jnp.broadcast_to(x, batch + x.shape[x.ndim - rank :])
    return x.reshape(-1, *x.shape[len(batch) :]), 0


def _gap(cost, fit, batch, m, n) -> Gap:
    if isinstance(cost, (tuple, list)):
        if len(cost) != 2:
            raise UsageError("gap costs: one, or a pair (query's, target's)")
        return Gap(*(_one_gap(x, fit, (m, n), axis) for axis, x in enumerate(cost)))
    shape = jnp.shape(cost)
    full = len(shape) >= 2 and shape[-2:] == (m, n)
    if shape and not full and shape != batch:
        raise UsageError(
            f"a gap cost of shape {shape}: a number, {batch}, (..., {m}, {n}), or a "
            "pair (query's, target's)"
        )
    fitted = fit(cost, rank=2 if full else 0)
    return Gap(fitted, fitted)


def _one_gap(cost, fit, size, axis):
    if jnp.ndim(cost) == 0:
        return fit(cost, rank=0)
    shape = jnp.shape(cost)
    if len(shape) >= 2 and shape[-2:] == size:
        return fit(cost, rank=2)
    if shape[-1:] != (size[axis],):
        raise UsageError(f"a gap cost of shape {shape}: (..., {size[axis]}) is needed")
    return fit(cost, rank=1)


def _lengths(lengths, batch, m, n):
    if lengths is None:
        return [(jnp.int32(m), None), (jnp.int32(n), None)]
    if not isinstance(lengths, (tuple, list)):
        lengths = jnp.asarray(lengths)
        lengths = lengths[..., 0], lengths[..., 1]
    for length, size in zip(lengths, (m, n), strict=True):
        if isinstance(length, Tracer):
            continue
        length = np.asarray(length)
        if length.size and (length.max() > size or length.min() < 0):
            raise UsageError(f"lengths {length.min()} to {length.max()}: 0 to {size}")
    return [_fitted(x, batch=batch, dtype=jnp.int32, rank=0) for x in lengths]


def _check_temperature(temperature):
    if isinstance(temperature, Tracer):
        return
    if not np.all(np.asarray(temperature) > 0):
        raise UsageError("the temperature must be above 0; `align` is the limit at 0")


def _block(implementation, similarity, costs, adjacent) -> Block:
    """The engine.

    Raises
    ------
    UsageError
        Unknown, or ``pallas`` for what its kernels do not take.
    DeviceError
        ``pallas`` where they do not run.
    """
    if implementation not in (None, *IMPLEMENTATIONS):
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    if implementation == "scaled":
        return implementation
    *batch, m, n = similarity.shape
    size = 5 * int(np.prod(batch)) * (m + n + 1) * (m + 1) * similarity.dtype.itemsize
    large = implementation != "log" and size > MAX_KEPT_BYTES
    block = BLOCK_DIAGONALS if large or implementation == "blocked" else None
    if implementation in ("log", "blocked"):
        return block
    refused = _beyond_kernels(similarity, costs, adjacent)
    if implementation == "pallas" and refused:
        raise UsageError(f"implementation 'pallas' does not take {refused}")
    package, why = (None, "") if refused else backend.kernels()
    if implementation == "pallas" and package is None:
        raise DeviceError(f"pallas: {why}")
    return block if package is None else primitives.kernels(package, block)


def _beyond_kernels(similarity, costs, adjacent) -> str:
    """The part of this problem that the GPU kernels do not take; empty for none."""
    m, n = similarity.shape[-2:]
    ranks = [len(shape) for shape in _cost_shapes(costs)]
    reasons = {
        f"a similarity of {similarity.dtype}": similarity.dtype != jnp.float32,
        "an empty similarity": 0 in similarity.shape,
        f"a similarity of more than {MAX_KERNEL_ROWS} rows": m > MAX_KERNEL_ROWS,
        f"a similarity of more than {MAX_KERNEL_COLUMNS} columns": n
        > MAX_KERNEL_COLUMNS,
        "gap costs by position": any(ranks),
        "adjacent_gaps=False": not adjacent,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _cost_shapes(costs):
    """Shapes of gap costs, without batch axes."""
    for gap in costs:
        for x, axis in gap:
            yield x.shape if axis is None else x.shape[1:]
