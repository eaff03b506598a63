"""Every public docstring describes the parameters of its signature, and no others."""

import inspect
import re
from inspect import Parameter, isclass

import pytest

import jaxalign

# numpydoc's, and words of a parameter that is described nowhere
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-{4,}\n|\Z)", re.S | re.M)
ELSEWHERE = re.compile(r"module describes|^(parameters|options) .*\b(as|those)\b", re.M)


def described(doc: str) -> dict[str, str]:
    """Name -> text of the entries of a docstring."""
    section = SECTION.search(doc)
    entries = re.split(r"\n(?=\S)", section[1].rstrip()) if section else []
    names = {}
    for entry in entries:
        heading = entry.split("\n")[0]
        assert len(heading) < 140, heading
        for name in re.split(r" :|$", heading)[0].split(","):
            assert name.strip() not in names, f"{name} is described twice"
            names[name.strip()] = entry
    return names


FUNCTIONS = [x for x in jaxalign.__all__ if not isclass(getattr(jaxalign, x))]
CLASSES = [x for x in jaxalign.__all__ if isclass(getattr(jaxalign, x))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_describes_its_parameters(name):
    function = getattr(jaxalign, name)
    doc, shown = inspect.getdoc(function), inspect.signature(function)
    entries = described(doc)
    assert [*entries] == [*dict.fromkeys(entries)] and {*entries} == {*shown.parameters}
    for parameter, text in entries.items():
        assert " : " in text or len(text.split("\n")) > 1, (parameter, text)
        assert not re.search(r" : (as in|those of|as of) ``\w+``$", text), text
        assert "--" not in text, text  # an option of the command line
        plain = re.sub("``.*?``", "", text, flags=re.DOTALL)
        assert not re.search(r"(?<!\w)[*|`](?=[^ \n])", plain), text  # of the site
        default = re.search(r", default (\S+)$", text.split("\n")[0])
        value = shown.parameters[parameter].default
        if default and value is not Parameter.empty:
            assert default[1].strip('"') == str(value), text
    assert not ELSEWHERE.search(doc), doc
    assert max(map(len, doc.splitlines())) <= 110


def methods():
    for owner in CLASSES:
        for name, member in vars(getattr(jaxalign, owner)).items():
            function = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(function) and not name.startswith(("_", "tree_")):
                yield pytest.param(function, id=f"{owner}.{name}")


@pytest.mark.parametrize("function", [*methods()])
def test_a_method_names_its_parameters(function):
    doc = inspect.getdoc(function)
    assert doc, "no docstring"
    entries = described(doc)
    parameters = {*inspect.signature(function).parameters} - {"self", "cls"}
    assert {*entries} <= parameters
    for name in parameters - {*entries}:
        assert re.search(rf"``{name}\b", doc), f"{name} is not described"


def test_a_shared_text_is_written_once():
    """What ``soft_score`` and others share is rendered, in the order of signatures."""
    soft, hard = (
        described(inspect.getdoc(getattr(jaxalign, name)))
        for name in ("soft_score", "k_best")
    )
    assert soft["band"] == hard["band"] and "anchors" in soft["band"]
    assert [*soft][:3] == ["similarity", "lengths", "gap_open"]
    budget = described(inspect.getdoc(jaxalign.scores_matrix))["memory_budget"]
    assert budget == (
        "memory_budget : int or str, optional\n"
        "    Memory that the job may use. By default half of what is available."
    )
