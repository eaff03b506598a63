"""Arguments of the soft functions -> arrays of one pair, batch axes and settings."""

from math import prod
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp

from jaxalign.errors import DeviceError, UsageError
from jaxalign.runtime import backend
from jaxalign.runtime.devices import first_device, refuse_without_threads
from jaxalign.similarity import arguments
from jaxalign.similarity.arguments import (
    Factors,
    Gap,
    ModeRules,
    check_temperature,
    checked_band,
)
from jaxalign.similarity.arrays import looked_up
from jaxalign.similarity.options import SimilarityOptions, SoftImplementation
from jaxalign.similarity.soft import primitives
from jaxalign.similarity.soft.dp.scan import BLOCK_DIAGONALS, Banded, Block

# Rows are compiled longer, which a few calls make up for then. With fewer cells those
# programs go by rows that are compiled in about the time of logarithms: gradients of
# local alignments by the similarity alone.
MIN_ROW_CELLS, MIN_PAIRS_ONLY_CELLS = 1 << 22, 1 << 19
MAX_KEPT_BYTES = 128 << 20  # of all diagonals; beyond, ``blocked``
IMPLEMENTATIONS: tuple[str, ...] = get_args(SoftImplementation)
MAX_KERNEL_ROWS, MAX_KERNEL_COLUMNS = 4096, 2**18  # of the similarity


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


def prepare(
    similarity: Any, lengths: Any, options: SimilarityOptions
) -> tuple[Any, ...]:
    """Arguments -> (SoftPair, axes of its leaves for vmap, batch shape, Settings)."""
    refuse_without_threads()
    costs = options.gap_open, options.gap_extend
    ends = options.mode, options.free_ends, options.adjacent_gaps
    pair, axes, batch, fit = arguments.read(
        similarity, lengths, *costs, *ends, band=options.band, xp=jnp, look_up=looked_up
    )
    check_temperature(options.temperature, jnp)
    ranks = [len(shape) for shape in arguments.cost_shapes(pair, axes)]
    shape, dtype = (*batch, *pair.similarity.shape[-2:]), pair.similarity.dtype
    band, implementation = None, options.implementation
    if options.band is not None:
        band = checked_band(options.band, shape, ranks)
    if band is None:
        stored = not isinstance(pair.similarity, Factors)
        block = _block(options, shape, dtype, any(ranks), stored)
    elif implementation in (None, "log", "blocked"):
        large = implementation is None and _is_large(shape, band + 1, dtype)
        in_blocks = large or implementation == "blocked"
        block = Banded(band, BLOCK_DIAGONALS if in_blocks else None)
    else:
        raise UsageError(f"{implementation} takes no band: use log or blocked")
    temperature = fit(options.temperature, rank=0)
    pair, axes = (
        SoftPair(x.similarity, x.gap_open, x.gap_extend, t, x.rules)
        for x, t in zip((pair, axes), temperature, strict=True)
    )
    return pair, axes, batch, Settings(options.mode == "local", block)


def _is_large(shape: tuple[int, ...], lanes: int, dtype: Any) -> bool:
    """Whether all diagonals of a batch take much memory. Symbolic sizes (of
    ``jax.export``) count as one, those of a table as small."""
    *batch, m, n = shape
    if not (isinstance(m, int) and isinstance(n, int)):
        return False
    count = prod(size for size in batch if isinstance(size, int))
    return 5 * count * (m + n + 1) * lanes * dtype.itemsize > MAX_KEPT_BYTES


def _block(
    options: SimilarityOptions,
    shape: tuple[int, ...],
    dtype: Any,
    by_position: bool,
    stored: bool,
) -> Block:
    """Choose the engine; ``stored`` says that the similarity is an array anyway, which
    rows need."""
    implementation = options.implementation
    if implementation not in (None, *IMPLEMENTATIONS):
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    large = implementation != "log" and _is_large(shape, shape[-2] + 1, dtype)
    block = BLOCK_DIAGONALS if large or implementation == "blocked" else None
    if implementation in ("log", "blocked"):
        return block
    # The part of this problem that neither kernels nor rows take; empty for none.
    m, n = shape[-2:]
    fixed = all(isinstance(size, int) for size in shape)
    reasons = (
        {}
        if not fixed
        else {
            f"a similarity of {dtype}": dtype != jnp.float32,
            "an empty similarity": 0 in shape,
            f"a similarity of more than {MAX_KERNEL_ROWS} rows": m > MAX_KERNEL_ROWS,
            f"a similarity of more than {MAX_KERNEL_COLUMNS} columns": n
            > MAX_KERNEL_COLUMNS,
            "gap costs by position": by_position,
            "adjacent_gaps=False": not options.adjacent_gaps,
        }
    )
    refused = next((reason for reason, holds in reasons.items() if holds), "")
    refused = refused if fixed else "symbolic sizes"
    if implementation == "scaled":  # an older name of rows, which took all of this
        if refused:
            return None
        implementation = "rows"
    if implementation in ("pallas", "rows") and refused:
        raise UsageError(f"implementation {implementation!r} does not take {refused}")
    if implementation == "numpy":
        raise UsageError("implementation 'numpy' takes only NumPy arrays")
    local = options.mode == "local"
    if implementation == "rows":
        return primitives.rows(local, block, pairs_only=False)
    package, why = (None, "") if refused else backend.kernels()
    if implementation == "pallas" and package is None:
        raise DeviceError(f"pallas: {why}")
    if package is not None:
        return primitives.kernels(package, block)
    cells = 0 if refused or not stored else prod(shape)
    fewest = MIN_PAIRS_ONLY_CELLS if local else MIN_ROW_CELLS
    if cells < fewest or first_device().platform != "cpu":
        return block
    return primitives.rows(local, block, pairs_only=cells < MIN_ROW_CELLS)
