"""Links along either strand: what is planted is found, and columns and certificates
say which strand. Other tests of links compare both strands with the oracle."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import UsageError
from jaxalign.homology import clustering
from jaxalign.homology.certificate import definition_of
from jaxalign.homology.options import define, pair_options
from jaxalign.model.alphabet import as_sequences
from jaxalign.options import HomologyOptions
from jaxalign.pairs import by_rows, part_stream, plan
from jaxalign.pairs.options import make_task

DNA = jaxalign.Scoring(match=2, mismatch=-3)
SMALL = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
ANSWERS = (0, 6)  # 6: leaks


def text(random: np.random.Generator, size: int) -> str:
    return "".join(random.choice([*"ACGT"], size))


def windows(seed: int, genes: int = 8, size: int = 240) -> tuple[dict, set]:
    """(names to texts, linked pairs): windows of genes at shifted offsets, every other
    one turned, of which neighbours share half; whole genes turned; and one alone."""
    random = np.random.default_rng(seed)
    records, linked = {}, set()
    for gene in range(genes):
        whole, names = text(random, size), []
        for number, at in enumerate(range(0, size - 79, 40)):
            window = whole[at : at + 80]
            name = f"g{gene}w{number}"
            records[name] = bf.turned(window) if random.random() < 0.5 else window
            names.append(name)
        linked |= {frozenset(pair) for pair in zip(names, names[1:], strict=False)}
        records[f"g{gene}"] = bf.turned(whole)
        linked |= {frozenset((f"g{gene}", name)) for name in names}
    records["alone"] = text(random, size)
    return records, linked


def pairs_of(graph, names) -> set:
    return {
        frozenset((names[i], names[j])) for i, j in zip(*graph.nonzero(), strict=True)
    }


@pytest.mark.parametrize("seed", range(3))
def test_windows_of_either_strand_are_found(seed):
    """Each planted pair, and with one strand only some of them."""
    records, linked = windows(seed)
    names, asked = [*records], {"min_identity": 0.4, "min_score": 50.0}
    found = pairs_of(jaxalign.identity_graph(records, DNA, **asked), names)
    assert found == linked
    plus = jaxalign.identity_graph(records, DNA, strand="plus", **asked)
    assert pairs_of(plus, names) < linked
    clusters = jaxalign.cluster(records, DNA, **asked)
    genes = [name.split("w")[0] for name in names]
    assert clusters.labels.tolist() == [[*dict.fromkeys(genes)].index(x) for x in genes]
    halves = jaxalign.split(records, DNA, folds=2, **asked)
    parts = {x: halves.take(x) for x in halves.names}
    assert jaxalign.audit(parts, DNA, **asked).holds
    # Turned whole, a set is the same to every other one.
    turned = {f"{x}'": bf.turned(y) for x, y in records.items()}
    of_both = jaxalign.audit([records, turned], DNA, min_identity=0.9, link="whole")
    assert of_both.leaks == len(records) and set(of_both.worst["strand"]) == {-1}
    assert of_both.worst["identity"].min() == 1
    clean = jaxalign.purge(turned, records, DNA, min_identity=0.9, link="whole")
    assert len(clean) == len(records) and set(clean.strand) == {-1}
    near = jaxalign.nearest(turned, records, DNA, link="whole")
    assert near.index.tolist() == [*range(len(records))]
    assert near.strand.tolist() == [-1] * len(records)


@pytest.fixture
def by_parts(monkeypatch, compiled):
    """Jobs are large: none is one table, and scores come before rows."""
    monkeypatch.setattr(plan, "LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(by_rows, "MAX_SECONDS", {False: -1.0, True: -1.0})
    for name, value in {"MIN_PARTS": 5, "QUERIES_STEP": 4, "MIN_CELLS": 1}.items():
        monkeypatch.setattr(part_stream, name, value)


@pytest.mark.slow
@pytest.mark.parametrize("link", ["local", "whole"])
def test_large_jobs_are_what_small_ones_are(link, request):
    """In parts, with proofs, with scores first; and joined without all links."""
    random = np.random.default_rng(5)
    records, _ = windows(5, genes=4)
    for k in range(3):  # of the same length, and as equal texts
        records[f"t{k}"] = text(random, 60)
        records[f"u{k}"] = bf.turned(records[f"t{k}"][:-3] + "ACG")
        records[f"v{k}"] = bf.turned(records[f"t{k}"])
    asked: Any = {"min_identity": 0.4, "link": link}
    if link == "local":
        asked["min_score"] = 50.0
    half = {x: y for k, (x, y) in enumerate(records.items()) if k % 2}
    other = {x: y for x, y in records.items() if x not in half}

    def answers() -> list:
        audit = jaxalign.audit([half, other], DNA, worst=30, **asked)
        near = jaxalign.nearest(half, other, DNA, top=3, link=link)
        purged = jaxalign.purge(other, half, DNA, **asked)
        dedup = jaxalign.deduplicate(records, DNA, **asked)
        graph = jaxalign.identity_graph(records, DNA, **asked)
        joined = jaxalign.cluster(records, DNA, **asked)
        return [
            joined.labels.tolist(), graph.toarray().tolist(), audit.leaks,
            {x: y.tolist() for x, y in audit.worst.items()},
            near.index.tolist(), near.identity.tolist(), near.strand.tolist(),
            purged.removed.tolist(), purged.value.tolist(), purged.strand.tolist(),
            dedup.labels.tolist(), dedup.strand.tolist(),
        ]  # fmt: skip

    want = answers()
    request.getfixturevalue("by_parts")
    for found, expected in zip(answers(), want, strict=True):
        assert found == expected


def test_pairs_of_reverse_complements_come_as_a_triangle(monkeypatch):
    """Each pair once, in parts too, and none of a sequence with itself."""
    random = np.random.default_rng(3)
    data = as_sequences(bf.random_words(random, 20), SMALL.alphabet)
    chosen = define(SMALL, HomologyOptions(strand="both"), 0.3)
    minus = clustering.judges_of(chosen)[2]
    assert minus.minus and minus.mode == "global"
    options = pair_options(minus, 0.0)
    task = make_task("all", data, data, SMALL, options)
    rows = []
    for part in part_stream.cut(data.lengths, rows=30, cells=10**9):
        for _, columns, _, _ in part_stream.stream(task, [part]):
            sides = columns["query"].tolist(), columns["target"].tolist()
            rows += zip(*sides, columns["max_identities"].tolist(), strict=True)
    texts = data.texts()
    longest = [max(len(texts[i]), len(texts[j]), 1) for i, j, _ in rows]
    of_turned = [
        bf.plus_identity(bf.turned(texts[i]), texts[j]) if texts[i] + texts[j] else 0
        for i, j, _ in rows
    ]
    assert [(i, j) for i, j, _ in rows] == [*combinations(range(20), 2)]
    shares = [count / n for (*_, count), n in zip(rows, longest, strict=True)]
    assert shares == of_turned


def test_one_strand_and_proteins():
    words = ["ACGTTGCAAC", bf.turned("ACGTTGCAAC")]
    asked: Any = {"min_identity": 0.9, "link": "whole"}
    assert len(jaxalign.cluster(words, SMALL, **asked)) == 1
    assert len(jaxalign.cluster(words, SMALL, strand="plus", **asked)) == 2
    rna = jaxalign.Scoring(match=2, mismatch=-1, alphabet="rna")
    assert len(jaxalign.cluster(words, rna, **asked)) == 2, "RNA has one strand"
    found = jaxalign.cluster(words, rna, strand="both", **asked)
    assert len(found) == 1 and str(found).endswith("; either strand")
    assert "plus strands" in str(jaxalign.cluster(words, rna, **asked))
    assert "strand" not in str(jaxalign.cluster(["MKV"], **asked))
    for strand in ("both", "plus"):
        with pytest.raises(UsageError, match="no complement"):
            jaxalign.cluster(["MKV"], strand=strand, **asked)
    with pytest.raises(UsageError, match="one of both, plus is needed"):
        strand: Any = "minus"
        jaxalign.cluster(words, SMALL, strand=strand, **asked)


def test_scores_that_complements_do_not_share():
    """A with A scores more than T with T: the order of a pair would decide."""
    scores = np.where(np.eye(4, dtype=bool), 2, -1)
    scores[0, 0] = 5
    scoring, words = jaxalign.Scoring(("ACGT", scores)), ["ACGT", "AAAA"]
    asked: Any = {"min_identity": 0.5, "link": "whole"}
    strand: Any = {"strand": "both"}
    if scoring.alphabet.kind == "dna":
        with pytest.raises(UsageError, match="complements score alike"):
            jaxalign.cluster(words, scoring, **asked, **strand)
    ends: Any = {"free_ends": ("query_start", "target_start"), "min_identity": 0.5}
    with pytest.raises(UsageError, match="two ends are free or not alike"):
        jaxalign.cluster(words, SMALL, mode="global", **ends)
    jaxalign.cluster(words, SMALL, mode="global", strand="plus", **ends)


def test_representatives_say_the_strand():
    words = ["ACGTTGCAACA", bf.turned("ACGTTGCAAC"), "CGTTGCAACA", "GGGGG"]
    found = jaxalign.deduplicate(words, SMALL, min_identity=0.8, link="whole")
    assert found.columns()["strand"].tolist() == [1, -1, 1, 1]
    one: Any = {"strand": "plus", "link": "whole"}
    plus = jaxalign.deduplicate(words, SMALL, min_identity=0.8, **one)
    assert plus.strand is None and "strand" not in plus.columns()


FILES = {"a.fa": ["ACGTTGCAACCATTGACGGA"], "b.fa": [bf.turned("ACGTTGCAACCATTGACGGA")]}
CUT = ("--min-identity", "0.8", "--link", "whole", "--alphabet", "dna", "-q")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, texts in FILES.items():
        records = (f">{name[0]}{k}\n{x}\n" for k, x in enumerate(texts))
        Path(name).write_text("".join(records))
    return tmp_path


def test_a_certificate_has_the_strands(folder, capsys):
    """It is verified, and no other strand is; one without them is of one strand."""
    assert main(["audit", "a.fa", "b.fa", *CUT, "-o", "c.json"]) == 6
    about = json.loads(Path("c.json").read_text())
    assert about["definition"]["strand"] == "both" and "either strand" in about["claim"]
    assert about["worst"][0]["strand"] == -1
    assert main(["audit", "--verify", "c.json", "-q"]) == 6
    for strand in ("plus", None, "minus", 3):
        changed = about | {"definition": about["definition"] | {"strand": strand}}
        Path("d.json").write_text(json.dumps(changed))
        assert main(["audit", "--verify", "d.json", "-q"]) not in ANSWERS
    known = about["definition"]
    del known["strand"]
    former = definition_of({"definition": known}, HomologyOptions())
    assert former.options.strand is None and "strand" not in str(former)
    code = main(["audit", "a.fa", "b.fa", *CUT, "--strand", "plus", "-o", "e.json"])
    assert (
        code == 0 and "plus strands" in json.loads(Path("e.json").read_text())["claim"]
    )
    assert main(["audit", "--verify", "e.json", "-q"]) == 0


@pytest.mark.parametrize(
    "words, column",
    [
        ("dedup a.fa --list l.tsv -o k.fa", None),
        ("nearest a.fa b.fa -o l.tsv", -1),
        ("purge b.fa --against a.fa -o k.fa --list l.tsv", -1),
    ],
)
def test_tables_have_the_strand(folder, capsys, words, column):
    options = [*CUT] if not words.startswith("nearest") else [*CUT[2:]]
    assert main([*words.split(), *options]) == 0
    header, *rows = Path("l.tsv").read_text().splitlines()
    place = header.split("\t").index("strand")
    assert [int(row.split("\t")[place]) for row in rows] == [column or 1]
