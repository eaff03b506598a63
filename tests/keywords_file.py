"""Write ``jaxalign/keywords.py``: the typed dictionaries of the records of options.

``python tests/keywords_file.py`` writes it anew; a test says where it is not current.
"""

import re
from pathlib import Path
from typing import Any

from jaxalign import options
from jaxalign.model import choices
from jaxalign.options import field_types

FILE = Path(options.__file__).with_name("keywords.py")
# Records whose dictionary has another name than theirs, or is in ``model.choices``.
NAMES = {
    "AlignedEnds": "EndKeywords",
    "DatabaseSearch": "SearchKeywords",
    "Divided": "SplitKeywords",
    "FileLetters": "IndexKeywords",
    "Linked": "LinkKeywords",
    "Planned": "PlanKeywords",
    "HomologyOptions": "AuditKeywords",
    "SearchOptions": "StreamSearchKeywords",
    "TripleOptions": "AlignThreeKeywords",
}
NOT_WRITTEN = {"AlignedEnds", "PairOptions"}  # no function has all options of pairs
HEADING = '''"""The keywords of each public function, for type checkers: generated.

``tests/keywords_file.py`` writes this file from ``jaxalign.options``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from jaxalign.model.choices import EndKeywords

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from jax.sharding import Mesh

'''
WIDTH = 88


def source() -> str:
    """The text of the file."""
    written = [x for x in vars(options).values() if _is_record(x)]
    classes = "".join(map(_keywords, written))
    names = {*re.findall(r"\w+", classes)}
    words = names & {*vars(choices)} - {
        "EndKeywords",
        "Literal",
        "TypedDict",
        "Collection",
    }
    own = names.intersection(_own_types(options))
    return HEADING + _import("jaxalign.model.choices", words) + (
        "    from jaxalign.model.scoring import ScoringLike\n"
        + _import("jaxalign.options", own)
    ) + classes  # fmt: skip


def _is_record(value: Any) -> bool:
    own = isinstance(value, type) and value.__module__ == options.__name__
    return own and value.__name__ not in NOT_WRITTEN


def _own_types(module: Any) -> list[str]:
    """Names of types that a module defines."""
    return re.findall(r"^(\w+) = ", Path(module.__file__).read_text(), re.MULTILINE)


def _import(module: str, names: set[str]) -> str:
    lines = "".join(f"        {name},\n" for name in sorted(names))
    return f"    from {module} import (\n{lines}    )\n"


def _name(record: type) -> str:
    name = record.__name__
    return NAMES.get(name, name.removesuffix("Options") + "Keywords")


def _keywords(record: type) -> str:
    """The dictionary of a record: what its parts lack."""
    parts = [x for x in record.__bases__ if x is not object]
    inherited = {name: text for x in parts for name, text in field_types(x).items()}
    types = field_types(record).items()
    fields = "".join(f"    {x}: {a}\n" for x, a in types if inherited.get(x) != a)
    bases = ", ".join([*map(_name, parts)] or ["TypedDict"]) + ", total=False"
    heading = f"class {_name(record)}({bases}):"
    if len(heading) > WIDTH:
        heading = f"class {_name(record)}(\n    {bases}\n):"
    if len(bases) + len("    ") > WIDTH:  # a base a line, as ruff formats it
        listed = bases.replace(", ", ",\n    ")
        heading = f"class {_name(record)}(\n    {listed},\n):"
    text = (record.__doc__ or "").partition("\n")[0]
    return f'\n\n{heading}\n    """{text}"""\n' + (fields and f"\n{fields}")


if __name__ == "__main__":
    FILE.write_text(source())
