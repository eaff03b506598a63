"""Reference alignments: the shipped seeds, the reader, pairs and their agreement."""

import numpy as np
import pytest

import jaxalign
from jaxalign.io import fasta
from jaxalign.model import profile

# name: sequences, columns
SHIPPED = {
    "3Beta_HSD": (8, 301), "ArsP_1": (11, 369), "COX2_TM": (11, 93),
    "Caudal_act": (9, 196), "Cyclin_N": (95, 187), "LuxC": (13, 445),
    "Patched": (10, 1027), "Pkinase": (38, 419), "RRM_1": (79, 80),
    "SMC_N": (29, 1498), "fn3": (98, 117),
}  # fmt: skip


@pytest.fixture(scope="module")
def pfam():
    return fasta.pfam()


def test_shipped_seeds(pfam):
    assert {name: found.codes.shape for name, found in pfam.items()} == SHIPPED
    protein = jaxalign.Scoring().alphabet
    for found in pfam.values():
        assert len(set(found.names)) == len(found)
        assert (found.codes >= profile.FAMILY_GAP).all()
        assert (found.codes < protein.size).all()
        assert (
            (found.codes != profile.FAMILY_GAP).any(0).all()
        )  # no column of gaps only
        assert (found.codes != profile.FAMILY_GAP).any(1).all()


def test_rows_are_the_files(pfam, tmp_path):
    """Written back, the letters are those that were read; dots are gaps too."""
    letters = np.array([*jaxalign.Scoring().alphabet.letters, "."])
    found = pfam["COX2_TM"]
    path = tmp_path / "again.fasta"
    rows = ["".join(letters[row]) for row in found.codes]
    lines = zip(found.names, rows, strict=True)
    path.write_text("".join(f">{name} x\n{row}\n" for name, row in lines))
    again = fasta.read_family(path)
    assert again.names == found.names and again.name == "again"
    np.testing.assert_array_equal(again.codes, found.codes)


def test_pairs_are_the_columns(pfam):
    """Partners against a walk over the columns of two rows."""
    found = pfam["fn3"]
    for i, j in ((0, 1), (5, 90), (17, 3)):
        a, b, pairs = 0, 0, []
        for x, y in zip(found.codes[i], found.codes[j], strict=True):
            if x >= 0 and y >= 0:
                pairs.append((a, b))
            a, b = a + (x >= 0), b + (y >= 0)
        partners = profile.partners(found, i, j)
        assert partners.shape == profile.sequence(found, i).shape
        assert [(k, int(l)) for k, l in enumerate(partners) if l >= 0] == pairs
        same = [profile.sequence(found, i)[k] == profile.sequence(found, j)[l]
                for k, l in pairs]  # fmt: skip
        assert profile.identity(found, i, j) == pytest.approx(np.mean(same))


def test_agreement_of_an_alignment_with_itself_and_with_none():
    some, none = np.array([0, -1, 2]), np.full(3, -1)
    assert profile.agreement(some, some) == (1, 1)
    assert profile.agreement(none, some) == (0, 1)
    assert profile.agreement(some, none) == (1, 0)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "the file is empty"),
        (">a\nMK\n>b\nMKV\n", "line 3: a row of 3 columns, where the first has 2"),
        (">a\nMK\n>b\nM1\n", "line 4, column 2: '1'"),
    ],
)
def test_refusals(text, words, tmp_path):
    path = tmp_path / "bad.fasta"
    path.write_text(text)
    with pytest.raises(jaxalign.InputError, match=words):
        fasta.read_family(path)
