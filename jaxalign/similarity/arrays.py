"""The arrays of one pair: similarity, gap costs, lengths and rules; and of a batch.

Tables stand by anti-diagonal: row d of a skewed one holds the cells j = d - i, so that
(R, C) becomes (R + C - 1, R). It is done by padding each row and reading the flat array
with rows one shorter, so that row i slips i places to the right; a gather or a scatter
would cost more than a recurrence.

A function of one pair is mapped over a batch wherever that lies. An array of a mesh
with explicit axes says in its type how it is divided, and inside ``shard_map`` a type
says over which axes a value varies. A loop wants the same type before and after each
step, so each device computes its share as if it were alone.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax.sharding import AxisType, PartitionSpec

from jaxalign.similarity.arguments import COSTLY, Factors, Gap, ModeRules


def multiplied(similarity: jax.Array | Factors):
    """The product of ``Factors``, in float32 from narrower ones; an array stays as it
    is.

    Products of 16-bit numbers are exact in float32, and a GPU multiplies them three
    times as fast as the same numbers in 32 bits.
    """
    if not isinstance(similarity, Factors):
        return similarity
    query, target = (x.astype(similarity.dtype) for x in similarity)
    wide = similarity.dtype if similarity.dtype.itemsize >= 4 else jnp.float32
    form = "...ik,...jk->...ij"
    return jnp.einsum(form, query, target, preferred_element_type=wide)


def payable(gap: Gap, rules: ModeRules) -> Gap:
    """Costs that are finite, and large beyond the lengths. Gaps beside an empty
    sequence have the costs of its first row or column, which is padding."""

    def side(cost: jax.Array, axis: int):
        inside = jnp.bool_(True)
        for place, length in enumerate((rules.m, rules.n)):
            if cost.ndim == 2 or (cost.ndim == 1 and place == axis):
                at = 0 if cost.ndim == 1 else place
                index = lax.broadcasted_iota(jnp.int32, cost.shape, at)
                inside &= index < (length if place == axis else jnp.maximum(length, 1))
        return jnp.where(inside, jnp.minimum(cost, COSTLY), COSTLY)

    return Gap(side(gap.e, 0), side(gap.f, 1))


def masked(factors: Factors, rules: ModeRules) -> Factors:
    """Factors with zero vectors beyond the lengths."""
    a, b = factors
    rows = jnp.arange(a.shape[0], dtype=jnp.int32)[:, None] < rules.m
    columns = jnp.arange(b.shape[0], dtype=jnp.int32)[:, None] < rules.n
    return Factors(jnp.where(rows, a, 0), jnp.where(columns, b, 0))


def looked_up(matrix: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """S[a[i], b[j]] (..., m, n) of codes (..., m) and (..., n); nan for a code beyond
    the matrix."""
    if a.ndim == b.ndim == 2 and divided(a, b):
        axes = {"matrix": None, "a": 0, "b": 0}
        arrays = {"matrix": matrix, "a": a, "b": b}
        return map_batch(lambda x: _entries(**x), arrays, axes)
    return _entries(matrix, a, b)


@jax.custom_jvp
def _entries(matrix: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """``matrix[a[i], b[j]]`` (..., m, n), nan for a code beyond it.

    A derivative is a product with one-hot codes: the transpose of a gather adds to few
    numbers from many places, which takes a GPU hundreds of times as long.
    """
    at = matrix.at[a[..., :, None], b[..., None, :]]
    return at.get(mode="fill", fill_value=jnp.nan)


@_entries.defjvp
def _entries_jvp(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]):
    matrix, a, b = primals
    change, precision = tangents[0], jax.lax.Precision.HIGHEST
    first, second = (
        jax.nn.one_hot(codes, size, dtype=change.dtype)
        for codes, size in zip((a, b), matrix.shape, strict=True)
    )
    change = jnp.einsum("...ia,ab->...ib", first, change, precision=precision)
    change = jnp.einsum("...ib,...jb->...ij", change, second, precision=precision)
    return _entries(matrix, a, b), change


def skew(table: jax.Array, fill: float):
    """(R, C) -> (R + C - 1, R), ``out[d, i] = table[i, d - i]``, else ``fill``."""
    rows, columns = table.shape
    diagonals = rows + columns - 1
    wide = jnp.pad(
        table, ((0, 0), (0, diagonals + 1 - columns)), constant_values=fill
    ).reshape(-1)
    return wide[: rows * diagonals].reshape(rows, diagonals).T


def unskew(diagonals: jax.Array, columns: int):
    """(R + C - 1, R) -> (R, C): the inverse of ``skew``."""
    count, rows = diagonals.shape
    flat = jnp.pad(diagonals.T.reshape(-1), (0, rows))
    return flat.reshape(rows, count + 1)[:, :columns]


def down(x: jax.Array, fill: float):
    """x[i - 1] at lane i: what the row above holds."""
    return jnp.concatenate([jnp.full(1, fill, x.dtype), x[:-1]])


def up(x: jax.Array):
    """x[i + 1] at lane i, 0 in the last lane."""
    return jnp.concatenate([x[1:], jnp.zeros(1, x.dtype)])


def columns_at(prepared: jax.Array, rows: int, d: jax.Array):
    """x[d - i] at lane i, 0 outside; ``prepared`` is x (C,) backwards, with ``rows``
    zeros behind it and two more before it."""
    start = prepared.shape[0] - 1 - rows - d
    return lax.dynamic_slice(prepared, (start,), (rows,))


def is_valid(pair: Any, product: jax.Array | None = None) -> jax.Array:
    """Whether nothing within the lengths of one pair is nan, infinite where only minus
    infinity has a meaning, or beyond the arrays; a bool scalar. The results of other
    inputs are nan.

    A similarity may be -inf (forbidden), a gap cost +inf; entries of embeddings are
    finite. With ``product``, the scores of the pair, which the caller checks, only
    whether embeddings are finite is read off its borders, since a vector that is not
    makes all of its row or column so.
    """
    rules, s = pair.rules, pair.similarity
    rows, columns = s.shape
    row = jnp.arange(rows, dtype=jnp.int32) < rules.m
    column = jnp.arange(columns, dtype=jnp.int32) < rules.n
    cells = row[:, None] & column[None, :]
    valid = (rules.m >= 0) & (rules.m <= rows) & (rules.n >= 0) & (rules.n <= columns)
    if product is not None and isinstance(s, Factors):
        borders = (product[:, 0], row, column), (product[0], column, row)
        wrong = [~jnp.isfinite(x) & along & across[0] for x, along, across in borders]
    elif isinstance(s, Factors):
        vectors = zip(s, (row, column), strict=True)
        wrong = [~jnp.isfinite(x) & inside[:, None] for x, inside in vectors]
    elif product is not None or jnp.issubdtype(s.dtype, jnp.integer):
        wrong = []
    else:
        wrong = [(jnp.isnan(s) | jnp.isposinf(s)) & cells]
    for gap in (pair.gap_open, pair.gap_extend):
        for cost, inside in zip(gap, (row, column), strict=True):
            inside = (jnp.any(inside), inside, cells)[cost.ndim]
            wrong.append((jnp.isnan(cost) | jnp.isneginf(cost)) & inside)
    for entries in wrong:
        valid &= ~jnp.any(entries)
    return valid


def map_pairs(function: Any, arrays: Any, axes: Any, batch: tuple[int, ...]) -> Any:
    """Apply ``function`` to every pair of a batch of this shape.

    The batch is flattened in ``arrays``; without batch axes they are one pair.
    """
    if not batch:
        return function(alike(arrays))
    values = map_batch(function, arrays, axes)
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), values)


def map_batch(function: Any, arrays: Any, axes: Any) -> Any:
    """Apply ``vmap`` of ``function`` over axis 0 of ``arrays``.

    ``axes`` are 0, or None for arrays that the whole batch shares. No device needs the
    arrays of another one.
    """
    arrays = alike(arrays)
    mapped = jax.vmap(function, (axes,))
    leaves, tree = jax.tree.flatten(arrays)
    every, flat = (
        jax.tree.leaves(x, is_leaf=lambda y: y is None) for x in (arrays, axes)
    )
    pairs = [(x, axis) for x, axis in zip(every, flat, strict=True) if x is not None]
    shards = [shard for x, axis in pairs if axis == 0 and (shard := _explicit(x))]
    if not shards:
        return mapped(arrays)
    mesh, names = shards[0]
    specs = [PartitionSpec() if k is None else PartitionSpec(names) for _, k in pairs]
    leaves = [
        jax.sharding.reshard(x, jax.sharding.NamedSharding(mesh, spec))
        for x, spec in zip(leaves, specs, strict=True)
    ]
    run = jax.shard_map(
        lambda *leaves: mapped(alike(jax.tree.unflatten(tree, leaves))),
        mesh=mesh,
        in_specs=tuple(specs),
        out_specs=PartitionSpec(names),
    )
    return run(*leaves)


def alike(arrays: Any) -> Any:
    """Arrays that vary over the same manual axes, those of any."""
    arrays = jax.tree.map(jnp.asarray, arrays)
    every = [_varies(x) for x in jax.tree.leaves(arrays)]
    union = reduce(frozenset.union, every, frozenset())
    if not union:
        return arrays
    return jax.tree.map(lambda x: _vary(x, union - _varies(x)), arrays)


def loop_state(state: Any, like: jax.Array):
    """``state``, of a loop before its first step, with the type that a step gives it:
    it varies over the axes over which the array ``like`` does."""
    axes = _varies(like)
    return jax.tree.map(lambda x: _vary(x, axes - _varies(x)), state) if axes else state


def _vary(x: Any, names: frozenset[str]) -> Any:
    return jax.lax.pcast(x, tuple(names), to="varying") if names else x


def _varies(x: Any) -> frozenset[str]:
    return frozenset(jax.typeof(x).manual_axis_type.varying)


def divided(*arrays: Any) -> bool:
    """Whether axis 0 of some array is divided by an explicit mesh."""
    return any(x.ndim and _explicit(x) for x in arrays)


def _explicit(x: Any) -> tuple[Any, Any] | None:
    """(mesh, names of the axes that divide axis 0) of an explicit mesh."""
    sharding = jax.typeof(x).sharding
    spec = sharding.spec
    if not len(spec) or spec[0] is None:
        return None
    names = spec[0] if isinstance(spec[0], tuple) else (spec[0],)
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    if any(types[name] != AxisType.Explicit for name in names):
        return None
    return sharding.mesh, spec[0]


def fold_into_batch(
    primitive: Primitive,
    arrays: Any,
    axes: Any,
    shared: Collection[int] = (),
    **form: Any,
):
    """The batching rule of a primitive whose arrays have axis 0 for the batch: the new
    axis becomes a part of it. ``form`` are the parameters of the primitive. Arrays of
    the numbers ``shared``, not the first, may stand once for the batch, and do so while
    no axis is theirs."""
    count = next(
        x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None
    )
    size = arrays[0].shape[1 if axes[0] == 0 else 0]

    def fold(k: int, x: jax.Array, axis: int | None):
        once = k in shared
        if axis is None:
            if once and len(x) == 1:
                return x
            x = jnp.broadcast_to(x, (count, *x.shape))
        else:
            x = jnp.moveaxis(x, axis, 0)
        if once:
            x = jnp.broadcast_to(x, (count, size, *x.shape[2:]))
        return x.reshape(-1, *x.shape[2:])

    folded = map(fold, range(len(arrays)), arrays, axes)
    values = primitive.bind(*folded, **form)
    split = [x.reshape(count, -1, *x.shape[1:]) for x in values]
    return split, [0] * len(split)


def batch_primitive(
    name: str, shapes: Callable, plainly: Callable, by_kernel: Callable, fold: Callable
) -> Primitive:
    """A JAX primitive that runs ``by_kernel`` on CUDA and ``plainly`` elsewhere, which
    return lists; ``shapes`` are those of their results, ``fold`` is its batching rule.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True

    def compiled(*arrays: Any, **form: Any) -> Any:
        with jax.disable_jit(False):  # else it would call itself
            return jax.jit(partial(primitive.bind, **form))(*arrays)

    primitive.def_impl(compiled)
    primitive.def_abstract_eval(
        lambda *arrays, **form: [
            x.update(weak_type=False) for x in shapes(*arrays, **form)
        ]
    )
    batching.primitive_batchers[primitive] = partial(fold, primitive)
    for function, platform in ((plainly, None), (by_kernel, "cuda")):
        lowering = mlir.lower_fun(function, multiple_results=True)
        mlir.register_lowering(primitive, lowering, platform=platform)
    return primitive


def numbers_of(rules: ModeRules, names: Sequence[str]) -> jax.Array:
    """Lengths and flags of a pair, int32 (3,), as kernels take them."""
    flags = sum(
        jnp.where(getattr(rules, name), 1 << k, 0) for k, name in enumerate(names)
    )
    return jnp.stack([jnp.asarray(x, jnp.int32) for x in (rules.m, rules.n, flags)])


def rules_of(
    numbers: jax.Array, names: Sequence[str], **constants: jax.Array
) -> ModeRules:
    """The inverse of ``numbers_of``; ``constants`` are the rules that are no flags."""
    m, n, flags = numbers
    free = {name: (flags & (1 << k)) != 0 for k, name in enumerate(names)}
    return ModeRules(m, n, **free, **constants, adjacent=jnp.bool_(True))
