"""The command line has the options of the functions, and lacks none by accident."""

import inspect

import pytest
from verb_jobs import VERBS, options

import jaxalign
from jaxalign.cli import verbs
from jaxalign.cli.derive import HIDDEN, NEGATED, Given, command, takes
from jaxalign.options import NearestOptions

FUNCTIONS = {
    "align": "align_pairs",
    "all": "stream_all",
    "search": "stream_search",
    "nearest": "nearest",
    "family": "search_complexes",
    "cluster": "cluster",
    "dedup": "deduplicate",
    "split": "split",
    "audit": "audit",
    "purge": "purge",
    "repertoire": "repertoire_graph",
    "three": "align_three",
    "soft": "soft_score",
}
WITHOUT_FUNCTION = {"index", "info", "warmup", "selftest", "matrices", "demo"}
# Options of a function that have another name on the command line.
NAMES = NEGATED | {
    "adjacent_gaps": "forbid_adjacent_gaps",  # soft
    "method": "method",
}
NAMES_OF_VERB = {
    "repertoire": {"scoring": "matrix"},
}
# Options of functions that the command line lacks, with a reason.
LACKS = {
    "repertoire": {"offset", "cap", "devices"},  # scirpy has none of the first two
    "soft": {"band", "implementation"},  # of one pair, whose size is small
    "dedup": {"method"},  # representatives are greedy
}
# Options that the command line has beside a function's: of files, messages, a scoring
# in parts, and of several functions in one verb.
OWN = """
    eqx preset matrix match mismatch gap-open gap-extend gap-style
    alphabet unknown strip-stop names
    link out o list force json format columns output report plot leaks
    across-only no-cache device quiet q verbose v progress resume shard help
""".split()
EXTRA = {
    "align": "embeddings sequences profile",
    "all": "dendrogram heat-map",
    # Filters are those of the table of hits.
    "search": "max-evalue profile min-score min-identity identity min-cov coverage "
    "min-length-ratio no-filter",
    "family": "pair",
    "cluster": "fasta certificate",
    "three": "all",
    "split": "column cuts pairs cold second fasta certificate worst full-histogram",
    "audit": "split pairs cold second column verify partial",
    "purge": "against certificate",
    "repertoire": "against part-rows",
    "soft": "threshold",
}


def flag(verb, name):
    name = NAMES_OF_VERB.get(verb, {}).get(name) or NAMES.get(name, name)
    return name.replace("_", "-")


def test_every_verb_is_compared():
    assert {*VERBS} == FUNCTIONS.keys() | WITHOUT_FUNCTION


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_the_command_line_has_the_options_of_the_function(verb):
    function = getattr(jaxalign, FUNCTIONS[verb])
    parameters = inspect.signature(function).parameters.values()
    named = {x.name for x in parameters if x.kind == x.KEYWORD_ONLY}
    wanted = {flag(verb, x) for x in named - HIDDEN - LACKS.get(verb, set())}
    had = {name.lstrip("-") for name in options(verb)}
    assert wanted <= had, wanted - had
    assert not {*LACKS.get(verb, ())} & {x.replace("-", "_") for x in had}
    beside = {*OWN, *EXTRA.get(verb, "").split()}
    assert had - wanted <= beside, had - wanted - beside


@takes("builtins:vars", NearestOptions)
def example(tests: str, /, *, depth: int = 1) -> None:
    """Show the options.

    Parameters
    ----------
    depth
        A text of its own.
    """


def test_values_arrive_by_their_names_in_python():
    given = command(example)("a.fa", no_filter=True, bands="0.1,0.5", free_ends="q5")
    assert (given["tests"], given["depth"], given["top"]) == ("a.fa", 1, 1)
    assert given["filter"] is False and given["bands"] == (0.1, 0.5)
    assert given["free_ends"] == ("query_start",) and given["identity"] is None
    assert "progress" not in given and isinstance(Given(**given), Given)


def test_each_verb_has_a_body():
    for name in VERBS:
        verb = getattr(verbs, {"all": "all_pairs"}.get(name, name))
        body = vars(verb)["taken"][0]
        module, _, function = body.partition(":")
        assert callable(getattr(__import__(module, fromlist="x"), function)), body
