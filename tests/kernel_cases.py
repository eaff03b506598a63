"""Launches of the pair kernels in the interpreter, for several files of tests."""

from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

import kernels_pallas as kp
from kernels_pallas.core import mosaic
from kernels_pallas.words import lcs

ENDS = ("query_start", "query_end", "target_start", "target_end")
SETS = [s for k in range(5) for s in combinations(ENDS, k)]
OTHER = dict(zip(ENDS, ENDS[2:] + ENDS[:2], strict=True))
LETTERS, STATES = 5, 3  # of the tracks
KINDS = list(product((True, False), repeat=3))  # local, packed, shared
values = pytest.mark.skipif(
    mosaic.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
)


def lowered(run, *arguments):
    """The text of a program of shapes that is lowered for a GPU."""
    traced = jax.jit(run).trace(*arguments)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text
    return text


def name(kind):
    words = ("border", "local"), ("int32", "int16"), ("list", "block")
    return "-".join(pair[which] for pair, which in zip(words, kind, strict=True))


def matrix(seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 3, (LETTERS, LETTERS))
    np.fill_diagonal(scores, rng.integers(3, 8, LETTERS))
    return scores.astype(np.int32)


def scorings(s, seed=0):
    """Scores for ``aligned``, and those of all letters: of two tracks a letter is that
    of the first plus LETTERS times that of the second."""
    first = matrix(seed)
    if s.tracks == 1:
        return first, first
    rng = np.random.default_rng(seed + 1)
    second = rng.integers(-3, 4, (STATES, STATES)).astype(np.int32)
    a, b = np.divmod(np.arange(LETTERS * STATES), LETTERS)[::-1]
    return (first, second), first[a[:, None], a] + second[b[:, None], b]


def tracked(codes):
    """Letters of both tracks, as codes."""
    second, first = np.divmod(codes.astype(np.uint16), LETTERS)
    return first + 256 * second


def padded(rng, lengths, letters=LETTERS):
    """Random residues, garbage after each sequence's end included."""
    return rng.integers(0, letters, (len(lengths), max(*lengths, 1))).astype(np.uint8)


def flat(t, n, s):
    """Padded targets one after the other, the last first, as ``letters`` of them."""
    order = range(len(n) - 1, -1, -1)
    parts = [t[k, : n[k]] for k in order]
    ends = np.cumsum([len(part) for part in parts])[::-1]
    codes = np.concatenate([*parts, np.zeros(1, t.dtype)])
    first = jnp.asarray(ends - np.array(n), jnp.int32)
    room = int(kp.rows_of(n, s)[-1]) + 3
    n = jnp.asarray(n, jnp.int32)
    return kp.letters(jnp.asarray(codes), first, n, shape=s, room=room)


def aligned(s, q, m, t, n, scores, gaps, free, tie=None, wildcard=255, runs=0,
            ragged=False, gap_costs=None):  # fmt: skip
    scores, second = scores if s.tracks > 1 else (scores, None)
    problem = kp.problem_of(scores, *gaps, free, wildcard, second, gap_costs)
    if s.tracks > 1:
        q, t = tracked(q), tracked(t)
    more = {}
    if ragged:
        t = flat(t, n, s)
        more["records"] = int(kp.records_of(m, n, s)[-1])
    interpret = mosaic.interpreter() if s.plain else None
    more["stacks"] = kp.stack(m, s) if s.stacks else None
    m, n = jnp.asarray(m, jnp.int32), jnp.asarray(n, jnp.int32)
    more |= {"runs": runs, "shape": s, "interpret": interpret}
    found = kp.align(problem, q, m, t, n, tie, **more)
    return jax.tree.map(np.asarray, found)


def shape_of(kind, rows=4, lanes=8, columns=2, tile=0, tracks=1):
    local, packed, shared = kind
    plain = jax.default_backend() == "cpu"
    if tracks > 1 and packed and not shared:
        columns = 1
    first = LETTERS if tracks > 1 else 0
    return kp.Fill(rows, lanes, columns, local, packed, shared, tile, plain,
                   first_letters=first)  # fmt: skip


def edge_lengths(s):
    """Lengths of queries and targets: none, about K and about a strip."""
    k, strip = s.rows, s.strip
    if s.shared:
        return [k, strip + 3], [0, 1, k - 1, k, k + 1, 9, 6, 7]
    m = [0, 1, k - 1, k, k + 1, strip - 1, strip, strip + 1] * 4
    return m, np.resize([5, 0, 9, 1, 6, k, 7, 2, 8], len(m)).tolist()


def sequences(rng, s, m, n):
    """Queries and targets; some targets are relatives, so that paths are long."""
    letters = LETTERS * (STATES if s.tracks > 1 else 1)
    q, t = padded(rng, m, letters), padded(rng, n, letters)
    for k in range(len(t)):
        part = min(q.shape[1], t.shape[1])
        near = rng.random(part) < 0.8
        t[k, :part] = np.where(near, q[k % len(q), :part], t[k, :part])
    return q, t


def places(s, q, t):
    if s.shared:
        return [((a, b), a, b) for a in range(len(q)) for b in range(len(t))]
    return [((k,), k, k) for k in range(len(q))]


def check_scores(s, m, n, gaps=(7, 2), free=(), seed=0, ragged=False):
    rng = np.random.default_rng(seed)
    given, scores = scorings(s, seed)
    q, t = sequences(rng, s, m, n)
    found = aligned(s, q, m, t, n, given, gaps, free, ragged=ragged).score
    mode = "local" if s.local else "global"
    for at, a, b in places(s, q, t):
        x, y = q[a, : m[a]], t[b, : n[b]]
        assert found[at] == oracle.score(x, y, scores, *gaps, mode, free), (at, m[a])


def expected(x, y, scores, gaps, mode, free, swapped):
    """The oracle's alignment; of the pair the other way round where it is swapped."""
    if not swapped:
        return oracle.align(x, y, scores, *gaps, mode, free)
    free = [OTHER[end] for end in free]
    found = oracle.align(y, x, scores.T, *gaps, mode, free)
    turned = [({"M": "M", "I": "D", "D": "I"}[op], k) for op, k in found.operations]
    return oracle.Alignment(found.score, found.start[::-1], found.end[::-1], turned)


def check_paths(s, m, n, gaps=(6, 2), free=(), seed=0, wildcard=2, ragged=False):
    rng = np.random.default_rng(seed)
    given, scores = scorings(s, seed)
    q, t = sequences(rng, s, m, n)
    shape = (len(q), len(t)) if s.shared else (len(q),)
    tie = rng.integers(0, 2, shape).astype(bool)
    runs = q.shape[1] + t.shape[1]
    r = aligned(s, q, m, t, n, given, gaps, free, tie, wildcard, runs, ragged)
    mode = "local" if s.local else "global"
    for at, a, b in places(s, q, t):
        x, y = q[a, : m[a]], t[b, : n[b]]
        want = expected(x, y, scores, gaps, mode, free, tie[at])
        words = r.runs[(slice(r.count[at]), *at)][::-1]
        operations = [("MID"[word & 15], int(word >> 4)) for word in words]
        assert r.score[at] == want.score
        assert (r.end_i[at], r.end_j[at]) == tuple(want.end)
        assert (r.start_i[at], r.start_j[at]) == tuple(want.start)
        assert operations == list(want.operations)
        x, y = (a % LETTERS for a in (x, y))  # the first track alone has identities
        same = oracle.identities(x, y, want.start, want.operations, wildcard)
        assert r.identities[at] == same
        assert r.columns[at] == oracle.columns(want.operations)
        assert r.gap_openings[at] == oracle.gap_openings(want.operations)
        assert r.gaps[at] == oracle.gaps(want.operations)


def lower(s, m=64, n=48, count=8, score_rows=24, queries=2, gap_costs=False):
    codes = jnp.uint8 if s.tracks == 1 else jnp.uint16

    def array(*shape, dtype=jnp.int32):
        return jax.ShapeDtypeStruct(shape, dtype)

    ends = [array(dtype=bool)] * 4
    problem = kp.Problem(array(score_rows, 24), array(), array(), *ends, array())
    if s.tracks > 1:
        problem = problem._replace(second=array(STATES, STATES))
    if gap_costs:
        problem = problem._replace(gap_costs=array(score_rows, 4))
    rows = queries if s.shared else count
    stacks = kp.stack([m] * rows, s) if s.stacks else None
    traced = kp.align.trace(
        problem, array(rows, m, dtype=codes), array(rows),
        array(count, n, dtype=codes), array(count), stacks=stacks, runs=8, shape=s,
    )  # fmt: skip
    return traced.lower(lowering_platforms=("cuda",)).as_text()


def joined(sequences):
    """(codes, where each sequence begins, lengths) of some arrays of codes."""
    lengths = np.array([len(one) for one in sequences], np.int32)
    first = (np.cumsum(lengths) - lengths).astype(np.int32)
    codes = np.concatenate([*sequences, np.zeros(1, np.uint8)])
    return jnp.asarray(codes), jnp.asarray(first), jnp.asarray(lengths)


def target_blocks(targets, padding, more=3, **options):
    """``match_words.target_blocks`` of some arrays of codes, and room for more."""
    size, letters = mosaic.THREADS, lcs.LETTERS_OF_WORD
    targets = [*targets, *[np.zeros(0, np.uint8)] * (-len(targets) % size)]
    blocks = (targets[k : k + size] for k in range(0, len(targets), size))
    rows = sum(-(-max(map(len, block)) // letters) for block in blocks)
    options |= {"padding": padding, "room": rows + more}
    return lcs.target_blocks(*joined(targets), **options)


def inside_arrays(result) -> np.ndarray:
    """A result of the interpreter, no access of which has left its array."""
    jax.effects_barrier()
    outside = list(mosaic.OUTSIDE)
    mosaic.OUTSIDE.clear()
    assert outside == []
    return np.asarray(result)
