"""Bits and E-values against values that BLAST+ 2.12.0 printed.

``OLD_FSC=1 blastp -comp_based_stats 0 -seg no`` (E-values by length adjustment; without
OLD_FSC blastp corrects for finite lengths in another way, and differs by a third) and
``blastn -task blastn -dust no -strand plus``, which has no other way. Databases: the 12
071 proteins of benchmarks/data, the 16 globins of jaxalign/data, two random sequences.
"""

import numpy as np
import pytest

from jaxalign.model.scoring import Scoring
from jaxalign.model.statistics import bits, evalues, parameters, search_space

SWISSPROT, GLOBINS, RANDOM = (4886913, 12071), (2358, 16), (3000, 2)
BLASTP = Scoring.blast(11, 1)
BLOSUM45 = Scoring.blast(14, 2, "BLOSUM45")
BLASTN = Scoring.preset("blastn")


@pytest.mark.parametrize(
    "scoring, m, database, printed",
    [
        (BLASTP, 142, SWISSPROT, 224631042),
        (BLASTP, 147, SWISSPROT, 243995787),
        (BLASTP, 32, SWISSPROT, 120060400),
        (BLASTP, 142, GLOBINS, 199470),
        (BLASTP, 147, GLOBINS, 204982),
        (BLOSUM45, 142, GLOBINS, 155712),
        (BLOSUM45, 147, GLOBINS, 160600),
        (BLASTN, 117, RANDOM, 309296),
    ],
)
def test_effective_search_space(scoring, m, database, printed):
    assert search_space(m, *database, parameters(scoring, "local")) == printed


@pytest.mark.parametrize(
    "scoring, m, database, score, printed_bits, printed_evalue",
    [
        (BLASTP, 142, SWISSPROT, 60, "27.7", "1.0"),
        (BLASTP, 142, SWISSPROT, 58, "26.9", "1.7"),
        (BLASTP, 142, SWISSPROT, 52, "24.6", "8.6"),
        (BLASTP, 147, SWISSPROT, 57, "26.6", "2.5"),
        (BLASTP, 142, GLOBINS, 433, "171", "5.05e-47"),
        (BLASTP, 142, GLOBINS, 248, "100", "1.43e-25"),
        (BLASTP, 142, GLOBINS, 121, "51.2", "7.62e-11"),
        (BLASTP, 142, GLOBINS, 50, "23.9", "0.013"),
        (BLASTP, 147, GLOBINS, 602, "236", "1.31e-66"),
        (BLASTP, 147, GLOBINS, 36, "18.5", "0.56"),
        (BLOSUM45, 142, GLOBINS, 296, "88.2", "4.27e-22"),
        (BLOSUM45, 147, GLOBINS, 724, "208", "2.50e-58"),
        (BLASTN, 117, RANDOM, 213, "193", "3.62e-53"),
    ],
)
def test_printed_values(scoring, m, database, score, printed_bits, printed_evalue):
    found = parameters(scoring, "local")
    (bit,), (evalue,) = bits([score], found), evalues([score], [m], *database, found)
    assert abs(bit - float(printed_bits)) <= unit(printed_bits)
    assert abs(evalue - float(printed_evalue)) <= unit(printed_evalue)


def unit(text):
    """One unit of the last digit printed: BLAST cuts some digits, others it rounds."""
    digits, _, power = text.partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


@pytest.mark.parametrize(
    "scoring, mode",
    [
        (BLASTP, "global"),
        (Scoring("BLOSUM62", 13, 3), "local"),
        (Scoring("BLOSUM62", 10, 0.5), "local"),
        (Scoring(match=2, mismatch=-3, alphabet="protein", gap_open=7), "local"),
        (Scoring(("AB", np.eye(2))), "local"),
        (Scoring.preset("ssearch"), "local"),
    ],
)
def test_unknown_is_nan(scoring, mode):
    found = parameters(scoring, mode)
    assert found is None
    assert np.isnan(bits([5, 6], found)).all()
    assert np.isnan(evalues([5, 6], [10, 10], *GLOBINS, found)).all()


def test_presets_that_are_known():
    assert parameters(Scoring.preset("blastp"), "local") == (0.267, 0.041, 1.9, -30, 1)
    assert parameters(Scoring(), "local") == parameters(Scoring.blast(10, 1), "local")
    assert parameters(Scoring("EBLOSUM62", 12, 1), "local").lambda_ == 0.267


def test_odd_scores_of_2_and_3_count_as_even_in_evalues_alone():
    """blastn prints 18.4 bits for a score of 19, and the E-value of 18."""
    found = parameters(BLASTN, "local")
    assert bits([19, 18], found).round(1).tolist() == [18.4, 17.5]
    one, other = evalues([213, 212], [300, 300], 10**6, 100, found)
    assert one == other


def test_tiny_databases_and_queries_have_a_space():
    found = parameters(BLASTP, "local")
    assert search_space(0, 10, 1, found) == 10
    assert search_space(5, 0, 0, found) == 5
    assert search_space(5, 3, 3, found) >= 1
