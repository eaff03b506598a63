"""Records of equal text are alike, whatever their letters: in every verb that says
duplicate, link, leak or nearest.

Texts have a share of wildcards, of which no alignment counts any as identical, or of
letters that score nothing with themselves; or they are empty.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from draws import pairwise

import jaxalign
from jaxalign.cli.main import main
from jaxalign.homology import across
from jaxalign.pairs import by_rows, jobs, part_stream
from jaxalign.pairs.proofs import proof

LETTERS = {"protein": "ARNDCQEGHILKMFPSTWYV", "dna": "ACGT", "rna": "ACGU"}
WILDCARDS = {"protein": "X", "dna": "N", "rna": "N"}
PARTS = {"x": 0.5, "y": 0.5}
SHARES = [0, 0.02, 0.3, 0.5, 0.9, 1]
SIZES = [0, 1, 9, 60]
ROUTES = ["rows", "subsequences", "parts", "unfiltered"]
# kind of letters, wildcards, size, identity, mode, ratio of lengths, cut, route
FACTORS = (
    ["protein", "dna", "rna", "matrix"],
    SHARES,
    SIZES,
    ["longer", "shorter", "mean"],
    ["global", "semiglobal", "local", None],  # None: the default link
    [None, 1],
    [0.3, 1],
    ROUTES,
)
CASES = pairwise(*FACTORS)


def scoring_of(kind: str, mode: str | None) -> jaxalign.Scoring:
    if kind == "matrix":  # of letters that score most with others, or nothing
        scores = np.eye(4, dtype=int)[::-1] * 3 - np.eye(4, dtype=int)
        return jaxalign.Scoring(("ABCX", scores))
    if kind == "protein":
        return jaxalign.Scoring()
    gaps = {} if mode is None else {"gap_open": 5}  # of these no statistics are known
    return jaxalign.Scoring(match=2, mismatch=-3, **gaps, alphabet=kind)


def drawn(kind: str, share: float, size: int, seed: int = 0) -> list[str]:
    """A text, and others that are unlike it and each other."""
    random = np.random.default_rng([seed, size, int(100 * share)])
    letters = LETTERS.get(kind, "ABC")
    text = random.choice([*letters], size)
    text[random.permutation(size)[: round(share * size)]] = WILDCARDS.get(kind, "X")
    sizes = (size + 40, size + 160)
    others = ["".join(random.choice([*letters], x)) for x in sizes]
    return ["".join(text), *others]


def set_route(monkeypatch, route: str) -> dict:
    """Options, and limits, by which a small job takes the way of a large one."""
    if route in ("subsequences", "parts"):
        monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 0)
    if route == "parts":
        for name, value in {"MIN_PARTS": 5, "QUERIES_STEP": 1, "MIN_CELLS": 1}.items():
            monkeypatch.setattr(part_stream, name, value)
        for module in (jobs, across):
            stub = SimpleNamespace(is_short=is_long, may_have_gpu=by_rows.may_have_gpu)
            monkeypatch.setattr(module, "by_rows", stub)
    return {"filter": False} if route == "unfiltered" else {}


def is_long(*_: object, **__: object) -> bool:
    return False


def counted(info: dict, linked: int) -> None:
    """No pair of equal texts is said to be below the cut."""
    assert sum(info["excluded"].values()) <= info["all"] - linked, info


SLOW = pytest.mark.slow


def check_alike(monkeypatch, case: tuple, seed: int = 0) -> None:
    """Every verb finds that the first and the last but one of a set are alike."""
    kind, share, size, identity, mode, ratio, cut, route = case
    text, *others = drawn(kind, share, size, seed)
    texts = [text, *others, text]
    names = ["a", "b", "c", "d"]
    records, scoring = [*zip(names, texts, strict=True)], scoring_of(kind, mode)
    asked = {"identity": identity, "mode": mode}
    if mode is None:
        asked = {"link": "whole"} if kind == "matrix" else {}
        mode, identity = (None, "longer") if asked else ("local", "shorter")
    asked |= set_route(monkeypatch, route) | {"min_length_ratio": ratio}
    of_longer = asked | {"identity": "longer"} if "identity" in asked else asked
    if kind == "rna":
        records[3] = ("d", text.lower())
    least, most = asked | {"min_identity": cut}, asked | {"min_identity": cut}

    found = jaxalign.deduplicate(records, scoring, **least)
    assert found.labels[0] == found.labels[3]
    counted(found.info, 1)
    if found.representatives[found.labels[0]] in (0, 3):
        assert found.identity[[0, 3]].tolist() == [1, 1]
    for method in ("components", "complete", "average"):
        found = jaxalign.cluster(records, scoring, method=method, **least)
        assert found.labels[0] == found.labels[3], method
        counted(found.info, 1)
    graph = jaxalign.identity_graph(records, scoring, **least).toarray()
    assert graph[0, 3] == graph[3, 0] == 1

    loose = {"parts": PARTS, "too_large": "keep"}
    for divided in (
        jaxalign.split(records, scoring, **loose, **most),
        *jaxalign.split_series(
            records, scoring, cuts=[cut, 0.25], **loose, **asked
        ).values(),
    ):
        assert divided.part[0] == divided.part[3]
        counted(divided.info, 1)
    repair = of_longer | {"min_identity": 1}
    repair |= {"parts": PARTS, "too_large": "remove", "fixed": [*"xxyy"]}
    divided = jaxalign.split(records, scoring, **repair)
    assert divided.part[0] == divided.part[3] or -1 in divided.part[[0, 3]]

    sets = [records[:2], records[2:]]
    audit = jaxalign.audit(sets, scoring, min_identity=cut, worst=2, **asked)
    assert not audit.holds and audit.leaking[0][0] and audit.leaking[1][1]
    assert audit.worst["identity"][0] == 1
    if audit.worst["target"][0] == "d":
        assert audit.worst["identities"][0] == size
    assert audit.certificate()["leaks"] == audit.leaks
    assert audit.info["at_or_above_cut"] == audit.leaks
    counted(audit.info, audit.leaks)
    excluded = sum(audit.info["excluded"].values())
    assert excluded + audit.info["aligned"] == audit.info["all"]
    audit.report()

    gone = jaxalign.purge(sets[0], sets[1], scoring, **most)
    assert gone.removed[0] == 0 and gone.value[0] == 1
    if mode == "local":
        gone = jaxalign.purge(sets[0], sets[1], scoring, min_cov=0.9, **most)
        assert gone.removed[0] == 0 and gone.value[0] == 1

    if kind != "matrix":  # a cut of scores, or chance, that nothing reaches
        for level in (
            {"min_score": 10**6},
            {"min_score": 10**6, "min_cov": 1},
            {"max_evalue": 1e-300},
        ):
            if "score" in level or kind == "protein":
                gone = jaxalign.purge(sets[0], sets[1], scoring, **level)
                assert gone.names == ("a",) and gone.test.tolist() == [1], level

    for top in (1, 3):
        near = jaxalign.nearest(records[:1], records[1:], scoring, top=top, **asked)
        assert near.identity[0] == 1 and near.identities[0] == size
        if identity != "shorter":  # a longer text may hold all of this one
            assert near.columns()["nearest"][0] == "d"
        assert len({*near.index.tolist()}) == len(near)

    pairs, halves = [("a", "b"), ("d", "b"), ("c", "c")], ["x", "y", "y"]
    for cold in ("both", "one", "none"):
        rule = {"cold": cold} | most
        leaks = jaxalign.audit_pairs(records, pairs, halves, scoring, **rule).leaking
        assert leaks[1], cold
        same = jaxalign.split_pairs(
            records, [*pairs, ("c", "b")], scoring, folds=2, **rule
        ) if cold == "none" else None  # fmt: skip
        assert same is None or same.part[0] == same.part[1]


@pytest.mark.parametrize(
    "case",
    [pytest.param(x, marks=SLOW if k % 3 else ()) for k, x in enumerate(CASES)],
    ids=str,
)
def test_equal_texts_are_alike(monkeypatch, case):
    check_alike(monkeypatch, case)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 3))
def test_equal_texts_of_many_draws_are_alike(monkeypatch, seed):
    for case in pairwise(*FACTORS, seed=seed):
        with monkeypatch.context() as patch:
            check_alike(patch, case, seed)


def test_files_of_equal_texts(tmp_path, monkeypatch, capsys):
    """On the command line: one is kept, and a leak; its certificate verifies."""
    monkeypatch.chdir(tmp_path)
    text = drawn("protein", 0.5, 60)[0]
    Path("a.fa").write_text(f">a\n{text}\n")
    Path("b.fa").write_text(f">b\n{text.lower()}\n")
    Path("p.fa").write_text(f">a\n{text}\n>b\n{text.lower()}\n")
    assert main(["dedup", "p.fa", "--min-identity", "1", "-q"]) == 0
    assert capsys.readouterr().out.count(">") == 1
    audit = ["audit", "a.fa", "b.fa", "--min-identity", "1", "-q"]
    assert main([*audit, "-o", "c.json"]) == 6
    about = json.loads(Path("c.json").read_text())
    assert (about["leaks"], about["worst"][0]["identity"]) == (1, 1)
    assert main(["audit", "--verify", "c.json", "-q"]) == 6
    assert (
        main(["purge", "a.fa", "--against", "b.fa", "--min-identity", "1", "-q"]) == 0
    )
    assert ">" not in capsys.readouterr().out
    assert main(["nearest", "a.fa", "b.fa", "-q"]) == 0
    assert "\tb\t1\t60\t>=0.9\t" in capsys.readouterr().out
