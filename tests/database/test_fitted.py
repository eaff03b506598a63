"""E-values fitted to a search: simulated databases, the table's values, small ones."""

import numpy as np
import pytest

import jaxalign
from jaxalign.database import fitted, hits, pieces
from jaxalign.errors import UsageError

LETTERS = list("ARNDCQEGHILKMFPSTWYV")
SHARES = [8.3, 5.5, 4.1, 5.5, 1.4, 3.9, 6.7, 7.1, 2.3, 5.9, 9.7, 5.8, 2.4, 3.9, 4.7,
          6.6, 5.3, 1.1, 2.9, 6.9]  # fmt: skip
SSEARCH = jaxalign.Scoring.preset("ssearch")


def proteins(seed, count, shortest, longest):
    dice = np.random.default_rng(seed)
    share = np.array(SHARES) / sum(SHARES)
    return [
        "".join(dice.choice(LETTERS, n, p=share))
        for n in dice.integers(shortest, longest + 1, count)
    ]


QUERIES, DATABASE = proteins(1, 24, 60, 200), proteins(2, 700, 40, 200)


def search(queries, database, scoring, top=10**4, **options):
    options |= {"statistics": "fitted", "align_top": False, "top": top}
    return jaxalign.search(queries, database, scoring, **options)


@pytest.mark.slow
def test_a_query_has_about_one_hit_of_one_by_chance():
    table = search(QUERIES, DATABASE, SSEARCH)
    assert table.info["statistics"] == "fitted"
    for bound, spread in ((1, 0.6), (10, 0.2)):
        hits = np.count_nonzero(table["evalue"] <= bound) / len(QUERIES)
        assert abs(hits / bound - 1) < spread
    for k, (query, bits) in enumerate(zip(table["query"], table["bits"], strict=True)):
        space = len(QUERIES[query]) * table.info["residues"]
        assert table["evalue"][k] == pytest.approx(space * 2.0**-bits)
        if k > 50:
            break


@pytest.mark.slow
def test_fits_are_near_what_is_published():
    info = search(QUERIES, DATABASE, jaxalign.Scoring.blast(11, 1)).info
    # Short sequences have steeper scores than the published long ones.
    assert 0.267 * 0.97 < np.median(info["lambda"]) < 0.267 * 1.2
    assert 0.041 * 0.6 < np.median(info["K"]) < 0.041 * 3
    usual = jaxalign.search(QUERIES[:1], DATABASE, jaxalign.Scoring.blast(11, 1))
    assert "statistics" not in usual.info


@pytest.mark.slow
def test_the_sample_does_not_depend_on_blocks(tmp_path, monkeypatch):
    some = DATABASE[:150]
    monkeypatch.setattr(fitted, "SAMPLE", 90)
    monkeypatch.setattr(fitted, "LEAST", 50)
    want = search(QUERIES[:3], some, SSEARCH)
    path = tmp_path / "d.fasta"
    path.write_text("".join(f">{k}\n{one}\n" for k, one in enumerate(some)))
    monkeypatch.setattr(pieces, "BLOCK_RECORDS", 64)
    for database in (path, some):
        table = search(QUERIES[:3], database, SSEARCH)
        for name in ("lambda", "K"):
            assert table.info[name].tolist() == want.info[name].tolist()
        assert table["evalue"].tolist() == want["evalue"].tolist()
    whole = search(QUERIES[:1], some, SSEARCH)
    assert whole.info["lambda"][0] == want.info["lambda"][0]


def test_related_sequences_stand_out_in_a_small_database(monkeypatch):
    monkeypatch.setattr(fitted, "LEAST", 300)
    family = [QUERIES[0][k:] + QUERIES[1][:k] for k in range(8)]
    table = search(QUERIES[:1], family + DATABASE[:20], SSEARCH)
    evalue = dict(zip(table["target"].tolist(), table["evalue"], strict=True))
    assert max(evalue[k] for k in range(8)) < 1e-10
    assert min(evalue.get(k, 1) for k in range(8, 28)) > 1e-3


def test_both_strands_and_empty_sequences():
    dice = np.random.default_rng(3)
    database = ["".join(dice.choice(list("ACGT"), 90)) for _ in range(60)] + [""]
    queries = [database[3][20:70], "", database[5]]
    scoring = jaxalign.Scoring(match=1, mismatch=-1, gap_open=3, gap_extend=1)
    table = search(queries, database, scoring, strand="both")
    assert len(table.info["lambda"]) == 6 and np.isnan(table.info["lambda"][1])
    best = [row for row in table if row["query"] == "seq1"][0]
    assert best["strand"] == 1 and best["target"] == "seq4" and best["evalue"] < 1e-6


def test_refusals():
    with pytest.raises(UsageError, match="needs mode local"):
        jaxalign.search(["MKV"], ["MKV"], statistics="fitted", mode="global")
    with pytest.raises(UsageError, match="unknown statistics 'guessed'"):
        jaxalign.search(["MKV"], ["MKV"], statistics="guessed")


def variants(seed, of, count, changes):
    """Sequences with some letters exchanged."""
    dice, made = np.random.default_rng(seed), []
    for _ in range(count):
        letters = list(of)
        for place in dice.integers(0, len(of), changes):
            letters[place] = dice.choice(LETTERS)
        made.append("".join(letters))
    return made


RELATIVES = {
    "clones": lambda one: [one] * 399 + [one[:-1]],
    "variants": lambda one: variants(7, one, 400, 8),
    "two families": lambda one: (
        variants(7, one, 200, 8) + variants(8, one[::-1], 200, 9)
    ),
    "two fifths": lambda one: variants(7, one, 160, 8) + proteins(9, 240, 40, 200),
    "a few": lambda one: variants(7, one, 8, 8) + proteins(9, 392, 40, 200),
}


@pytest.mark.parametrize("kind", RELATIVES)
def test_a_database_of_relatives(kind, monkeypatch):
    """A hit of 99 % has a small E-value, a random sequence of its letters has none."""
    monkeypatch.setattr(fitted, "LEAST", 300)
    query = QUERIES[0]
    database = RELATIVES[kind](query)
    dice = np.random.default_rng(10)
    strange = ["".join(dice.permutation(list(query))) for _ in range(20)]
    table = search([query], database + strange, SSEARCH)
    evalue = dict(zip(table["target"].tolist(), table["evalue"], strict=True))
    assert evalue[0] < 1e-20
    assert np.median([evalue.get(len(database) + k, 1e9) for k in range(20)]) > 10
    source = "database" if kind == "a few" else "shuffled"
    assert table.info["fitted_to"].tolist() == [source]
    # As a fit to another database of such sequences has it.
    usual = search([query], proteins(11, 400, 150, 200), SSEARCH).info["lambda"][0]
    assert 0.7 < table.info["lambda"][0] / usual < 1.4


def test_what_cannot_be_fitted_has_no_evalue():
    table = search(["AAAAAAAAAA"], ["A" * 20] * 50, SSEARCH)
    assert table.info["fitted_to"].tolist() == ["none"] and len(table) == 50
    assert np.isnan(table["evalue"]).all()


@pytest.mark.slow
def test_who_scored_the_database_scores_the_sample(monkeypatch):
    named, run = [], fitted.jobs.run

    def watch(*arguments):
        named.append(arguments[-1].implementation)
        return run(*arguments)

    monkeypatch.setattr(fitted.jobs, "run", watch)
    by_rows = search(QUERIES[:2], DATABASE[:60], SSEARCH)
    assert by_rows.implementation == "rows"
    monkeypatch.setattr(hits, "small_plan", lambda *_: None)
    compiled = search(QUERIES[:2], DATABASE[:60], SSEARCH)
    assert compiled.implementation == "sweep"
    assert named == [None, "sweep"]
    for name in ("lambda", "K"):
        np.testing.assert_array_equal(by_rows.info[name], compiled.info[name])
