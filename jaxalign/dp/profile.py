"""Substitution scores laid out for a fill: what a lane reads at (row, column).

Two letters are added to the ``A`` of the alphabet: code A pads a query below its last
row and a target before its first column (targets end together, see ``sweep``).
"""

import jax.numpy as jnp


def padded_scores(scores, pad_column, pad_row):
    """(A, A) scores -> (A + 1, A + 1), with the pad letter on both sides."""
    wide = jnp.pad(scores, ((0, 1), (0, 1)))
    wide = wide.at[:, -1].set(pad_column.astype(scores.dtype))
    return wide.at[-1, :].set(pad_row.astype(scores.dtype))


def database_profile(scores, targets):
    """Scores of every letter against every column of a block of targets.

    Parameters
    ----------
    scores : (A, A), row = query letter
    targets : uint8 (columns, lanes)

    Returns
    -------
    (columns, A, lanes), the dtype of ``scores``
        Rows of it are picked by the query's letter: no gather in the fill.
    """
    return jnp.swapaxes(scores.T[targets], 1, 2)
