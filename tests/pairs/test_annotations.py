"""Shapes and dtypes of the functions of ``dp``, as jaxtyping annotations.

They say in types what the docstrings say in words. An example is made from the types of
the arguments; jax traces the function with it, and its result has to fit its own.
"""

from functools import partial

import jax
import jax.numpy as jnp
import jaxtyping
import pytest
from beartype import beartype
from jaxtyping import Bool, Int8, Int16, Int32, UInt8, UInt32

from jaxalign.affine import Gaps
from jaxalign.database.dp import best_hits
from jaxalign.model.scoring import FREE_ENDS
from jaxalign.pairs.dp import directions, matrix_rows, walk, wavefront
from jaxalign.pairs.dp.sweep import lane_fill

# No two alike: letters (and the pad letter), query, target, block, lanes, targets of a
# block, steps; rows of nibbles, words and bytes.
SIZES = dict(A=4, K=5, M=24, N=11, L=32, B=7, P=10, T=9, R=16, W=2, H=6, V=12)


def of(kind, shape):
    return kind[jax.Array, shape]


INT, FLAG, LANES = of(Int32, ""), of(Bool, ""), of(Int32, "B")
FREE = dict.fromkeys(FREE_ENDS, FLAG)
WALKED = walk.PathCounts(*[LANES] * 8, of(UInt8, "T B"))
BYTES = of(UInt8, "M//2*L*B")


def claims(Score):
    """name -> function, types of its arguments, type of its result; a dimension has
    one size in all of them. ``Score`` is the dtype of the scores."""
    score, lane, matrix = of(Score, ""), of(Score, "B"), of(Score, "A A")
    row, column, cells = (of(Score, x) for x in ("N+1", "M+1", "M+1 N+1"))
    gaps, top, words = Gaps(score, score), wavefront.Top(row, row), of(UInt32, "M//8 N")
    pair = of(Int32, "M"), of(Int32, "N"), INT, INT
    end = walk.EndCell(lane, LANES, LANES)
    best = best_hits.BestHits(of(Score, "H W"), of(Int32, "H W"))
    tile, targets, tie = of(Int32, "L//16 B"), of(Int32, "P"), of(Score, "L//16 B")
    block = of(UInt8, "L B"), tile, tile, of(Bool, "L//16 B"), *[targets] * 3, INT, INT
    block = lane_fill.Block(*block, of(Int8, "L K B"))
    query = lane_fill.Query(of(Int32, "M 1"), of(Int32, "1"), INT, INT, tie)
    codes = of(UInt8, "M+N+1 M+1")
    strip = top, column, column, of(Int32, "M+1"), codes, (cells, cells, cells)
    filled = of(Score, "L B"), tie, tile, tile, BYTES
    return {
        "pack": (directions.pack, [of(UInt8, "R N")], of(UInt32, "R//8 N")),
        "unpack": (directions.unpack, [of(UInt32, "W N")], of(UInt8, "8*W N")),
        "padded_scores": (
            matrix_rows.padded_scores, [matrix, score, score], of(Score, "A+1 A+1")),
        "database_profile": (
            matrix_rows.database_profile,
            [matrix, of(UInt8, "L B")],
            of(Score, "A L+2 B")),
        "database_profile_in": (
            matrix_rows.database_profile_in,
            [matrix, of(UInt8, "L B"), INT, of(Score, "A L+2 B")],
            of(Score, "A L+2 B")),
        "best_hits.add": (
            best_hits.add,
            [best, of(Score, "R P"), *[of(Int32, x) for x in "RPP"], score],
            best),
        "wavefront.fill": (
            partial(wavefront.fill, words=True), [*pair, matrix, gaps, FREE],
            (walk.EndCell(score, INT, INT), words)),
        "wavefront.strip": (
            partial(wavefront.strip, tables=True),
            [*pair, INT, top, matrix, gaps, FREE, INT, codes], wavefront.Strip(*strip)),
        "border_end": (walk.border_end, [end, end, end, FREE, lane], end),
        "walk": (
            lambda begun, rules: walk.walk(begun, nibble_at, jnp.equal, rules),
            [WALKED, walk.WalkBorders(FLAG, FLAG, INT)], WALKED),
        "sweep.fill": (
            partial(lane_fill.fill, local=True, rows=8),
            [block, query, gaps, FREE, BYTES], lane_fill.BlockFill(*filled)),
    }  # fmt: skip


def nibble_at(i, j):
    return jnp.full_like(i, 12, "uint8")


def example(claim):
    """Zeros of the shape and dtype claimed."""
    shape = [eval(size, None, SIZES) for size in claim.dim_str.split()]
    return jnp.zeros(shape, claim.dtypes[0])


def typed(claim):
    """A pytree of types as a type."""
    if isinstance(claim, dict):
        return dict[str, FLAG]
    return tuple[tuple(map(typed, claim))] if isinstance(claim, tuple) else claim


def check(function, arguments, result):
    """Trace the function behind a check of its arguments and its result."""

    def call(values):
        return function(*values)

    call.__annotations__ = {"values": typed(tuple(arguments)), "return": typed(result)}
    call = jaxtyping.jaxtyped(call, typechecker=beartype)
    jax.eval_shape(call, jax.tree.map(example, tuple(arguments)))


@pytest.mark.parametrize("Score", [Int16, Int32], ids=["int16", "int32"])
@pytest.mark.parametrize("name", claims(Int32))
def test_shapes_and_dtypes(name, Score):
    check(*claims(Score)[name])


def test_a_wrong_claim_fails():
    """Another shape, another dtype, and one of them inside of tuples."""
    for wrong in (of(UInt32, "R//4 N"), of(UInt32, "N R//8"), of(Int32, "R//8 N")):
        with pytest.raises(jaxtyping.TypeCheckError):
            check(directions.pack, [of(UInt8, "R N")], wrong)
    fill, arguments, (end, words) = claims(Int32)["wavefront.fill"]
    for wrong in (end._replace(score=INT, i=FLAG), end._replace(j=LANES)):
        with pytest.raises(jaxtyping.TypeCheckError):
            check(fill, arguments, (wrong, words))
