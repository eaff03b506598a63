"""Options: real signatures, which function takes which, and what is refused."""

import ast
import inspect
import tomllib
import typing
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import keywords_file
import numpy as np
import pytest

import jaxalign
from jaxalign import keywords
from jaxalign.errors import UsageError
from jaxalign.model.choices import EndKeywords
from jaxalign.options import (
    ComplexOptions,
    FamilyOptions,
    HomologyOptions,
    NearestOptions,
    PairOptions,
    PurgeOptions,
    RepertoireOptions,
    SearchOptions,
    TripleOptions,
)
from jaxalign.similarity import options as similarity
from jaxalign.similarity.options import SimilarityOptions

INNER = {"equals_alike", "min_relative_score"}  # which verbs set and no caller
RECORDS = (
    PairOptions,
    SearchOptions,
    HomologyOptions,
    NearestOptions,
    PurgeOptions,
    FamilyOptions,
    ComplexOptions,
    RepertoireOptions,
    TripleOptions,
)
FUNCTIONS = sorted(
    name for name in jaxalign.__all__ if inspect.isfunction(getattr(jaxalign, name))
)
SET, PAIR, SCORES = ["MKTAYIA", "MKTAIA", "MRV"], ("MKTAYIA", "MRV"), np.eye(3)
COSTS = {"gap_open": 2.0, "gap_extend": 1.0}
CALLS = {
    "align": PAIR,
    "align_pairs": (SET, SET),
    "align_all": (SET,),
    "stream_all": (SET,),
    "scores_matrix": (SET,),
    "distance_matrix": (SET,),
    "plan": (SET,),
    "dp_table": PAIR,
    "directions": PAIR,
    "search": (SET, SET),
    "stream_search": (SET, SET),
}
ARGUMENTS = CALLS | {"align_three": SET}
ENDS = {"mode", "free_ends"}
MACHINE = {"implementation", "memory_budget", "threads", "devices"}
WATCH = {"progress", "busy"}
FILTERS = {"min_score", "min_identity", "identity", "min_cov", "coverage"}
FILTERS |= {"min_length_ratio", "filter"}
TABLE = ENDS | MACHINE | {"mesh", "window", "output"} | FILTERS
READING = {"unknown", "strip_stop", "names"}
SEARCH = ENDS | MACHINE | READING | {"window", "top", "align_top", "progress"}
SEARCH |= {"strand", "statistics", "hsps"}
FAMILY = MACHINE | {"iterations", "max_evalue", "include", "include_cov"}
FAMILY |= {"max_sequences", "min_cov", "min_query_identity", "max_identity"}
FAMILY |= READING | {"correct_composition", "progress", "strand", "hsps"}
SOFT = ENDS | {*COSTS, "temperature", "adjacent_gaps", "band", "implementation"}
THREE = {"gap_model", "mode", "memory_budget", "implementation", "schedule"}
THREE |= {"traceback", "chunk", "height", "depth"}
TAKES = {
    "align": ENDS | MACHINE | WATCH | {"mesh", "return_directions", "strand"},
    "align_pairs": TABLE | WATCH | {"strand"},
    "align_all": TABLE | WATCH | {"include_self", "cluster", "part_rows"},
    "stream_all": TABLE
    | WATCH
    | {"include_self", "cluster", "part_rows", "skip", "shard"},
    "scores_matrix": ENDS | MACHINE | WATCH | {"mesh", "window"},
    "distance_matrix": ENDS | MACHINE | WATCH | {"mesh", "window", "identity"},
    "plan": TABLE | {"include_self", "parts", "part_rows", "strand"},
    "dp_table": ENDS | {"gaps"},
    "directions": ENDS,
    "search": SEARCH,
    "stream_search": SEARCH | {"skip", "shard", "part_rows"},
    "search_family": FAMILY,
    "search_complexes": FAMILY
    | {"pair_strategy", "pair_evalue", "taxa", "rna_database"},
    "purge": ENDS
    | MACHINE
    | {"max_evalue", "min_relative_score"}
    | FILTERS
    | READING
    | {"edges", "link", "strand", "progress"},
    "nearest": ENDS
    | MACHINE
    | {"by", "top", "bands"}
    | (FILTERS - {"min_identity"})
    | READING
    | {"link", "strand", "progress"},
    "index_database": READING | {"force", "progress"},
    "open_database": set(),
    "soft_score": SOFT,
    "soft_posterior": SOFT,
    "expected_gaps": SOFT,
    "alignment_entropy": SOFT,
    "sample_alignments": SOFT,
    "alignment_log_prob": SOFT,
    "kl_divergence": SOFT - {*COSTS, "temperature"},
    "mea_alignment": ENDS | {"threshold", "lengths"},
    "align_three": THREE | {"progress", "devices"},
    "plan_three": THREE,
    "align_triples": THREE - {"schedule", "chunk", "height", "depth"}
    | {"progress", "devices"},
}
# A value of each option that is well formed, so that only its name can be refused.
VALUES = {
    "mode": "local",
    "free_ends": None,
    "implementation": None,
    "memory_budget": "1GiB",
    "threads": 1,
    "devices": 0,
    "mesh": None,
    "window": 2,
    "output": "score",
    "min_score": 1,
    "min_identity": 0.1,
    "identity": "shorter",
    "link": "whole",
    "min_cov": 0.1,
    "coverage": "both",
    "min_length_ratio": 0.5,
    "filter": False,
    "progress": None,
    "busy": None,
    "return_directions": False,
    "include_self": True,
    "cluster": None,
    "part_rows": 2,
    "parts": True,
    "skip": (),
    "shard": (1, 1),
    "gaps": False,
    "band": 2,
    "top": 2,
    "align_top": False,
    "hsps": 1,
    "strand": None,
    "statistics": "fitted",
    "unknown": "error",
    "strip_stop": True,
    "names": "number",
}
# Options that a function takes beside another one only.
BESIDE = {
    ("align_all", "part_rows"): {"min_score": 1},
    **{
        (name, option): given
        for name in ("align_pairs", "align_all", "stream_all", "plan")
        for option, given in (
            ("identity", {"min_identity": 0.1}),
            ("min_cov", {"mode": "local"}),
        )
    },
}


def keyword_only(name):
    shown = inspect.signature(getattr(jaxalign, name)).parameters.values()
    return [x for x in shown if x.kind == x.KEYWORD_ONLY]


def test_signatures_are_full_and_annotated():
    for name in FUNCTIONS:
        function = getattr(jaxalign, name)
        signature = inspect.signature(function)
        for shown in signature.parameters.values():
            assert shown.kind != shown.VAR_KEYWORD, (name, shown)
            assert shown.annotation is not shown.empty, (name, shown)
        assert signature.return_annotation is not signature.empty, name
        hints = typing.get_type_hints(function)
        options = hints.get("options", typing.Unpack[EndKeywords])
        assert typing.get_origin(options), name


def test_which_function_has_which_option():
    for name, options in TAKES.items():
        assert {shown.name for shown in keyword_only(name)} == options, name


@pytest.mark.parametrize("name", CALLS)
def test_an_option_is_taken_or_refused(name):
    call = getattr(jaxalign, name)
    for option, value in VALUES.items():
        given = {option: value} | BESIDE.get((name, option), {})
        if option in TAKES[name]:
            result = call(*CALLS[name], **given)
            _ = [*result] if inspect.isgenerator(result) else result
        else:
            with pytest.raises(UsageError, match=f"{name} has no option '{option}'"):
                call(*CALLS[name], **given)


def test_a_name_that_nobody_knows_is_refused():
    for name in FUNCTIONS:
        with pytest.raises(UsageError, match=f"{name} has no option 'colour'"):
            getattr(jaxalign, name)(colour="red")


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("align", {"match": 2}, r"scoring=Scoring\(match=2, mismatch=…\)"),
        ("align", {"match": 2, "mismatch": -1}, r"Scoring\(match=2, mismatch=-1\)"),
        ("search", {"gap_open": 5}, r"scoring=Scoring\(gap_open=5\)"),
        ("align_pairs", {"min_idenity": 0.3}, "did you mean 'min_identity'"),
        ("align_all", {"free_end": ()}, "did you mean 'free_ends'"),
        ("search", {"colour": 1}, "it has mode, free_ends, top"),
    ],
)
def test_the_message_says_what_may_be_meant(name, given, words):
    with pytest.raises(UsageError, match=words):
        getattr(jaxalign, name)(*CALLS[name], **given)


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("align_three", {"chunk": 3}, "only bt1, bt2 and bt3 have chunks"),
        ("align_pairs", {"identity": "shorter"}, "min_identity"),
        ("align_pairs", {"coverage": "query"}, "min_cov"),
        ("align_pairs", {"min_cov": 0.5}, "min_length_ratio"),
        ("align_all", {"min_cov": 0.5}, "min_length_ratio"),
        ("align_all", {"part_rows": 3}, "part_rows"),
        ("align_all", {"cluster": "auto", "threads": 2}, "leave out threads"),
        ("align_all", {"cluster": "auto", "devices": 0}, "leave out devices"),
    ],
)
def test_an_option_that_means_nothing_here_is_refused(name, given, words):
    with pytest.raises(UsageError, match=words):
        getattr(jaxalign, name)(*ARGUMENTS[name], **given)


@pytest.mark.parametrize("given", [{"include_self": True}, {"parts": True}])
def test_a_plan_of_two_sets_has_no_parts(given):
    with pytest.raises(UsageError, match="all pairs of one set"):
        jaxalign.plan(SET, SET, **given)


def keyword_types(module):
    return [x for x in vars(module).values() if typing.is_typeddict(x)]


def test_keywords_have_the_types_of_the_options():
    """Those of similarities are written by hand: their types are JAX's."""
    types = typing.get_type_hints(SimilarityOptions)
    dictionaries = keyword_types(similarity)
    named = {name for one in dictionaries for name in one.__annotations__}
    assert named == {field.name for field in fields(SimilarityOptions)}
    for one in dictionaries:
        for name, type in typing.get_type_hints(one).items():
            assert type == types[name], (one, name)


def test_the_file_of_keywords_is_current():
    assert keywords_file.FILE.read_text() == keywords_file.source()
    generated = {
        name for one in keyword_types(keywords) for name in one.__annotations__
    }
    for options in RECORDS:
        named = {field.name for field in fields(options)} - INNER
        assert named <= generated, options


def test_defaults_are_those_of_the_options():
    defaults = {x.name: x.default for x in keyword_only("stream_all")}
    assert defaults == {
        field.name: field.default
        for field in fields(PairOptions)
        if field.name not in INNER | {"parts", "strand"}
    }
    assert inspect.signature(jaxalign.search).parameters["mode"].default == "local"


def test_models_that_are_compared_have_known_numbers():
    model = {"similarity": SCORES, **COSTS}
    with pytest.raises(UsageError, match="colour"):
        jaxalign.kl_divergence(model, model | {"colour": 1})
    with pytest.raises(UsageError, match="gap_open"):
        jaxalign.kl_divergence(model, model, gap_open=3)


def test_types_ship():
    assert files("jaxalign").joinpath("py.typed").is_file()
    settings = Path(__file__).parents[1] / "pyproject.toml"
    shipped = tomllib.loads(settings.read_text())["tool"]["setuptools"]["package-data"]
    assert shipped["jaxalign"] == ["py.typed", "__init__.pyi"]


def classes_of(annotation):
    """The classes of this package in a type."""
    if getattr(annotation, "__module__", "").startswith("jaxalign."):
        yield annotation.__name__
    for part in typing.get_args(annotation):
        yield from classes_of(part)


def test_every_class_that_a_public_function_returns_is_public():
    for name in filter(str.islower, jaxalign.__all__):
        returned = typing.get_type_hints(getattr(jaxalign, name))["return"]
        assert {*classes_of(returned)} <= {*jaxalign.__all__}, name


def test_type_checkers_know_every_public_name():
    stub = files("jaxalign").joinpath("__init__.pyi").read_text()
    known = {
        alias.name: node.module
        for node in ast.walk(ast.parse(stub))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert known == jaxalign._HOMES
