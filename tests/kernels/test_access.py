"""Kernels stay inside their arrays: every load and store of the interpreter's twins is
checked (``kernels_pallas/core/mosaic.py``), for all lengths up to the borders of
a shape, in arrays of exactly the size that the host computes."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import mosaic_gpu as plgpu
from kernel_cases import KINDS, aligned, matrix, name, padded, values

import kernels_pallas as kp
from kernels_pallas.core import mosaic
from kernels_pallas.pairs import layout

WORDS = [
    np.array(word, np.uint8) for k in range(4) for word in product((0, 1), repeat=k)
]


def touched(index, *, store=False, where=None, count=1):
    """Which accesses outside of 8 words a kernel is told of."""

    def body(data, out, scratch):
        th = mosaic.Threads(plain=True)
        at = th.splat(index)
        mask = None if where is None else th.splat(where)
        if store:
            th.store(scratch, at, (th.splat(1),) * count, where=mask)
        else:
            th.load(data, at, count)
        th.store(out, th.index(), (th.splat(0),))

    run = mosaic.kernel(
        body,
        [(mosaic.THREADS,)],
        [plgpu.SMEM((8,), jnp.int32)],
        (1,),
        ("program",),
        mosaic.interpreter(),
    )
    jax.block_until_ready(run(jnp.zeros(8, jnp.int32)))
    jax.effects_barrier()
    found = list(mosaic.OUTSIDE)
    mosaic.OUTSIDE.clear()
    return found


@values
@pytest.mark.parametrize("store", [False, True], ids=["load", "store"])
@pytest.mark.parametrize(
    "index, count", [(8, 1), (-1, 1), (2**30, 1), (6, 4), (2, 4)], ids=str
)
def test_planted_accesses_are_listed(index, count, store):
    found = touched(index, store=store, count=count)
    assert found and all(Path(__file__).name in line for line in found)
    assert f"words {index} to {index + count - 1} of 8" in found[0]


@values
def test_masked_and_right_accesses_pass():
    assert touched(8, store=True, where=0) == []
    assert touched(7) == touched(7, store=True) == touched(4, count=4) == []


@values
@pytest.mark.parametrize("tile", [pytest.param(0, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize(
    "kind",
    [k if k == (True, True, True) else pytest.param(k, marks=pytest.mark.slow)
     for k in KINDS],
    ids=name,
)  # fmt: skip
def test_all_lengths_up_to_a_strip_and_one_more(kind, tile):
    """Each query of 0 to 34 letters with each target of 0 to 18, strips of 32 rows and
    tiles of 8 columns; and groups of targets that are all empty."""
    local, packed, shared = kind
    s = kp.Fill(4, 8, 2, local, packed, shared, tile, plain=True)
    m, n = [0, 1, 3, 4, 5, 31, 32, 33, 34, 0], [*range(18, -1, -1), *[0] * 60]
    if not shared:
        m, n = (list(x) for x in zip(*product(m, n[:19]), strict=True))
    rng = np.random.default_rng(3)
    aligned(s, padded(rng, m), m, padded(rng, n), n, matrix(), (7, 2), (), runs=4,
            ragged=shared)  # fmt: skip


@values
@pytest.mark.slow
@pytest.mark.parametrize("tile", [0, 8])
@pytest.mark.parametrize("kind", [(True, True), (False, True), (True, False)], ids=str)
def test_all_words_of_two_letters(kind, tile):
    """All pairs of words of up to three letters; scores that tie, so that paths have
    as many runs as they can."""
    s = kp.Fill(4, 8, 2, *kind, True, tile, plain=True)
    lengths = [len(word) for word in WORDS]
    codes = np.zeros((len(WORDS), 3), np.uint8)
    for row, word in zip(codes, WORDS, strict=True):
        row[: len(word)] = word
    scores = np.array([[1, 0], [0, 1]], np.int32)
    for free in ((), ("query_start", "target_end")):
        aligned(s, codes, lengths, codes, lengths, scores, (0, 0), free, runs=6,
                ragged=True)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tile", [0, 8])
@pytest.mark.parametrize("shared", [True, False])
def test_what_the_host_reserves_is_what_a_launch_takes(shared, tile):
    """``rows_of`` and ``records_of`` are the ends of the last block and item, for all
    lengths of three blocks up to four columns."""
    s = kp.Fill(4, 32, 2, True, True, shared, tile, plain=True)
    for longest in product(range(5), repeat=3):  # of each block
        n = np.repeat(longest, s.block)
        if shared:
            ends = layout.letters(
                jnp.zeros(1, jnp.uint8), jnp.zeros(len(n), jnp.int32),
                jnp.asarray(n, jnp.int32), shape=s, room=64,
            ).starts  # fmt: skip
            blocks = n.reshape(-1, s.block).max(1)
            rows = np.where(blocks > 0, -(-blocks // s.columns) + 1, 0)
            assert kp.rows_of(n, s)[-1] == max(np.asarray(ends) + rows)
        for m in product((0, 1, 128, 129), repeat=2):
            queries = np.repeat(m, s.tables) if shared else np.resize(m, len(n))
            together = s.tables if shared else s.block
            highest = queries.reshape(-1, together).max(1)
            strips = layout.strips_of(jnp.asarray(highest), s)
            first, held = layout._records(
                strips, jnp.asarray(n.reshape(-1, s.block)), s
            )
            items = np.asarray(strips)
            items = np.repeat(items, len(held)) if shared else items
            last = np.asarray(first) + items * np.resize(held, len(items))
            assert last.max() <= kp.records_of(queries, n, s)[-1]


JOB = """
import re, sys
import numpy as np, jax, jaxalign
rng = np.random.default_rng(11)
lengths = np.minimum(rng.lognormal(5.7, 0.7, 420).astype(int) + 20, 3000)
letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
texts = ["".join(rng.choice(letters, n)) for n in lengths]
for k in range(120):
    one = np.array(list(texts[k]))
    one = np.where(rng.random(len(one)) < 0.3, rng.choice(letters, len(one)), one)
    texts.append("".join(one[rng.random(len(one)) > 0.05]))
table = jaxalign.align_all(texts, mode="local", output=sys.argv[1])
assert "pallas" in table.info["implementation"]
with jax.default_device(jax.devices("cpu")[0]):
    scores = jaxalign.align_all(texts, mode="local", output="score")
assert "sweep" in scores.info["implementation"]
assert (np.asarray(table["score"]) == np.asarray(scores["score"])).all()
"""


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", ["default", "platform"])
@pytest.mark.parametrize("output", ["stats", "alignment"])
def test_blocks_of_no_targets_on_a_device(output, allocator):
    """540 proteins, whose launches end with blocks of no targets: the search for end
    cells divided by their number of tiles, 0, and read at what came of it."""
    env = os.environ | {"JAX_PLATFORMS": "cuda,cpu"}
    env |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    env |= {} if allocator == "default" else {"XLA_PYTHON_CLIENT_ALLOCATOR": allocator}
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", JOB, output]
    done = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
