"""What is written is read by the programs and libraries that people give it to: names
of any length, with signs that mean something there, overhangs, both strands, and all
sizes of sequences. A reader that is not installed is left out."""

import importlib
import io

import numpy as np
import pytest
from draws import pairwise

import jaxalign
from jaxalign.io import formats
from jaxalign.model.alphabet import from_parts
from jaxalign.model.strands import other_strand

NAMES = {
    "short": "q1",
    "14": "ABCDEFGHIJKLMN",
    "200": "n" * 200,
    "bars": "sp|P69905|HBA_HUMAN",
    "colon": "chr1:100-200",
    "utf-8": "prot\u00e9ine_\U0001f9ec",
    "blanks": "two words",
    "number": "7",
    "hash": "#1",
}
MODES = {
    "local": "local",
    "global": "global",
    "semiglobal": "semiglobal",
}
LENGTHS = (7, 50, 51, 130)
STRANDS = ("plus", "minus")
LETTERS = "ACGT"


def word(rng, length):
    return "".join(rng.choice(list(LETTERS), length))


def drawn(seed: int):
    """(what was drawn, a table of one alignment) for pairs of all factors."""
    names = list(NAMES)
    cases = pairwise(names, names, list(MODES), LENGTHS, STRANDS, seed=seed)
    rng = np.random.default_rng(seed)
    for query, target, mode, length, strand in cases:
        core = word(rng, length)
        long = word(rng, 60) + core[: length // 2] + "A" + core[length // 2 :]
        long += word(rng, int(rng.integers(60)))
        texts = [word(rng, 3) + core, long]
        scoring = jaxalign.Scoring(match=2, mismatch=-3, gap_open=5, gap_extend=2)
        if strand == "minus":
            texts[0] = other_strand(texts[0], scoring.alphabet)
        sets = [
            from_parts([name], [scoring.alphabet.encode(text)], scoring.alphabet)
            for name, text in zip((NAMES[query], NAMES[target]), texts, strict=True)
        ]
        table = jaxalign.align_pairs(
            *sets, scoring, mode=mode, strand="both", output="alignment"
        )
        yield (query, target, mode, length, strand), table


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.slow)])
def alignments(request):
    return list(drawn(request.param))


def text_of(table, format, path) -> str:
    formats.write(table, path, format, force=True)
    return path.read_text(encoding="utf-8")


def test_pair_by_biopython(alignments, tmp_path):
    align_io = pytest.importorskip("Bio.AlignIO")
    align = importlib.import_module("Bio.Align")
    for case, table in alignments:
        text = text_of(table, "pair", tmp_path / "o.pair")
        (one,) = table.alignments()
        rows = one.rows()
        (read,) = align_io.parse(io.StringIO(text), "emboss")
        (again,) = align.parse(io.StringIO(text), "emboss")
        for k, row in enumerate(rows):
            name = (table.queries, table.targets)[k].names[0]
            assert read[k].id.replace("_", " ") == name.replace(":", " ").replace(
                "_", " "
            ), case
            assert row in str(read[k].seq) and row in again[k], case
        # The overhang is there, so each row has every letter that it may show.
        whole = one.mode != "local"
        for k, text in enumerate((one.query, one.target)):
            letters = str(read[k].seq).replace("-", "")
            assert letters == (text if whole else rows[k].replace("-", "")), case


def test_several_and_empty_alignments_by_biopython(tmp_path):
    align_io = pytest.importorskip("Bio.AlignIO")
    align = importlib.import_module("Bio.Align")
    queries, targets = ["WWWWHHHH", "MKV", "CCCC"], ["WWWWHHHH", "P", "CCCC"]
    table = jaxalign.align_pairs(queries, targets, mode="local", output="alignment")
    assert table["score"][1] == 0
    for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1]):
        text = text_of(table.filter(np.array(order)), "pair", tmp_path / "o.pair")
        assert "score 0, no columns" in text
        for read in (align_io.parse, align.parse):
            found = [
                str(x[0].seq if read is align_io.parse else x[0])
                for x in read(io.StringIO(text), "emboss")
            ]
            assert found == [queries[k] for k in order if k != 1], order
