"""A plan: shown as a dict or as text, and then run."""

import json

import pytest
from cases import same_tables

import jaxalign
from jaxalign.cli.main import main
from jaxalign.options import PairOptions
from jaxalign.pairs import api, engine

TEXTS = ["MKTAYIAKQR", "MKTAYIKQR", "MRTAYIW", "KQRQ"]


def test_a_plan_reads_like_a_dict_and_prints():
    plan = jaxalign.plan(TEXTS)
    assert plan["pairs"] == 6 and "cells" in plan and len(plan) == len(dict(plan))
    assert json.loads(json.dumps(dict(plan))) == dict(plan) == plan
    assert (plan | {"pairs": 7})["pairs"] == 7
    assert "pairs: 6\n" in str(plan) and "\n" not in repr(plan)
    with pytest.raises(AttributeError):
        plan.figures = {}  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("options", [{}, {"min_score": 1.0}, {"part_rows": 3}])
def test_a_plan_of_a_set_can_be_run(options):
    chosen = PairOptions(**options)
    table = api.run_plan(api.plan_of(TEXTS, None, None, chosen), chosen)
    options.pop("part_rows", None)
    same_tables(table, jaxalign.align_all(TEXTS, **options))


@pytest.mark.parametrize("targets", [TEXTS[::-1], TEXTS[:1]])
def test_a_plan_of_two_sets_can_be_run(targets):
    plan = api.plan_of(TEXTS, targets, None, PairOptions())
    table = api.run_plan(plan, PairOptions())
    same_tables(table, jaxalign.align_pairs(TEXTS, targets))
    assert len(table.targets) == len(targets)


def test_the_command_line_plans_once(tmp_path, monkeypatch):
    """What it says before the work is what it runs."""
    fasta = tmp_path / "some.fasta"
    fasta.write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(TEXTS)))
    plans, plan = [], engine.plan
    monkeypatch.setattr(engine, "plan", lambda task: plans.append(task) or plan(task))
    assert main(["all", str(fasta), "-o", str(tmp_path / "rows.tsv"), "-q"]) == 0
    assert len(plans) == 1
