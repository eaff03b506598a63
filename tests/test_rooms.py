"""The arrows between the rooms: every import is read with ast, any other one fails.

A room is an operation (pairs, words, database, homology, triples, similarity.soft,
similarity.hard) or a shared package; its floors are folders, and ``api``, the files
that hold its public functions.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jaxalign", "kernels_pallas")
OPERATIONS = (
    "pairs",
    "words",
    "database",
    "family",
    "homology",
    "repertoire",
    "triples",
    "similarity.soft",
    "similarity.hard",
    "similarity.distribution",
    "torch",
)
FLOORS = ("api", "dp", "cpu", "gpu", "long", "proofs", "tracebacks")
# Files of public functions beside ``api.py``.
PUBLIC = (
    "accuracy",
    "buckets",
    "jobs",
    "large_searches",
    "matrices",
    "nearest",
    "profile_alignments",
    "profile_scores",
    "purge",
)
COMMON = {"keywords", "model", "options", "runtime"}
PAIRS = {"pairs", "pairs.api", "pairs.cpu", "pairs.gpu", "pairs.proofs"}
# Place -> places it may import; a place may always import itself, and ``errors``.
# An operation without a floor is what lies between its floors: options, plan, result …
ARROWS = {
    "": {"model", "runtime"},
    "selftest": {"", "model", "pairs.api", "runtime"},
    "program_table": {
        "database",
        "model",
        "options",
        "pairs",
        "pairs.gpu",
        "pairs.long",
        "pairs.proofs",
        "repertoire",
        "runtime",
        "triples",
        "triples.gpu",
    },
    "warmup": {"database.api", "model", "pairs.api", "program_table", "runtime"},
    "__main__": {"cli"},
    "affine": set(),
    "cli": {
        "",
        "selftest",
        "warmup",
        "io",
        "model",
        "options",
        *(f"{operation}.api" for operation in OPERATIONS),
    },
    "corpus": {"inputs", "io", "model", "runtime"},
    "data": set(),
    "database": COMMON
    | (PAIRS - {"pairs.cpu"})
    | {"words", "words.gpu", "database.dp"},
    "database.api": COMMON
    | PAIRS
    | {"corpus", "database", "inputs", "io", "signatures"},
    "database.dp": set(),
    "errors": set(),
    "keywords": {"model", "options"},
    "family": COMMON | {"database", "io", "pairs"},
    "family.api": COMMON | {"database.api", "family", "inputs", "signatures"},
    "homology": COMMON | PAIRS | {"database"},
    "homology.api": COMMON | {"corpus", "homology", "inputs", "io", "signatures"},
    "inputs": {"io", "model"},
    "io": {"model", "runtime"},
    "kernels_pallas": set(),  # it loads its names by text, when they are used
    "kernels_pallas.core": set(),
    "kernels_pallas.words": {"kernels_pallas.core"},
    "kernels_pallas.pairs": {"kernels_pallas.core"},
    "kernels_pallas.similarity": {"kernels_pallas.core"},
    "kernels_pallas.triples": {"kernels_pallas.core"},
    "model": set(),
    "pairs": COMMON
    | {"pairs.cpu", "pairs.dp", "pairs.gpu", "pairs.long", "pairs.proofs"},
    "pairs.api": COMMON
    | {
        "inputs",
        "pairs",
        "pairs.proofs",
        "signatures",
        "similarity",
        "similarity.hard.api",
    },
    "pairs.cpu": COMMON | {"affine", "one_function", "pairs", "pairs.dp"},
    "pairs.dp": {"affine", "one_function"},
    "pairs.gpu": COMMON | {"words", "words.gpu", "pairs"},
    "pairs.long": COMMON | {"affine", "one_function", "pairs", "pairs.cpu", "pairs.dp"},
    "one_function": set(),
    "options": {"model"},
    "pairs.proofs": COMMON | {"words", "words.cpu", "words.gpu", "pairs", "pairs.gpu"},
    "repertoire": COMMON | {"words", "pairs", "pairs.api", "repertoire.dp"},
    "repertoire.api": COMMON | {"io", "repertoire", "signatures", "words"},
    "repertoire.dp": set(),
    "runtime": set(),
    "signatures": {"model", "options"},
    "similarity": {"model"},
    "similarity.distribution": COMMON
    | {"similarity", "similarity.hard.api", "similarity.soft.api"},
    "similarity.hard": COMMON | {"similarity", "similarity.hard.dp"},
    "similarity.hard.api": COMMON | {"signatures", "similarity", "similarity.hard"},
    "similarity.hard.dp": {"similarity"},
    "similarity.soft": COMMON | {"similarity", "similarity.soft.dp"},
    "similarity.soft.api": COMMON | {"signatures", "similarity", "similarity.soft"},
    "similarity.soft.dp": {"similarity"},
    "torch": {"similarity", "torch.api"},
    "torch.api": {
        "",
        "model",
        "signatures",
        "similarity",
        "similarity.distribution",
        "torch",
    },
    "words": COMMON | {"words.cpu", "words.dp", "words.gpu"},
    "words.api": COMMON | {"inputs", "signatures", "words"},
    "words.cpu": COMMON | {"words", "words.dp"},
    "words.dp": COMMON | {"one_function", "words"},
    "words.gpu": COMMON | {"words"},
    "triples": COMMON | {"affine", "triples.dp", "triples.gpu", "triples.tracebacks"},
    "triples.api": COMMON | {"inputs", "signatures", "triples"},
    "triples.dp": {"affine"},
    "triples.gpu": COMMON | {"affine", "triples", "triples.dp"},
    "triples.tracebacks": COMMON | {"affine", "triples", "triples.dp", "triples.gpu"},
}
# Place -> distributions it may import, beside the standard library.
OUTSIDE = {
    "affine": {"jax"},
    "one_function": {"jax"},
    "words": {"jax", "numpy"},
    "words.api": {"numpy", "scipy"},
    "words.cpu": {"jax", "numpy"},
    "words.dp": {"jax", "numpy"},
    "words.gpu": {"jax", "numpy"},
    "pairs.proofs": {"jax", "numpy"},
    "selftest": {"numpy"},
    "program_table": {"numpy"},
    "warmup": {"numpy"},
    "cli": {"cyclopts", "numpy", "rich"},
    "database": {"jax", "numpy"},
    "database.api": {"numpy"},
    "database.dp": {"jax", "numpy"},
    "family": {"numpy"},
    "homology": {"numpy", "scipy"},
    "homology.api": {"numpy"},
    "keywords": {"jax"},
    "options": {"jax"},
    "io": {"biotite", "matplotlib", "numpy", "pyarrow"},
    # jaxlib.mlir: inline instructions
    "kernels_pallas.core": {"jax", "jaxlib", "numpy"},
    "kernels_pallas.words": {"jax"},
    "kernels_pallas.pairs": {"jax", "jaxlib", "numpy"},
    "kernels_pallas.similarity": {"jax", "jaxlib", "numpy"},
    "kernels_pallas.triples": {"jax", "jaxlib", "numpy"},
    "model": {"Bio", "biotite", "numpy", "pandas", "polars", "pyarrow"},
    "pairs": {"jax", "numpy"},
    "pairs.api": {"jax", "numpy", "scipy"},
    "pairs.cpu": {"jax", "numpy"},
    "pairs.dp": {"jax"},
    "pairs.gpu": {"jax", "numpy"},
    "pairs.long": {"jax", "numpy"},
    "repertoire": {"jax", "numpy", "scipy"},
    "repertoire.api": {"numpy"},
    "repertoire.dp": {"jax", "numpy"},
    "runtime": {"jax", "numpy", "ray"},
    "similarity": {"jax", "numpy"},
    "similarity.distribution": {"jax", "numpy"},
    "similarity.hard": {"jax"},
    "similarity.hard.api": {"jax", "numpy"},
    "similarity.hard.dp": {"jax"},
    "similarity.soft": {"jax", "numpy"},
    "similarity.soft.api": {"jax", "numpy"},
    "similarity.soft.dp": {"jax"},
    "torch": {"jax", "numpy", "torch"},
    "torch.api": {"jax", "torch"},
    "triples": {"jax", "numpy"},
    "triples.dp": {"jax"},
    "triples.gpu": {"jax", "numpy"},
    "triples.tracebacks": {"jax", "numpy"},
}
PALLAS_IMPORTER = "jaxalign/runtime/backend.py"
# The form without a compiler: NumPy in place of JAX.
BY_ROWS = {"jaxalign/pairs/dp/rows.py", "jaxalign/similarity/hard/small.py"}


def place_of(module: str) -> str | None:
    """jaxalign.pairs.dp.walk -> pairs.dp; jaxalign -> ""; numpy.x -> None."""
    top, *rest = module.split(".")
    if top == "kernels_pallas":
        return ".".join([top, *rest[:1]])
    if top != "jaxalign":
        return None
    room, *rest = rest or [""]
    if rest and f"{room}.{rest[0]}" in OPERATIONS:
        room, rest = f"{room}.{rest[0]}", rest[1:]
    if room not in OPERATIONS or not rest:
        return room
    floor = "api" if rest[0] in PUBLIC else rest[0]
    return f"{room}.{floor}" if floor in FLOORS else room


@cache
def import_nodes(source: str) -> list[ast.Import | ast.ImportFrom]:
    """The statements of a source that import, wherever they are in it."""
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


def imported(source: str, package: str = ""):
    """The modules a source imports, wherever in it; relative ones made absolute."""
    for node in import_nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])])
            base = base if node.level else node.module
            # from jaxalign.pairs import api: a place, or what a package holds
            below = base.split(".")[0] in PACKAGES and is_package(base)
            yield from (f"{base}.{a.name}" if below else base for a in node.names)


def is_package(module: str) -> bool:
    return (ROOT / module.replace(".", "/")).is_dir()


def wrong_arrow(place: str, module: str, file: str) -> bool:
    """Whether code of ``place`` may not import ``module``."""
    other = place_of(module)
    if other is None:
        top = module.partition(".")[0]
        known = {"numpy"} if file in BY_ROWS else OUTSIDE.get(place, set())
        return top not in sys.stdlib_module_names and top not in known
    kernels = "kernels_pallas"
    if other.startswith(kernels) and not place.startswith(kernels):
        return file != PALLAS_IMPORTER
    if other not in ARROWS:  # from jaxalign import __version__
        other = ""
    return other not in ARROWS[place] | {place, "errors"}


def sources():
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


def module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def wrong_arrows(file: str):
    package = file.rpartition("/")[0].replace("/", ".")
    modules = set(imported((ROOT / file).read_text(), package))
    place = place_of(module_of(file))
    return [m for m in sorted(modules) if wrong_arrow(place, m, file)]


def imports_of(files: dict[str, str]) -> dict[str, set[str]]:
    """Which of some files (path -> source) each of them imports, wherever in it."""
    modules = {module_of(file): file for file in files}
    arrows = {}
    for file, source in files.items():
        package = file.rpartition("/")[0].replace("/", ".")
        names = set(imported(source, package))
        paths = (modules.get(x) or modules.get(x.rpartition(".")[0]) for x in names)
        arrows[file] = {path for path in paths if path} - {file}
    return arrows


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Files that import each other in a loop, each loop once."""
    reached = {file: reachable(file, arrows) for file in arrows}
    groups = {
        frozenset(other for other in reached[file] if file in reached[other])
        for file in arrows
    }
    return sorted(sorted(group) for group in groups if group)


def reachable(file: str, arrows: dict[str, set[str]]) -> set[str]:
    """The files to which arrows lead from a file, over any others."""
    reached, last = set(), {file}
    while last:
        last = set().union(*(arrows[x] for x in last)) - reached
        reached |= last
    return reached


def test_no_files_import_each_other_in_a_loop():
    """Imports inside functions and for type checkers count as well."""
    assert circles(imports_of({x: (ROOT / x).read_text() for x in sources()})) == []


PLANTED = {
    "in functions": {
        "jaxalign/homology/audit.py": "def f():\n    from . import report",
        "jaxalign/homology/certificate.py": "from jaxalign.homology.audit import Audit",
        "jaxalign/homology/report.py": "from .certificate import sha256_of",
        "jaxalign/homology/api.py": "from jaxalign.homology.audit import Audit",
        "jaxalign/homology/options.py": "import numpy",
    },
    "for type checkers": {
        "jaxalign/pairs/proofs.py": "from jaxalign.pairs import lcs_blocks",
        "jaxalign/pairs/lcs_blocks.py": "if TYPE_CHECKING:\n"
        "    from jaxalign.pairs.proofs import Proofs",
        "jaxalign/pairs/plan.py": "from jaxalign.pairs import proofs",
    },
}


@pytest.mark.parametrize("name, size", [("in functions", 3), ("for type checkers", 2)])
def test_circles_are_seen(name, size):
    files = list(PLANTED[name])[:size]
    assert circles(imports_of(PLANTED[name])) == [sorted(files)]


def test_every_place_is_known():
    places = {place_of(module_of(file)) for file in sources()}
    assert places == set(ARROWS), "a new room or floor needs its arrows here"


def test_arrows():
    wrong = {file: wrong_arrows(file) for file in sources()}
    assert not {file: modules for file, modules in wrong.items() if modules}


def aliases_of_modules(source: str) -> list[str]:
    """The other names that a source gives to modules of ours."""
    return [
        alias.asname
        for node in import_nodes(source)
        for alias in node.names
        if alias.asname and is_module(getattr(node, "module", None), alias.name)
    ]


def test_modules_keep_their_names():
    """An alias of a module of ours would say that its name is wrong."""
    aliases = {
        file: aliases_of_modules((ROOT / file).read_text()) for file in sources()
    }
    assert not {file: names for file, names in aliases.items() if names}
    assert aliases_of_modules("from jaxalign.model import scoring as s") == ["s"]


def is_module(package: str | None, name: str) -> bool:
    path = f"{package}.{name}" if package else name
    file = ROOT / path.replace(".", "/")
    return path.split(".")[0] in PACKAGES and (
        file.is_dir() or file.with_suffix(".py").exists()
    )


def test_lazy_functions_point_at_the_public_places():
    """Classes, which they return, may lie deeper in an operation."""
    import jaxalign

    functions = {name: home for name, home in jaxalign._HOMES.items() if name.islower()}
    homes = {place_of(home) for home in functions.values()}
    assert homes <= {f"{name}.api" for name in OPERATIONS}


def test_no_room_has_the_name_of_a_public_function():
    """``jaxalign.search`` would be the room as soon as somebody imports from it."""
    import jaxalign

    rooms = {path.stem for path in (ROOT / "jaxalign").iterdir()}
    assert not rooms & set(jaxalign._HOMES)


@pytest.mark.parametrize(
    "place, line",
    [
        ("pairs.dp", "import numpy as np"),
        ("pairs.dp", "from jaxalign.model import scoring"),
        ("similarity.soft.dp", "from jaxalign import affine"),
        ("triples.dp", "from jaxalign.pairs.dp.recurrence import border"),
        ("model", "import jax"),
        ("model", "def f():\n    from jaxalign.pairs.dp import walk"),
        ("io", "from jaxalign.pairs.plan import Task"),
        ("runtime", "from jaxalign.model.scoring import Scoring"),
        ("words", "from jaxalign.repertoire import graph"),
        ("words.dp", "from jaxalign.words import cpu"),
        ("pairs", "from jaxalign.words import api"),
        ("runtime", "import kernels_pallas"),
        ("pairs.api", "import jaxalign.pairs.dp.sweep.lane_fill"),
        ("pairs.api", "from jaxalign.io import fasta"),
        ("pairs", "from jaxalign.triples import engine"),
        ("pairs.cpu", "from jaxalign.pairs.gpu import launches"),
        ("pairs.gpu", "from kernels_pallas.pairs import fill"),
        ("pairs", "import kernels_pallas"),
        ("database", "from jaxalign.triples import plan"),
        ("database.dp", "import pandas"),
        ("triples", "from jaxalign.pairs.plan import Task"),
        ("similarity", "from jaxalign.similarity.soft import options"),
        ("similarity.soft.api", "from jaxalign.similarity.soft.dp import scan"),
        ("pairs.api", "from jaxalign.similarity.hard import engine"),
        ("cli", "from ..pairs import engine"),
        ("cli", "import jax"),
        ("kernels_pallas.core", "from kernels_pallas.pairs import shapes"),
        ("kernels_pallas.pairs", "from kernels_pallas.words import lcs"),
        ("kernels_pallas.pairs", "from jaxalign.pairs.dp import directions"),
        ("errors", "from jaxalign import model"),
    ],
)
def test_wrong_arrows_are_seen(place, line):
    modules = imported(line, f"jaxalign.{place}")
    assert any(wrong_arrow(place, module, "a.py") for module in modules)


def test_right_arrows_pass():
    assert not wrong_arrow("runtime", "kernels_pallas", PALLAS_IMPORTER)
    assert not wrong_arrow("pairs.dp", "jax.numpy", "a.py")
    assert all(not wrong_arrow("pairs.dp", "numpy", file) for file in BY_ROWS)
    assert all(wrong_arrow("pairs.dp", "jax", file) for file in BY_ROWS)
    assert not wrong_arrow("model", "jaxalign.errors", "a.py")
    assert not wrong_arrow("cli", "jaxalign.pairs.jobs", "a.py")
    package = "jaxalign.pairs.dp"
    assert list(imported("from . import walk", package)) == [f"{package}.walk"]
    assert list(imported("from .x import y", package)) == [f"{package}.x"]
