"""Edit distances: brute force, words of all sizes, any letters, near pairs, paths."""

from itertools import product

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import values

import jaxalign
from jaxalign.errors import InputError, MemoryPlanError, UsageError
from jaxalign.model import alphabet
from jaxalign.words import cpu, distances, match_vectors, near_pairs

RNG = np.random.default_rng(3)


@pytest.fixture(params=["integers", "rows", "variants", "lanes"])
def way(request, monkeypatch):
    """Every way, whatever takes less time: pair by pair, side by side in NumPy, by the
    variants that near pairs share, and compiled."""
    small = {"integers": 1e9, "rows": 1e9}.get(request.param, -1)
    monkeypatch.setattr(
        distances, "MAX_SECONDS", -1 if request.param == "lanes" else 1e9
    )
    monkeypatch.setattr(near_pairs, "MAX_SECONDS", small)
    monkeypatch.setattr(distances, "LANE_CELLS", 1e30)
    cells = 1e-30 if request.param == "variants" else 1e30
    monkeypatch.setattr(near_pairs, "LANE_CELLS", cells)
    monkeypatch.setattr(near_pairs, "LANE_SECONDS", 0)
    by_numpy = 1e9 if request.param == "integers" else -1
    monkeypatch.setattr(distances, "edit_seconds", lambda *_: by_numpy)
    return request.param


few_ways = pytest.mark.parametrize(
    "way",
    ["integers", "rows", pytest.param("lanes", marks=pytest.mark.slow)],
    indirect=True,
)


def table(a, b):
    """The recurrence, cell by cell."""
    cells = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            others = cells[i - 1][j] + 1, cells[i][j - 1] + 1
            cells[i][j] = min(cells[i - 1][j - 1] + (x != y), *others)
    return cells


def columns(a, b):
    """The path of the rule: from the end, diagonal before up before left."""
    cells, i, j, path = table(a, b), len(a), len(b), ""
    while i or j:
        here = cells[i][j]
        if i and j and here == cells[i - 1][j - 1] + (a[i - 1] != b[j - 1]):
            path, i, j = ("=" if a[i - 1] == b[j - 1] else "X") + path, i - 1, j - 1
        elif i and here == cells[i - 1][j] + 1:
            path, i = "I" + path, i - 1
        else:
            path, j = "D" + path, j - 1
    return path


def by_rows(a, b) -> int:
    """The recurrence for long texts, a row at a time."""
    a, b = (np.frombuffer(x.encode("utf-32-le"), "<u4") for x in (a, b))
    place = np.arange(len(b) + 1)
    row = place
    for i, x in enumerate(a, 1):
        new = np.minimum(row[:-1] + (b != x), row[1:] + 1)
        row = np.minimum.accumulate(np.concatenate([[i], new]) - place) + place
    return int(row[-1])


def text(length, some="ACD"):
    return "".join(RNG.choice(list(some), length))


WORDS = ["".join(x) for k in range(5) for x in product("ab", repeat=k)]
WORDS += ["".join(x) for x in product("abc", repeat=3)]


def test_all_short_words(way):
    first, second = zip(*product(WORDS, WORDS), strict=True)
    want = [table(a, b)[-1][-1] for a, b in zip(first, second, strict=True)]
    assert jaxalign.edit_distance(first, second).tolist() == want
    graph = jaxalign.edit_distance_graph(WORDS, max_distance=2).tocoo()
    near = {
        (i, j): d
        for (i, j), d in zip(product(range(len(WORDS)), repeat=2), want, strict=True)
        if d <= 2 and i != j
    }
    sides = (x.tolist() for x in (*graph.coords, graph.data))
    assert {(i, j): d for i, j, d in zip(*sides, strict=True)} == near
    assert graph.nnz == len(near)


def test_paths_of_all_short_words():
    for a, b in product(WORDS, WORDS):
        want = columns(a, b)
        errors = len(want) - want.count("=")
        assert distances.path(a, b) == (errors, want.encode())


@pytest.mark.parametrize("count", [40, 3])
def test_lengths_around_the_ends_of_words(count, way):
    sizes = (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 250)
    targets = [text(n) for n in sizes] + ["A" * 129, "A" * 64]
    queries = [text(n) for n in RNG.integers(0, 140, len(targets))]
    queries[:5] = "", "A" * 130, targets[5] + "CCC", targets[9], "C" * 200
    queries, targets = (queries * 3)[:count], (targets * 3)[:count]
    want = [by_rows(a, b) for a, b in zip(queries, targets, strict=True)]
    assert jaxalign.edit_distance(queries, targets).tolist() == want
    for query in queries[1:5]:
        want = [by_rows(query, one) for one in targets]
        assert jaxalign.edit_distance([query], targets).tolist() == want
        assert jaxalign.edit_distance(targets, [query]).tolist() == want


@pytest.mark.slow
@few_ways
def test_targets_of_several_groups_of_words(way):
    longest = match_vectors.MAX_WORDS * match_vectors.WORD_BITS
    targets = [text(n) for n in (longest, longest + 1, 2 * longest + 70, 40)]
    targets += ["A" * 3 * longest]
    queries = [text(300), targets[1][::2], targets[2][5:], text(77), "A" * 700]
    want = [by_rows(a, b) for a, b in zip(queries, targets, strict=True)]
    assert jaxalign.edit_distance(queries, targets).tolist() == want
    want = [by_rows(queries[1], one) for one in targets]
    assert jaxalign.edit_distance([queries[1]], targets).tolist() == want
    graph = jaxalign.edit_distance_graph(targets, max_distance=2000).toarray()
    for i, j in ((0, 1), (0, 3), (1, 2)):
        distance = by_rows(targets[i], targets[j])
        assert graph[i, j] == graph[j, i] == distance * (distance <= 2000)


def test_near_pairs_of_several_blocks(way, monkeypatch):
    monkeypatch.setattr(match_vectors, "LANE_BYTES", 128)
    monkeypatch.setattr(cpu, "EDIT_SLOTS", 50)
    monkeypatch.setattr(near_pairs, "GROUP", 120)
    some = [text(n, "ACDE") for n in RNG.integers(0, 24, 400)]
    some[7], some[300] = some[200], some[200]
    graph = jaxalign.edit_distance_graph(some, max_distance=3, threads=2).tocoo()
    sides = [x.tolist() for x in (*graph.coords, graph.data)]
    codes, _ = alphabet.encode_letters(some)
    lists = [codes[k].tolist() for k in range(400)]
    want = {
        (i, j, d)
        for i, j in product(range(400), repeat=2)
        if i != j and abs(len(some[i]) - len(some[j])) <= 3
        if (d := distances.distance(lists[i], lists[j])) <= 3
    }
    assert set(zip(*sides, strict=True)) == want and graph.nnz == len(want)
    assert (7, 200, 0) in want and (300, 7, 0) in want
    assert graph.dtype == np.int32


@few_ways
def test_distances_may_exceed_a_short_word(way):
    """Targets of 16 letters have words of 16 bits, and distances more."""
    queries, targets = [text(70_000), "ACD"], ["ACDACD", text(16)]
    want = [by_rows(a, b) for a, b in zip(queries, targets, strict=True)]
    assert want[0] > 2**16
    assert jaxalign.edit_distance(queries, targets).tolist() == want
    assert jaxalign.edit_distance(queries[:1], targets).tolist()[0] == want[0]


@few_ways
def test_any_letters(way):
    many = "".join(map(chr, [*range(65, 100), *range(0x4E00, 0x4F40), 0x1F600]))
    queries = [text(n, many) for n in RNG.integers(0, 40, 24)]
    targets = [one[3:] + text(4, many) for one in queries]
    want = [by_rows(a, b) for a, b in zip(queries, targets, strict=True)]
    assert jaxalign.edit_distance(queries, targets).tolist() == want
    both = queries + targets
    graph = jaxalign.edit_distance_graph(both, max_distance=8).toarray()
    full = np.array([[by_rows(a, b) for b in both] for a in both])
    np.testing.assert_array_equal(graph, np.where(full <= 8, full, 0))


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
@pytest.mark.parametrize("some", ["AC", "ACGT"])
def test_the_letter_that_pads_is_none_of_a_full_alphabet(way, some):
    texts = [text(n, some) for n in RNG.integers(1, 40, 40)]
    queries, targets = [some, *texts[:20]], [some, *texts[20:]]
    want = [by_rows(a, b) for a, b in zip(queries, targets, strict=True)]
    assert jaxalign.edit_distance(queries, targets).tolist() == want


@pytest.mark.parametrize("some", ["BCDEFGHI", "ACGTacgt", "AC\u4e00\u00e9", "A"])
def test_codes_are_the_same_for_the_same_letter(some, monkeypatch):
    monkeypatch.setattr(alphabet, "FEW", 2)
    texts = ["", text(5, some[:2]), "", text(9, some), some, some[0]]
    codes, counts = alphabet.encode_letters(texts, iter(texts[:2]), [])
    both = "".join(texts + texts[:2])
    pairs = {*zip(both, codes.codes.tolist(), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert max(b for _, b in pairs) < codes.size <= 2 * len(some) and counts == [
        6,
        2,
        0,
    ]
    assert codes.lengths.tolist() == [len(one) for one in texts + texts[:2]]


def test_runs_have_each_pair_once():
    """A run fills its lanes, and no target has more columns than its words."""
    lengths = np.concatenate([RNG.integers(0, 3000, 500), np.arange(130), [9] * 3000])
    i, j = RNG.permutation(len(lengths)), RNG.permutation(len(lengths))
    every = [*cpu.runs(lengths, i, j)]
    assert sorted(np.concatenate([run for run, _, _ in every])) == [*range(len(i))]
    for run, columns, lanes in every[:-1]:
        assert lengths[j[run]].max() <= columns and len(run) % lanes == 0


def test_forms_of_sequences(tmp_path):
    path = tmp_path / "some.fasta"
    path.write_text(">one\nACg\n>two\nTTTT\n")
    want = [1, 4]
    targets = ["ACG", ""]
    for queries in (
        path,
        str(path),
        {"one": "ACg", "two": "TTTT"},
        [("one", "ACg"), b"TTTT"],
    ):
        assert jaxalign.edit_distance(queries, targets).tolist() == want
    scoring = jaxalign.Scoring()
    codes = [scoring.alphabet.encode(one) for one in ("MKV", "MRV")]
    assert jaxalign.edit_distance(codes[:1], codes[1:]).tolist() == [1]
    flat = np.concatenate(codes), np.array([0, 3, 6])
    assert jaxalign.edit_distance(flat, codes[:1]).tolist() == [0, 1]
    names, flat = ("one", "two"), np.concatenate(codes)
    held = jaxalign.Sequences(names, flat, np.array([0, 3, 6]), scoring.alphabet)
    assert jaxalign.edit_distance(held, ["MKV"]).tolist() == [0, 1]
    for letter in (900, -4, 2**40):
        numbers = [np.array([3, letter, 3]), np.array([letter])]
        assert jaxalign.edit_distance(numbers, numbers[::-1]).tolist() == [2, 2]
    assert jaxalign.edit_distance(["a"], ["A"]).tolist() == [1]
    assert jaxalign.edit_distance([], []).tolist() == []
    assert jaxalign.edit_distance_graph([], max_distance=1).shape == (0, 0)


@pytest.mark.parametrize("some", [[0, 255, 7], [65, 66, 81, 90], [5], [200, 201]])
def test_flat_bytes(some, monkeypatch):
    """Letters that come late, and few of a wide range."""
    monkeypatch.setattr(alphabet, "LETTERS_STRETCH", 5)
    flat = RNG.choice(np.array(some, np.uint8), 30)
    flat[-1] = some[-1]
    offsets, other = np.array([0, 3, 3, 30]), np.array([7, 200, 255, 66])
    queries = np.split(flat, offsets[1:-1])
    want = [table(x.tolist(), other.tolist())[-1][-1] for x in queries]
    assert jaxalign.edit_distance((flat, offsets), [other]).tolist() == want


def test_cigars_are_rescored():
    queries = [text(n, "AC") for n in (0, 3, 40, 90, 0)]
    targets = [text(n, "AC") for n in (4, 0, 44, 80, 0)]
    found, cigars = jaxalign.edit_distance(queries, targets, return_cigars=True)
    assert found.tolist() == jaxalign.edit_distance(queries, targets).tolist()
    assert cigars[::4] == ["4D", "*"] and cigars[1] == "3I"
    for distance, cigar, a, b in zip(found, cigars, queries, targets, strict=True):
        errors = i = j = 0
        for run, letter in zip(
            oracle.runs_of_cigar(cigar),
            filter(str.isalpha, cigar.replace("=", "E")),
            strict=True,
        ):
            for _ in range(int(run) >> 4):
                if letter in "EX":
                    assert (a[i] == b[j]) == (letter == "E")
                errors += letter != "E"
                i, j = i + (letter != "D"), j + (letter != "I")
        assert (errors, i, j) == (distance, len(a), len(b))


def test_refusals():
    with pytest.raises(InputError, match="2 queries and 3 targets"):
        jaxalign.edit_distance(["A", "C"], ["A", "C", "D"])
    with pytest.raises(InputError, match="text and others numbers"):
        jaxalign.edit_distance(["AB"], [np.array([65, 66])])
    with pytest.raises(InputError, match="whole numbers"):
        jaxalign.edit_distance([np.array([0.5])], [np.array([1])])
    with pytest.raises(InputError, match="no such file"):
        jaxalign.edit_distance("ACGT", ["ACGT"])
    with pytest.raises(MemoryPlanError, match="rows of a path"):
        texts = ["A" * 300], ["C" * 300]
        jaxalign.edit_distance(*texts, return_cigars=True, memory_budget=1000)


def test_a_budget_of_near_pairs(monkeypatch):
    monkeypatch.setattr(near_pairs, "MAX_SECONDS", -1)
    with pytest.raises(MemoryPlanError, match="within the cut"):
        some = ["ACDE"] * 60
        jaxalign.edit_distance_graph(some, max_distance=1, memory_budget=1000)


def test_variants_that_too_many_pairs_share_are_given_up(monkeypatch):
    """Or that find pairs more often than the budget of bytes allows."""
    monkeypatch.setattr(near_pairs, "MAX_SECONDS", -1)
    monkeypatch.setattr(near_pairs, "LANE_CELLS", 1e-30)
    texts = ["ACDE", "ACDF", "ACE", "WWWW"]
    want = [[0, 1, 1, 0], [1, 0, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0]]
    for seconds in (1e99, 1e-7):
        monkeypatch.setattr(near_pairs, "SHARED_PAIR", seconds)
        options = {"max_distance": 2, "memory_budget": 3 * 60}  # of three pairs
        graph = jaxalign.edit_distance_graph(texts, **options)
        assert graph.toarray().tolist() == want


@values
def test_near_pairs_by_launches(monkeypatch):
    """Sequences too long for a launch, several launches, a launch with few queries."""
    from jaxalign.words import gpu
    from kernels_pallas.core import mosaic
    from kernels_pallas.words import edits as kernel

    def launches(sequences):
        static = {"queries": 40, "stacks": 9, "targets": 128}
        static["interpret"] = mosaic.interpreter()
        return gpu.EditLaunches(sequences, **static)

    monkeypatch.setattr(near_pairs, "MAX_SECONDS", -1)
    monkeypatch.setattr(near_pairs, "LEAST_CELLS_OF_A_GPU", 0)
    monkeypatch.setattr(near_pairs, "LAUNCHES_AT_ONCE", 1)  # of the interpreter
    monkeypatch.setattr(gpu, "LEAST_ROWS", 1)
    monkeypatch.setattr(gpu, "LEAST_PAIRS", 64)
    monkeypatch.setattr(kernel, "STACK_WORD_COUNTS", (1, 2))
    monkeypatch.setattr(gpu.EditLaunches, "longest", 30)
    monkeypatch.setattr(gpu, "near_launches_of", launches)
    some = [text(n, "ACDE") for n in (*RNG.integers(0, 14, 150), 31, 32, 33, 30)]
    graph = jaxalign.edit_distance_graph(some, max_distance=2).toarray()
    full = np.array([[by_rows(a, b) for b in some] for a in some])
    np.testing.assert_array_equal(graph, np.where(full <= 2, full, 0))


@values
@pytest.mark.parametrize("rows", [2**12, 50])
def test_pairs_by_launches(rows, monkeypatch):
    """All words, groups, launches cut short, sequences beyond those of a launch."""
    import kernels_pallas
    from jaxalign.words import gpu
    from kernels_pallas.core import mosaic

    def launches(sequences):
        interpret = mosaic.interpreter()
        return gpu.EditPairLaunches(sequences, interpret, rows=rows)

    some = [text(n, "ACDE") for n in (*RNG.integers(0, 90, 200), 300, 64, 40, 0)]
    others = [text(n, "ACDE") for n in (*RNG.integers(0, 30, 200), 3, 65, 321, 0)]
    want = jaxalign.edit_distance(some, others)
    calls = []
    monkeypatch.setattr(distances, "MAX_SECONDS", -1)
    monkeypatch.setattr(distances, "GPU_SECONDS", 0)
    monkeypatch.setattr(distances, "GPU_PAIRS", 1)
    monkeypatch.setattr(distances, "GPU_LETTERS", 320)
    monkeypatch.setattr(kernels_pallas, "PAIR_WORD_COUNTS", (1, 2), raising=False)
    monkeypatch.setattr(kernels_pallas, "GROUP_WORD_COUNTS", (2, 3), raising=False)
    for name in ("LEAST_BLOCKS", "LEAST_ROWS"):
        monkeypatch.setattr(gpu, name, 1)
    monkeypatch.setattr(
        gpu, "pair_launches_of", lambda x: calls.append(x) or launches(x)
    )
    np.testing.assert_array_equal(jaxalign.edit_distance(some, others), want)
    np.testing.assert_array_equal(jaxalign.edit_distance(others, some), want)
    assert len(calls) == 2


def test_few_pairs_or_cells_are_not_for_a_gpu():
    codes, _ = alphabet.encode_letters(
        ["A" * 1000, "C" * 1000, "D" * (distances.GPU_LETTERS + 1)]
    )
    count = max(
        distances.GPU_PAIRS,
        int(distances.GPU_SECONDS * distances.LANE_CELLS / 10**6) + 1,
    )

    def some(count, threads, longest=1000):
        sides = np.full(count, 1000), np.full(count, longest)
        return distances._for_a_gpu(codes, *sides, threads)

    assert some(count, 1).all()
    assert not some(count, 2).any() and not some(distances.GPU_PAIRS - 1, 0).any()
    assert not some(count, 1, distances.GPU_LETTERS + 1).any()


@pytest.mark.gpu
@pytest.mark.parametrize("longest, some", [(90, "ACGT"), (700, "ACDEFGHIKLMNPQRST")])
def test_pairs_on_a_gpu(longest, some, monkeypatch):
    from jaxalign.words.gpu import pair_launches_of

    queries = [text(n, some) for n in RNG.integers(0, longest, 1000)]
    targets = [text(n, some) for n in RNG.integers(0, longest, 1000)]
    queries[:300] = [one[5:] + "AC" for one in targets[:300]]
    codes, _ = alphabet.encode_letters(queries, targets)
    monkeypatch.setattr(distances, "GPU_SECONDS", 1e9)
    want = jaxalign.edit_distance(queries, targets)
    launches = pair_launches_of(codes)
    assert launches is not None
    i, j = np.arange(1000), np.arange(1000, 2000)
    np.testing.assert_array_equal(launches.distances(i, j), want)


# Letters in arrays --------------------------------------------------------------------


DTYPES = [np.dtype(name) for name in "u1 u2 u4 u8 i1 i2 i4 i8".split()]


def values_of(dtype):
    """Numbers of a dtype: few, so that some are equal, and those at its ends."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    return st.sampled_from([0, 1, 2, *ends])


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(DTYPES))
    return np.array(draw(st.lists(values_of(dtype), max_size=6)), dtype)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(arrays(), arrays()), min_size=1, max_size=3))
def test_numbers_of_any_dtypes_are_compared_as_numbers(pairs):
    queries, targets = ([pair[k] for pair in pairs] for k in (0, 1))
    want = [table(a.tolist(), b.tolist())[-1][-1] for a, b in pairs]
    assert jaxalign.edit_distance(queries, targets).tolist() == want


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    arrays(),
    st.lists(st.integers(-2, 9), max_size=4),
    st.sampled_from([*DTYPES, np.dtype("f4"), np.dtype(bool)]),
)
def test_offsets_of_flat_arrays_are_checked(flat, offsets, dtype):
    """They give what the pieces give, or an error: nothing beside the letters."""
    if dtype.kind == "u":
        offsets = [abs(x) for x in offsets]
    rises = offsets and offsets[0] == 0 and offsets[-1] == len(flat)
    rises = rises and offsets == sorted(offsets) and dtype.kind in "iu"
    held = np.array(offsets).astype(dtype)
    if not rises:
        with pytest.raises(InputError, match="offsets"):
            jaxalign.edit_distance((flat, held), [flat])
        return
    pieces = [flat[a:b].tolist() for a, b in zip(offsets, offsets[1:], strict=False)]
    want = [table(piece, flat.tolist())[-1][-1] for piece in pieces]
    assert jaxalign.edit_distance((flat, held), [flat]).tolist() == want


def test_flat_letters_are_whole_numbers():
    for flat in (np.zeros(3), np.zeros((3, 1), int)):
        with pytest.raises(InputError, match="whole numbers"):
            jaxalign.edit_distance((flat, np.array([0, 3])), [[1]])


@pytest.mark.parametrize("cut", [7, 2**63, 10**30, np.int64(7)])
def test_a_cut_may_be_any_number(cut):
    graph = jaxalign.edit_distance_graph(["ACDE", "A", ""], max_distance=cut)
    assert graph.toarray().tolist() == [[0, 3, 4], [3, 0, 1], [4, 1, 0]]


@pytest.mark.parametrize("cut", [-1, True, 1.5, "2", None])
def test_what_is_no_cut(cut):
    with pytest.raises(UsageError, match="max_distance"):
        jaxalign.edit_distance_graph(["ACDE", "A"], max_distance=cut)
