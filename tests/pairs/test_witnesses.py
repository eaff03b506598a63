"""Second witnesses on real proteins: parasail, Biopython and biotite.

A witness never scores more than jaxalign; the alignment it returns scores what it says
by our rules; and the scores are equal wherever its model provably has our alignment.
"""

from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import fetch
import numpy as np
import oracle
import pytest
from cases import END_SETS, operations

import jaxalign
from jaxalign import Scoring
from jaxalign.io import fasta
from jaxalign.model.scoring import FREE_ENDS

pytestmark = pytest.mark.usefixtures("compiled")

parasail = pytest.importorskip("parasail")
Align = pytest.importorskip("Bio.Align")

SETTINGS = [("global", ends) for ends in END_SETS] + [("local", frozenset())]
SCORINGS = {
    "affine": Scoring(),
    "fraction": Scoring("BLOSUM62", 10, 0.5),
    "linear": Scoring("BLOSUM62", 5, 5),
    "PAM250": Scoring("PAM250", 10, 2),
    "DNA": Scoring(match=2, mismatch=-3, gap_open=5, gap_extend=2),
    # A mismatch costs more than an insertion next to a deletion.
    "dear": Scoring(match=2, mismatch=-9, gap_open=3, gap_extend=1),
}
SHORT, SHORT_LENGTH = ("affine", "linear"), 64  # beginnings alone, to be quick
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
CODONS = "GCTCGTAACGACTGCCAGGAAGGTCACATCCTGAAGATGTTCCCGAGCACCTGGTACGTG"


# ---------------------------------------------------------------------------- sequences


def read(path, shortest=0, longest=160):
    """Texts of the proteins of these lengths."""
    found = fasta.read(path, Scoring().alphabet)
    texts = [found.text(k) for k in range(len(found))]
    return [text for text in texts if shortest <= len(text) <= longest]


@cache
def table_of(scoring, mode, free, longest=180):
    """Beginnings of the globins, then of other proteins; of 16 globin genes for DNA."""
    texts = read(files("jaxalign.data") / "globins.fasta")
    if scoring.alphabet.kind == "dna":
        codon = {x: CODONS[3 * k : 3 * k + 3] for k, x in enumerate(AMINO_ACIDS)}
        texts = ["".join(map(codon.get, text[:60])) for text in texts]
    else:
        texts += read(Path(__file__).parents[1] / "data" / "proteins.fasta")[::2]
    texts = [text[:longest] for text in texts]
    options = dict(mode=mode, free_ends=free or None, output="alignment")
    return jaxalign.align_all(texts, scoring, **options)


def globins(table):
    return table.filter((table["query"] < 16) & (table["target"] < 16))


def every_other(table, first):
    return table.filter(np.arange(len(table)) % 2 == first % 2)


# ---------------------------------------------------------------------------- witnesses
# A maker returns a function (query, target) -> (scaled score, start cell, operations),
# or None where the witness has no such mode. A model says whether the witness can find
# our alignment, given its end cell and all its operations, of the overhang too.


def parasail_aligner(scoring, mode, free):
    """The scan kernels of 32 bits, which have no fault with linear gaps."""
    name = parasail_name(mode, free)
    if not hasattr(parasail, f"{name}_scan_32"):
        return None
    fill, trace = (getattr(parasail, f"{name}_{k}_32") for k in ("scan", "trace_scan"))
    costs = scoring.open, scoring.extend, parasail_matrix(scoring)

    def align(query, target):
        found = trace(query, target, *costs)
        assert found.score == fill(query, target, *costs).score
        start = found.cigar.beg_query, found.cigar.beg_ref
        ops = operations(oracle.runs_of_cigar(found.cigar.decode.decode()))
        # Where a local alignment begins in row 0 or column 0, what stands before it in
        # the other sequence is written as a gap.
        if mode == "local" and ops and ops[0][0] != "M":
            start = end_of(start, ops[:1])
            ops = ops[1:]
        return found.score, start, ops

    return align


def parasail_name(mode, free):
    """Begin and end of query and database; x is both. No name for three of four."""
    short = dict(zip(FREE_ENDS, ("_qb", "_qe", "_db", "_de"), strict=True))
    name = "".join(short[end] for end in FREE_ENDS if end in free)
    name = name.replace("_qb_qe", "_qx").replace("_db_de", "_dx")
    if mode == "local":
        return "sw"
    return f"sg{name}".removesuffix("_qx_dx") if free else "nw"


def parasail_matrix(scoring):
    """parasail's own numbers, times our scale."""
    if scoring.match is not None:
        return parasail.matrix_create("ACGT", scoring.match, scoring.mismatch)
    matrix = getattr(parasail, scoring.matrix_name.lower()).copy()
    for place, value in np.ndenumerate(matrix.matrix * scoring.scale):
        matrix.set_value(*place, int(value))
    return matrix


def in_parasail(scoring, end, ops):
    """It does not look for an end in row 0 or column 0: no empty overlap counts."""
    return min(end) > 0


def biopython(scoring, mode, free):
    """The ``PairwiseAligner``; the target goes first in its calls."""
    aligner = Align.PairwiseAligner(mode=mode)
    if scoring.match is None:
        load = Align.substitution_matrices.load
        aligner.substitution_matrix = load(scoring.matrix_name)
    else:
        aligner.match_score, aligner.mismatch_score = scoring.match, scoring.mismatch
    aligner.open_gap_score = -scoring.gap_open
    aligner.extend_gap_score = -scoring.gap_extend
    names = {"query": "insertion", "target": "deletion", "start": "left"}
    for end in free:
        sequence, side = end.split("_")
        kind = f"{names.get(side, 'right')}_{names[sequence]}_score"
        setattr(aligner, f"open_{kind}", 0)
        setattr(aligner, f"extend_{kind}", 0)
    return aligner


def biopython_aligner(scoring, mode, free):
    """By ``align``: ``score`` of Biopython 1.88 contradicts it where open == extend and
    a right end is free."""
    aligner = biopython(scoring, mode, free)

    def align(query, target):
        found = next(iter(aligner.align(target, query)), None)
        if found is None:
            return 0, (0, 0), []
        (t, q), moves = found.coordinates, np.diff(found.coordinates).T
        ops = [("MID"[(not dt) + 2 * (not dq)], int(max(dt, dq))) for dt, dq in moves]
        return found.score * scoring.scale, (q[0], t[0]), ops

    return align


def in_biopython(scoring, end, ops):
    return True


def biotite_aligner(scoring, mode, free):
    from biotite.sequence import GeneralSequence, LetterAlphabet
    from biotite.sequence.align import SubstitutionMatrix, align_optimal

    if free not in (frozenset(), frozenset(FREE_ENDS)):
        return None
    protein = scoring.match is None
    alphabet = LetterAlphabet(scoring.alphabet.letters if protein else "ACGT")
    scores = np.where(np.eye(4, dtype=bool), scoring.match, scoring.mismatch)
    if protein:
        named = SubstitutionMatrix(alphabet, alphabet, scoring.matrix_name)
        scores = named.score_matrix() * scoring.scale
    matrix = SubstitutionMatrix(alphabet, alphabet, scores.astype(np.int32))
    costs = -scoring.open, -scoring.extend
    options = dict(gap_penalty=costs if costs[0] != costs[1] else costs[0])
    options |= dict(terminal_penalty=not free, local=mode == "local", max_number=1)

    def align(query, target):
        pair = [GeneralSequence(alphabet, text) for text in (query, target)]
        found = align_optimal(*pair, matrix, **options)[0]
        steps = ["MID"[(j < 0) + 2 * (i < 0)] for i, j in found.trace]
        start = tuple(found.trace[0]) if mode == "local" and steps else (0, 0)
        return found.score, start, oracle.run_lengths(steps)

    return align


def in_biotite(scoring, end, ops):
    """No empty overlap; with affine gaps no insertion next to a deletion."""
    beside = any("M" not in (one, two) for (one, _), (two, _) in pairwise(ops))
    some = any(op == "M" for op, _ in ops)
    return some and (scoring.open == scoring.extend or not beside)


WITNESSES = {
    "parasail": (parasail_aligner, in_parasail),
    "Biopython": (biopython_aligner, in_biopython),
    "biotite": (biotite_aligner, in_biotite),
}


# -------------------------------------------------------------------------- comparisons


def end_of(start, ops):
    """The cell where operations lead."""
    return tuple(
        int(at) + sum(length for op, length in ops if op != other)
        for at, other in zip(start, "DI", strict=True)
    )


def merged(ops):
    """One run where the witness has several, = and X."""
    return oracle.run_lengths([op for op, length in ops for _ in range(length)])


def with_overhang(table, k):
    """Operations of row k from corner to corner; in local mode from start to end."""
    ops = operations(table.runs(k))
    if table.mode == "local":
        return ops
    m, n = (int(lengths[k]) for lengths in table.lengths())
    before = ("I", table["query_start"][k]), ("D", table["target_start"][k])
    after = ("I", m - table["query_end"][k]), ("D", n - table["target_end"][k])
    return [(op, int(length)) for op, length in (*before, *ops, *after) if length]


def compare(witness, table):
    """The statement of this file. Numbers of pairs: in all, that the witness's model
    has, that it scores lower."""
    maker, model = WITNESSES[witness]
    s, mode, free = table.scoring, table.mode, table.free_ends
    align = maker(s, mode, free)
    counts = np.zeros(3, int)
    for k in range(len(table) if align else 0):
        i, j = table["query"][k], table["target"][k]
        score, start, ops = align(table.queries.text(i), table.targets.text(j))
        where = table.queries[i], table.targets[j], start, end_of(start, ops), ops
        assert oracle.rescore(*where, s.scores, s.open, s.extend, mode, free) == score
        ours = table["score"][k] * s.scale
        end = table["query_end"][k], table["target_end"][k]
        has = model(s, end, with_overhang(table, k))
        assert score == ours if has else score <= ours, (mode, sorted(free), i, j)
        counts += 1, has, score < ours
    return counts


@pytest.mark.parametrize(
    "name, step",
    [("affine", 24), *(pytest.param(x, 1, marks=pytest.mark.slow) for x in SCORINGS)],
)
def test_witnesses(name, step):
    """All sets of free ends that each has, and local; or some of them."""
    counts = {witness: np.zeros(3, int) for witness in WITNESSES}
    for k, setting in enumerate(SETTINGS[::step]):
        longest = SHORT_LENGTH if name in SHORT else 180
        table = table_of(SCORINGS[name], *setting, longest)
        family = globins(table)
        counts["parasail"] += compare("parasail", table)
        counts["Biopython"] += compare("Biopython", every_other(family, k))
        counts["biotite"] += compare("biotite", family)
    if name == "dear":
        pairs, _, lower = counts.pop("biotite")
        assert lower > pairs / 2  # where a model differs, it shows
    for witness, (pairs, held, lower) in counts.items():
        assert held > 0.9 * pairs > 0 and lower <= pairs - held, witness


@pytest.mark.parametrize(
    "name",
    [
        "affine",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("fraction", "PAM250")),
    ],
)
def test_unique_paths_and_their_identities(name):
    """Where Biopython counts one best alignment, all of them return it and parasail's
    matches are ours; no path has more of them than max_identities."""
    s, free, unique = SCORINGS[name], frozenset(), 0
    longest = SHORT_LENGTH if name in SHORT else 180
    table = globins(table_of(s, "global", free, longest))
    most = jaxalign.align_all(table.queries, s, output="identity")
    most = globins(most)["max_identities"]
    costs = s.open, s.extend, parasail_matrix(s)
    aligner = biopython(s, "global", free)
    others = [maker(s, "global", free) for maker, _ in WITNESSES.values()]
    for k in range(len(table)):
        query, target = (table.queries.text(table[x][k]) for x in ("query", "target"))
        matches = parasail.nw_stats_scan_32(query, target, *costs).matches
        assert matches <= most[k]
        if len(aligner.align(target, query)) == 1:
            unique += 1
            assert matches == table["identities"][k] == most[k]
            ops = operations(table.runs(k))
            for align in others:
                start, found = align(query, target)[1:]
                assert (start, merged(found)) == ((0, 0), ops)
    assert unique >= 10


def test_the_kernels_that_are_no_witness():
    """parasail's striped ones are wrong with linear gaps, its 16 bits are few."""
    pair = "WDD", "VCW"
    ours = jaxalign.align(*pair, Scoring("BLOSUM62", 5, 5))
    assert (ours.score, ours.rescore()) == (-9, -9)
    costs = 5, 5, parasail.blosum62
    assert parasail.nw_scan_32(*pair, *costs).score == -9
    if parasail.nw_striped_32(*pair, *costs).score == -9:
        pytest.skip("mended in this parasail")


@pytest.mark.slow
def test_a_score_beyond_16_bits():
    pair = ["W" * 2990] * 2
    ours = jaxalign.align(*pair)
    assert (ours.score, ours.cigar()) == (11 * 2990, "2990M")
    assert parasail.nw_scan_32(*pair, 11, 1, parasail.blosum62).score == ours.score
    assert parasail.nw_scan_16(*pair, 11, 1, parasail.blosum62).saturated


@pytest.mark.slow
@pytest.mark.parametrize("name", ["affine", "fraction", "linear", "PAM250"])
@pytest.mark.parametrize("witness", WITNESSES)
def test_swissprot(witness, name):
    """300 pairs of the benchmarks' proteins, where ``benchmarks/fetch.py`` put them."""
    path = fetch.DATA / fetch.SWISSPROT.fasta
    if not path.exists():
        pytest.skip(f"no {path.name}")
    texts = read(path, shortest=30, longest=500)
    texts = [texts[k] for k in np.random.default_rng(1).permutation(len(texts))[:600]]
    for k in (0, 2, 7, 12, 15, 16):  # no free end, one, ... all four, local
        mode, free = SETTINGS[k]
        options = dict(mode=mode, free_ends=free or None, output="alignment")
        some = texts[::2], texts[1::2]
        table = jaxalign.align_pairs(*some, SCORINGS[name], **options)
        pairs, held, lower = compare(witness, table)
        assert lower <= pairs - held


# ------------------------------------------------------------------------------- ends


def best_ends(H):
    """(best score of a table, its cells in the last row or column), of residues of
    both sequences."""
    m, n = (size - 1 for size in H.shape)
    cells = [(m, j) for j in range(1, n + 1)] + [(i, n) for i in range(1, m)]
    best = max(H[cell] for cell in cells)
    return best, [cell for cell in cells if H[cell] == best]


@pytest.mark.parametrize("letters", [AMINO_ACIDS, "AW", "ARND"])
@pytest.mark.parametrize("gap_open, gap_extend", [(11, 1), (5, 5), (3, 0)])
def test_semiglobal_statistics_differ_from_parasails_by_the_end_alone(
    letters, gap_open, gap_extend
):
    """Of random sequences, which have many ties: parasail ends in the last row where it
    can, at the first such column; we in the first row of the last column. Where both
    end in one cell, all its numbers are ours."""
    rng = np.random.default_rng(gap_open)
    lengths = rng.integers(1, 40, (60, 2)).tolist()
    texts = [["".join(rng.choice([*letters], n)) for n in pair] for pair in lengths]
    scoring = Scoring("BLOSUM62", gap_open, gap_extend)
    queries, targets = zip(*texts, strict=True)
    options = dict(mode="semiglobal", output="alignment")
    table = jaxalign.align_pairs(queries, targets, scoring, **options)
    scores = np.array(parasail.blosum62.matrix)
    place = "ARNDCQEGHILKMFPSTWYVBZX*".index
    ends = set()
    for (q, t), ours in zip(texts, table.alignments(), strict=True):
        theirs = parasail.sg_stats_scan_16(
            q, t, gap_open, gap_extend, parasail.blosum62
        )
        codes = [*map(place, q)], [*map(place, t)]
        H = oracle.tables(*codes, scores, gap_open, gap_extend, "semiglobal")[0]
        best, cells = best_ends(H)
        end = theirs.end_query + 1, theirs.end_ref + 1
        assert theirs.score == best and ours.score == max(best, 0)
        # Theirs: in the last row before its end, else in the last column, the first.
        assert end == min(cells, key=lambda cell: (cell[1] == len(t), *cell))
        if best <= 0:  # the empty overlap, which parasail does not count
            assert ours.columns == 0
            continue
        want = min(cells)
        assert (ours.query_end, ours.target_end) == want
        ends.add(end == want)
        if end == want:
            numbers = theirs.matches, theirs.length
            assert numbers == (ours.identities, ours.columns)
    assert True in ends


def test_parasail_counts_no_gap_before_the_first_pair_of_a_global_alignment():
    """Its paths have it, and its counts have the gap behind the last pair."""
    for query, target, columns in (("A", "WA", 1), ("A", "AW", 2), ("WA", "A", 1)):
        pair = query, target, 11, 1, parasail.blosum62
        assert parasail.nw_stats_scan_16(*pair).length == columns
        ops = oracle.runs_of_cigar(
            parasail.nw_trace_scan_16(*pair).cigar.decode.decode()
        )
        assert len(operations(ops)) == 2
        assert jaxalign.align(query, target).columns == 2
