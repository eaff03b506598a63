"""Fill the table of one long pair with all multiprocessors of a GPU.

A warp keeps a *band* of rows in registers and marches along the columns: lane g has K
rows and works on four columns in a step, one step behind lane g - 1, from which it gets
U and E by ``shfl``. The band below reads the last row from memory,
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
open. Numbers in memory are int32: ``long_values.long_fits`` proves the range. Those of
registers are, too, or have 16 bits, two lanes a thread (``long_values``).
"""

from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.exchange import announce, await_number, fetch, ticket
from kernels_pallas.core.mosaic import Threads, kernel
from kernels_pallas.core.reals import fused
from kernels_pallas.pairs.long_values import (
    BLOCK_WORDS,
    COLUMNS,
    LAG,
    MINUS_INFINITY,
    NO_VALUE,
    WARP,
    WARPS,
    LongArithmetic,
    LongFill,
    LongInputs,
    LongNumberForm,
    LongNumbers,
    LongOutput,
    before,
    largest,
    opening,
    packed_range,
    profile_words,
    shifted,
    warp_max,
)


def fill(inputs: LongInputs, top, s: LongFill, segments: int = 1, interpret=None):
    """Fill a block from its border: ``top`` (width, 4, 2), U and E of the row above,
    minus infinity beyond column n. In local mode ``segments`` have a best each."""
    memory = _memory(top, s, segments if s.local else 1)
    refs = [jax.new_ref(x.reshape(-1)) for x in memory]
    run = kernel(
        partial(_long_program, s=s, segments=segments if s.local else 1),
        [(s.bands,)] * 2,
        [
            plgpu.SMEM((WARPS * s.letters * s.letter_words,), jnp.int32),
            plgpu.SMEM((4,), jnp.int32),
        ],
        (s.programs,),
        ("program",),
        interpret,
        refs=refs,
    )
    computed, lost = run(*inputs)
    lines = s.slots * s.width * BLOCK_WORDS
    rows = refs[0][...][:lines].reshape(s.slots, s.width, COLUMNS, 2)
    columns, best, last_row = (
        ref[...].reshape(x.shape) for ref, x in zip(refs[3:], memory[3:], strict=True)
    )
    return LongOutput(columns, best, last_row, rows, computed, lost)


class LongMemory(NamedTuple):
    """Memory that programs share or leave results in, flat."""

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
    # Unit x is what the last lane computes in chunk x, so many steps behind.
    behind = ((s.lanes - 1, 0), (0, 0))
    u = jnp.pad(top[:-1, :, 0], behind, constant_values=MINUS_INFINITY)
    units = u[: s.chunks * s.steps].reshape(s.chunks, -1).max(1)
    return LongMemory(
        rows,
        jnp.repeat(jnp.pad(units, (0, 1)), 4),
        jnp.zeros(s.bands + 2, jnp.int32).at[1].set(2**30),
        low(s.captures, s.bands, s.lanes, s.rows, 2),
        jnp.zeros((s.bands, segments, WARP), jnp.int32),
        low(COLUMNS * s.width if s.last_row else 1),
    )


class LongView(NamedTuple):
    """The place and inputs of a thread, as words."""

    th: Threads
    s: LongFill
    n: LongNumbers
    form: LongNumberForm
    lane: jax.Array  # the first of the thread
    band: jax.Array
    warp: jax.Array
    last: jax.Array  # int32, whether it has the last lane
    scores: Any  # profile in shared memory
    place: jax.Array  # its first word there
    read_slot: jax.Array
    write_slot: jax.Array
    target: Any
    out: dict


class LongState(NamedTuple):
    """Values that a thread carries from step to step."""

    u: tuple
    f: tuple
    corner: jax.Array
    out: tuple  # U and E of the last row, four columns
    best: tuple  # local mode: of this chunk; packed: and of the segment
    highest: jax.Array  # U of the last row in this chunk
    packed: Any  # PackedState, or nothing


class PackedState(NamedTuple):
    """Numbers beside values of 16 bits, int32, the same in all threads of a warp."""

    base: jax.Array
    lost: jax.Array  # not 0 where a value left the range
    lowest: jax.Array  # the least ``height`` of U of the row above a chunk


def _long_program(*refs, s: LongFill, segments: int):
    """Fill four bands."""
    th, count = s.threads, len(LongInputs._fields)
    inputs, refs = LongInputs(*refs[:count]), refs[count:]
    rows, units, progress, columns, best, last_row, computed, lost, table, word = refs
    thread = th.index()
    lane, warp = thread & (WARP - 1), lax.shift_right_logical(thread, th.splat(5))
    number = ticket(th, progress, word, lax.axis_index("program"))
    band = number * WARPS + warp
    scalars = LongNumbers(*(inputs.numbers[k] for k in range(len(LongNumbers._fields))))
    numbers = LongNumbers(*map(th.splat, scalars))
    names = "profile", "target", "left", "corners", "slots"
    reading = {name: th.read_only(getattr(inputs, name)) for name in names}
    place = warp * (s.letters * s.letter_words) + lane * s.quad

    # Each lane copies the words of the profile that it alone reads.
    def copy(k, carry):
        size = s.letters * s.letter_words
        at = lane * s.quad + k * (WARP * s.quad)
        words = th.load(reading["profile"], at, s.quad, band, size)
        th.store(table, place + k * (WARP * s.quad), words)
        return carry

    loads = s.letters * s.halves * s.groups
    lax.fori_loop(jnp.int32(0), jnp.int32(loads), copy, jnp.int32(0))
    slots = [th.load(reading["slots"], band + k)[0] for k in range(2)]
    costs = numbers.step_score, numbers.open, numbers.extend
    form = LongNumberForm(th, s, packed_range(*costs, s))
    view = LongView(
        th=th, s=s, n=numbers, form=form, lane=lane, band=band, warp=warp,
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
    _, count, state = lax.fori_loop(jnp.int32(0), turns, turn, carry)
    real = view.last * (band < numbers.bands).astype(jnp.int32)
    th.store(computed, band, (count,), where=real)
    out_of_range = state.packed.lost if s.packed else th.splat(0)
    th.store(lost, band, (out_of_range,), where=real)


def _start(view: LongView, left, corners) -> LongState:
    """State of column 0."""
    th, s, form = view.th, view.s, view.form
    lanes = []
    for half in range(s.halves):
        words, lane = (), view.lane + half * WARP
        for k in range(0, 2 * s.rows, 4):
            words += th.load(left, lane * (2 * s.rows) + k, 4, view.band, 2 * s.band)
        corner = th.load(corners, lane, 1, view.band, s.lanes)
        lanes.append((words[::2] + corner, words[1::2]))
    packed, base = (), th.splat(0)
    if s.packed:
        numbers = [word for heads, _ in lanes for word in heads]
        high = warp_max(th, reduce(jnp.maximum, numbers))
        base = form.base_of(high, form.first_base)
        lost = _lost(view, numbers, base)
        packed = PackedState(base, lost, th.splat(2**31 - 1))

    def joined(which):
        return tuple(
            form.join([form.value(number, base) for number in numbers])
            for numbers in zip(*(words[which] for words in lanes), strict=True)
        )

    *u, corner = joined(0)
    minus = form.minus_infinity
    best = (minus, th.splat(0)) if s.packed else (th.splat(0),)
    out = (minus,) * BLOCK_WORDS
    best = best if s.local else ()
    return LongState(tuple(u), joined(1), corner, out, best, minus, packed)


def _lost(view: LongView, numbers: list[jax.Array], base: jax.Array):
    """Not 0 if a real number is below the least of a base; the same in all threads."""
    least = view.form.least_entering(base) + base
    lost = view.th.splat(0)
    for number in numbers:
        out = (number > NO_VALUE) & (number < least)
        lost = lost | out.astype(jnp.int32)
    return warp_max(view.th, lost)


def _chunk(view: LongView, segments: int, x, carry):
    """Fill chunk ``x`` of the first of four bands; each band is two chunks behind
    the one above."""
    th, s, n = view.th, view.s, view.n
    seen, count, state = carry
    c = th.splat(x) - LAG * view.warp
    inside = ((c >= 0) & (c < n.chunks) & (view.band < n.bands)).astype(jnp.int32)
    c = jnp.minimum(jnp.maximum(c, th.splat(0)), n.chunks - 1)
    least = jnp.minimum(c + LAG, n.chunks) * inside
    seen = await_number(th, view.out["progress"], view.band + 1, least, seen)
    units, next_units = (
        fetch(th, view.out["units"], th.splat(0), jnp.minimum(c + k, n.chunks - 1), 4)
        for k in range(2)
    )
    above, rest_bound = _Above(c, units[0], next_units[0]), _rest(view, c)
    alive = (_highest(view, above, state) + rest_bound >= n.bound).astype(
        jnp.int32
    ) * inside
    special = _is_special(view, c)
    if s.packed:
        state = _moved(view, above, state, rest_bound, alive)
    state = state._replace(highest=view.form.minus_infinity)
    for careful, going in ((True, alive * special), (False, alive * (1 - special))):
        steps = th.any(going) * s.steps
        first = _load_above(view, above, c * s.steps)
        step = partial(_step, view, above, careful, going)
        state, _ = lax.fori_loop(jnp.int32(0), steps, step, (state, first))
    # Set a band that skips its chunk to minus infinity
    pruned = inside * (1 - alive)
    minus = view.form.minus_infinity

    def low(word):
        return jnp.where(pruned != 0, minus, word)

    state = state._replace(
        u=tuple(map(low, state.u)),
        f=tuple(map(low, state.f)),
        corner=low(state.corner),
        out=tuple(map(low, state.out)),
    )
    if s.packed:
        state = _checked(view, above, state, rest_bound, alive)
    announcing = inside * view.last
    (*_, highest) = _numbers(view, state, state.highest)
    highest = jnp.where(alive != 0, highest, th.splat(MINUS_INFINITY))
    th.store(view.out["units"], c * 4, (highest,) * 4, where=announcing)
    if s.local:
        state = _store_best(view, segments, c, inside, state)
    announce(th, view.out["progress"], view.band + 2, c + 1, announcing)
    return seen, count + alive, state


class _Above(NamedTuple):
    """The row above a chunk: its number, and the best of the units that contain it."""

    chunk: jax.Array
    unit: jax.Array
    next_unit: jax.Array


def _rest(view: LongView, c):
    """Bound the score of a path after the border of a chunk."""
    th, s, n = view.th, view.s, view.n
    # Rows and columns that are left, at most and at least, from cells of the border.
    zero, rows = th.splat(0), n.rest_rows - view.band * s.band
    columns = n.rest_columns - c * (s.steps * COLUMNS)
    limits = rows, jnp.minimum(columns + s.lanes * COLUMNS, n.rest_columns)
    fewest = (
        jnp.maximum(rows - s.band, zero),
        jnp.maximum(columns - s.steps * COLUMNS, zero),
    )
    # Of every letter beyond the shorter side the pair pays for a gap.
    paired = jnp.minimum(*limits)
    cost = n.query_extend * jnp.maximum(fewest[0] - limits[1], zero)
    cost += n.target_extend * jnp.maximum(fewest[1] - limits[0], zero)
    return n.step_score * jnp.maximum(paired, zero) - cost


def _highest(view: LongView, above: _Above, state: LongState):
    """Bound H of the border of a chunk; the same in all threads of a warp."""
    th, s, n = view.th, view.s, view.n
    high = jnp.maximum(above.unit, above.next_unit)
    high -= _skew(view, above.chunk, th.splat(s.lanes - 1), 0)
    values = _largest(view, state)
    for half, number in enumerate(_numbers(view, state, values)):
        lane = view.lane + half * WARP
        high = jnp.maximum(high, number - _skew(view, above.chunk, lane, s.rows))
    high = warp_max(th, high) + opening(n, s)
    return jnp.maximum(high, th.splat(0)) if s.local else high


def _skew(view: LongView, c, lane, rows: int):
    """Lower bound on skewed numbers minus H, for the cells of a lane before chunk
    ``c``; ``rows`` are those of each lane above it."""
    s = view.s
    if not s.skewed:
        return view.th.splat(0)
    j = jnp.maximum(c * s.steps - lane, view.th.splat(0)) * COLUMNS
    return view.n.extend * (view.band * s.band + lane * rows + j)


def _heads(state: LongState) -> tuple:
    """U of the border of a chunk in registers."""
    return (*state.u, state.corner, *state.out[::2])


def _largest(view: LongView, state: LongState):
    """The largest values of the border in registers."""
    run = partial(largest, s=view.s)
    return fused(view.th, run, view.scores, _heads(state), state.corner)


def _numbers(view: LongView, state: LongState, word) -> list:
    """Values of a thread as int32 numbers, by lane."""
    form, base = view.form, state.packed[0] if view.s.packed else None
    return [form.number(value, base) for value in form.lanes(word)]


def _moved(
    view: LongView, above: _Above, state: LongState, rest_bound, alive
) -> LongState:
    """Choose the base of a chunk, and move values to it."""
    th, s, form = view.th, view.s, view.form
    old = state.packed.base
    values = _numbers(view, state, _largest(view, state))
    high = warp_max(th, reduce(jnp.maximum, values, above.unit))
    base = form.base_of(jnp.maximum(high, above.next_unit), old)
    base = jnp.where(alive != 0, base, old)  # units of other bands tell nothing
    rise, real = base - old, form.least_real(old)
    limit = jnp.maximum(real, form.least_entering(base) + rise)
    limit = jnp.minimum(limit, th.splat(s.target.half_limit))
    words = tuple(form.everywhere(-number) for number in (real, limit, rise))
    heads, gaps = _heads(state), (*state.f, *state.out[1::2])
    values = heads, gaps, (*words, form.minus_infinity)
    like = heads, gaps, rise
    heads, gaps, lost = fused(th, shifted, view.scores, values, like)
    k, lost = s.rows, warp_max(th, th.shift_right(lost, 15) & 0x10001)
    lost = lost * alive * _matters(view, above, base, rest_bound)
    out = tuple(x for pair in zip(heads[k + 1 :], gaps[k:], strict=True) for x in pair)
    best = (form.minus_infinity, *state.best[1:]) if s.local else ()
    packed = PackedState(base, state.packed.lost | lost, th.splat(2**31 - 1))
    return LongState(heads[:k], gaps[:k], heads[k], out, best, state.highest, packed)


def _matters(view: LongView, above: _Above, base, rest_bound):
    """Whether paths through values below the least may reach the bound."""
    n, form = view.n, view.form
    skew = _skew(view, above.chunk, view.th.splat(view.s.lanes - 1), 0)
    upper = base + form.range.least + n.open - skew
    return (upper + rest_bound >= n.bound).astype(jnp.int32)


def _checked(view: LongView, above: _Above, state: LongState, rest_bound, alive):
    """Note whether a value read from the row above is below the least."""
    base, lost, lowest = state.packed
    least = view.form.height(view.form.least_entering(base) + base)
    below = (lowest < least).astype(jnp.int32) * alive
    lost = lost | below * _matters(view, above, base, rest_bound)
    return state._replace(packed=PackedState(base, lost, lowest))


def _is_special(view: LongView, c):
    """Whether a chunk is computed column by column: it begins a band, or some of its
    cells are stored."""
    s, n = view.s, view.n
    end = (c + 1) * (s.steps * COLUMNS)  # the last column, counted from 1
    start = jnp.maximum(end - (s.steps + s.lanes) * COLUMNS, view.th.splat(0))
    special = (lax.div(end, n.capture) > lax.div(start, n.capture)) | (c == 0)
    special = special | ((n.n > start) & (n.n <= end))
    if s.last_row:
        special = special | (view.band == n.bands - 1)
    return special.astype(jnp.int32)


def _store_best(view: LongView, segments: int, c, inside, state: LongState):
    """Store the best of each thread where a segment ends."""
    th, n, best = view.th, view.n, state.best
    if view.s.packed:
        best = (reduce(jnp.maximum, [best[1], *_numbers(view, state, best[0])]),)
    ends = (c + 1) - lax.div(c + 1, n.stored_chunks) * n.stored_chunks
    ends = ((ends == 0) | (c == n.chunks - 1)).astype(jnp.int32) * inside
    segment = lax.div(c, n.stored_chunks)
    base = view.band * segments + segment
    th.store(view.out["best"], view.lane, best, base, WARP, ends)
    best = (*state.best[:-1], jnp.where(ends != 0, th.splat(0), best[0]))
    return state._replace(best=best)


def _load_above(view: LongView, above: _Above, t):
    """Load U and E above the band in step ``t``, for lane 0, and each lane's letters
    in that step."""
    th, s = view.th, view.s
    letters = tuple(
        th.load(view.target, jnp.maximum(t - view.lane - half * WARP, th.splat(0)))[0]
        for half in range(s.halves)
    )
    unit_end = (above.chunk + 1) * s.steps - (s.lanes - 1)
    best = jnp.where(t < unit_end, above.unit, above.next_unit)
    base = view.read_slot * s.width + t
    base = jnp.where(best > MINUS_INFINITY, base, th.splat(s.slots * s.width))
    words = ()
    for k in range(0, BLOCK_WORDS, 4):
        words += fetch(th, view.out["rows"], th.splat(k), base, BLOCK_WORDS)
    return words, letters


def _step(view: LongView, above: _Above, careful: bool, going, x, carry):
    """Fill four columns of every lane. ``careful``: lanes may be before their first
    column, and cells are stored."""
    th, s, n, form = view.th, view.s, view.n, view.form
    state, (loaded, letters) = carry
    t = above.chunk * s.steps + x
    prefetch = _load_above(view, above, t + 1)
    packed = state.packed
    if s.packed:
        lowest = reduce(jnp.minimum, map(form.height, loaded[::2]), packed.lowest)
        packed = packed._replace(lowest=jnp.where(going != 0, lowest, packed.lowest))
        loaded = tuple(form.value(number, packed.base) for number in loaded)
    row_above = tuple(
        before(th, view.lane, b, a, s) for a, b in zip(loaded, state.out, strict=True)
    )
    up, e = row_above[::2], row_above[1::2]
    # Of each lane, in steps.
    columns = [t - view.lane - half * WARP for half in range(s.halves)]
    active = [going] * s.halves
    if careful:
        active = [going * (column >= 0).astype(jnp.int32) for column in columns]
    u, f, corner, best, highest = (
        state.u, state.f, state.corner, state.best[:1], state.highest
    )  # fmt: skip
    cost = opening(n, s) * (-0x10001 if s.packed else -1)
    costs = cost, form.everywhere(-n.extend), form.floor
    width = 1 if careful else COLUMNS
    last_up, last_e = (), ()
    for k in range(0, COLUMNS, width):
        lines = u, f, up[k : k + width], e[k : k + width]
        text = tuple(th.shift_right(word, 8 * k) if k else word for word in letters)
        values = lines, corner, (best, highest), costs, (text, view.place)
        run = partial(_cells, s=s, columns=width)
        like = *lines, best, highest
        u, f, below, e_below, best, highest = fused(th, run, view.scores, values, like)
        corner = up[k + width - 1]
        last_up, last_e = last_up + below, last_e + e_below
        if careful:
            for half, (column, flag) in enumerate(zip(columns, active, strict=True)):
                _capture(view, half, column * COLUMNS + (k + 1), flag, u, f, packed)
    out = tuple(x for pair in zip(last_up, last_e, strict=True) for x in pair)
    best = best + state.best[1:]
    next_state = LongState(u, f, corner, out, best, highest, packed)
    if careful or th.plain:  # of the twin some warps may be in another loop
        mask = form.mask(active)
        values = jax.tree.map(
            lambda a, b: (a & mask) | (b & ~mask), next_state[:-1], state[:-1]
        )
        next_state = next_state._replace(
            **dict(zip(next_state._fields[:-1], values, strict=True))
        )
    storing = view.last * active[-1] if careful or th.plain else view.last
    base = view.write_slot * s.width + (t - (s.lanes - 1))
    if careful or th.plain:
        base = jnp.maximum(base, th.splat(0))
    # U and E of the last row in the format of memory. E matters only where U is real.
    numbers = ()
    for pair in zip(out[::2], out[1::2], strict=True):
        u_last, e_last = (form.lanes(word)[-1] for word in pair)
        for value in (u_last, e_last):
            numbers += (form.number(value, packed and packed.base, u_last),)
    for k in range(0, BLOCK_WORDS, 4):
        words = numbers[k : k + 4]
        th.store(view.out["rows"], th.splat(k), words, base, BLOCK_WORDS, storing)
    return next_state, prefetch


def _cells(th, table, values, s: LongFill, columns: int):
    """Compute some columns of K rows (``core.reals``)."""
    # E[i,j] = max(E[i-1,j] - extend, U[i-1,j])      skewed: extend is 0
    # F[i,j] = max(F[i,j-1] - extend, U[i,j-1])
    # H[i,j] = max(U[i-1,j-1] + (S + open), E[i,j], F[i,j])     local: and 0
    # Columns are taken one row apart: cells that do not wait for each other stand side
    # by side.
    v = LongArithmetic(th, s)
    lines, corner, (best, highest), costs, (letters, place) = values
    u, f, up, e, best = ([v.read(x) for x in words] for words in (*lines, best))
    cost, extend, floor = costs[0], *map(v.read, costs[1:])
    diagonal, profile, loaded = [v.read(corner), *up[:-1]], {}, {}

    def words_of(c, half, group):
        if (c, half) not in profile:
            letter = th.shift_right(letters[half], 8 * c) if c else letters[half]
            profile[c, half] = (letter & 255) * s.letter_words + place
        offset = (half * s.groups + group) * WARP * s.quad
        return th.load(table, profile[c, half], s.quad, offset=offset)

    def score(c, r):
        group = r // (4 * s.quad)
        if (c, group) not in loaded:
            words = [words_of(c, half, group) for half in range(s.halves)]
            loaded[c, group] = tuple(zip(*words, strict=True))
        return v.score(loaded[c, group][r // 4 % s.quad], r % 4)

    for line in range(s.rows + columns - 1):
        for c in range(columns):
            r = line - c
            if not 0 <= r < s.rows:
                continue
            e[c] = th.maximum(v.longer(e[c], extend), up[c])
            f[r] = th.maximum(v.longer(f[r], extend), u[r])
            h = th.maximum(v.plus(diagonal[c], score(c, r)), e[c])
            h = th.maximum(h, f[r])
            if s.local:
                h = th.maximum(h, floor)
                best[0] = th.maximum(best[0], h)
            diagonal[c] = u[r]
            u[r] = up[c] = v.by_words(h, cost)
    highest = reduce(th.maximum, up, v.read(highest))
    words = (tuple(map(th.words, x)) for x in (u, f, up, e, best))
    return (*words, th.words(highest))


def _capture(view: LongView, half: int, j, going, u, f, packed) -> None:
    """Store U and F of a captured column ``j`` of a lane, and U of row m if
    ``last_row``."""
    th, s, n, form = view.th, view.s, view.n, view.form
    number = lax.div(jnp.maximum(j - 1, th.splat(0)), n.capture)
    whole = lax.div(j, n.capture) * n.capture
    mask = ((j == whole) & (j <= n.n)) | (j == n.n)
    mask = mask.astype(jnp.int32) * going
    band = number * s.bands + view.band
    lane = view.lane + half * WARP

    def of_lane(word):
        return form.number(form.lanes(word)[half], packed and packed.base)

    def store():
        pairs = zip(u, f, strict=True)
        words = [of_lane(x) for pair in pairs for x in pair]
        for k in range(0, len(words), 4):
            at = lane * (2 * s.rows) + k
            th.store(view.out["columns"], at, tuple(words[k : k + 4]), band,
                     2 * s.band, mask)  # fmt: skip

    pl.when(th.any(mask) != 0)(store)
    if not s.last_row:
        return
    row = n.m - 1 - view.band * s.band - lane * s.rows
    mask = (row >= 0) & (row < s.rows) & (j >= 1) & (j <= n.n)
    mask = mask.astype(jnp.int32) * going
    word = u[0]
    for k in range(1, s.rows):
        word = jnp.where(row == k, u[k], word)
    at = jnp.minimum(jnp.maximum(j - 1, th.splat(0)), th.splat(COLUMNS * s.width - 1))
    th.store(view.out["last_row"], at, (of_lane(word),), where=mask)


class LongBlock(NamedTuple):
    """A block as the host has it, with room for a whole ``LongFill``."""

    numbers: LongNumbers
    query: jax.Array  # uint8 (R T,), the padding letter behind the end
    target: jax.Array  # uint8 (4 width,), likewise
    top: jax.Array  # int32 (2, 4 width): H and E of the row above, from column 1 on
    left: jax.Array  # int32 (2, R T): H and F of the column before, from row 1 on
    corner: jax.Array  # int32 (): H between the two
    slots: (
        jax.Array
    )  # int32 (R + 1,): the slot of the row above each band, and of the last


class LongLines(NamedTuple):
    """Lines of a filled block."""

    rows: jax.Array  # int32 (slots, 2, 4 width): H and E
    columns: jax.Array  # int32 (captures, 2, R T): H and F
    last_row: jax.Array  # int32 (4 width,): H of row m, or nothing
    best: jax.Array  # int32 (R, segments): local mode
    computed: jax.Array  # int32 (R,): chunks that were not pruned
    lost: jax.Array  # int32 (R,): not 0 where values left the range of 16 bits


@partial(jax.jit, static_argnames=("s", "segments", "interpret"))
def long_block(
    block: LongBlock, scores, s: LongFill, segments: int = 1, interpret=None
):
    """Fill a block.

    Parameters
    ----------
    scores : int32 (A, A), row = query letter; A is ``s.letters`` - 1
    s : static
    segments : static; in local mode each has a best

    Returns
    -------
    LongLines
    """
    n = block.numbers
    inputs, top = inputs_of(block, scores, s)
    out = fill(inputs, top, s, segments, interpret)
    width, height = COLUMNS * s.width, s.bands * s.band
    # The row of each slot, and the column of each capture.
    bands = jnp.zeros(s.slots, jnp.int32).at[block.slots].max(jnp.arange(s.bands + 1))
    i, j = (1 + jnp.arange(size, dtype=jnp.int32) for size in (height, width))
    captured = (1 + jnp.arange(s.captures, dtype=jnp.int32)) * n.capture
    captured = jnp.minimum(captured, n.n)

    lower = opening(n, s)

    def h_of(u, places, cost=lower):
        if s.skewed:
            cost = cost - n.extend * places
        return jnp.where(u <= MINUS_INFINITY // 2, MINUS_INFINITY, u + cost)

    def lines(pairs, places):
        by_line = jnp.swapaxes(pairs.reshape(pairs.shape[0], -1, 2), 1, 2)
        open_only = jnp.stack([lower, jnp.zeros_like(lower)])[None, :, None]
        return h_of(by_line, places[:, None], open_only)

    return LongLines(
        lines(out.rows, (bands * s.band)[:, None] + j[None]),
        lines(out.columns, captured[:, None] + i[None]),
        h_of(out.last_row, n.m + j[: len(out.last_row)]),
        out.best.max(-1), out.computed, out.lost,
    )  # fmt: skip


def inputs_of(block: LongBlock, scores, s: LongFill):
    """The inputs of ``long_fill.fill``, and the row above."""
    n, lower = block.numbers, opening(block.numbers, s)

    def words(line):
        places = 1 + jnp.arange(line.shape[1], dtype=jnp.int32)
        skew = (n.extend * places)[None] if s.skewed else 0
        u, gap = jnp.where(line <= MINUS_INFINITY // 2, MINUS_INFINITY, line + skew)
        u = jnp.where(u <= MINUS_INFINITY, u, u - lower)
        return jnp.stack([u, gap], -1)

    top, left = words(block.top), words(block.left)
    corner = jnp.where(block.corner <= MINUS_INFINITY // 2, MINUS_INFINITY,
                       block.corner - lower)  # fmt: skip
    above = jnp.concatenate([corner[None], left[:-1, 0]]).reshape(-1, s.rows)[:, 0]
    inputs = LongInputs(
        jnp.stack([jnp.asarray(x, jnp.int32) for x in n]),
        profile_words(scores, block.query, n, s),
        lax.bitcast_convert_type(block.target.reshape(-1, COLUMNS), jnp.int32),
        left.reshape(-1),
        above,
        block.slots,
    )
    return inputs, top.reshape(s.width, -1, 2)
