"""One pair of any length, with its path, in sub-quadratic memory.

The table is filled in strips of rows; H and E of the row between two strips are kept
as checkpoints. Then, from the end cell upwards, only the strips the path crosses are
filled again, with backtrack, one at a time (checkpoint and recompute, the BT1 of Li,
Ranka and Sahni used for a pair). Memory is O((m / rows + rows) * n), time twice a fill.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.one_function import CPU_OPTIONS
from jaxalign.pairs.dp import matrix_rows, walk, wavefront
from jaxalign.runtime.devices import bucket
from jaxalign.runtime.programs import program

if TYPE_CHECKING:
    from jaxalign.pairs.dp.window_program import WindowProblem


MAX_STRIP_ROWS = 1024
# On a CPU: a diagonal of so many rows stays in the first cache, and JAX 0.10 has no way
# to spread a larger one over threads from within one function.
MAX_CPU_STRIP_ROWS = 512


class PairResult(NamedTuple):
    """Result of one pair: Python ints, and one uint8 operation a step, start to end."""

    score: int
    end_i: int
    end_j: int
    start_i: int = 0
    start_j: int = 0
    identities: int = 0
    columns: int = 0
    gap_openings: int = 0
    gaps: int = 0
    steps: np.ndarray | None = None


@program(
    ("local", "tables", "fused"),
    donate_argnames=("codes",),
    compiler_options=CPU_OPTIONS,
)
def fill_strip(
    query: jax.Array,
    target: jax.Array,
    m: jax.Array,
    n: jax.Array,
    above: jax.Array,
    top: wavefront.Top,
    problem: "WindowProblem",
    diagonals: jax.Array | None = None,
    codes: jax.Array | None = None,
    left: tuple[jax.Array, jax.Array] | None = None,
    *,
    local: bool,
    tables: bool = False,
    fused: bool = False,
) -> wavefront.Strip:
    """Fill a strip by ``wavefront.strip``. It returns all outputs: XLA:CPU would drop
    unused ones from its loop, and stall there."""
    sides = query, target, m, n, above, top
    costs = problem.scores, problem.gaps, problem.free
    options = {"local": local, "tables": tables, "fused": fused}
    return wavefront.strip(*sides, *costs, diagonals, codes, left=left, **options)


def strip_rows(m: int, n: int, budget: int) -> int:
    """Rows of a strip: 64 to 1024, its nibbles in half the budget and 64 MB."""
    rows, wide = 64, columns_for(n)
    limit = min(budget // 2, 2**26)
    while (
        rows < min(MAX_STRIP_ROWS, bucket(m))
        and 3 * 2 * rows * (wide + 2 * rows) <= limit
    ):
        rows *= 2
    return rows


def bytes_needed(m: int, n: int, budget: int) -> int:
    """Checkpoints (H and E of a row, int32) and one strip with its backtrack."""
    rows = strip_rows(m, n, budget)
    wide = columns_for(n)
    return max(
        -(-max(m, 1) // rows) * 8 * wide + 3 * rows * (wide + rows)
        for rows in (rows, min(rows, MAX_CPU_STRIP_ROWS))
    )


def columns_for(n: int) -> int:
    """Columns to allocate for a target. Most proteins share three sizes, since the
    diagonals computed do not depend on it; very long targets waste no memory."""
    return bucket(n, 4, 256) if n <= 2**14 else bucket(n)


def align_long(
    query: np.ndarray,
    target: np.ndarray,
    problem: "WindowProblem",
    local: bool,
    paths: bool = True,
    rows: int = MAX_STRIP_ROWS,
    progress: Callable[[int], object] | None = None,
    fused: bool = False,
    high: int | None = None,
):
    """Align one pair strip by strip.

    query, target : uint8 codes (m,), (n,)
    problem : pairs.dp.window_program.WindowProblem, the dtype of its gaps is proven for
        the whole pair
    rows : rows of a strip; the smaller, the less memory
    fused : as in ``wavefront.strip``; ``MAX_CPU_STRIP_ROWS`` at most
    high : None is returned where the score is above it
    progress : called with the cells done so far, the second pass not counted
    """
    rows = min(
        rows, bucket(len(query)), MAX_CPU_STRIP_ROWS if fused else MAX_STRIP_ROWS
    )
    m, n = len(query), len(target)
    # Without ``fused`` all diagonals of the padded table are computed.
    padded = np.zeros(columns_for(n) if fused else bucket(n), np.int32)
    padded[:n] = target
    top = _top(problem, len(padded), local)
    checkpoints, columns, highest = [], [], (0, 0, 0)
    for above in range(0, max(m, 1), rows):
        checkpoints.append(top)
        part, real = _rows(query, above, rows)
        args = (part, padded, real, n, above, top, problem)
        diagonals = real + n + 1 if fused else None
        fill = fill_strip(*args, diagonals, local=local, fused=fused)
        columns.append(np.asarray(fill.last_column)[above > 0 : real + 1])
        best = np.asarray(fill.row_best)[: real + 1]
        i = int(best.argmax())
        inner = int(best[i]), above + i, int(np.asarray(fill.row_column)[i])
        highest = max(highest, inner, key=lambda cell: cell[0])
        top = fill.bottom
        if progress:
            progress((above + real) * n)
    end = walk.EndCell(*highest)
    if not local:
        row = np.asarray(fill.bottom.h)[: n + 1]
        end = walk.host_end(row, np.concatenate(columns), problem.free)
    if high is not None and end.score > high:
        return None
    if not paths:
        return PairResult(end.score, end.i, end.j)
    # Refill the strips on the path from the last to the first, and walk each.
    i, j = (np.full(1, v, np.int32) for v in (end.i, end.j))
    walked = walk.start(i, j)
    pieces, codes = [], wavefront.empty_codes(rows, len(padded))
    strip = max(end.i - 1, 0) // rows
    while True:
        above = strip * rows
        part, real = _rows(query, above, rows)
        args = (part, padded, real, n, above, checkpoints[strip], problem)
        diagonals = int(walked.i[0]) - above + int(walked.j[0]) + 1 if fused else None
        codes = fill_strip(*args, diagonals, codes, local=local, fused=fused).codes
        before = int(walked.columns[0])
        walked = _walk_strip(walked, codes, part, padded, above, problem, local)
        walked = jax.tree.map(np.asarray, walked)
        count = int(walked.columns[0]) - before
        pieces.append(walked.steps[:count, 0])
        walked = walked._replace(steps=None)
        if strip == 0 or int(walked.i[0]) > above:
            break
        # The walk ended on column 0 for good?
        ended = int(walked.j[0]) == 0 and bool(problem.free["query_start"] | local)
        if count == 0 or ended:
            break
        strip -= 1
    steps = np.concatenate(pieces)[::-1]
    counts = (walked.identities, walked.columns, walked.gap_openings, walked.gaps)
    start = int(walked.i[0]), int(walked.j[0])
    return PairResult(
        end.score, end.i, end.j, *start, *(int(c[0]) for c in counts), steps
    )


@program(("columns", "local"))
def _top(problem: "WindowProblem", columns: int, local: bool):
    free = problem.free["target_start"] | local
    return wavefront.top_border(columns, free, problem.gaps)


def _rows(query: np.ndarray, above: int, rows: int):
    """Padded codes of a strip, and the number of real ones."""
    part = np.zeros(rows, np.int32)
    real = query[above : above + rows]
    part[: len(real)] = real
    return part, len(real)


@program(("local",))
def _walk_strip(
    walked: walk.PathCounts,
    codes: jax.Array,
    query: jax.Array,
    target: jax.Array,
    above: jax.Array,
    problem: "WindowProblem",
    local: bool,
):
    """Walk one pair (B = 1) within the codes of a strip of rows."""
    free = problem.free
    rules = walk.WalkBorders(
        free["target_start"] | local,
        free["query_start"] | local,
        jnp.where(above == 0, -1, above).astype(jnp.int32),
    )
    longest = query.shape[0] + target.shape[0]
    steps = jnp.full((longest, 1), walk.DONE, jnp.uint8)

    def nibble_at(i: jax.Array, j: jax.Array):
        row = i - above
        return codes.at[row + j, row].get(mode="clip").astype(jnp.int32)

    def same_at(i: jax.Array, j: jax.Array):
        a = query.at[i - 1 - above].get(mode="clip")
        b = target.at[j - 1].get(mode="clip")
        if problem.scores.ndim > 2:
            a, b = (matrix_rows.track_codes(x, 0) for x in (a, b))
        return (a == b) & (a != problem.wildcard)

    return walk.walk(walked._replace(steps=steps), nibble_at, same_at, rules)
