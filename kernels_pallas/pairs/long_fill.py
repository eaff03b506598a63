"""The fill of one long pair by all multiprocessors of a GPU.

A warp keeps a *band* of 32 K rows in registers and marches along the columns: lane g
has K rows and works on four columns in a step, one step behind lane g - 1, from which
it gets U, E and letters by ``shfl``. The band below reads the last row from memory,
where it writes over what it has read. After each *chunk* of steps a band announces how
far it is, and the next one waits for that (``exchange``): all in one launch, whose
bands work side by side, two chunks apart. Linear memory: a row, and a column.

**Checkpoints.** A band may leave its last row in a slot of its own, and every so many
columns U and F of a column are stored, and those of the last one. Chunks that have such
a column are computed column by column, the others four columns at a time.

**Pruning.** Before a chunk its band knows the best H on the chunk's border: in its own
registers, and of the row above by a word of each unit. If that and the most that the
rest of the pair can score are below the bound, no best path enters the chunk. It is not
computed, and its cells hold minus infinity (docs/recurrences.md has the proof). A row
above of which nothing was computed is not read either.

H is stored as U = H - open, which opens both gaps; scores of the profile are biased by
open. All numbers are int32: ``long_shapes.long_fits`` proves the range.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.exchange import announce, await_number, fetch, ticket
from kernels_pallas.core.fused import fused
from kernels_pallas.core.mosaic import Threads, kernel, word_of
from kernels_pallas.pairs.long_shapes import (
    BLOCK_WORDS,
    COLUMNS,
    LAG,
    MINUS_INFINITY,
    WARP,
    WARPS,
    LongFill,
    LongInputs,
    LongNumbers,
    LongOutput,
)


def fill(inputs: LongInputs, top, s: LongFill, segments: int = 1, interpret=None):
    """Fill a block from its border.

    Parameters
    ----------
    top : int32 (width, 4, 2), U and E of the row above; minus infinity beyond column n
    segments : static, with a best of their own each, in local mode

    Returns
    -------
    LongOutput
    """
    run = kernel(
        partial(_long_program, s=s, segments=segments if s.local else 1),
        [jax.ShapeDtypeStruct((s.bands,), jnp.int32)],
        [
            plgpu.SMEM((WARPS * s.letters * s.letter_words,), jnp.int32),
            plgpu.SMEM((4,), jnp.int32),
        ],
        (s.programs,),
        ("program",),
        interpret,
    )
    run = getattr(run, "fun", run)  # its rule for ``vmap`` takes no references
    memory = _memory(top, s, segments if s.local else 1)
    refs = [jax.new_ref(x.reshape(-1)) for x in memory]
    (computed,) = run(*inputs, *refs)
    lines = s.slots * s.width * BLOCK_WORDS
    rows = refs[0][...][:lines].reshape(s.slots, s.width, COLUMNS, 2)
    columns, best, last_row = (
        ref[...].reshape(x.shape) for ref, x in zip(refs[3:], memory[3:], strict=True)
    )
    return LongOutput(columns, best, last_row, rows, computed)


class LongMemory(NamedTuple):
    """Memory that programs share, or leave results in: flat for the kernel."""

    rows: jax.Array  # one more step of minus infinity is read below what is pruned
    units: jax.Array  # the best of each unit of the row above, four times
    progress: jax.Array  # programs so far, then the chunks of each band
    columns: jax.Array
    best: jax.Array
    last_row: jax.Array


def _memory(top, s: LongFill, segments: int) -> LongMemory:
    """The memory of a launch. What a pruned chunk would have stored is minus infinity
    from the start, since it stores nothing; the row above all bands is complete."""

    def low(*shape: int):
        return jnp.full(shape, MINUS_INFINITY, jnp.int32)

    rows = jnp.concatenate(
        [top.reshape(-1), low(((s.slots - 1) * s.width + 1) * BLOCK_WORDS)]
    )
    # The last lane is 31 steps behind: unit x is what it computes in chunk x.
    behind = ((WARP - 1, 0), (0, 0))
    u = jnp.pad(top[:-1, :, 0], behind, constant_values=MINUS_INFINITY)
    units = u[: s.chunks * s.steps].reshape(s.chunks, -1).max(1)
    return LongMemory(
        rows,
        jnp.repeat(jnp.pad(units, (0, 1)), 4),
        jnp.zeros(s.bands + 2, jnp.int32).at[1].set(2**30),
        low(s.captures, s.bands, WARP, s.rows, 2),
        jnp.zeros((s.bands, segments, WARP), jnp.int32),
        low(COLUMNS * s.width if s.last_row else 1),
    )


class LongView(NamedTuple):
    """The place of a thread, words."""

    th: Threads
    s: LongFill
    n: LongNumbers
    lane: jax.Array
    band: jax.Array
    warp: jax.Array
    first: jax.Array  # whether it is the first lane
    last: jax.Array  # int32, whether it is the last lane
    scores: Any  # profile in shared memory
    place: jax.Array  # its first word there
    read_slot: jax.Array
    write_slot: jax.Array
    target: Any
    out: dict


class LongState(NamedTuple):
    """The values that a thread carries from step to step."""

    u: tuple
    f: tuple
    corner: jax.Array
    out: tuple  # U and E of the last row, four columns
    best: tuple  # local mode
    highest: jax.Array  # U of the last row in this chunk


def _long_program(*refs, s: LongFill, segments: int):
    """Four bands."""
    th, count = Threads(s.plain), len(LongInputs._fields)
    given, refs = LongInputs(*refs[:count]), refs[count:]
    rows, units, progress, columns, best, last_row, computed, table, word = refs
    thread = th.index()
    lane, warp = thread & (WARP - 1), lax.shift_right_logical(thread, th.splat(5))
    number = ticket(th, progress, word, lax.axis_index("program"))
    band = number * WARPS + warp
    scalars = LongNumbers(*(given.numbers[k] for k in range(len(LongNumbers._fields))))
    numbers = LongNumbers(*map(th.splat, scalars))
    names = "profile", "target", "left", "corners", "slots"
    reading = {name: th.read_only(getattr(given, name)) for name in names}
    place = warp * (s.letters * s.letter_words) + lane * s.quad
    _copy_profile(th, s, reading["profile"], table, band, lane, place)
    slots = [th.load(reading["slots"], band + k)[0] for k in range(2)]
    view = LongView(
        th=th, s=s, n=numbers, lane=lane, band=band, warp=warp, first=lane == 0,
        last=(lane == WARP - 1).astype(jnp.int32), scores=th.read_only(table),
        place=place, read_slot=slots[0], write_slot=slots[1],
        target=reading["target"],
        out=dict(rows=rows, units=units, progress=progress, columns=columns,
                 best=best, last_row=last_row),
    )  # fmt: skip
    state = _start(view, reading["left"], reading["corners"])
    carry = th.splat(0), th.splat(0), state
    turns = scalars.chunks + LAG * (WARPS - 1)
    turn = partial(_chunk, view, segments)
    _, count, _ = lax.fori_loop(jnp.int32(0), turns, turn, carry)
    real = view.last * (band < numbers.bands).astype(jnp.int32)
    th.store(computed, band, (count,), where=real)


def _copy_profile(th: Threads, s: LongFill, profile, table, band, lane, place) -> None:
    """Each lane copies the words that it alone reads."""
    size = WARP * s.quad

    def copy(k, carry):
        at = lane * s.quad + k * size
        words = th.load(profile, at, s.quad, band, s.letters * s.letter_words)
        th.store(table, place + k * size, words)
        return carry

    lax.fori_loop(jnp.int32(0), jnp.int32(s.letters * s.groups), copy, jnp.int32(0))


def _start(view: LongView, left, corners) -> LongState:
    """Column 0."""
    th, s = view.th, view.s
    words = ()
    for k in range(0, 2 * s.rows, 4):
        at = view.lane * (2 * s.rows) + k
        words += th.load(left, at, 4, view.band, 2 * s.band)
    (corner,) = th.load(corners, view.lane, 1, view.band, WARP)
    minus = th.splat(MINUS_INFINITY)
    out = (minus,) * BLOCK_WORDS
    best = (th.splat(0),) if s.local else ()
    return LongState(words[::2], words[1::2], corner, out, best, minus)


def _chunk(view: LongView, segments: int, x, carry):
    """Chunk ``x`` of the first of four bands; each is two chunks behind."""
    th, s, n = view.th, view.s, view.n
    seen, count, state = carry
    c = th.splat(x) - LAG * view.warp
    inside = ((c >= 0) & (c < n.chunks) & (view.band < n.bands)).astype(jnp.int32)
    c = jnp.minimum(jnp.maximum(c, th.splat(0)), n.chunks - 1)
    least = jnp.minimum(c + LAG, n.chunks) * inside
    seen = await_number(th, view.out["progress"], view.band + 1, least, seen)
    here, ahead = (
        fetch(th, view.out["units"], th.splat(0), jnp.minimum(c + k, n.chunks - 1), 4)
        for k in range(2)
    )
    alive = _reaches(view, c, state, (here[0], ahead[0])) * inside
    special = _is_special(view, c)
    state = state._replace(highest=th.splat(MINUS_INFINITY))
    above = _Above(c, here[0], ahead[0])
    for careful, going in ((True, alive * special), (False, alive * (1 - special))):
        steps = th.any(going) * s.steps
        first = _load_above(view, above, c * s.steps)
        step = partial(_step, view, above, careful, going)
        state, _ = lax.fori_loop(jnp.int32(0), steps, step, (state, first))
    state = _pruned(view, state, inside * (1 - alive))
    announcing = inside * view.last
    highest = (state.highest,) * 4
    th.store(view.out["units"], c * 4, highest, where=announcing)
    if s.local:
        state = _store_best(view, segments, c, inside, state)
    announce(th, view.out["progress"], view.band + 2, c + 1, announcing)
    return seen, count + alive, state


class _Above(NamedTuple):
    """The row above a chunk: its number, and the best of the units it is in."""

    chunk: jax.Array
    here: jax.Array
    ahead: jax.Array


def _reaches(view: LongView, c, state: LongState, units):
    """Whether a path through the border of a chunk may reach the bound: 1 or 0, the
    same in all lanes of a warp."""
    th, s, n = view.th, view.s, view.n
    high = jnp.maximum(*units)
    for word in (*state.u, state.corner, *state.out[::2]):
        high = jnp.maximum(high, word)
    high = warp_max(th, high) + n.open
    if s.local:
        high = jnp.maximum(high, th.splat(0))
    # Rows and columns that are left, at most and at least, from cells of the border.
    zero, rows = th.splat(0), n.rest_rows - view.band * s.band
    columns = n.rest_columns - c * (s.steps * COLUMNS)
    most = rows, jnp.minimum(columns + WARP * COLUMNS, n.rest_columns)
    fewest = (
        jnp.maximum(rows - s.band, zero),
        jnp.maximum(columns - s.steps * COLUMNS, zero),
    )
    # Of every letter beyond the shorter side the pair pays for a gap.
    paired = jnp.minimum(*most)
    cost = n.query_extend * jnp.maximum(fewest[0] - most[1], zero)
    cost += n.target_extend * jnp.maximum(fewest[1] - most[0], zero)
    rest = n.step_score * jnp.maximum(paired, zero) - cost
    return (high + rest >= n.bound).astype(jnp.int32)


def _is_special(view: LongView, c):
    """Whether a chunk is computed column by column: it begins a band, or some of its
    cells are stored."""
    s, n = view.s, view.n
    end = (c + 1) * (s.steps * COLUMNS)  # the last column, counted from 1
    start = jnp.maximum(end - (s.steps + WARP) * COLUMNS, view.th.splat(0))
    special = (lax.div(end, n.capture) > lax.div(start, n.capture)) | (c == 0)
    special = special | ((n.n > start) & (n.n <= end))
    if s.last_row:
        special = special | (view.band == n.bands - 1)
    return special.astype(jnp.int32)


def _pruned(view: LongView, state: LongState, pruned) -> LongState:
    """Minus infinity in a band that did not compute its chunk."""
    minus = view.th.splat(MINUS_INFINITY)

    def low(word):
        return jnp.where(pruned != 0, minus, word)

    return state._replace(
        u=tuple(map(low, state.u)),
        f=tuple(map(low, state.f)),
        corner=low(state.corner),
        out=tuple(map(low, state.out)),
    )


def _store_best(view: LongView, segments: int, c, inside, state: LongState):
    """Store the best of each lane where a segment ends."""
    th, n = view.th, view.n
    ends = (c + 1) - lax.div(c + 1, n.stored_chunks) * n.stored_chunks
    ends = ((ends == 0) | (c == n.chunks - 1)).astype(jnp.int32) * inside
    segment = lax.div(c, n.stored_chunks)
    base = view.band * segments + segment
    th.store(view.out["best"], view.lane, state.best, base, WARP, ends)
    best = jnp.where(ends != 0, th.splat(0), state.best[0])
    return state._replace(best=(best,))


def _load_above(view: LongView, above: _Above, t):
    """U and E above the band in step ``t``, for the first lane, and each lane's letters
    in that step."""
    th, s = view.th, view.s
    (letters,) = th.load(view.target, jnp.maximum(t - view.lane, th.splat(0)))
    unit_end = (above.chunk + 1) * s.steps - (WARP - 1)
    best = jnp.where(t < unit_end, above.here, above.ahead)
    base = view.read_slot * s.width + t
    base = jnp.where(best > MINUS_INFINITY, base, th.splat(s.slots * s.width))
    words = ()
    for k in range(0, BLOCK_WORDS, 4):
        words += fetch(th, view.out["rows"], th.splat(k), base, BLOCK_WORDS)
    return words, letters


def _step(view: LongView, above: _Above, careful: bool, going, x, carry):
    """Four columns of every lane. ``careful``: some lanes may not have begun, and cells
    are stored."""
    th, s, n = view.th, view.s, view.n
    state, (loaded, letters) = carry
    t = above.chunk * s.steps + x
    ahead = _load_above(view, above, t + 1)
    given = tuple(
        jnp.where(view.first, a, th.shift_up(b, WARP))
        for a, b in zip(loaded, state.out, strict=True)
    )
    up, e = given[::2], given[1::2]
    column = t - view.lane  # in steps
    begun = going * (column >= 0).astype(jnp.int32) if careful else going
    u, f, corner, best = state.u, state.f, state.corner, state.best
    width = 1 if careful else COLUMNS
    last_up, last_e = (), ()
    for k in range(0, COLUMNS, width):
        lines = u, f, up[k : k + width], e[k : k + width]
        text = th.shift_right(letters, 8 * k) if k else letters
        values = lines, corner, best, (n.open, n.extend), (text, view.place)
        run = partial(_cells, s=s, columns=width)
        like = *lines, best
        u, f, below, e_below, best = fused(th, run, view.scores, values, like)
        corner = up[k + width - 1]
        last_up, last_e = last_up + below, last_e + e_below
        if careful:
            _capture(view, column * COLUMNS + (k + 1), begun, u, f)
    out = tuple(x for pair in zip(last_up, last_e, strict=True) for x in pair)
    highest = state.highest
    for word in last_up:
        highest = jnp.maximum(highest, word)
    new = LongState(u, f, corner, out, best, highest)
    if careful or th.plain:  # of the twin some warps may be in another loop
        new = jax.tree.map(lambda a, b: jnp.where(begun != 0, a, b), new, state)
    storing = view.last * begun if careful or th.plain else view.last
    base = view.write_slot * s.width + (t - (WARP - 1))
    if careful or th.plain:
        base = jnp.maximum(base, th.splat(0))
    for k in range(0, BLOCK_WORDS, 4):
        words = out[k : k + 4]
        th.store(view.out["rows"], th.splat(k), words, base, BLOCK_WORDS, storing)
    return new, ahead


def _cells(th, table, values, s: LongFill, columns: int):
    """Some columns of K rows (``core.fused``)."""
    # E[i,j] = max(E[i-1,j] - extend, U[i-1,j])
    # F[i,j] = max(F[i,j-1] - extend, U[i,j-1])
    # H[i,j] = max(U[i-1,j-1] + (S + open), E[i,j], F[i,j])     local: and 0
    # Columns are taken one row apart: cells that do not wait for each other stand side
    # by side.
    (u, f, up, e), corner, best, (cost, extend), (letters, place) = values
    u, f, up, e, best = list(u), list(f), list(up), list(e), list(best)
    diagonal, loaded = [corner, *up[:-1]], {}

    def score(c, r):
        group = r // (4 * s.quad)
        if c not in loaded:
            letter = th.shift_right(letters, 8 * c) if c else letters
            loaded[c] = (letter & 255) * s.letter_words + place
        if (c, group) not in loaded:
            more = group * WARP * s.quad
            loaded[c, group] = th.load(table, loaded[c], s.quad, more=more)
        word = loaded[c, group][r // 4 % s.quad]
        return signed_byte(th, word, r % 4)

    for line in range(s.rows + columns - 1):
        for c in range(columns):
            r = line - c
            if not 0 <= r < s.rows:
                continue
            e[c] = th.maximum(e[c] - extend, up[c])
            f[r] = th.maximum(f[r] - extend, u[r])
            h = th.maximum(diagonal[c] + score(c, r), e[c])
            h = th.maximum(h, f[r])
            if s.local:
                h = th.maximum(h, th.splat(0))
                best[0] = th.maximum(best[0], h)
            diagonal[c] = u[r]
            u[r] = up[c] = h - cost
    return tuple(u), tuple(f), tuple(up), tuple(e), tuple(best)


def signed_byte(th, word, k: int):
    """Byte k of a word, with its sign."""
    if th.plain:
        return lax.shift_right_arithmetic(word << (24 - 8 * k), th.splat(24))
    sign = f"{k | 8:x}"
    return th.asm(f"prmt.b32 $0, $1, 0, 0x{3 * sign}{k};", word)


def _capture(view: LongView, j, going, u, f) -> None:
    """Store U and F of column ``j`` where that is asked for, and U of row m."""
    th, s, n = view.th, view.s, view.n
    number = lax.div(jnp.maximum(j - 1, th.splat(0)), n.capture)
    whole = lax.div(j, n.capture) * n.capture
    wanted = ((j == whole) & (j <= n.n)) | (j == n.n)
    wanted = wanted.astype(jnp.int32) * going
    base = number * s.bands + view.band

    def store():
        words = [x for pair in zip(u, f, strict=True) for x in pair]
        for k in range(0, len(words), 4):
            at = view.lane * (2 * s.rows) + k
            th.store(view.out["columns"], at, tuple(words[k : k + 4]), base,
                     2 * s.band, wanted)  # fmt: skip

    pl.when(th.any(wanted) != 0)(store)
    if s.last_row:
        _capture_row(view, j, going, u)


def _capture_row(view: LongView, j, going, u) -> None:
    """Store U of row m."""
    th, s, n = view.th, view.s, view.n
    row = n.m - 1 - view.band * s.band - view.lane * s.rows
    here = (row >= 0) & (row < s.rows) & (j >= 1) & (j <= n.n)
    here = here.astype(jnp.int32) * going
    value = u[0]
    for k in range(1, s.rows):
        value = jnp.where(row == k, u[k], value)
    at = jnp.minimum(jnp.maximum(j - 1, th.splat(0)), th.splat(COLUMNS * s.width - 1))
    th.store(view.out["last_row"], at, (value,), where=here)


def warp_max(th: Threads, word: jax.Array):
    """The largest word of the warp, in all of its lanes."""
    if th.plain:
        return jnp.repeat(jnp.max(word.reshape(-1, WARP), 1), WARP)
    # By ``shfl``, which every generation has.
    asm = "{ .reg .b32 x, y; mov.b32 x, $1;"
    for step in (16, 8, 4, 2, 1):
        asm += f" shfl.sync.bfly.b32 y, x, {step}, 31, -1; max.s32 x, x, y;"
    return word_of(asm + " mov.b32 $0, x; }", word)
