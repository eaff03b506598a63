"""Blocks of a database that stay on a device."""

import gc
import weakref

import jax
import numpy as np
import pytest

import jaxalign
from jaxalign.database import pieces
from jaxalign.pairs.gpu import device_job
from jaxalign.pairs.gpu.device_job import load_block


@pytest.fixture
def mapped(tmp_path):
    fasta, index = tmp_path / "d.fa", tmp_path / "d.jaxdb"
    fasta.write_text("".join(f">{k}\n{'MKTAYIAKQR'[k:]}\n" for k in range(9)))
    jaxalign.index_database(fasta, index)
    return jaxalign.open_database(index)


def test_blocks_of_an_index_are_copied_once(mapped):
    ((first,), (second,)) = (pieces.blocks_of(mapped) for _ in range(2))
    assert first is second
    there = load_block(first)
    assert load_block(second) is there
    np.testing.assert_array_equal(there.codes[: len(first.codes)], first.codes)
    np.testing.assert_array_equal(there.length[: len(first)], first.lengths)
    device_job.forget_sequences(jax.devices()[0])
    assert load_block(first) is not there


def test_what_may_change_is_copied_every_time(mapped):
    own = mapped.take(range(len(mapped)))
    ((first,), (second,)) = (pieces.blocks_of(own) for _ in range(2))
    assert first is not second
    assert load_block(first) is not load_block(first)
    own.codes[:10] = own.codes[0]
    assert (np.asarray(load_block(first).codes[:10]) == own.codes[0]).all()


def test_each_device_has_its_own(mapped):
    (block,) = pieces.blocks_of(mapped)
    seen = []
    for device in jax.devices()[:2]:
        with jax.default_device(device):
            seen.append(load_block(block).codes.device)
    assert seen == jax.devices()[:2]


def test_no_more_stays_than_there_is_room_for(mapped, monkeypatch):
    monkeypatch.setattr(device_job, "of_device", lambda _: 2**20)
    (block,) = pieces.blocks_of(mapped)
    assert load_block(block) is not load_block(block)


def test_a_database_that_is_gone_leaves_the_device(mapped):
    other = mapped.between(0, 5)
    (block,) = pieces.blocks_of(other)
    kept = weakref.ref(load_block(block).codes)
    del block
    assert kept() is not None
    del other
    gc.collect()
    assert kept() is None
