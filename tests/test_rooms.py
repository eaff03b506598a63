"""The arrows between the rooms: every import is read with ast, any other one fails."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jaxalign", "kernels_pallas")
# Room -> rooms it may import; a room may always import itself.
ROOMS = {
    "": {"errors", "fork"},
    "__main__": {"cli"},
    "api": {"inputs", "run", "model"},
    "cli": {
        "api",
        "database",
        "large",
        "search_parts",
        "three",
        "io",
        "model",
        "soft",
        "",
    },
    "data": set(),
    "database": {"api", "inputs", "io", "model", "run"},
    "dp": set(),
    "errors": set(),
    "fork": set(),
    "inputs": {"io", "model"},
    "io": {"model"},
    "kernels_pallas": set(),
    "large": {"inputs", "model", "run"},
    "model": set(),
    "pairwise": {"api", "inputs", "model", "run"},
    "run": {"dp", "fork", "model"},
    "search_parts": {"database", "large", "model", "run"},
    "soft": {"run", "model"},
    "three": {"inputs", "run", "model"},
}
# Room -> distributions it may import, beside the standard library.
OUTSIDE = {
    "": set(),
    "__main__": set(),
    "api": {"numpy"},
    "cli": {"cyclopts", "numpy", "rich"},
    "data": set(),
    "database": {"numpy"},
    "dp": {"jax"},
    "errors": set(),
    "fork": set(),
    "inputs": set(),
    "io": {"biotite", "matplotlib", "numpy", "pyarrow"},
    "kernels_pallas": {"jax", "jaxlib", "numpy"},  # jaxlib.mlir: inline instructions
    "large": set(),
    "model": {"biotite", "numpy", "pandas", "polars", "pyarrow"},
    "pairwise": {"numpy"},
    "run": {"jax", "numpy", "ray"},
    "search_parts": {"numpy"},
    "soft": {"jax", "numpy"},
    "three": {"numpy"},
}
PALLAS_IMPORTER = "jaxalign/run/engine.py"


def room_of(module: str) -> str:
    """jaxalign.dp.sweep -> dp; jaxalign -> the empty name; numpy.x -> None."""
    top, *rest = module.split(".")
    if top == "kernels_pallas":
        return top
    return (rest or [""])[0] if top == "jaxalign" else None


def imported(source: str, package: str = ""):
    """The modules a source imports, wherever in it; relative ones made absolute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])])
            base = base if node.level else node.module
            below = base in PACKAGES  # from jaxalign import api: a room, or a name
            yield from (f"{base}.{a.name}" if below else base for a in node.names)


def wrong_arrow(room: str, module: str, file: str) -> bool:
    """Whether code of ``room`` may not import ``module``."""
    other = room_of(module)
    if other is None:
        top = module.partition(".")[0]
        return top not in sys.stdlib_module_names and top not in OUTSIDE[room]
    if other == "kernels_pallas" and room != other:
        return file != PALLAS_IMPORTER
    if other not in ROOMS:  # from jaxalign import __version__
        other = ""
    return other not in ROOMS[room] | {room, "errors"}


def sources():
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


def wrong_arrows(file: str):
    parts = file.removesuffix(".py").split("/")
    package = ".".join(parts[:-1])
    module = package if parts[-1] == "__init__" else ".".join(parts)
    found = set(imported((ROOT / file).read_text(), package))
    return [m for m in sorted(found) if wrong_arrow(room_of(module), m, file)]


def test_every_room_is_known():
    files = (file for file in sources() if file.startswith("jaxalign/"))
    rooms = {file.removesuffix(".py").split("/")[1] for file in files}
    assert rooms - {"__init__"} <= set(ROOMS), "a new room needs its arrows here"


@pytest.mark.parametrize("file", sources())
def test_arrows(file):
    assert wrong_arrows(file) == []


def test_lazy_names_point_at_the_public_rooms():
    import jaxalign

    homes = {room_of(home) for home in jaxalign._HOMES.values()}
    known = {"api", "database", "large", "pairwise", "search_parts", "soft", "three"}
    assert homes <= known | {"model", "errors"}


@pytest.mark.parametrize(
    "room, line",
    [
        ("dp", "import numpy as np"),
        ("dp", "from jaxalign.model import scoring"),
        ("model", "import jax"),
        ("model", "def f():\n    from jaxalign.dp import walk"),
        ("io", "from jaxalign.run.engine import Task"),
        ("io", "from jaxalign import api"),
        ("api", "import jaxalign.dp.sweep"),
        ("api", "from jaxalign.io import fasta"),
        ("soft", "from jaxalign.dp import soft"),
        ("cli", "from ..run import engine"),
        ("cli", "import jax"),
        ("run", "from kernels_pallas import pair_fill"),
        ("run", "import kernels_pallas"),
        ("kernels_pallas", "from jaxalign.dp import directions"),
        ("errors", "from jaxalign import model"),
    ],
)
def test_wrong_arrows_are_seen(room, line):
    modules = imported(line, f"jaxalign.{room}")
    assert any(wrong_arrow(room, module, "a.py") for module in modules)


def test_right_arrows_pass():
    assert not wrong_arrow("run", "kernels_pallas.pair_fill", PALLAS_IMPORTER)
    assert not wrong_arrow("dp", "jax.numpy", "a.py")
    assert not wrong_arrow("model", "jaxalign.errors", "a.py")
    assert list(imported("from . import walk", "jaxalign.dp")) == ["jaxalign.dp"]
    assert list(imported("from .x import y", "jaxalign.dp")) == ["jaxalign.dp.x"]
