"""An argument of several items may be a list, a tuple, a set or an iterator.

All of them have one result, or are refused in words: no argument is used up by its
check, or by the call before. Each call below gives every such argument of its function
a value.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping

import jax
import numpy as np
import pytest

import jaxalign
from jaxalign.errors import JaxalignError

SET = [
    ("a", "MKTAYIAKQRHEAG"),
    ("b", "MKTAYIRQR"),
    ("c", "PAWHEAEWW"),
    ("d", "AKQRHEA"),
]
TEXTS = [text for _, text in SET]
PARTS = {"x": 0.5, "y": 0.5}
ENDS = {"free_ends": ["query_end", "query_start", "target_end"]}
ALL_ENDS = {"free_ends": ["query_end", "query_start", "target_end", "target_start"]}
DEVICES = {"devices": [0]}
EDGES = {"edges": [jaxalign.Edges((("a", "c"), ("b", "d"), (0.8, 0.2)), at_least=0.5)]}
RATIO = {"min_length_ratio": 0.1}
SCORES = np.random.default_rng(5).normal(size=(5, 7)).astype(np.float32)
COSTS = {"gap_open": 2.0, "gap_extend": 0.5} | ENDS
PAIRS = [("a", "b"), ("c", "d")]
TABLE = [
    {"junction_aa": "CASSLGQAYEQYF", "locus": "TRB"},
    {"junction_aa": "CASSLGTAYEQYF", "locus": "TRB"},
]
CALLS = {
    "align": [TEXTS[:2], ENDS | DEVICES],
    "align_all": [(SET,), ENDS | DEVICES],
    "align_pairs": [(SET, SET[::-1]), ENDS | DEVICES],
    "align_three": [TEXTS[:3], {}],
    "align_triples": [([TEXTS[:3], TEXTS[1:]],), {}],
    "alignment_entropy": [(SCORES,), COSTS],
    "audit": [
        ([SET[:2], SET[2:]],),
        {"min_identity": 0.3} | ALL_ENDS | EDGES | DEVICES,
    ],
    "audit_pairs": [
        (SET, PAIRS, ["x", "y"]),
        {"min_identity": 0.6, "second": "proteins"} | ALL_ENDS | EDGES | DEVICES,
    ],
    "bucket_lengths": [([3, 4, 5], [5, 6, 9]), {}],
    "cluster": [(SET,), {"min_identity": 0.3} | ALL_ENDS | EDGES | DEVICES],
    "deduplicate": [(SET,), {"min_identity": 0.3} | ALL_ENDS | EDGES | DEVICES],
    "directions": [TEXTS[:2], ENDS],
    "distance_matrix": [(SET,), ALL_ENDS | DEVICES],
    "dp_table": [TEXTS[:2], ENDS],
    "edit_distance": [(SET, SET[::-1]), {}],
    "edit_distance_graph": [(SET,), {"max_distance": 9}],
    "expected_gaps": [(SCORES,), COSTS],
    "hard_alignment": [(SCORES,), COSTS],
    "identity_graph": [(SET,), {"min_identity": 0.3} | ALL_ENDS | DEVICES],
    "k_best": [(2, SCORES), COSTS],
    "local_hits": [(2, SCORES), {"gap_open": 2.0, "gap_extend": 0.5}],
    "mea_alignment": [(np.abs(SCORES) / 9,), ENDS],
    "nearest": [(SET[:2], SET[2:]), {"bands": [0.2, 0.4]} | ALL_ENDS | DEVICES],
    "plan": [(SET,), ENDS | DEVICES],
    "plan_three": [TEXTS[:3], {}],
    "purge": [
        (SET[:2], SET[2:]),
        {"min_identity": 0.3} | ALL_ENDS | EDGES | DEVICES,
    ],
    "repertoire_graph": [([x["junction_aa"] for x in TABLE],), DEVICES],
    "sample_alignments": [(jax.random.key(3), 2, SCORES), COSTS],
    "scores_matrix": [(SET,), ALL_ENDS | DEVICES],
    "search": [(SET[:2], SET[2:]), {"mode": "global"} | ENDS | DEVICES],
    "search_complexes": [({"x": SET[:2]}, SET), DEVICES],
    "search_family": [([SET[0]], SET), DEVICES],
    "soft_posterior": [(SCORES,), COSTS],
    "soft_score": [(SCORES,), COSTS],
    "split": [
        (SET,),
        {"min_identity": 0.6, "too_large": "remove", "parts": PARTS}
        | {"labels": ["l", "m", "l", "m"], "fixed": ["x", "y", None, None]}
        | {"priority": [1, 1, 1, 2]}
        | ALL_ENDS
        | EDGES
        | DEVICES,
    ],
    "split_pairs": [
        (SET, PAIRS),
        {"min_identity": 0.6, "second": "proteins", "parts": PARTS}
        | ALL_ENDS
        | EDGES
        | DEVICES,
    ],
    "split_series": [
        (SET,),
        {"cuts": [0.5, 0.3], "too_large": "remove", "parts": PARTS}
        | {"labels": ["l", "m", "l", "m"], "priority": [1, 1, 1, 2]}
        | ALL_ENDS
        | EDGES
        | DEVICES,
    ],
    "stream_all": [(SET,), {"skip": [], "shard": [1, 1]} | ENDS | DEVICES],
    "stream_repertoire": [([x["junction_aa"] for x in TABLE],), DEVICES],
    "stream_search": [
        (SET[:2], SET[2:]),
        {"mode": "global", "skip": [], "shard": [1, 1]} | ENDS | DEVICES,
    ],
}
# Functions whose arguments of several items are arrays, files or other results.
NONE_OF_ITEMS = {
    "align_profile",
    "alignment_log_prob",
    "bucket_lengths",
    "hard_matrix",
    "index_database",
    "kl_divergence",
    "open_database",
    "profile_similarity",
    "read_structures",
    "stream_hard_matrix",
}
VARYING = ("seconds", "bytes")
# One function of each kind is quick: all refuse and sort options by one function.
QUICK = {"align", "align_all", "audit", "audit_pairs", "cluster", "purge", "search"}
QUICK |= {"repertoire_graph", "soft_score", "split", "stream_all"}
FORMS = {"tuple": tuple, "iterator": iter, "set": set}
FUNCTIONS = [x for x in jaxalign.__all__ if inspect.isfunction(getattr(jaxalign, x))]


def plain(value):
    """Values that compare, of any result."""
    if isinstance(value, (str, int, float, type(None))):
        return value
    if hasattr(value, "__jax_array__") or hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    if isinstance(value, Mapping):
        return {
            name: plain(x)
            for name, x in value.items()
            if not str(name).endswith(VARYING)
        }
    if hasattr(value, "tocoo"):
        return plain(value.toarray())
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))
    if isinstance(value, (list, tuple)) or inspect.isgenerator(value):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return plain(
            {x.name: getattr(value, x.name) for x in dataclasses.fields(value)}
        )
    return repr(value)


def outcome(name, arguments, options):
    """A result, or that it was refused: an error of another kind is raised."""
    try:
        return repr(plain(getattr(jaxalign, name)(*arguments, **options)))
    except JaxalignError as error:
        assert "bug" not in str(error)
        return f"refused: {error}"


def variants(arguments, options):
    """(which argument, form, arguments, options) with one argument in another form."""
    for place, value in enumerate(arguments):
        for form in ("tuple", "iterator") if isinstance(value, list) else ():
            changed = *arguments[:place], FORMS[form](value), *arguments[place + 1 :]
            yield place, form, changed, options
    for option, value in options.items():
        forms = FORMS if option == "free_ends" else ("tuple", "iterator")
        for form in forms if isinstance(value, list) else ():
            yield option, form, arguments, options | {option: FORMS[form](value)}


def test_every_function_has_its_call():
    assert {*FUNCTIONS} <= CALLS.keys() | NONE_OF_ITEMS
    for name, (_, options) in CALLS.items():
        for shown in inspect.signature(getattr(jaxalign, name)).parameters.values():
            several = re.match(
                r"(collections\.abc\.)?(Iterable|Sequence|Collection)\[",
                str(shown.annotation),
            )
            refused = (name, shown.name) == ("identity_graph", "edges")
            if several and shown.kind == shown.KEYWORD_ONLY and not refused:
                assert isinstance(options[shown.name], Iterable), (name, shown.name)


@pytest.mark.parametrize(
    "name",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in CALLS],
)
def test_no_argument_is_used_up_by_its_check(name):
    arguments, options = CALLS[name]
    want = outcome(name, arguments, options)
    assert not want.startswith("refused"), want
    for argument, form, *changed in variants(arguments, options):
        got = outcome(name, *changed)
        assert got == want or got.startswith("refused"), (argument, form)
        if argument in options:
            assert (got == want) == (form != "iterator"), (argument, form)
