"""Launches for which a GPU has no memory, and GPUs that fail: nothing is lost, nothing
comes twice, and the user reads one line."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import same_tables
from gpu_windows_cases import (
    Interpreted,
    _drive,
    beyond_int16,
    interpreted,
    lognormal_task,
    task_of,
    times_computed,
)

import jaxalign
import kernels_pallas as kernels
from jaxalign.cli import report
from jaxalign.cli.main import main
from jaxalign.database import pieces
from jaxalign.errors import DeviceError, DeviceFailure, MemoryPlanError
from jaxalign.pairs import compiled, engine
from jaxalign.pairs.gpu import device_arrays, device_job, dispatch, launches
from jaxalign.pairs.gpu.device_job import load_block
from jaxalign.pairs.gpu.launches import cut, launch_bytes, smaller
from jaxalign.pairs.pair_matrix import Partition
from jaxalign.pairs.plan import Piece, Plan, Run
from jaxalign.runtime import programs
from kernels_pallas.pairs.config import FillOutput, output_shapes
from kernels_pallas.pairs.ends import border_end
from kernels_pallas.pairs.layout import numbers

pytestmark = pytest.mark.usefixtures("compiled")

FULL = (
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 36.03GiB.\n"
    "[executable_name='jit_found']"
)
DEAD = (
    "INTERNAL: CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access\nmore"
)


def error(text):
    return jax.errors.JaxRuntimeError(text)


@pytest.fixture(autouse=True)
def unlimited(monkeypatch):
    """No device is known to have little memory."""
    monkeypatch.setattr(device_job, "_limits", {})


class Failed:
    """An array of a program that failed."""

    def __init__(self, text):
        self.text = text

    def __array__(self, *_, **__):
        raise error(self.text)

    def block_until_ready(self):
        raise error(self.text)


def fail(monkeypatch, when):
    """Let launches of as many bytes as the first fail, when they are issued or looked
    at; the bytes of those that did, and of those that did not."""
    issue, scores, seen = (
        dispatch.issue,
        dispatch.launch_scores,
        SimpleNamespace(failed=[], ran=[]),
    )

    def full(job, launch):
        count = launches.launch_bytes(job.task, job.kernels, launch)
        some = seen.failed
        if some and count < some[0]:
            some = seen.ran
        some.append(count)
        if some is seen.failed and when == "issued":
            raise error(FULL)
        return some is seen.failed

    def issued(job, launch):
        result = issue(job, launch)
        if full(job, launch):  # as is seen when its result is looked at
            return result._replace(totals=Failed(FULL))
        return result

    def scored(job, launch):
        return Failed(FULL) if full(job, launch) else scores(job, launch)

    monkeypatch.setattr(dispatch, "issue", issued)
    monkeypatch.setattr(dispatch, "launch_scores", scored)
    return seen


def drive(monkeypatch):
    """The engine with small launches in the interpreter, in several sizes."""
    _drive(monkeypatch)
    monkeypatch.setattr(launches, "QUERY_COUNTS", (4, 2))
    monkeypatch.setattr(launches, "TARGET_COUNTS", (8, 4))
    monkeypatch.setattr(launches, "LIST_SIZES", (8, 4))


SCORE = {"mode": "semiglobal", "output": "score"}
LOCAL = {"mode": "local", "output": "stats"}
JOBS = {
    "score": ("align_all", SCORE),
    "identity": ("align_all", {"mode": "local", "output": "identity"}),
    "stats": ("align_all", LOCAL),
    "alignment": ("align_all", {"mode": "local", "output": "alignment"}),
    "filter": ("align_all", LOCAL | {"min_score": 5}),
    "devices": ("align_all", SCORE | {"devices": [0, 1]}),
    "zipped": ("align_pairs", {"mode": "global", "output": "alignment"}),
    "crossed": ("scores_matrix", {"mode": "global"}),
    "search": ("search", {"top": 4}),
}
QUICK = {("score", "looked at")}
CASES = [
    pytest.param(
        name,
        when,
        id=f"{name}-{when}",
        marks=() if (name, when) in QUICK else pytest.mark.slow,
    )
    for name, when in zip(JOBS, cycle(("looked at", "issued")), strict=False)
]


def computed(name, **more):
    """The result of one of ``JOBS``."""
    verb, options = JOBS[name]
    task = task_of("all" if verb == "align_all" else "cross", "score")
    sets = [task.queries] if verb == "align_all" else [task.queries, task.targets]
    return getattr(jaxalign, verb)(*sets, **options | more)


def same(name, found, want):
    if name == "crossed":
        np.testing.assert_array_equal(found, want)
    else:
        same_tables(found, want)


@interpreted
@pytest.mark.parametrize("name, when", CASES)
def test_launches_that_find_no_memory_run_in_halves(name, when, monkeypatch):
    options = {} if name == "search" else {"implementation": "sweep"}
    options |= {"devices": None} if name == "devices" else {}
    want = computed(name, **options)
    drive(monkeypatch)
    seen = fail(monkeypatch, when)
    told = []
    watched = {} if name == "crossed" else {"progress": lambda *x: told.append(x)}
    found = computed(name, **watched)
    same(name, found, want)
    assert seen.failed and seen.ran and max(seen.ran) < min(seen.failed)
    if name != "crossed":
        assert "pallas" in found.implementation
        assert found.info["halved_launches"] >= len(seen.failed)
        assert told[-1][0] == found.info["cells"]


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize(
    "where, name",
    [
        ("empty_result", "score"),
        ("put", "alignment"),
        ("put, later", "score"),
        ("wait_for", "alignment"),
    ],
)
def test_rows_that_a_device_cannot_hold_go_to_the_host(name, where, monkeypatch):
    want = computed(name, implementation="sweep")
    drive(monkeypatch)
    calls = []

    def lost(*_):
        raise device_job.Lost

    put = device_arrays.put

    def put_some(*args):
        calls.append(args)
        if len(calls) == (2 if "later" in where else 1):
            raise error(FULL)
        return put(*args)

    if where in ("empty_result", "wait_for"):
        monkeypatch.setattr(device_job, where, lost)
    else:
        monkeypatch.setattr(device_arrays, "put", put_some)
    told = []
    found = computed(name, progress=lambda *x: told.append(x))
    same(name, found, want)
    assert told[-1] == (found.info["cells"],) * 2


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("name", ["score", "alignment"])
def test_a_result_crosses_without_memory_to_spare(name, monkeypatch):
    want = computed(name, implementation="sweep")
    drive(monkeypatch)

    def full(*_, **__):
        raise error(FULL)

    monkeypatch.setattr(device_arrays, "piece", full)
    monkeypatch.setattr(device_arrays, "in_order", full)
    same(name, computed(name), want)


@interpreted
@pytest.mark.slow
def test_int16_is_left_by_pairs_of_halved_launches_once(monkeypatch):
    """Matches of 1,000 over 40 letters leave it, and run again in int32, halved."""
    scoring, texts = beyond_int16()
    options = {"mode": "local", "output": "score"}
    want = jaxalign.align_all(texts, scoring, implementation="sweep", **options)
    drive(monkeypatch)
    seen = fail(monkeypatch, "looked at")
    found = jaxalign.align_all(texts, scoring, **options)
    same_tables(found, want)
    assert seen.failed


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("output", ["score", "alignment"])
def test_pairs_that_fit_no_launch_in_int32_are_swept(output, monkeypatch):
    """Some matches of 1,000 leave int16, and no launch of int32 is small enough."""
    scoring, texts = beyond_int16()
    options = {"mode": "local", "output": output}
    want = jaxalign.align_all(texts, scoring, implementation="sweep", **options)
    drive(monkeypatch)

    def none_fits(job, queries, targets):
        return Partition([], list(zip(queries.tolist(), targets.tolist(), strict=True)))

    monkeypatch.setattr(dispatch, "in_int32", none_fits)
    table = jaxalign.align_all(texts, scoring, **options)
    same_tables(table, want)
    assert table.implementation == "pallas, sweep"
    with pytest.raises(MemoryPlanError, match="need int32"):
        jaxalign.align_all(texts, scoring, implementation="pallas", **options)


# Without kernels ---------------------------------------------------------------------


class Shapes(Interpreted):
    """Sizes of the real kernels."""

    choose = staticmethod(kernels.choose)
    spread = staticmethod(kernels.spread)
    bucket = staticmethod(kernels.bucket)


@pytest.mark.parametrize(
    "output, kind",
    [
        ("score", "cross"),
        ("alignment", "all"),
        ("alignment", "zip"),
        pytest.param("identity", "zip", marks=pytest.mark.slow),
        pytest.param("identity", "all", marks=pytest.mark.slow),
    ],
)
def test_halves_hold_every_pair_once_in_less_memory(output, kind):
    task = lognormal_task(kind, output)
    pieces = cut(task, kernels, 2**34).blocks
    want, sizes = times_computed(task, pieces), Counter()
    while pieces:
        taken = [launch_bytes(task, kernels, piece) for piece in pieces]
        halves = [
            smaller(task, kernels, piece, count // 2)
            for piece, count in zip(pieces, taken, strict=True)
        ]
        for count, some in zip(taken, halves, strict=True):
            for half in some:
                assert launch_bytes(task, kernels, half) <= count // 2
                sizes[half.slots, half.places, half.records] += 1
        pieces = [half for some in halves for half in some]
        if all(halves):
            np.testing.assert_array_equal(times_computed(task, pieces), want)
        else:
            break
    assert len(sizes) > 1


@pytest.mark.parametrize("kind", ["all", "zip", "cross"])
@pytest.mark.parametrize("mode", ["global", "local"])
def test_scores_of_linear_gaps_have_kernels_of_their_own(kind, mode):
    def shapes(output, opening):
        scoring = jaxalign.Scoring(gap_open=opening, gap_extend=4)
        task = replace(lognormal_task(kind, output, mode, 40), scoring=scoring)
        return {x.shape.linear for x in cut(task, kernels, 2**34).blocks}

    assert shapes("score", 4) == shapes("identity", 4) == {True}
    assert shapes("score", 5) == shapes("alignment", 4) == {False}


def job_of(task):
    """A job without arrays, and the launches it looks at."""
    looked = []
    return SimpleNamespace(
        result=None,
        task=task,
        kernels=kernels,
        device="gpu:0",
        halved=[],
        looked=looked,
    )


def queue(monkeypatch, fits, when):
    """``gpu._all`` with launches that fail unless they fit."""

    def issue(job, launch):
        if when == "issued" and not fits(launch):
            raise error(FULL)
        return launch

    def look(job, launch, result, passing, counted):
        if not fits(launch):
            raise error(FULL)
        job.looked.append(launch)
        return [launch.places]

    monkeypatch.setattr(dispatch, "issue", issue)
    monkeypatch.setattr(dispatch, "_look", look)


@pytest.mark.parametrize("when", ["issued", "looked at"])
def test_the_queue_runs_every_pair_once(when, monkeypatch):
    task = lognormal_task("all", "score", count=700)
    queue(monkeypatch, lambda launch: launch.pairs <= 2**13, when)
    launches, job = cut(task, kernels, 2**34).blocks, job_of(task)
    again = dispatch._all(job, launches)
    assert (times_computed(task, job.looked) == 1).all()
    assert len(again) == len(job.looked) > len(launches) > 2
    failed = len(job.halved)
    assert failed and device_job.memory_limit("gpu:0")
    # The next ones begin smaller.
    limit, job.looked = device_job.memory_limit("gpu:0"), []
    queue(monkeypatch, lambda launch: True, when)
    dispatch._all(job, launches)
    assert (times_computed(task, job.looked) == 1).all() and len(job.halved) > failed
    for launch in job.looked:  # or nothing as small holds its pairs
        size = launch_bytes(task, kernels, launch)
        least = not smaller(task, kernels, launch, size // 2)
        assert size <= limit or least
    assert min(launch_bytes(task, kernels, x) for x in job.looked) <= limit


def test_the_least_launch_is_tried_alone_and_then_refused(monkeypatch):
    task = replace(lognormal_task("all", "score", "local"), window=2)
    (first, *_) = launches = cut(task, kernels, 2**34).blocks
    tries = []

    def fits(launch):
        tries.append(launch)
        return launch is not first

    queue(monkeypatch, fits, "looked at")
    job = job_of(task)
    with pytest.raises(MemoryPlanError, match="gpu:0: no memory for a launch of") as e:
        dispatch._all(job, launches[:4])
    assert [x is first for x in tries] == [True, False, False, True]
    message = str(e.value)
    assert "36.03GiB" in message and "jit_found" not in message
    assert f"{task.job.pairs:,} pairs" in message


def test_other_errors_name_the_job_and_the_launch(monkeypatch):
    task = lognormal_task("all", "score")

    def issue(*_):
        raise error(DEAD)

    monkeypatch.setattr(dispatch, "issue", issue)
    launches = cut(task, kernels, 2**34).blocks
    with pytest.raises(DeviceFailure) as e:
        dispatch._all(job_of(task), launches)
    message = str(e.value)
    assert isinstance(e.value, DeviceError) and e.value.exit_code == 1
    for part in ("gpu:0", "global", "output score", "int16", "ILLEGAL_ADDRESS", "cpu"):
        assert part in message
    assert "\n" not in message and "more" not in message


def test_a_limit_holds_for_later_jobs_and_only_falls():
    device_job.lower_limit("gpu:0", 2**34)
    device_job.lower_limit("gpu:0", 2**35)
    task = lognormal_task("all", "score")
    ((piece, *_), _) = cut(task, kernels, 2**34)
    assert (
        device_job.memory_limit("gpu:0") == 2**34
        and device_job.memory_limit("gpu:1") is None
    )
    (same,) = dispatch.within(job_of(task), piece)
    assert same is piece
    half = launch_bytes(task, kernels, piece) // 2
    device_job.lower_limit("gpu:0", half)
    parts = dispatch.within(job_of(task), piece)
    assert len(parts) > 1
    assert all(launch_bytes(task, kernels, x) <= half for x in parts)


def test_a_launch_takes_so_much_at_most(monkeypatch):
    """However much a device has, or does not say that it has."""
    device = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 2**40})
    task = replace(lognormal_task("all", "score"), devices=(device,))
    assert device_job.budget(task) == device_job.LAUNCH_BYTES
    device.memory_stats = lambda: None  # the platform allocator
    assert device_job.budget(task) == 2**30


def test_end_cells_are_read_without_a_copy_of_the_column():
    """Of 4,096 pairs of up to 768 letters: a copy of column n takes 12 MB."""
    s = kernels.Fill(32, 8, 2, False, False, True, plain=True)
    shapes = output_shapes(s, 64, 4, 3, 64, 0)
    filled = {name: jax.ShapeDtypeStruct(x, "int32") for name, x in shapes.items()}
    filled.pop("boundary")
    lengths = jax.ShapeDtypeStruct((64, 64), "int32")
    problem = kernels.problem_of(np.eye(4, dtype=np.int32), 7, 2, ("query_end",))

    def read(filled, rows, columns):
        n = numbers(problem, s)
        ties = jnp.zeros(rows.shape, bool)
        return border_end(FillOutput(**filled), problem, n, s, rows, columns, ties)

    compiled = jax.jit(read).lower(filled, lengths, lengths).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * 64 * 64 * 768


def test_nothing_more_is_issued_after_an_interruption(monkeypatch):
    """All launches of a device are one piece, which may take hours."""
    task, begun = lognormal_task("all", "score", "local"), threading.Event()
    issued, left = [], 1000

    def run(job, launches, out, tell, whole):
        for one in range(left):
            issued.append(one)
            begun.set()
            time.sleep(0.01)
            tell(1)

    monkeypatch.setattr(compiled, "kernels_pallas", Interpreted())
    monkeypatch.setattr(dispatch, "job_of", lambda *_: None)
    monkeypatch.setattr(dispatch, "compile_all", lambda *_: None)
    monkeypatch.setattr(dispatch, "run", run)
    piece = Piece(task, [], 1, dispatch.compute, None, dispatch.GROUP)

    def runs():
        yield Run(Plan(task, (piece,), {}), SimpleNamespace())
        begun.wait()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(engine.compute(runs(), task, left, None, None))
    assert 0 < len(issued) < left


# On the command line -----------------------------------------------------------------


def test_the_summary_says_what_was_halved():
    info = {"pairs": 3, "cells": 10, "seconds": 1.0}
    assert report.summary(info, 3, "").endswith("GCUPS")
    said = report.summary(info | {"halved_launches": 1}, 3, "")
    assert said.endswith("; 1 launch halved, the GPU had no memory for more")
    assert "2 launches" in report.summary(info | {"halved_launches": 2}, 3, "")


@pytest.fixture
def fasta(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(">a\nACDEF\n>b\nACEF\n>c\nDEF\n")
    return tmp_path


@pytest.mark.parametrize("text, code", [(DEAD, 1), (FULL, 4)])
@pytest.mark.parametrize("out", ["out.tsv", "out.parquet", "parts/"])
def test_a_device_that_fails_leaves_one_line_and_no_file(
    text, code, out, fasta, monkeypatch, capsys
):
    """Injected where a launch is looked at; the planner and the writers are real."""
    monkeypatch.setattr(compiled, "kernels_pallas", Interpreted())

    def issue(*_):
        raise error(text)

    monkeypatch.setattr(dispatch, "issue", issue)
    monkeypatch.setattr(dispatch, "compile_all", lambda *_: None)
    before = {"a.fa"}
    assert main(["all", "a.fa", "-q", "--output", "score", "-o", out]) == code
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith("jaxalign: error: ") and "3 pairs" in said.err
    left = {path.name for path in fasta.rglob("*") if path.is_file()} - before
    assert left <= {"_manifest.json"}  # of a folder, which says what is to come


ENDED = """
import atexit, sys
import jax
from jaxalign.pairs import api
from jaxalign.cli.main import run
from jaxalign.errors import DeviceFailure
def fail(*_, **__):
    raise DeviceFailure("gpu:0 failed")
api.run_plan = fail
atexit.register(print, "noise of a dying context")
sys.argv = ["jaxalign", "all", "a.fa", "-q"]
run()
"""


def test_a_process_whose_device_failed_ends_at_once(fasta):
    """Nothing that would free memory of a dead context runs any more."""
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", ENDED]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "jaxalign: error: gpu:0 failed\n"


def test_errors_beside_launches_are_explained():
    with pytest.raises(MemoryPlanError, match="no memory for this: RESOURCE"):
        with programs.explained("this"):
            raise error(FULL)
    with pytest.raises(DeviceFailure, match="failed at this: INTERNAL"):
        with programs.explained("this"):
            raise error(DEAD)


# Blocks of a database that stay on a device -------------------------------------------


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
    own = mapped.take(range(len(mapped))[::-1])  # a copy
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
