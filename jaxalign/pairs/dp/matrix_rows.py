"""Rows of a matrix, and substitution scores laid out for a fill.

Rows are read and written in a loop, and a table is read at many codes at once. No index
is negative, which JAX would look at each time; and no gather reads the table, so that
vectors of any width do it.

Substitution scores laid out for a fill: what a lane reads at (row, column).

The scores of a profile have a row for each position of the query, in place of each
letter, and more rows than columns.

Two letters are added to the ``A`` of the alphabet: code A pads a query below its last
row and a target before its first column (targets end together, see ``sweep``).
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.pairs.dp.rows import TRACK

MAX_SELECT_CODES = 32  # entries: beyond them a gather is better


def row_of(array: jax.Array, j: jax.Array | int):
    return lax.squeeze(
        lax.dynamic_slice_in_dim(array, j, 1, allow_negative_indices=False), (0,)
    )


def put_row(array: jax.Array, row: jax.Array, t: jax.Array | int):
    return lax.dynamic_update_slice(
        array, row[None], (t, jnp.int32(0)), allow_negative_indices=False
    )


def by_code(entries: list[jax.Array], codes: jax.Array):
    """``entries[c]`` wherever ``codes`` is c: one bit of the code halves the choice.

    entries : list of at most ``MAX_SELECT_CODES`` arrays of the shape of ``codes``
    codes : integers below ``len(entries)``
    """
    bit = 1
    while len(entries) > 1:
        on = (codes & lax.full_like(codes, bit)) != lax.full_like(codes, 0)
        pairs = (entries[k : k + 2] for k in range(0, len(entries), 2))
        entries = [lax.select(on, *x[::-1]) if len(x) == 2 else x[0] for x in pairs]
        bit *= 2
    return entries[0]


PROFILE_COLUMNS = 64  # of a database profile that are made together


def by_position(scores: jax.Array) -> bool:
    """Whether rows of scores are positions of the query, as those of a profile are."""
    return scores.ndim == 2 and scores.shape[0] != scores.shape[1]


def padding(scores: jax.Array) -> int:
    """The code below the last row of a query: A, of two tracks in both."""
    return scores.shape[0] if scores.ndim == 2 else scores.shape[-1] * (1 + TRACK)


def track_codes(codes: jax.Array, which: int):
    """The codes of one of two tracks, of the dtype of ``codes``."""
    codes = lax.shift_right_logical(codes, lax.full_like(codes, 8 * which))
    return codes & lax.full_like(codes, TRACK - 1)


def score_rows(scores: jax.Array, codes: jax.Array, first: jax.Array | int = 0):
    """The row of ``scores`` that each residue of a query (m, ...) has: that of its
    code; of a profile its position, counted from ``first``."""
    if not by_position(scores):
        return codes
    i = first + jnp.arange(codes.shape[0], dtype=jnp.int32)
    i = jnp.minimum(i, scores.shape[0] - 1)
    return jnp.broadcast_to(i.reshape(-1, *(1,) * (codes.ndim - 1)), codes.shape)


def padded_scores(scores: jax.Array, pad_column: jax.Array, pad_row: jax.Array):
    """(A, A) scores -> (A + 1, A + 1), with the pad letter on both sides; of two tracks
    (2, A + 1, A + 1), the second with 0 there."""
    if scores.ndim > 2:
        first = padded_scores(scores[0], pad_column, pad_row)
        return jnp.stack([first, jnp.pad(scores[1], ((0, 1), (0, 1)))])
    wide = jnp.pad(scores, ((0, 1), (0, 1)))
    wide = wide.at[:, -1].set(pad_column.astype(scores.dtype))
    return wide.at[-1, :].set(pad_row.astype(scores.dtype))


def database_profile(scores: jax.Array, targets: jax.Array):
    """Scores of every letter against every column of a block of targets.

    scores : (A, A), row = query letter
    targets : uint8 (columns, lanes)

    Returns (A, columns + 2, lanes), the dtype of ``scores``, rows of it are picked by
    the query's letter: no gather in the fill. Those of a letter lie one after the
    other, so that they are fetched ahead; with two columns more, since rows of all
    letters a power of two apart would share few places of the cache. Of two tracks
    (2, A, columns + 2, lanes).
    """
    return _profile(scores, jnp.pad(targets, ((0, 2), (0, 0))))


def database_profile_in(
    scores: jax.Array, targets: jax.Array, columns: jax.Array, room: jax.Array
):
    """``database_profile`` of the first ``columns`` (int32 scalar) alone, written over
    ``room``, which has the shape of all; what stands behind them stays.

    Memory that has been written to before needs no pages of the system, which take
    longer than the scores.
    """
    count, lanes = targets.shape
    together = PROFILE_COLUMNS if count % PROFILE_COLUMNS == 0 else 1

    def fill_columns(k: jax.Array, profile: jax.Array):
        codes = lax.dynamic_slice_in_dim(targets, k * together, together)
        start = [jnp.int32(0)] * (profile.ndim - 2)
        start = *start, k * together, jnp.int32(0)
        return lax.dynamic_update_slice(profile, _profile(scores, codes), start)

    return lax.fori_loop(jnp.int32(0), -(-columns // together), fill_columns, room)


def _profile(scores: jax.Array, targets: jax.Array):
    if scores.ndim > 2:
        tracks = (_profile(x, track_codes(targets, k)) for k, x in enumerate(scores))
        return jnp.stack([*tracks])
    if len(scores) > MAX_SELECT_CODES:
        return scores[:, targets]
    shape = len(scores), *targets.shape
    entries = [lax.broadcast_in_dim(x, shape, (0,)) for x in scores.T]
    return by_code(entries, lax.broadcast_in_dim(targets, shape, (1, 2)))
