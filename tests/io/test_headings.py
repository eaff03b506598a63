"""The first line of a table is a heading because of its words, never because names in
it are unlike others: a table of pairs loses no pair, whatever the FASTA holds."""

import itertools
from functools import partial
from pathlib import Path

import pytest

from jaxalign.cli.main import main
from jaxalign.errors import InputError
from jaxalign.io.delimited import KnownNames, read_names, read_pairs

NAMES = ["p0", "p1", "set", "protein", "pX"]
PAIRS = [("p0", "p1"), ("pX", "p0"), ("set", "protein"), ("p1", "set")]
HEADINGS = (
    (),
    ("receptor", "ligand"),
    ("protein1", "protein2"),
    ("uniprot_id_a", "uniprot_id_b"),
    ("a", "b"),
)


def table(path, rows, separator="\t", quote=""):
    lines = (separator.join(f"{quote}{x}{quote}" for x in row) for row in rows)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("separator, quote", [("\t", ""), (",", ""), ("\t", '"')])
def test_no_pair_is_taken_for_a_heading(heading, separator, quote, tmp_path):
    """Whichever row comes first, and whichever record the FASTA lacks."""
    for first, dropped in itertools.product(range(len(PAIRS)), [None, *NAMES]):
        pairs = PAIRS[first:] + PAIRS[:first]
        rows = [(*pair, f"part{k}") for k, pair in enumerate(pairs)]
        heading_row = [(*heading, "part")] if heading else []
        path = table(tmp_path / "x.tsv", heading_row + rows, separator, quote)
        known = KnownNames([x for x in NAMES if x != dropped])
        meaning = {*pairs[0]} <= {"set", "protein", dropped}  # both are words
        for parts in (False, True):
            read = read_pairs(path, known, parts)
            if not (meaning and not heading and dropped in ("set", "protein")):
                assert read.pairs == pairs, (pairs, dropped)
                assert read.parts == ([x[2] for x in rows] if parts else None)


def test_the_column_of_parts_is_none_of_the_names(tmp_path):
    rows = [("set", "b", "set"), ("p0", "p1", "train"), ("p0", "pX", "test")]
    read = read_pairs(table(tmp_path / "x.tsv", rows), KnownNames(NAMES), True)
    assert read.parts == ["set", "train", "test"]  # "set" is a sequence
    read = read_pairs(table(tmp_path / "x.tsv", rows), KnownNames(["p0"]), True)
    assert read.parts == ["train", "test"]
    rows[0] = ("a", "b", "note", "split")
    rows[1:] = [(*row[:2], "x", row[2]) for row in rows[1:]]
    read = read_pairs(table(tmp_path / "x.tsv", rows), KnownNames(NAMES), True)
    assert read.parts == ["train", "test"]


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_a_named_column_is_the_one_that_is_read(suffix, tmp_path):
    """Whatever others are called, and wherever it stands."""
    rows = [("p0", "p1", "x", "1"), ("pX", "p0", "y", "2")]
    separator = {".tsv": "\t", ".csv": ","}[suffix]
    for titles in itertools.permutations(("part", "Label", "my column")):
        path = table(tmp_path / f"x{suffix}", [("name", *titles), *rows], separator)
        for place, title in enumerate(titles, 1):
            read = read_names(path, NAMES, ("part",), title)
            assert read == {row[0]: row[place] for row in rows}
            pairs = partial(read_pairs, path, KnownNames(NAMES), True, title)
            if place == 1:
                with pytest.raises(InputError, match="there is no column"):
                    pairs()
            else:
                assert pairs().pairs == [row[:2] for row in rows]
                assert pairs().parts == [row[place] for row in rows]
        for absent in ("label", "name", "2"):
            with pytest.raises(InputError, match=f"there is no column '{absent}'"):
                read_names(path, NAMES, ("part",), absent)
            with pytest.raises(InputError, match=f"there is no column '{absent}'"):
                read_pairs(path, KnownNames(NAMES), True, absent)


def test_an_index_of_pandas_is_no_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["p0", "p1"], "label": ["x", "y"]})
    for name, separator in (("x.csv", ","), ("x.tsv", "\t")):
        frame.to_csv(tmp_path / name, sep=separator)
        read = read_names(str(tmp_path / name), NAMES, ("label",))
        assert read == {"p0": "x", "p1": "y"}


def test_names_that_mean_missing_elsewhere_are_names(tmp_path, monkeypatch, capsys):
    """In every format of tables, as read and as written; a field without a value is
    refused, and not called nan."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = ["NA", "nan", "NaN", "None", "null", "<NA>", "N/A", "-", "0", "1e5", "True"]
    letters = dict(zip(names, "ACDEFGHIKLM", strict=True))
    Path("p.fa").write_text("".join(f">{x}\n{y * 9}\n" for x, y in letters.items()))
    parts = ["x" if k % 2 else "NA" for k in range(len(names))]
    frame = pandas.DataFrame({"name": names, "part": parts, "target": names[::-1]})
    frame.to_csv("l.tsv", sep="\t", index=False)
    frame.to_csv("l.csv", index=False, quoting=1)
    frame.to_parquet("l.parquet", index=False)
    cut = ("--min-identity", "0.5", "-q")
    for end in ("tsv", "csv", "parquet"):
        path = f"l.{end}"
        assert read_names(path, names, ("part",)) == dict(
            zip(names, parts, strict=True)
        )
        frame[["name", "target"]].to_csv("pairs.tsv", sep="\t", index=False)
        read = read_pairs("pairs.tsv", KnownNames(names))
        assert read.pairs == [*zip(names, names[::-1], strict=True)]
        assert main(["audit", "p.fa", "--split", path, *cut]) == 0
        for option in ("--labels", "--fixed"):
            shares = ("--parts", "x=0.5,NA=0.5", "--too-large", "keep")
            words = ("split", "p.fa", *shares, option, path, *cut)
            out = f"out.{end}"
            assert main([*words, "-o", out, "--force"]) == 0, (option, end)
            assert read_names(out, names, ("part",)).keys() == {*names}
            assert main(["audit", "p.fa", "--split", out, *cut]) == 0
    capsys.readouterr()
    for values in (["x", None], [1.5, float("nan")]):
        frame = pandas.DataFrame({"name": ["NA", "nan"], "label": values})
        frame.to_parquet("l.parquet", index=False)
        with pytest.raises(InputError, match="line 3: a name and what belongs"):
            read_names("l.parquet", names, ("label",))
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"name": ["NA", "nan"], "label": values}), "l.parquet")
        with pytest.raises(InputError, match="line 3: a name and what belongs"):
            read_names("l.parquet", names, ("label",))


def test_row_names_of_r_are_refused_with_a_hint(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text('"name"\t"label"\n"1"\t"p0"\t"x"\n"2"\t"p1"\t"y"\n')
    with pytest.raises(InputError, match=r"row\.names = FALSE"):
        read_names(str(path), NAMES)


def test_a_first_pair_of_unknown_names_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.fa").write_text(">p0\nMKTAYIAKQR\n>p1\nHEAGAWGHEE\n")
    table(tmp_path / "l.tsv", [("pX", "pY", "train"), ("p0", "p1", "test")])
    command = ["p.fa", "--pairs", "l.tsv", "--min-identity", "0.9", "-q"]
    assert main(["audit", *command]) == 3
    assert "pX" in capsys.readouterr().err
    split = ["split", *command, "--second", "groups", "--parts", "a=.5,b=.5"]
    assert main(split) == 3
    assert "pX" in capsys.readouterr().err
