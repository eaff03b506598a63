"""Count the files that a warm call enters, and its moves from one file to another.

A reader who follows one call meets these files, and turns from one to another as often
as it moves. ``python -m benchmarks.entered_files`` prints both, and
``tests/test_entered_files.py`` holds the limits.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jaxalign", "kernels_pallas")
PROTEINS = ["MKTAYIAKQRQISFVKSHFSRQ", "MKTAYIKQRISFVKSHFS", "MRTAYIAKQRWSFV"]


@dataclass(frozen=True)
class Trace:
    """What a call enters.

    Attributes
    ----------
    files : list of str
        The project's files whose functions run, in any thread: paths under the root of
        the repository, sorted.
    moves : int
        How often a function runs that stands in another file than the one that began
        before it in the same thread.
    """

    files: list[str]
    moves: int


def trace(call: Callable, warm: bool = True) -> Trace:
    """Follow a call without arguments, in all threads.

    Parameters
    ----------
    call : callable without arguments
    warm : bool
        Call it twice before, so that nothing is compiled or imported while counting.
    """
    for _ in range(2 if warm else 0):
        call()
    entered: dict[int, list[str]] = {}

    def watch(frame, event, _argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            names = entered.setdefault(threading.get_ident(), [])
            if (name := _ours(frame.f_code.co_filename)) is not None:
                names.append(name)

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    threads = [list(names) for names in entered.values()]
    moves = sum(a != b for names in threads for a, b in zip(names, names[1:]))  # noqa: B905
    return Trace(sorted({name for names in threads for name in names}), moves)


def _ours(path: str) -> str | None:
    """The path of a file of the project under its root."""
    file = Path(path)
    if not file.is_relative_to(ROOT):
        return None
    name = file.relative_to(ROOT)
    return name.as_posix() if name.parts[0] in PACKAGES else None


def two_strings() -> Callable:
    """``align`` of two short proteins."""
    import jaxalign

    return lambda: jaxalign.align(*PROTEINS[:2])


def command_line(folder: Path) -> Callable:
    """``jaxalign all`` of a small FASTA file in a folder, to a table beside it."""
    from jaxalign.cli.main import main

    records = (f">{k}\n{text}\n" for k, text in enumerate(PROTEINS))
    fasta, table = folder / "proteins.fasta", folder / "rows.tsv"
    fasta.write_text("".join(records))
    arguments = ["all", str(fasta), "-o", str(table), "--force", "-q"]
    return lambda: main([*arguments, "--implementation", "sweep"])


def set_of_proteins() -> Callable:
    """``align_all`` of the same proteins, without the command line."""
    import jaxalign

    return lambda: jaxalign.align_all(PROTEINS, implementation="sweep")


def search() -> Callable:
    """``search`` of the same proteins among themselves, with paths."""
    import jaxalign

    return lambda: jaxalign.search(PROTEINS, PROTEINS, implementation="sweep")


def split() -> Callable:
    """``split`` of the same proteins in two folds."""
    import jaxalign

    options = {"max_identity": 0.4, "folds": 2, "too_large": "keep"}
    return lambda: jaxalign.split(PROTEINS, **options)


def triple() -> Callable:
    """``align_three`` of three short proteins."""
    import jaxalign

    return lambda: jaxalign.align_three(*PROTEINS)


def soft_gradient() -> Callable:
    """The gradient of ``soft_score`` by the scores of a pair."""
    import jax
    import jax.numpy as jnp

    import jaxalign

    scores = jnp.ones((8, 9), jnp.float32)
    gradient = jax.grad(lambda x: jaxalign.soft_score(x, gap_open=11.0, gap_extend=1.0))
    return lambda: gradient(scores).block_until_ready()


def main() -> None:
    import argparse
    import tempfile

    argparse.ArgumentParser(description=__doc__).parse_args()

    with tempfile.TemporaryDirectory() as folder:
        calls = {
            "align": two_strings(),
            "all": command_line(Path(folder)),
            "align_all": set_of_proteins(),
            "search": search(),
            "split": split(),
            "triple": triple(),
            "soft gradient": soft_gradient(),
        }
        for name, call in calls.items():
            steps = trace(call)
            print(f"{name}: {len(steps.files)} files, {steps.moves} moves")
            print(*(f"  {file}" for file in steps.files), sep="\n")


if __name__ == "__main__":
    main()
