"""GPUs other than Hopper's: the values of their kernels in the interpreter, and that
every kernel compiles for each of them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_cases import (
    KINDS,
    SETS,
    aligned,
    check_paths,
    check_scores,
    edge_lengths,
    matrix,
    name,
    shape_of,
    values,
)
from kernel_programs import DUMPS, GOLDEN, SETTINGS

import kernels_pallas as kp
from kernels_pallas.core import mosaic, target
from kernels_pallas.pairs import config

ROOT = Path(__file__).resolve().parents[2]
PACKED = [kind for kind in KINDS if kind[1]]
GOLDEN_TABLE = json.loads(GOLDEN.read_text())
SPILLED = 40  # bytes of a thread: so many more spills may come of a new compiler
slow = pytest.mark.slow


def ampere(kind, rows=4, lanes=8, columns=2, tile=0, tracks=1):
    s = shape_of(kind, rows, lanes, columns, tile, tracks)
    return replace(s, target=kp.AMPERE)


# Values, in the interpreter


def test_maxima_are_those_of_float16():
    """The twin of ``max.f16x2``, whose operands may be NaN, infinite or subnormal."""
    rng = np.random.default_rng(1)
    bits = rng.integers(-(2**15), 2**15, (2, 4096)).astype(np.int16)
    bits[:, :6] = [0, 1, 0x7BFF, 0x7C00, 0x7C01, 0x7FFF]
    bits[1, :6] = bits[1, 5::-1]
    threads = mosaic.Threads(plain=True, integer_halves=False)
    larger = np.asarray(threads.maximum(*map(jnp.asarray, bits)))
    a, b = bits.view(np.float16)
    numbers = ~(np.isnan(a) & np.isnan(b))
    want = np.fmax(a, b)
    assert (larger.view(np.float16) == want)[numbers].all()
    assert np.isnan(larger.view(np.float16)[~numbers]).all()


def test_maxima_of_the_range_are_those_of_integers():
    """Also where one operand is below 0, as two's complement has it."""
    rng = np.random.default_rng(2)
    a = rng.integers(0, target.FLOAT16_LIMIT, 4096).astype(np.int16)
    b = rng.integers(-(2**15), target.FLOAT16_LIMIT, 4096).astype(np.int16)
    b[:3], a[:3] = [-1, -1024, -(2**15)], 0
    threads = mosaic.Threads(plain=True, integer_halves=False)
    for x, y in ((a, b), (b, a)):
        larger = threads.maximum(jnp.asarray(x), jnp.asarray(y))
        assert (np.asarray(larger) == np.maximum(x, y)).all()


@values
@pytest.mark.parametrize("gaps", [(7, 2), pytest.param((2, 1), marks=slow)], ids=str)
@pytest.mark.parametrize(
    "kind, tracks",
    [(PACKED[0], 1), *(pytest.param(k, x, marks=slow) for k, x in zip(
        [*PACKED[1:], PACKED[0]], (1, 1, 1, 2), strict=True))],
    ids=lambda x: x if isinstance(x, int) else name(x),
)  # fmt: skip
def test_scores_of_all_lengths(kind, tracks, gaps):
    """Gaps that cost more and less than a mismatch: the floor of local mode differs."""
    s = ampere(kind, tracks=tracks)
    check_scores(s, *edge_lengths(s), gaps, SETS[5])


@values
@slow
@pytest.mark.parametrize("free", [SETS[0], SETS[6], SETS[15]], ids=str)
@pytest.mark.parametrize("kind", PACKED, ids=name)
def test_paths(kind, free):
    local, _, shared = kind
    if local and free:
        pytest.skip("local mode has no free ends")
    s = ampere(kind, 8, 16, tile=2)
    m, n = [7, 20], [5, 9, 12, 30]
    if not shared:
        m, n = [7, 20, 33, 1] * 2, [5, 30, 12, 9] * 2
    check_paths(s, m, n, free=free)


@values
@slow
def test_stacked_queries():
    """Where a query begins, its first lane takes the values of row 0, not zeros."""
    s = replace(ampere((True, True, True)), stacks=2)
    m = [1, 0, s.rows, s.strip, s.strip + 3, 2 * s.rows + 1, 40, 3]
    check_scores(s, m, [0, 1, 9, 30, 8, 7, 17, 5], (2, 1))
    linear = replace(s, linear=True, stacks=1)
    check_scores(linear, m, [0, 1, 9, 30, 8, 7, 17, 5], (4, 4))


@values
@slow
def test_local_scores_beyond_the_range_are_marked():
    """Each table beside one whose scores leave the range: neither harms the other."""
    scores = np.full((2, 2), -5, np.int32)
    scores[0, 0], scores[1, 1] = 1000, 3
    s = ampere((True, True, True), 4, 16)
    n = [40, 33, 32, 31, 30, 12, 0, 1]
    q = np.zeros((4, 40), np.uint8)
    q[1] = q[2] = 1
    t = np.zeros((8, 40), np.uint8)
    t[:, 20:] = 1
    t[0] = 0
    gaps = 11, 1
    found = aligned(s, q, [40] * 4, t, n, scores, gaps, ())
    wide = replace(s, packed=False, target=kp.HOPPER)
    right = aligned(wide, q, [40] * 4, t, n, scores, gaps, ()).score
    safe = kp.safe_score(scores, *gaps, kp.AMPERE)
    assert (found.overflow == (found.score > safe)).all()
    assert (found.overflow | (found.score == right)).all()
    assert found.overflow[0, 0] and found.overflow[3, 0]
    assert not found.overflow[1:3].any() and not found.overflow[:, 1:].any()


@values
@slow
def test_values_up_to_the_limit_are_exact():
    """The largest score that is proved, of the largest floor."""
    target_limit = kp.AMPERE.half_limit
    highest = (target_limit - 1 - 500) // 31
    scores = np.array([[highest, -500], [-500, highest]], np.int32)
    s = ampere((True, True, True), 4, 16)
    q = np.zeros((2, 30), np.uint8)
    assert kp.fits(scores, 11, 1, 30, 30, True, target=kp.AMPERE)
    assert not kp.fits(scores, 11, 1, 31, 31, True, target=kp.AMPERE)
    found = aligned(s, q, [30, 29], q, [30, 30], scores, (11, 1), ())
    assert found.score.tolist() == [[30 * highest] * 2, [29 * highest] * 2]
    assert 30 * highest + highest + 500 > target_limit - highest


@values
def test_global_values_up_to_the_limit_are_exact():
    s, scores = ampere((False, True, True), 4, 16), matrix()
    q = np.full((2, 40), int(scores.diagonal().argmax()), np.uint8)

    def holds(factor):
        return kp.fits(factor * scores, 90, 20, 40, 40, False, target=kp.AMPERE)

    factor = max(k for k in range(1, 200) if holds(k))
    scaled = factor * scores
    assert 0.7 * kp.AMPERE.half_limit < 40 * scaled.max() and factor < 199
    found = aligned(s, q, [40, 39], q, [40, 38], scaled, (90, 20), ())
    best = int(scaled.max())
    want = [[40 * best, 38 * best - 110], [39 * best - 90, 38 * best - 90]]
    assert found.score.tolist() == want


# Targets


@pytest.mark.parametrize(
    "capability, architecture, integers",
    [("8.0", "sm_80", False), ("8.7", "sm_87", False), ("8.9", "sm_89", False),
     ("9.0", "sm_90", True), ("10.3", "sm_103", True), ("12.1", "sm_121", True)],
)  # fmt: skip
def test_a_capability_has_the_target_below(capability, architecture, integers):
    found = kp.target_of(capability, 77)
    assert found.architecture == architecture and found.cores == 77
    assert found.integer_halves == integers


@pytest.mark.parametrize("capability", ["7.5", "6.0", "gfx90a", "", "0"])
def test_older_cards_have_no_target(capability):
    assert kp.target_of(capability) is None


@pytest.mark.parametrize("jax_version", [(0, 10), (0, 11)])
@pytest.mark.parametrize("capability", ["7.5", "8.0", "9.0", "12.0"])
def test_support(monkeypatch, capability, jax_version):
    monkeypatch.setattr(target, "jax_version", lambda: jax_version)
    device = SimpleNamespace(platform="gpu", compute_capability=capability)
    works, why = target.supported.__wrapped__(device)
    number = float(capability)
    assert works == (number >= 9 or (number >= 8 and jax_version >= (0, 11)))
    assert capability in why


@pytest.mark.parametrize("card", target.TARGETS, ids=lambda card: card.architecture)
def test_profiles_fit_the_shared_memory_of_a_card(card):
    for local in (True, False):
        for longest in (300, 1000, 5000, 40000):
            s = kp.choose(longest, local=local, packed=True, target=card)
            assert config.has_room(s.rows, s.lanes, card) and s.target == card
            s = kp.choose(longest, local=local, packed=True, target=card,
                          first_letters=24)  # fmt: skip
            assert config.has_room(s.rows, s.lanes, card, tracks=2)
        for tracks in (1, 2):
            s = kp.spread([4000, 60], [900] * 500, local=local, packed=True,
                          target=card, first_letters=24 * (tracks - 1))  # fmt: skip
            assert config.has_room(s.rows, s.lanes, card, tracks) and s.target == card


# Compiled, for a card that need not be there


@cache
def resources(architecture: str) -> dict:
    """What ``ptxas`` says of every kernel, from a process of its own."""
    if not find_spec("jax_plugins") or not find_spec("jax_plugins.xla_cuda13"):
        pytest.skip("JAX's CUDA plugin is not installed (make test-kernels has it)")
    if jax.__version_info__ < (0, 11):
        pytest.skip("JAX compiles for GPUs before Hopper since 0.11")
    paths = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    env = os.environ | SETTINGS | dict.fromkeys(DUMPS, "1") | {"PYTHONPATH": paths}
    script = ROOT / "tests" / "kernel_programs.py"
    command = [sys.executable, str(script), architecture]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@slow
@pytest.mark.parametrize("card", target.TARGETS, ids=lambda card: card.architecture)
def test_every_kernel_compiles(card):
    """With the registers and spills that the golden table has, give or take, and its
    shared memory. After a deliberate change run
    ``python tests/kernel_programs.py ARCHITECTURE --write``."""
    kernels = resources(card.architecture)
    golden = GOLDEN_TABLE[card.architecture]
    assert set(kernels) == set(golden)
    for kernel, (registers, spilled, shared) in kernels.items():
        old_registers, old_spilled, old_shared = golden[kernel]
        assert registers <= old_registers + 16, kernel
        assert spilled <= old_spilled + SPILLED, kernel
        assert shared == old_shared, kernel


@pytest.mark.parametrize("card", target.TARGETS, ids=lambda card: card.architecture)
def test_every_kernel_fits_its_card(card):
    """And spills no more than on Hopper, where its speed was measured, give or take."""
    measured = GOLDEN_TABLE[kp.HOPPER.architecture]
    assert set(GOLDEN_TABLE[card.architecture]) == set(measured)
    for kernel, (registers, spilled, shared) in GOLDEN_TABLE[card.architecture].items():
        assert registers <= 255 and shared <= card.shared_bytes, kernel
        assert spilled <= measured[kernel][1] + SPILLED, kernel


def test_all_cards_are_in_the_golden_table():
    assert set(GOLDEN_TABLE) == {card.architecture for card in target.TARGETS}
