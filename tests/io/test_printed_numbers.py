"""A number that is printed decides as its value does: near 1, and above 10,000; and the
digits of a cut are those that were given."""

from dataclasses import replace

import numpy as np
import pytest

import jaxalign
from jaxalign.cli.main import main
from jaxalign.io import columns
from jaxalign.io.columns import texts
from jaxalign.io.delimited import list_lines, text_field
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.numbers import exact, printed_beside, texts_beside


@pytest.mark.parametrize("decimals", [3, 4, 6])
def test_no_fraction_is_rounded_to_one(decimals):
    lengths = np.array([1, 9, 299, 5_000, 29_900, 10**9])
    for count in (lengths - 1, lengths):
        values = count / lengths
        printed = [
            float(f"{x:.{decimals}f}") for x in printed_beside(values, decimals, 1)
        ]
        assert ([x == 1 for x in printed] == (values == 1)).all()
        assert (np.abs(values - printed) < 10.0**-decimals).all()


CUTS = (0.3, 0.35, 0.4, 0.975, 0.3333, 1 / 3, 0.30000000000000004, 0.12345678, 1)


@pytest.mark.parametrize("decimals", [3, 4, 6])
def test_a_printed_value_is_on_its_side_of_a_cut(decimals):
    """Around each cut, nearer than a digit and farther; others are as they were."""
    random, unit = np.random.default_rng(decimals), 10.0**-decimals
    for cut in CUTS:
        away = np.concatenate([[0], 10.0 ** random.uniform(-17, -1, 200)])
        values = np.clip(np.concatenate([cut - away, cut + away]), 0, 1)
        values = np.concatenate([values, np.nextafter(cut, [0, 1]), [np.nan]])
        values = values[~(values > 1)]
        shown = printed_beside(values, decimals, cut, 1)
        printed = np.array([float(f"{x:.{decimals}f}") for x in shown])
        known = ~np.isnan(values)
        np.testing.assert_array_equal((printed >= cut)[known], (values >= cut)[known])
        np.testing.assert_array_equal((printed >= 1)[known], (values >= 1)[known])
        assert (np.abs(printed - values)[known] < unit).all()
        plain = np.array([float(f"{x:.{decimals}f}") for x in values])
        right = ((plain >= cut) == (values >= cut)) & ((plain >= 1) == (values >= 1))
        near = np.abs(np.abs(values - plain) - unit / 2) < 1e-5 * unit  # a tie
        same = (printed == plain) | ~right | near | ~known
        assert same.all(), (cut, values[~same])
        if len(repr(cut)) <= 6:
            lines = list_lines({"identity": values[known]}, text_field)[1:]
            listed = np.array([float(line) for line in lines])
            np.testing.assert_array_equal(listed >= cut, values[known] >= cut)


@pytest.mark.parametrize("cut", [0.4, 0.3999999])
@pytest.mark.parametrize("identity", [0.39999, 0.4, 0.40001])
def test_worst_pairs_beside_the_cut(cut, identity):
    sets = {"a": ["MKTAYIAKQR"], "b": ["MKTAWWWWWW"]}
    audit = jaxalign.audit(sets, min_identity=cut)
    worst = audit.worst | {"identity": np.array([identity])}
    (line,) = replace(audit, worst=worst).lines()
    assert (float(line.split()[0]) >= cut) == (identity >= cut)
    (first, *_) = audit.others()
    text = str(replace(first, largest=identity))
    assert (float(text.split("worst ")[1].split()[0]) >= cut) == (identity >= cut)
    near = jaxalign.nearest(["MKTAYIAKQR"], ["MKTAWWWWWW"], bands=(0.2, cut))
    (line,) = replace(near, identity=np.array([identity])).lines(1)
    assert (float(line.split()[0]) >= cut) == (identity >= cut)


def test_columns_of_tables_and_lists():
    """Of two proteins of 30,000 residues, all but one of them equal."""
    letters = "ARNDCQEGHILKMFPSTWYV" * 1_500
    table = jaxalign.align_pairs([letters[:20]], [letters[:20]], output="stats")
    pair = as_sequences([letters], table.scoring.alphabet)
    table = replace(table, queries=pair, targets=pair)
    for name, count in {"query_end": 0, "columns": 0, "identities": 1}.items():
        table.columns[name] = np.array([len(letters) - count])
    columns = ("fident", "pident", "identity_longer", "qcov")
    selection = jaxalign.io.columns.resolve(table, columns, "longer")
    values = texts(selection, table)
    shown = [x.template % value[0] for x, value in zip(selection, values, strict=True)]
    assert shown == ["0.9999", "99.997", "0.9999", "1.000"]
    lines = list_lines({"identity": [0.9999999, 0.4, 1.0], "e": [1e-9] * 3}, text_field)
    assert [x.split()[0] for x in lines[1:]] == ["0.999999", "0.4", "1"]


@pytest.mark.parametrize("bits", [0.5, 99.96, 9_999.4, 9_999.6, 12_403.4, 1.5e7])
def test_bit_scores_sort_as_numbers(bits):
    table = jaxalign.search(["MKTAYIAKQR"], ["MKTAYIAKQR"])
    table.columns["bits"] = np.array([bits])
    selection = jaxalign.io.columns.resolve(table, ("bits",), "longer")
    ((text,),) = texts(selection, table)
    assert "e" not in text and float(text) == pytest.approx(bits, rel=6e-4)


@pytest.mark.parametrize("cut", [0.4, 0.4000000000000001, 0.30000000000000004, 1])
def test_a_cut_has_the_digits_that_were_given(cut):
    assert float(exact(cut)) == cut and len(exact(0.4)) == 3
    pair, parts = ["MKTAYIAKQR", "HEAGAWGHEE"], {"x": 0.5, "y": 0.5}
    certificate = jaxalign.audit([pair[:1], pair[1:]], min_identity=cut).certificate()
    assert f">= {exact(cut)};" in certificate["claim"]
    divided = jaxalign.split(pair, min_identity=cut, parts=parts)
    assert f">= {exact(cut)};" in str(divided.definition)


def test_cuts_that_differ_have_columns_that_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(">a\nMKTAYIAKQR\n>b\nHEAGAWGHEE\n")
    cuts = ["--cuts", "0.30000000000000004,0.3", "--parts", "x=0.5,y=0.5"]
    assert main(["split", "a.fa", *cuts, "-o", "s.tsv", "-q"]) == 0
    heading = (tmp_path / "s.tsv").read_text().splitlines()[0].split("\t")
    assert len({*heading}) == len(heading)


@pytest.mark.parametrize("decimals, whole", [(4, 1), (3, 100), (3, 1)])
def test_a_share_in_a_table_is_on_its_side_of_every_percent(decimals, whole):
    for n in (997, 12345, 29900):
        shares = whole * (np.arange(n + 1) / n)
        shown = columns._beside_cuts((), shares, decimals, whole).tolist()
        texts = np.array([float(f"{x:.{decimals}f}") for x in shown])
        for percent in range(1, 101):
            cut = percent / 100 if whole == 1 else float(percent)
            assert ((texts >= cut) == (shares >= cut)).all(), (n, percent)


@pytest.mark.parametrize("digits", [2, 3, 6])
def test_an_e_value_is_on_its_side_of_its_cut(digits):
    """And of all cuts of a digit; the text is as short as others where it can be."""
    random = np.random.default_rng(digits)
    round_cuts = [n * 10.0**power for power in range(-12, 3) for n in range(1, 10)]
    cuts = (1e-3, 0.05, 1.2352e-3, 9.995e-4, 1 / 3, 1e-30, 10.0)
    for cut in cuts:
        away = 10.0 ** random.uniform(-16, 0, 300)
        values = np.concatenate(
            [cut * (1 - away), cut * (1 + away), [cut, 0.0, np.nan]]
        )
        values = np.append(values, np.nextafter(cut, [0, 1]))
        texts = texts_beside(values, digits, cut)
        for value, text in zip(values.tolist(), texts, strict=True):
            short, shown = f"{value:.{digits}g}", float(text)
            for each in (cut, *(float(f"{x:.0e}") for x in round_cuts)):
                assert (shown <= each) == (value <= each), (cut, value, text)
            assert text in (short, repr(value))
            nearest = cut, float(f"{value:.0e}")
            right = all((float(short) <= x) == (value <= x) for x in nearest)
            assert (text == short) == right or text == short == repr(value)


@pytest.mark.parametrize("cut", [0.4, 0.40004, 0.6666666666666666, 2 / 3 + 1e-9])
def test_identities_of_tables_and_lists_are_on_their_side_of_the_cut(cut, tmp_path):
    """In all that a filter, a link or a purge writes."""
    texts = ["MKTAYIAKQRQI", "MKTAYIAKWWWW", "WWWWWIAKQRQI", "MKTAYIAKQRQW"]
    table = jaxalign.align_all(texts, output="stats", min_identity=cut)
    for name in ("fident", "pident", "identity_shorter", "qcov"):
        table.write(tmp_path / "t.tsv", columns=(name,), force=True)
        shown = [float(x) for x in (tmp_path / "t.tsv").read_text().split()[1:]]
        assert len(shown) == len(table) > 0
        assert all(x >= cut * (100 if name == "pident" else 1) for x in shown)
    links = {"link": "whole", "min_identity": cut}
    purge = jaxalign.purge(texts[1:], texts[:1], **links)
    clusters = jaxalign.cluster(texts, method="greedy", **links)
    for result in (purge, clusters):
        result.write(tmp_path / "l.tsv", force=True)
        lines = (tmp_path / "l.tsv").read_text().splitlines()[1:]
        assert lines and all(float(line.split("\t")[-1]) >= cut for line in lines)


@pytest.mark.parametrize("beside", [-1e-9, 0.0, 1e-9])
def test_e_values_of_a_search_are_on_their_side_of_max_evalue(beside, tmp_path):
    """The cut is that of a hit, moved by less than digits show; lists have six."""
    texts = ["MKTAYIAKQRQISFVKSHFSRQ", "MKTAYIAKQRQISFVKSH"]
    (value,) = jaxalign.search(texts[:1], texts[1:])["evalue"].tolist()
    cut = value * (1 + beside)
    for name, text in (("a", texts[0]), ("b", texts[1])):
        (tmp_path / f"{name}.fa").write_text(f">{name}\n{text}\n")
    a, b, out = (str(tmp_path / x) for x in ("a.fa", "b.fa", "out.tsv"))
    words = ["search", a, b, "--max-evalue", repr(cut), "--columns", "evalue"]
    assert main([*words, "-o", out, "-q"]) == 0
    lines = (tmp_path / "out.tsv").read_text().split()[1:]
    assert len(lines) == (beside >= 0) and all(float(x) <= cut for x in lines)
    purge = jaxalign.purge(texts[1:], texts[:1], max_evalue=cut)
    purge.write(out, force=True)
    lines = (tmp_path / "out.tsv").read_text().splitlines()[1:]
    assert len(lines) == (beside >= 0)
    assert all(float(x.split("\t")[-1]) <= cut for x in lines)
