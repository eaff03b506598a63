"""The oracle against enumeration, a printed example, parasail and Biopython."""

from itertools import combinations

import enumerate_alignments as brute
import numpy as np
import oracle
import pytest

ENDS = ("query_start", "query_end", "target_start", "target_end")
END_SETS = [frozenset(s) for k in range(5) for s in combinations(ENDS, k)]
SETTINGS = [("global", ends) for ends in END_SETS]
SETTINGS += [("semiglobal", frozenset()), ("local", frozenset())]
GAPS = {"affine": (4, 1), "dear": (11, 1), "linear": (2, 2), "flat": (3, 0)}
GAPS |= {"free": (0, 0)}
# The order of the NCBI matrix files.
PROTEIN = "ARNDCQEGHILKMFPSTWYV"


def case(rng, low, high, letters, top=4):
    """Two sequences and a matrix that is not symmetric, so a swap of a, b shows.

    A small `top` gives many ties and zeros.
    """
    a, b = (rng.integers(0, letters, rng.integers(low, high + 1)) for _ in "ab")
    S = rng.integers(-top, top, (letters, letters))
    np.fill_diagonal(S, rng.integers(0, top + 2, letters))
    return a, b, S


def tiny(seed, count=60):
    """`count` cases of lengths up to 3, one of lengths 4, and the empty ones."""
    rng = np.random.default_rng(seed)
    cases = [case(rng, 1, 3, 2 + k % 3, top=1 + k % 4) for k in range(count)]
    cases.append(case(rng, 4, 4, 2, top=2))
    (a, b, S), none = cases[0], np.zeros(0, dtype=np.int64)
    return [*cases, (none, b, S), (a, none, S), (none, none, S)]


def setting_name(setting):
    mode, ends = setting
    short = [end for name, end in zip(ENDS, ("q5", "q3", "t5", "t3"), strict=True)
             if name in ends]  # fmt: skip
    return "-".join([mode, *short])


# ------------------------------------------------------------------------ enumeration


def test_enumeration_is_complete():
    """Delannoy numbers, and no string twice."""
    for (m, n), count in {(1, 1): 3, (2, 2): 13, (3, 2): 25, (4, 4): 321}.items():
        found = brute.paths(m, n)
        assert len(found) == len(set(found)) == count


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("setting", SETTINGS, ids=setting_name)
def test_against_enumeration(setting, gap):
    """Score, most identities, and the very alignment that the tie rule picks."""
    for a, b, S in tiny(seed=len(gap)):
        arguments = (a, b, S, *GAPS[gap], *setting)
        plain = (a.tolist(), b.tolist(), S.tolist(), *GAPS[gap], *setting)
        found = list(brute.candidates(*plain))
        assert oracle.max_identities(*arguments) == brute.best(found)
        result = oracle.align(*arguments)
        assert result.score == oracle.score(*arguments) == brute.best(found)[0]
        core = "".join(op * length for op, length in result.operations)
        assert [result.start, result.end, core] == brute.preferred(found)


# ----------------------------------------------------------- the oracle against itself


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("setting", SETTINGS, ids=setting_name)
def test_walk_rescored(setting, gap):
    rng = np.random.default_rng(7)
    for _ in range(8):
        a, b, S = case(rng, 0, 14, 4)
        problem = (S, *GAPS[gap], *setting)
        result = oracle.align(a, b, *problem)
        _, start, end, operations = result
        assert oracle.rescore(a, b, start, end, operations, *problem) == result.score
        matches = oracle.identities(a, b, start, operations)
        assert matches <= oracle.max_identities(a, b, *problem)[1]
        spans = (end[0] - start[0]) + (end[1] - start[1])
        assert 2 * oracle.columns(operations) - oracle.gaps(operations) == spans
        assert oracle.gap_openings(operations) == sum(op != "M" for op, _ in operations)


def test_swapped_sequences_score_the_same():
    rng = np.random.default_rng(8)
    other = dict(zip(ENDS, ENDS[2:] + ENDS[:2], strict=True))
    for mode, ends in SETTINGS:
        a, b, S = case(rng, 0, 10, 4)
        swapped = frozenset(other[end] for end in ends)
        left = oracle.max_identities(a, b, S, 5, 1, mode, ends)
        assert left == oracle.max_identities(b, a, S.T, 5, 1, mode, swapped)


@pytest.mark.parametrize("m", [0, 1, 7, 8, 9, 16, 17])
def test_words_hold_the_nibbles(m):
    rng = np.random.default_rng(m)
    a, b = rng.integers(0, 4, m), rng.integers(0, 4, 5)
    arguments = (a, b, 3 * np.eye(4, dtype=int) - 1, 3, 1, "local")
    nibbles, packed = oracle.directions(*arguments), oracle.words(*arguments)
    assert packed.dtype == np.uint32 and packed.shape == (-(-m // 8), 5)
    assert nibbles.dtype == np.uint8 and nibbles.shape == (m, 5)
    # Hexadecimal digits are the nibbles, highest first.
    text = ["".join(f"{word:08x}" for word in column) for column in packed.T.tolist()]
    assert [[int(d, 16) for d in column[:m]] for column in text] == nibbles.T.tolist()


def test_nibbles_by_hand():
    """AC against A, match 2, mismatch -1, gap 2: worked out on paper.

    H column 1 is (-2, 2, 0): row 1 diagonal; row 2 up, D being -3. E[2,1] = 0 is opened
    from H (E[1,1] - 2 = -6): c_up clear. F[i,1] has -inf before it: c_left clear.
    """
    a, b, S = np.array([0, 1]), np.array([0]), np.array([[2, -1], [-1, 2]])
    assert oracle.directions(a, b, S, 2, 2, "global").tolist() == [[0b1100], [0b0100]]
    assert oracle.words(a, b, S, 2, 2, "global").tolist() == [[0xC4000000]]
    local = oracle.directions(a, b, S, 2, 2, "local")
    assert local.tolist() == [[0b1100], [0b0000]]


def test_tables_by_hand():
    a, b, S = np.array([0, 1]), np.array([0]), np.array([[2, -1], [-1, 2]])
    H, E, F = oracle.tables(a, b, S, 3, 1, "global")
    assert H.tolist() == [[0, -3], [-3, 2], [-4, -1]]
    assert E[1:, 1].tolist() == [-6, -1] and F[1:, 1].tolist() == [-6, -7]
    borders = np.concatenate([E[0], E[:, 0], F[0], F[:, 0]])
    assert (borders == oracle.NEG_INF).all()


# --------------------------------------------------------- the separate scorer, counts


def test_rescore_by_hand():
    a, b, S = np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([[5, -2], [-2, 5]])

    def score(start, end, operations, ends=(), mode="global"):
        problem = (S, 4, 1, mode, frozenset(ends))
        return oracle.rescore(a, b, start, end, operations, *problem)

    diagonal = [("M", 3)]
    shifted = [("D", 1), ("M", 2), ("I", 1)]
    assert score((0, 0), (3, 3), diagonal) == 5 - 2 + 5
    assert score((0, 0), (3, 3), shifted) == -4 + 10 - 4
    assert score((0, 0), (3, 3), shifted, ["target_start"]) == 10 - 4
    assert score((0, 1), (2, 3), [("M", 2)], ["target_start", "query_end"]) == 10
    # I directly beside D: two gaps; one gap written as two runs: one gap.
    assert score((0, 0), (3, 3), [("I", 3), ("D", 3)]) == -6 - 6
    assert score((0, 0), (3, 3), [("I", 1), ("I", 2), ("D", 3)]) == -6 - 6
    assert score((0, 1), (2, 3), [("M", 2)], mode="local") == 10
    for start, end in [((0, 1), (2, 3)), ((0, 0), (3, 3))]:
        with pytest.raises(ValueError):
            score(start, end, [("M", 2)])


def test_counts_by_hand():
    a, b = np.array([0, 1, 2, 9, 3]), np.array([1, 9, 3, 3])
    operations = [("I", 1), ("M", 1), ("I", 1), ("M", 2), ("D", 1)]
    assert oracle.columns(operations) == 6
    assert oracle.gap_openings(operations) == oracle.gaps(operations) == 3
    assert oracle.identities(a, b, (0, 0), operations) == 3
    assert oracle.identities(a, b, (0, 0), operations, wildcard=9) == 2
    S = 2 * np.eye(10, dtype=int) - 1
    assert oracle.max_identities(a, b, S, 1, 1, "local") == (2, 3)
    assert oracle.max_identities(a, b, S, 1, 1, "local", wildcard=9) == (2, 2)


def test_empty_overlap_counts_as_zero():
    """All pairs mismatch: of the two empty overlaps the one of row 0 is the end."""
    a, b, S = np.array([0, 0]), np.array([1, 1, 1]), np.array([[1, -9], [-9, 1]])
    result = oracle.align(a, b, S, 5, 5, "semiglobal")
    assert result == (0, (0, 3), (0, 3), [])
    assert oracle.align(a, b, S, 5, 5, "local") == (0, (0, 0), (0, 0), [])


def test_local_walk_stops_before_a_diagonal_worth_nothing():
    a, S = np.array([0, 1]), np.array([[0, -1], [-1, 5]])
    result = oracle.align(a, a, S, 4, 1, "local")
    assert result == (5, (1, 1), (2, 2), [("M", 1)])
    assert oracle.max_identities(a, a, S, 4, 1, "local") == (5, 2)


# ------------------------------------------------------------ a printed example, tools


def test_figure_2_of_liu_2006():
    """Smith-Waterman example: score 10, TCGTATGA over TC-TATCA being co-optimal."""
    letters = "ACGT"
    a, b = (
        np.array([letters.index(letter) for letter in text])
        for text in ("ATCTCGTATGAT", "GTCTATCAC")
    )
    problem = (3 * np.eye(4, dtype=int) - 1, 1, 1, "local")
    result = oracle.align(a, b, *problem)
    assert result.score == 10
    printed = [("M", 2), ("I", 1), ("M", 5)]
    assert oracle.rescore(a, b, (3, 1), (11, 8), printed, *problem) == 10
    assert oracle.identities(a, b, (3, 1), printed) == 6
    H, _, _ = oracle.tables(a, b, *problem)
    assert H.max() == H[11, 8] == 10


def proteins(seed, count, low=1, high=40):
    """Random pairs, every other one a mutated copy with pieces lost."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        a, b = (rng.integers(0, 20, rng.integers(low, high + 1)) for _ in "ab")
        if k % 2:
            kept = rng.random(len(a)) < 0.85
            kept[0] = True
            b = np.where(rng.random(len(a)) < 0.3, rng.integers(0, 20, len(a)), a)[kept]
        yield a, b


def letters_of(codes):
    return "".join(PROTEIN[code] for code in codes)


@pytest.mark.parametrize("open, ext", [(11, 1), (6, 2), (4, 4), (3, 0)])
@pytest.mark.parametrize("mode, prefix", [("global", "nw"), ("semiglobal", "sg"),
                                          ("local", "sw")])  # fmt: skip
def test_against_parasail(mode, prefix, open, ext):
    """The scan functions: parasail's striped ones are wrong when open == ext."""
    parasail = pytest.importorskip("parasail")
    matrix = parasail.blosum62
    S = np.array(matrix.matrix)[:20, :20]  # its letters begin with PROTEIN
    align = getattr(parasail, f"{prefix}_scan_32")
    compared = 0
    for a, b in proteins(seed=open, count=24):
        expected = align(letters_of(a), letters_of(b), open, ext, matrix).score
        found = oracle.score(a, b, S, open, ext, mode)
        if mode == "semiglobal" and expected <= 0:
            # parasail never ends in (m, 0) or (0, n), so where the empty overlap is
            # best it reports the best of the others: ours is then 0.
            assert found == 0
            continue
        assert found == expected
        compared += 1
    assert compared >= 18


@pytest.mark.parametrize("open, ext", [(11, 1), (4, 4), (3, 0)])
def test_against_biopython(open, ext):
    """All end sets, global and local.

    The score of `align`: for open == ext and a free right end Biopython 1.88's
    score-only call differs from the alignments it returns itself.
    """
    pytest.importorskip("Bio")
    for setting in SETTINGS:
        aligner, S = biopython_aligner(open, ext, *setting)
        for a, b in proteins(seed=open + ext, count=4, high=20):
            expected = aligner.align(letters_of(b), letters_of(a)).score
            assert oracle.score(a, b, S, open, ext, *setting) == expected


def biopython_aligner(open, ext, mode, free_ends):
    """The aligner (target comes first in its calls) and its matrix in our order."""
    from Bio.Align import PairwiseAligner, substitution_matrices

    matrix = substitution_matrices.load("BLOSUM62")
    aligner = PairwiseAligner(mode="local" if mode == "local" else "global")
    aligner.substitution_matrix = matrix
    aligner.open_gap_score, aligner.extend_gap_score = -open, -ext
    # A query residue hanging over is an insertion, a target residue a deletion.
    names = {"query": "insertion", "target": "deletion", "start": "left"}
    for end in oracle.free_set(mode, free_ends):
        sequence, side = end.split("_")
        kind = f"{names.get(side, 'right')}_{names[sequence]}"
        setattr(aligner, f"open_{kind}_score", 0)
        setattr(aligner, f"extend_{kind}_score", 0)
    index = [matrix.alphabet.index(letter) for letter in PROTEIN]
    return aligner, np.array(matrix, dtype=int)[np.ix_(index, index)]
