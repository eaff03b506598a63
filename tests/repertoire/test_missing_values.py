"""A repertoire depends on usable rows alone, however a table spells what is missing.

Tables are drawn: usable rows, and rows without a junction, that are not productive, of
several loci, of no arm or of no cell, with the largest counts and with odd values
beside. What comes out is what the usable rows alone say.
"""

import itertools
import random

import pytest
import receptor_oracle as oracle

import jaxalign
from jaxalign.errors import InputError, UsageError

CUTOFF = 20
SPELLINGS = ("", "NA", "<NA>", "N/A", "nan", "NaN", "None", "null", " ")
COLUMNS = ("cell_id", "sequence_id", "locus", "v_call", "junction_aa", "umi_count",
           "productive", "np1")  # fmt: skip
TENX = dict(
    zip(COLUMNS, ("barcode", "contig_id", "chain", "v_gene", "cdr3", "umis",
                  "productive", "np1"), strict=True)
)  # fmt: skip
ARMS = {"VJ": ("TRA", "IGK"), "VDJ": ("TRB", "IGH")}
YES, NO = ("T", "True", "true", "TRUE", "1"), ("F", "False", "false", "FALSE", "0")
FAULTS = ("junction", "stop", "productive", "multi", "arm", "cell")
SEQUENCES = oracle.receptors(12, seed=56)


def drawn(seed, arms=("VJ", "VDJ")):
    """Rows of a table, None where a value is missing; why each is not usable; and the
    arm that it names."""
    draw = random.Random(seed)
    rows = []
    for number in range(draw.randint(4, 14)):
        arm = draw.choice(arms)
        locus = draw.choice(ARMS[arm])
        row = {
            "cell_id": f"c{draw.randint(0, 4)}",
            "sequence_id": f"s{number}",
            "locus": locus,
            "v_call": f"{locus}V{draw.randint(1, 9)}",
            "junction_aa": draw.choice(SEQUENCES),
            "umi_count": draw.choice((None, "1", "2", "3", "4.0")),
            "productive": draw.choice((*YES, None)),
            "np1": draw.choice(("ACGT", None)),
        }
        if draw.random() < 0.3:  # one of the two names the arm
            row[draw.choice(("locus", "v_call"))] = None
        fault = draw.choice(FAULTS) if draw.random() < 0.4 else None
        if fault:
            row["umi_count"] = draw.choice(("99", "many"))
        if fault in ("junction", "stop"):
            row["junction_aa"] = None if fault == "junction" else "CASS*F"
            row["locus"] = draw.choice((locus, "TRX"))
            row["v_call"] = f"{locus}V1"
            arm = arm if row["locus"] == locus else None
        elif fault == "productive":
            row["productive"] = draw.choice(NO)
        elif fault == "multi":
            row["locus"], arm = "Multi", None
        elif fault == "arm":
            row["locus"] = row["v_call"] = arm = None
        elif fault == "cell":
            row["cell_id"], row["umi_count"] = None, None
        rows.append((row, fault, arm))
    return rows


def spelled(rows, names, spellings, seed):
    """Columns, each missing value in a spelling."""
    draw = random.Random(seed)
    return {
        names[name]: [
            draw.choice(spellings) if row[name] is None else row[name]
            for row, _, _ in rows
        ]
        for name in COLUMNS
    }


def _text(columns, separator, short=False):
    lines = [separator.join(columns)]
    for row in zip(*columns.values(), strict=True):
        line = separator.join(row)
        lines.append(line.rstrip(separator) if short else line)
    return "\n".join(lines) + "\n"


def file_of(columns, folder, suffix):
    path = folder / f"cells{suffix}"
    if suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(columns), path)
        return path
    separator = "," if suffix == ".csv" else "\t"
    path.write_text(_text(columns, separator, short=suffix == ".short.tsv"))
    return path


def frame_of(columns, dtype):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns, dtype=object)
    if dtype == "nullable":
        for name in frame:
            frame[name] = frame[name].astype("string").mask(frame[name].isna())
        return frame.convert_dtypes()
    return frame.astype(dtype)


# name -> (spellings of what is missing, function of columns and a folder)
FORMS = {
    "mapping": ((*SPELLINGS, None, float("nan")), lambda x, _: x),
    **{
        suffix: (SPELLINGS, lambda x, folder, s=suffix: file_of(x, folder, s))
        for suffix in (".tsv", ".csv", ".short.tsv")
    },
    ".parquet": ((None, "NA", ""), lambda x, folder: file_of(x, folder, ".parquet")),
    **{
        dtype: ((*SPELLINGS, None), lambda x, _, d=dtype: frame_of(x, d))
        for dtype in ("object", "string", "nullable", "category")
    },
    "polars": (
        (None, "NA", ""),
        lambda x, _: pytest.importorskip("polars").DataFrame(x),
    ),
    "arrow": ((None, "NA", ""), lambda x, _: pytest.importorskip("pyarrow").table(x)),
}


def usable_chains(rows, chains):
    """name -> sequences of the usable chains of a row, or of a cell, by arms."""
    if chains in ("sum", "all", "any"):
        best = {}
        for row, fault, arm in rows:
            if row["cell_id"] is not None:
                of_cell = best.setdefault(row["cell_id"], {})
                count = float(row["umi_count"] or 0) if not fault else None
                if not fault and (arm not in of_cell or count > of_cell[arm][0]):
                    of_cell[arm] = count, row["junction_aa"]
        return {
            cell: {arm: text for arm, (_, text) in of_cell.items()}
            for cell, of_cell in best.items()
        }
    none = {"cell", None} | ({"arm"} if chains is None else set())
    return {
        row["sequence_id"]: {"": row["junction_aa"]} if fault in none else {}
        for row, fault, arm in rows
        if chains is None or arm in (chains, None)
    }


def expected(rows, chains):
    """(edges by names, whether each name has a distance)."""
    of_name = usable_chains(rows, chains)
    least = 2 if chains in ("sum", "all") else 1
    usable = {name: len(x) >= least for name, x in of_name.items()}
    combine = {"all": max, "any": min}.get(chains, sum)
    edges = {}
    for a, b in itertools.permutations([x for x in of_name if usable[x]], 2):
        shared = of_name[a].keys() & of_name[b].keys()
        parts = [oracle.tcrdist(of_name[a][x], of_name[b][x]) for x in shared]
        if len(parts) >= least and combine(parts) <= CUTOFF:
            edges[a, b] = combine(parts)
    return edges, usable


def found(data, chains, bad):
    graph = jaxalign.repertoire_graph(data, chains=chains, bad=bad)
    names, matrix = graph.receptors.rows.names, graph.of_rows().tocoo()
    sides = (x.tolist() for x in (*matrix.coords, matrix.data))
    return {(names[i], names[j]): d for i, j, d in zip(*sides, strict=True)}, names


def check(seed, form, folder):
    draw = random.Random(seed)
    chains = draw.choice((None, "VJ", "VDJ", "sum", "all", "any"))
    bad = draw.choice(("drop", "keep", "error"))
    rows = drawn(seed, ("VDJ",) if chains is None else ("VJ", "VDJ"))
    names = draw.choice((dict(zip(COLUMNS, COLUMNS, strict=True)), TENX))
    spellings, make = FORMS[form]
    data = make(spelled(rows, names, spellings, seed), folder)
    edges, usable = expected(rows, chains)
    orphans = any(row["cell_id"] is None for row, _, _ in rows)
    cells = chains in ("sum", "all", "any")
    if bad == "error" and (not all(usable.values()) or (cells and orphans)):
        with pytest.raises(InputError):
            found(data, chains, bad)
        return
    if not usable and not cells:  # no row names its arm
        return
    result, all_names = found(data, chains, bad)
    assert result == edges, (seed, form, chains, bad)
    assert set(usable) <= set(all_names)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 300), marks=pytest.mark.slow)], ids=len
)
def test_usable_rows_decide(form, seeds, tmp_path):
    for seed in seeds:
        check(seed, form, tmp_path)


@pytest.mark.parametrize("bad", ["drop", "keep"])
@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_missing_values_of_a_series(dtype, bad):
    pandas = pytest.importorskip("pandas")
    texts = [SEQUENCES[0], None, SEQUENCES[1], "NA", "<NA>", "nan"]
    series = pandas.Series(texts, dtype=dtype)
    for data in (series, series.tolist(), dict(enumerate(series))):
        graph = jaxalign.repertoire_graph(data, bad=bad)
        problems = {k: v.tolist() for k, v in graph.receptors.problems.items()}
        assert problems == {"no sequence": [1, 3, 4, 5]}


def test_genes_decide_which_chain_is_usable():
    """A chain whose V gene has no distance takes no place of one that has."""
    table = {
        "cell_id": ["a", "a", "a", "b", "b"],
        "locus": ["TRA", "TRB", "TRB", "TRA", "TRB"],
        "v_call": ["A1", "B1", "NA", "A1", "B1"],
        "junction_aa": [SEQUENCES[0], SEQUENCES[1], SEQUENCES[2], *SEQUENCES[:2]],
        "umi_count": [1, 1, 9, 1, 1],
    }
    genes = {("A1", "B1"): 3}
    graph = jaxalign.repertoire_graph(table, chains="sum", v_distances=genes)
    assert graph.counts.tolist() == [2]


@pytest.mark.parametrize("column", ["sequence_id", "contig_id"])
@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_names_come_once(column, suffix, tmp_path):
    junction = "junction_aa" if column == "sequence_id" else "cdr3"
    columns = {column: ["s", "t", "s"], junction: SEQUENCES[:3]}
    path = file_of(columns, tmp_path, suffix)
    with pytest.raises(InputError, match=r"rows 1 and 3: the name 's' comes twice"):
        jaxalign.repertoire_graph(path)
    columns[column] = ["s", "t", "u"]
    path = file_of(columns, tmp_path, suffix)
    assert len(jaxalign.repertoire_graph(path).receptors.rows.names) == 3


@pytest.mark.parametrize("form", ["dict", "pandas", ".tsv", ".csv"])
def test_a_named_column_has_the_cdr3(form, tmp_path):
    """Whatever others are called; it is refused where there is no table."""
    cdr3, usual = SEQUENCES[:3], [SEQUENCES[3]] * 3
    columns = {"cdr3_aa": usual, "Mine": cdr3, "junction_aa": usual}
    table = columns
    if form == "pandas":
        table = pytest.importorskip("pandas").DataFrame(columns)
    elif form != "dict":
        table = file_of(columns, tmp_path, form)
    rows = jaxalign.repertoire_graph(table, column="Mine").receptors.rows
    assert rows.chains[0].cdr3 == [*cdr3] and not rows.notes
    rows = jaxalign.repertoire_graph(table, column="cdr3_aa").receptors.rows
    assert rows.chains[0].cdr3 == usual and "cdr3_aa stands for" in rows.notes[0]
    with pytest.raises(InputError, match="no column 'mine' "):
        jaxalign.repertoire_graph(table, column="mine")
    with pytest.raises(UsageError, match="column = 'Mine': a table"):
        jaxalign.repertoire_graph([*cdr3], column="Mine")


def test_a_file_that_was_cut_is_refused(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sequence_id\tjunction_aa\tnp1\na\tCASSF\tA\nb\tCASSLGQ")
    with pytest.raises(InputError, match="line 3: the file ends within this line"):
        jaxalign.repertoire_graph(path)


def test_nucleotides_are_no_cdr3():
    with pytest.raises(InputError, match="column 'cdr3' has nucleotides"):
        jaxalign.repertoire_graph({"cdr3": ["TGTGCCAGCAGC", "tgtgcc"]})


@pytest.mark.parametrize(
    "columns, error, words",
    [
        ({"productive": ["maybe"]}, InputError, "neither T nor F"),
        ({"locus": ["TRX"]}, InputError, "locus 'TRX' is unknown"),
        ({"locus": [None]}, InputError, "needs locus or v_call"),
        ({"umi_count": ["inf"]}, InputError, "'inf' is not a number"),
        ({"cell_id": [None]}, InputError, "no cell_id"),
        ({"locus": ["Multi"]}, InputError, "needs locus or v_call"),
        ({}, UsageError, "chains of both arms"),
    ],
    ids=str,
)
def test_refusals(columns, error, words):
    table = {"cell_id": ["a"], "locus": ["TRB"], "junction_aa": [SEQUENCES[0]]}
    chains = "sum"
    if not columns:
        table = {name: values * 2 for name, values in table.items()}
        columns, chains = {"locus": ["TRA", "TRB"]}, None
    with pytest.raises(error, match=words):
        jaxalign.repertoire_graph(table | columns, chains=chains)
