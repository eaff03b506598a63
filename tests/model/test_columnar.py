"""Results of rows that are no alignments have the same methods, from their columns."""

import numpy as np
import pytest

import jaxalign
from jaxalign.errors import UsageError

PROTEINS = [("a", "MKTAYIAKQR"), ("b", "MKTAYLAKQR"), ("c", "GGGGWWPHGE"), ("d", "MRV")]
PAIRS, HALVES = [("a", "c"), ("b", "d"), ("c", "d")], {"train": 0.5, "test": 0.5}
CUT = {"min_identity": 0.5}


def family():
    database = [(f"r{k}", "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ") for k in range(3)]
    (found,) = jaxalign.search_family(database[:1], database, iterations=1)
    return found


def of_complex():
    texts = ["MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ", "GSHMWPCELVNAYQRTKIFGDLSWHEPNC"]
    names = {f"{k} OX={k // 2}": text for k, text in enumerate(texts * 2)}
    (result,) = jaxalign.search_complexes({"x": texts}, names, iterations=1)
    return result


RESULTS = {
    "Clusters": lambda: jaxalign.cluster(PROTEINS, min_identity=0.5),
    "Split": lambda: jaxalign.split(PROTEINS, folds=2, too_large="keep", **CUT),
    "Purge": lambda: jaxalign.purge(PROTEINS, PROTEINS[:1], **CUT),
    "Nearest": lambda: jaxalign.nearest(PROTEINS[:2], PROTEINS),
    "Audit": lambda: jaxalign.audit([PROTEINS[:2], PROTEINS[2:]], **CUT),
    "PairSplit": lambda: jaxalign.split_pairs(
        PROTEINS, PAIRS, cold="none", parts=HALVES, **CUT
    ),
    "PairAudit": lambda: jaxalign.audit_pairs(
        PROTEINS, PAIRS, ["train", "test", "removed"], **CUT
    ),
    "RepertoireGraph": lambda: jaxalign.repertoire_graph(
        ["CASSLGQAYEQYF", "CASSLGTAYEQYF"]
    ),
    "FamilyAlignment": family,
    "ComplexAlignment": of_complex,
}


@pytest.mark.parametrize("name", RESULTS)
def test_columns_are_frames_files_and_a_line(name, tmp_path):
    result = RESULTS[name]()
    columns = result.columns()
    rows = len(next(iter(columns.values())))
    assert type(result).__name__ == name and rows > 0
    frame, table = result.to_pandas(), result.to_arrow()
    assert frame.columns.tolist() == list(columns) == table.column_names
    assert len(frame) == table.num_rows == len(result.to_polars()) == rows
    for column, values in columns.items():
        assert np.array_equal(frame[column].to_numpy(), values, equal_nan=False) or (
            np.asarray(values).dtype.kind == "f"
        )
    assert repr(result) == f"<{name}: {result.heading()}>"
    assert "<p>" in result._repr_html_()
    some = list(columns)[::-2]
    assert result.to_pandas(some).equals(frame[some])
    assert result.to_polars(some).columns == some == result.to_arrow(some).column_names
    with pytest.raises(UsageError, match="column 'qwe': choose from"):
        result.to_pandas(["qwe"])
    if name in ("FamilyAlignment", "ComplexAlignment"):  # which write alignments
        return
    path = tmp_path / "rows.tsv"
    result.write(path)
    lines = path.read_text().splitlines()
    assert lines[0].split("\t") == list(columns) and len(lines) == rows + 1
    with pytest.raises(UsageError, match="exists"):
        result.write(path)
    result.write(path, force=True, columns=some)
    assert path.read_text().splitlines()[0].split("\t") == some
    with pytest.raises(UsageError, match="format"):
        result.write(tmp_path / "rows.xyz")
