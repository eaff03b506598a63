"""Profiles: their scores, and that rows of a matrix align as a sequence does."""

from pathlib import Path

import numpy as np
import pytest

import jaxalign
from jaxalign.model import profile

SEED = Path(jaxalign.__file__).parent / "data/pfam/RRM_1.fasta"
# Transitions behind position 1 have a likely insertion, into position 2 a likely gap.
HMM = """HMMER3/f [3.3.2 | Nov 2020]
NAME  two
LENG  2
ALPH  amino
HMM          A        C
            m->m     m->i     m->d     i->m     i->i     d->m     d->d
  COMPO   {row}
          {row}
          0.02     4.61     4.61     0.7      0.7      0.0        *
      1   {first}      1 x - - -
          {row}
          0.36     1.61     2.3      0.3      1.35     0.5      0.94
      2   {row}      2 x - - -
          {row}
          0.01     4.61       *      0.7      0.7      0.0        *
//
"""


def random_protein(rng, size):
    return "".join(rng.choice(list("ARNDCQEGHILKMFPSTWYV"), size))


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_rows_of_a_matrix_give_the_alignment_of_a_sequence(mode):
    rng = np.random.default_rng(5)
    query = random_protein(rng, 40)
    targets = [query[5:20] + random_protein(rng, 7) + query[22:], "W"]
    targets += [random_protein(rng, n) for n in (30, 61)]
    profile = jaxalign.Profile.from_sequence(query)
    found = jaxalign.align_profile(profile, targets, mode=mode)
    for target, one in zip(targets, found, strict=True):
        want = jaxalign.align(query, target, mode=mode)
        assert (one.score, one.cigar()) == (want.score, want.cigar())
        assert one.target_start == want.target_start
        assert one.query_start == want.query_start


def test_position_based_weights_are_those_of_the_paper():
    """The example of Henikoff and Henikoff (1994)."""
    rows = profile.codes_of(["GYVGS", "GFDGF", "GYDGF", "GYQGG"])
    weights = profile.row_weights(rows, "henikoff")
    np.testing.assert_allclose(weights, [4 / 15, 4 / 15, 3 / 15, 4 / 15])


def test_log_odds_by_their_definition():
    """Of a single row all is pseudocounts: lambda times a row of BLOSUM62."""
    rows = profile.codes_of(["MKW"])
    odds = profile.log_odds_of(rows, np.ones(1), 10.0)
    matrix = jaxalign.Profile.from_sequence("MKW").scores[:, :20]
    np.testing.assert_allclose(odds / profile.LAMBDA, matrix, atol=0.25)
    many = jaxalign.Profile.from_alignment(["MA", "MC", "MD", "ME"], pseudocounts=1e-6)
    top = np.log(1 / profile.FREQUENCIES[12]) / profile.LAMBDA
    assert many.scores[0, 12] == round(top)


def test_the_formats_agree(tmp_path):
    rows = ["MK-VA", "MRGV-", "MK-IA"]
    plain = "".join(f">r{k}\n{row}\n" for k, row in enumerate(rows))
    stockholm = "# STOCKHOLM 1.0\n#=GF ID x\n"
    stockholm += "".join(f"r{k} {row[:2]}\n" for k, row in enumerate(rows)) + "\n"
    stockholm += "".join(f"r{k} {row[2:]}\n" for k, row in enumerate(rows)) + "//\n"
    texts = plain, stockholm, ">r0\nMKVA\n>r1\nMRgV-\n>r2\nMKIA\n"
    profiles = []
    for k, text in enumerate(texts):
        path = tmp_path / f"x{k}.txt"
        path.write_text(text)
        profiles.append(jaxalign.Profile.from_alignment(path))
    for one in profiles:
        assert len(one) == 4
        np.testing.assert_array_equal(one.scores, profiles[0].scores)


def test_a_hmm_has_gap_costs_by_position(tmp_path):
    row = " ".join(f"{-np.log(1 / 20):.5f}" for _ in range(20))
    first = " ".join(["0.05000", *["6.00000"] * 19])  # A
    path = tmp_path / "two.hmm"
    path.write_text(HMM.format(row=row, first=first))
    profile = jaxalign.Profile.from_hmm(path)
    assert (profile.name, len(profile), profile.consensus[0]) == ("two", 2, "A")
    _, inserted = profile.gap_open
    np.testing.assert_allclose(inserted[0], (1.61 + 0.3 - 0.36) / profile.unit)
    skipped, _ = profile.gap_open
    np.testing.assert_allclose(skipped[1], (2.3 + 0.0 - 0.01) / profile.unit)
    (one,) = jaxalign.align_profile(profile, ["AWWC"])
    a, w = jaxalign.Scoring().alphabet.encode("AW")
    assert one.score == profile.scores[0, a] + profile.scores[1, w]


def test_a_family_is_told_from_its_shuffled_rows():
    profile = jaxalign.Profile.from_alignment(SEED)
    lines = SEED.read_text().splitlines()[1::2][:6]
    rng = np.random.default_rng(0)
    members = [line.replace("-", "") for line in lines]
    decoys = ["".join(rng.permutation(list(one))) for one in members]
    score = [one.score for one in jaxalign.align_profile(profile, members + decoys)]
    assert min(score[:6]) > max(score[6:])


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: jaxalign.Profile.from_alignment([]), jaxalign.InputError),
        (lambda: jaxalign.Profile.from_alignment(["MK", "M"]), jaxalign.InputError),
        (lambda: jaxalign.Profile.from_alignment(["--"]), jaxalign.UsageError),
        (lambda: jaxalign.Profile.from_alignment("nowhere"), jaxalign.InputError),
        (lambda: jaxalign.Profile.from_hmm(SEED), jaxalign.InputError),
        (
            lambda: jaxalign.Profile.from_alignment(["MK"], pseudocounts=0),
            jaxalign.UsageError,
        ),
        (
            lambda: jaxalign.Profile.from_alignment(["MK"], weights="none"),
            jaxalign.UsageError,
        ),
    ],
)
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()
