"""What several test files share: random pairs, matrices, gaps, and comparisons."""

import io
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import jax  # before main(), which else turns on a compilation cache in the home folder
import numpy as np
import oracle
from draws import damaged

from jaxalign.errors import UsageError
from jaxalign.io import runs
from jaxalign.model.scoring import FREE_ENDS, Scoring

END_SETS = [frozenset(s) for k in range(5) for s in combinations(FREE_ENDS, k)]
SETTINGS = [("global", frozenset()), ("semiglobal", None), ("local", None)]
SETTINGS += [("global", frozenset({"query_start", "target_end"}))]
GAPS = {"affine": (11, 1), "linear": (4, 4), "flat": (3, 0), "free": (0, 0)}
OTHER_SIDE = dict(zip(FREE_ENDS, FREE_ENDS[2:] + FREE_ENDS[:2], strict=True))
SWAPPED_OPS = {"M": "M", "I": "D", "D": "I"}


def swap_sides(ends):
    """query_start -> target_start and so on."""
    return frozenset(OTHER_SIDE[end] for end in ends)


def matrices():
    """name -> (letters used, (size, size) int matrix)."""
    rng = np.random.default_rng(5)
    skew = rng.integers(-5, 6, (20, 20))
    return {
        "protein": (20, Scoring().scores),
        "dna": (4, Scoring(match=2, mismatch=-3).scores),
        "custom": (5, 4 * np.eye(5, dtype=int) - rng.integers(0, 3, (5, 5)).T),
        "asymmetric": (20, skew),
    }


def related(rng, a, letters):
    """A copy of ``a`` with substitutions, an insertion and a deletion."""
    b = np.where(rng.random(len(a)) < 0.3, rng.integers(0, letters, len(a)), a)
    cut, put = rng.integers(0, len(b) + 1, 2)
    b = np.delete(b, np.s_[cut : cut + rng.integers(0, 6)])
    put = min(put, len(b))
    return np.insert(b, put, rng.integers(0, letters, rng.integers(0, 6)))


def codes(rng, length, letters):
    return rng.integers(0, letters, length).astype(np.uint8)


def some_pairs(rng, count, letters, longest=70, one_query=False):
    """``count`` pairs: empty ones, short ones, related ones, two up to ``longest``."""
    lengths = rng.integers(0, 20, (2, count))
    lengths[:, -1] = rng.integers(longest // 2, longest + 1, 2)
    lengths[0, 0] = lengths[1, 1] = 0
    lengths[:, 2] = 0, (0 if one_query else longest)
    queries = [codes(rng, n, letters) for n in lengths[0]]
    if one_query:
        queries = [queries[rng.integers(0, count)]] * count
    targets = [codes(rng, n, letters) for n in lengths[1]]
    for k in range(4, count // 2):
        targets[k] = related(rng, queries[k], letters).astype(np.uint8)[:longest]
    return queries, targets


def text_of(rng, length, letters="ACDEFGHIKLMNPQRSTVWY"):
    return "".join(rng.choice(list(letters), length))


def lcs_by_words(a, b, wildcard=None) -> int:
    """The longest common subsequence: one word of any length, Python's integers."""
    match = {x: sum(1 << j for j, y in enumerate(b) if y == x) for x in {*a}}
    match.pop(wildcard, None)
    everywhere = (1 << len(b)) - 1
    v = everywhere
    for x in a:
        u = v & match.get(x, 0)
        v = ((v + u) | (v & ~match.get(x, 0))) & everywhere
    return len(b) - v.bit_count()


def some_texts(seed, count, longest=64):
    """Strings of lengths 0 ... ``longest``, both occur; half of them are related."""
    rng = np.random.default_rng(seed)
    lengths = [0, longest, *rng.integers(1, longest, max(count - 2, 0))][:count]
    texts = [text_of(rng, n, "ACDW" if k % 2 else "ACDEFGHIKLMNPQRSTVWYX")
             for k, n in enumerate(lengths)]  # fmt: skip
    texts[4::4] = [texts[1][: len(t)] for t in texts[4::4]]
    return texts


def operations(runs):
    """uint32 run-length operations -> [(letter, length)]."""
    return [("MID"[run & 15], run >> 4) for run in runs.tolist()]


def expected(a, b, scoring, mode, free_ends=None):
    """The oracle's row for a pair of code arrays: score, spans, counts, operations."""
    problem = (scoring.scores, scoring.open, scoring.extend, mode, free_ends or set())
    found = oracle.align(a, b, *problem)
    ops = found.operations
    again = oracle.rescore(a, b, found.start, found.end, ops, *problem)
    assert again == found.score
    wildcard = scoring.alphabet.wildcard_code
    return {
        "score": found.score,
        "query_start": found.start[0],
        "query_end": found.end[0],
        "target_start": found.start[1],
        "target_end": found.end[1],
        "columns": oracle.columns(ops),
        "identities": oracle.identities(a, b, found.start, ops, wildcard),
        "gap_openings": oracle.gap_openings(ops),
        "gaps": oracle.gaps(ops),
        "operations": ops,
    }


def check_rows(table, every=1):
    """Every row of a table of stats or alignments is the oracle's."""
    for k in range(0, len(table), every):
        a, b = (table.queries[table["query"][k]], table.targets[table["target"][k]])
        want = expected(a, b, table.scoring, table.mode, table.free_ends)
        want["score"] /= table.scoring.scale
        got = {name: table[name][k] for name in want if name != "operations"}
        if table.operations is None:
            want.pop("operations")
        else:
            got["operations"] = operations(table.runs(k))
        assert got == want, (k, table.mode, sorted(table.free_ends))


def check_rescored(table):
    """Every alignment is one, and scores what the row says."""
    s = table.scoring
    for k in range(len(table)):
        a, b = (table.queries[table["query"][k]], table.targets[table["target"][k]])
        start = table["query_start"][k], table["target_start"][k]
        end = table["query_end"][k], table["target_end"][k]
        ops = operations(table.runs(k))
        problem = (s.scores, s.open, s.extend, table.mode, table.free_ends)
        score = oracle.rescore(a, b, start, end, ops, *problem)
        assert score / s.scale == table["score"][k] == table.alignment(k).rescore()


def same_tables(one, other):
    """Two tables of the same pairs hold the same results."""
    assert list(one.columns) == list(other.columns)
    for name in one.columns:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    if one.operations is not None:
        np.testing.assert_array_equal(one.operation_offsets, other.operation_offsets)
        np.testing.assert_array_equal(one.operations, other.operations)


# Folders of parts, and runs that are killed ---------------------------------------


def parts_in(path):
    return sorted(Path(path).glob("part-*.parquet"))


def start(words, cache):
    """A run of the command line in a process of its own; ``cache`` of its programs."""
    kept = {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    kept["JAX_PLATFORMS"] = jax.default_backend()
    kept["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    return subprocess.Popen(
        [sys.executable, "-m", "jaxalign", *words],
        cwd=Path(__file__).resolve().parents[1],
        env=os.environ | kept,
        stderr=subprocess.PIPE,
    )


def killed(process, out, more, pause):
    """Kill a run a moment after it has written ``more`` parts more; whether it was
    still at work."""
    wanted = len(parts_in(out)) + more
    while process.poll() is None and len(parts_in(out)) < wanted:
        time.sleep(0.002)
    time.sleep(pause)
    process.kill()
    process.communicate()
    return process.returncode == -9


def check_state(path, step):
    """The state of an interrupted run is read as it was written, or refused in words:
    with each array changed, missing and of another type or shape, and damaged."""
    path = Path(path)
    data = path.read_bytes()
    with np.load(io.BytesIO(data)) as file:
        arrays = dict(file)
    run = runs.SavedRun(path.name.removesuffix(".partial"), {})
    run._text = str(arrays["manifest"])
    whole = run.load(resume=True)
    assert whole.keys() == arrays.keys() - {"manifest", "checksum"}
    refused = 0
    for what, content in [*damaged(data, step), *_changed_arrays(arrays)]:
        path.write_bytes(content)
        try:
            loaded = run.load(resume=True)
        except UsageError as error:
            assert f"{path.name}: is " in str(error) and "--force" in str(error), what
            refused += 1
            continue
        assert loaded.keys() == whole.keys(), what
        for name, array in whole.items():
            assert loaded[name].dtype == array.dtype, (what, name)
            np.testing.assert_array_equal(loaded[name], array, str((what, name)))
    assert refused > len(arrays)
    path.write_bytes(data)


def _changed_arrays(arrays):
    """A state with one array that is not as it was."""
    for name, array in arrays.items():
        flipped = bytearray(array.tobytes())
        flipped[-1:] = [x ^ 1 for x in flipped[-1:]]
        others = {
            "missing": None,
            "a text": np.array("x"),
            "a dimension more": array[None],
            "nothing": array.reshape(-1)[:0],
            "reversed": array.reshape(-1)[::-1],
            "flipped": np.frombuffer(bytes(flipped), array.dtype).reshape(array.shape),
            "objects": array.astype(object),
        }
        if array.dtype.kind in "iuf":
            others["another type"] = array.astype("f4" if array.dtype != "f4" else "i8")
        for what, other in others.items():
            state = {x: y for x, y in arrays.items() if x != name}
            state |= {} if other is None else {name: other}
            content = io.BytesIO()
            np.savez(content, **state)
            yield f"{name}: {what}", content.getvalue()
