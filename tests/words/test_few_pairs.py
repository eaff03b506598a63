"""The few wanted pairs of a launch, whatever room there is for them."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxalign.words import gpu

ROWS, COLUMNS, ROOM = 6, 40, 4


@pytest.mark.parametrize(
    "count",
    [
        *(0, 5, 32),
        *(pytest.param(x, marks=pytest.mark.slow) for x in (1, 4, 31, 33, 239, 240)),
    ],
)
def test_all_wanted_pairs_come_in_order(count):
    """Fewer than there is room for, as many, more, and every pair of a launch."""
    dice = np.random.default_rng(count)
    values = dice.integers(-99, 99, (ROWS, COLUMNS)).astype(np.int16)
    places = np.sort(dice.choice(ROWS * COLUMNS, count, replace=False))
    mask = np.zeros(ROWS * COLUMNS, bool)
    mask[places] = True
    sizes = []

    def count_and_places(size, start):
        sizes.append(size)
        wanted = jnp.asarray(mask.reshape(ROWS, COLUMNS)), jnp.asarray(values)
        return gpu.compact(*wanted, size, start)

    few = gpu.chosen(count_and_places, (ROWS, COLUMNS), ROOM)
    np.testing.assert_array_equal(few.row * COLUMNS + few.column, places)
    np.testing.assert_array_equal(few.value, values.reshape(-1)[places])
    if count <= gpu.MOST_ROOMS * ROOM:  # one program
        assert sizes == [ROOM] * max(-(-count // ROOM), 1)
    else:
        assert len(sizes) == 2
