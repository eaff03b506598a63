"""A small job of every verb of the command line, read from the verbs themselves.

A new verb joins by itself: its files are its positional arguments, and what it needs
besides stands in ``NEEDED``.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from typing import Any

from jaxalign.cli.main import app

CUT = ("--min-identity", "0.5")
NEEDED = {
    "cluster": ("--min-identity", "0.5"),
    "dedup": ("--min-identity", "0.5"),
    "split": (*CUT, "--folds", "3"),
    "audit": CUT,
    "purge": CUT,
}
FIRST = ("MKTAYIAKQRQISFVKSHFSRQ", "HEAGAWGHEEPAWHEAEWWCC", "LLVVTTSSNNGGFFYYPPDDKK")
OTHERS = ("MKKLLPTAAAGLLLLAAQPAM", "GSHMASMTGGQQMGRGSDDDK", "EEEDDRRKKHHQQNNPPCCSS")
RECORDS = ("a", "b", "c")
ONE_QUERY = ("family",)  # else it writes a folder of files

OUTPUTS = {"family": "out.a3m"}  # of verbs whose formats have suffixes of their own


def out_file(verb: str) -> str:
    """A file that a verb can write."""
    return OUTPUTS.get(verb, "out.tsv")


@cache
def verbs() -> dict[str, Callable[..., int]]:
    """The function of each verb, by its name."""
    found = app()
    names = [name for name in found if not name.startswith("-")]
    return {name: found[name].default_command for name in names}


# Those that read sequences, or nothing; structures have files of their own.
VERBS = tuple(verb for verb in verbs() if verb != "structures")


def words(verb: str, files: list[str], *more: str) -> list[str]:
    """A command line of a verb; ``files`` are two, of which it takes what it needs."""
    parameters = signature(verbs()[verb]).parameters
    given: list[str] = []
    for parameter in parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            given += files
        elif parameter.kind is Parameter.POSITIONAL_ONLY:
            if parameter.default is Parameter.empty:
                given.append(files[len(given) % 2])
    given += NEEDED.get(verb, ())
    if "against" in parameters:
        given += ["--against", files[1]]
    return [verb, *given, *more]


def options(verb: str) -> list[str]:
    """The options of a verb, as they are written: each of its names."""
    arguments = app()[verb].assemble_argument_collection()
    names = (name for argument in arguments for name in argument.names)
    return [name for name in names if name.startswith("-")]


def reads(verb: str) -> bool:
    """Whether a verb needs a file."""
    return len(words(verb, ["x", "y"])) > 1


def has(verb: str, option: str) -> bool:
    """Whether a verb has an option, by the name of its parameter or field."""
    return option in _names(signature(verbs()[verb]).parameters.values())


def _names(parameters: Any) -> Iterator[str]:
    for parameter in parameters:
        yield parameter.name
        yield from _fields(parameter.default)


def _fields(options: Any) -> Iterator[str]:
    """Names of options in dataclasses, those in them too."""
    if is_dataclass(options):
        for field in fields(options):
            yield field.name
            yield from _fields(getattr(options, field.name))


def first_fasta(verb, names=RECORDS, texts=FIRST) -> bytes:
    """The first file of a verb: of as many records as it takes."""
    some = slice(0, 1 if verb in ONE_QUERY else None)
    return fasta(names[some], texts[some])


def verb_of(request, name: str = "verb") -> str | None:
    """The verb that a test of pytest's is about, by one of its parameters."""
    call = getattr(request.node, "callspec", None)
    return call and call.params.get(name)


def fasta(names=RECORDS, texts=FIRST) -> bytes:
    """Three records that are not alike."""
    records = zip(names, texts, strict=True)
    return "".join(f">{name}\n{text}\n" for name, text in records).encode()
