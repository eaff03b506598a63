"""Measure the house: how big the packages are, and what a reader of one call meets.

A reader who follows one call meets some files, and turns from one to another as often
as it moves. ``python -m benchmarks.entered_files`` prints, for each call, its files,
its moves, its depth and its functions, and then the files and lines of every room;
``tests/test_entered_files.py`` holds the limits. A call is measured when warm: nothing
is compiled or imported. Every thread counts, and a move is every change of file, at
calls and at returns alike.
"""

import ast
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import measure
import problems

import jaxalign
from jaxalign.cli import main as cli

ROOT = problems.ROOT
PACKAGES = ("jaxalign", "kernels_pallas")
PROTEINS = ["MKTAYIAKQRQISFVKSHFSRQ", "MKTAYIKQRISFVKSHFS", "MRTAYIAKQRWSFV"]


@dataclass(frozen=True)
class Trace:
    """The way of one call through the project.

    Attributes
    ----------
    files : list of str
        The project's files whose functions run, in any thread: paths under the root of
        the repository, sorted.
    moves : int
        Changes of file within a thread: a function of another file begins, or returns.
    depth : int
        The most functions of the project that call each other at one time.
    functions : int
        Distinct functions that run.
    """

    files: list[str]
    moves: int
    depth: int
    functions: int


@dataclass
class _Thread:
    """Functions of the project that run in one thread, outermost first."""

    stack: list[str] = field(default_factory=list)
    moves: int = 0
    depth: int = 0


def trace(call: Callable[[], Any], warm: bool = True) -> Trace:
    """Follow a call without arguments, in all threads.

    Parameters
    ----------
    call : callable without arguments
    warm : bool
        Call it twice before, so that nothing is compiled or imported while counting.
    """
    for _ in range(2 if warm else 0):
        call()
    threads: dict[int, _Thread] = defaultdict(_Thread)
    files, codes = set(), set()

    def count(frame: Any, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or code.co_name == "<module>":
            return
        name = _ours(code.co_filename)
        if name is None:
            return
        thread = threads[threading.get_ident()]
        if event == "call":
            thread.moves += bool(thread.stack) and thread.stack[-1] != name
            thread.stack.append(name)
            thread.depth = max(thread.depth, len(thread.stack))
            files.add(name)
            if not code.co_name.startswith("<"):  # comprehensions, in Python 3.11
                codes.add(code)
        elif thread.stack:
            thread.stack.pop()
            thread.moves += bool(thread.stack) and thread.stack[-1] != name

    before = sys.getprofile()
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    counts = list(threads.values())
    return Trace(
        sorted(files),
        sum(thread.moves for thread in counts),
        max((thread.depth for thread in counts), default=0),
        len(codes),
    )


def lines_of(source: str) -> Counter[str]:
    """Count the lines of a source by kind.

    Returns
    -------
    Counter
        Lines that are ``blank``, ``comment``, ``docstring``, ``import``, ``signature``
        (decorators, and a definition up to its body) or ``statement``, the rest.
    """
    text = source.splitlines()
    kinds = [
        "blank" if not x.strip() else "comment" if x.lstrip()[0] == "#" else "statement"
        for x in text
    ]

    def mark(first: int, last: int, kind: str) -> None:
        kinds[first - 1 : last] = [kind] * (last - first + 1)

    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            mark(node.lineno, node.end_lineno or node.lineno, "import")
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            body = node.body[0].lineno
            first = min([node.lineno, *(x.lineno for x in node.decorator_list)])
            mark(first, max(node.lineno, body - 1), "signature")
        if isinstance(node, scopes) and ast.get_docstring(node) is not None:
            mark(node.body[0].lineno, node.body[0].end_lineno or 0, "docstring")
    return Counter(kinds)


def sizes(folders: tuple[str, ...] = PACKAGES) -> dict[str, Counter[str]]:
    """Count files and lines by room, the folders in ``folders``.

    Returns
    -------
    dict of str to Counter
        Room -> ``files``, ``lines``, and the lines of each kind (``lines_of``). Stubs
        count as files and lines.
    """
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py*")):
            if path.suffix not in (".py", ".pyi") or "__pycache__" in path.parts:
                continue
            parts = path.relative_to(ROOT).parts
            source = path.read_text()
            lines = Counter(files=1, lines=len(source.splitlines()))
            rooms["/".join(parts[:2] if len(parts) > 2 else parts[:1])] += (
                lines + lines_of(source)
            )
    return dict(rooms)


def _ours(path: str) -> str | None:
    """The path of a file of the project under its root."""
    file = Path(path)
    if not file.is_relative_to(ROOT):
        return None
    name = file.relative_to(ROOT)
    return name.as_posix() if name.parts[0] in PACKAGES else None


def two_strings() -> Callable[[], Any]:
    """``align`` of two short proteins, by rows."""
    return lambda: jaxalign.align(*PROTEINS[:2])


def command_line(folder: Path) -> Callable[[], Any]:
    """``jaxalign all`` of a small FASTA file in a folder, to a table beside it."""
    fasta, table = folder / "proteins.fasta", folder / "rows.tsv"
    problems.write_fasta(fasta, enumerate(PROTEINS))
    arguments = ["all", str(fasta), "-o", str(table), "--force", "-q"]
    return lambda: cli.main([*arguments, "--implementation", "sweep"])


def set_of_proteins() -> Callable[[], Any]:
    """``align_all`` of the same proteins, compiled, without the command line."""
    return lambda: jaxalign.align_all(PROTEINS, implementation="sweep")


def search() -> Callable[[], Any]:
    """``search`` of ten proteins in a hundred, compiled, with paths."""
    queries, targets = proteins(10), proteins(100)
    return lambda: jaxalign.search(queries, targets, implementation="sweep")


def nearest() -> Callable[[], Any]:
    """``nearest`` of ten proteins in a hundred, compiled."""
    queries, targets = proteins(10), proteins(100)
    return lambda: jaxalign.nearest(queries, targets, implementation="sweep")


def split() -> Callable[[], Any]:
    """``split`` of forty proteins in two folds, compiled."""
    sequences = proteins(40)
    options: dict[str, Any] = {"min_identity": 0.4, "folds": 2, "too_large": "keep"}
    return lambda: jaxalign.split(sequences, implementation="sweep", **options)


def cluster() -> Callable[[], Any]:
    """``cluster`` of three peptides, by rows."""
    return lambda: jaxalign.cluster(PROTEINS, min_identity=0.5)


def repertoire() -> Callable[[], Any]:
    """``repertoire_graph`` of sixty CDR3 sequences within one edit."""
    receptors = [f"CASS{a}{b}NEQFF" for a in problems.LETTERS for b in "LPG"]
    options: dict[str, Any] = {"metric": "levenshtein", "cutoff": 1}
    return lambda: jaxalign.repertoire_graph(receptors, **options)


def proteins(count: int) -> list[str]:
    """Proteins of up to 200 residues of those that ship with the project."""
    records = problems.read_fasta(ROOT / "jaxalign/data/swissprot1000.fasta")
    return [text for _, text in records if len(text) <= 200][:count]


def triple() -> Callable[[], Any]:
    """``align_three`` of three short proteins."""
    return lambda: jaxalign.align_three(*PROTEINS)


def soft_gradient() -> Callable[[], Any]:
    """The gradient of ``soft_score`` by the scores of a pair."""
    scores = jnp.ones((8, 9), jnp.float32)
    gradient = jax.grad(lambda x: jaxalign.soft_score(x, gap_open=11.0, gap_extend=1.0))
    return lambda: gradient(scores).block_until_ready()


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--files", action="store_true", help="name the files, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calls = {
            "align": two_strings(),
            "all": command_line(Path(folder)),
            "align_all": set_of_proteins(),
            "search": search(),
            "nearest": nearest(),
            "split": split(),
            "cluster": cluster(),
            "repertoire": repertoire(),
            "triple": triple(),
            "soft gradient": soft_gradient(),
        }
        print("call           files  moves  depth  functions")
        for name, call in calls.items():
            way = trace(call)
            numbers = len(way.files), way.moves, way.depth, way.functions
            print(f"{name:13}" + "".join(f"{x:7}" for x in numbers))
            if options.files:
                print(*(f"  {file}" for file in way.files), sep="\n")
    rooms = sizes()
    kinds = ["files", "lines", "statement", "docstring", "signature", "import", "blank"]
    print(f"{'room':28}" + "".join(f"{kind:>10}" for kind in kinds))
    for room, lines in [*rooms.items(), ("all", sum(rooms.values(), Counter()))]:
        print(f"{room:28}" + "".join(f"{lines[kind]:10}" for kind in kinds))
    for folder in ("tests", "benchmarks"):
        lines = sum(sizes((folder,)).values(), Counter())
        print(f"{folder:28}" + "".join(f"{lines[kind]:10}" for kind in kinds))


if __name__ == "__main__":
    main()
