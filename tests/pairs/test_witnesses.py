"""What parasail does otherwise, beside the oracle, which is tested against it."""

import numpy as np
import oracle
import pytest
from cases import operations

import jaxalign
from jaxalign import Scoring

pytestmark = pytest.mark.usefixtures("compiled")

parasail = pytest.importorskip("parasail")

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


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
