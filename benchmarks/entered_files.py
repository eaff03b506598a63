"""Count the project's files whose functions run in a warm call.

A reader who follows one call meets these files. ``python -m benchmarks.entered_files``
prints them, and ``tests/test_entered_files.py`` holds the limits.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jaxalign", "kernels_pallas")
PROTEINS = ["MKTAYIAKQRQISFVKSHFSRQ", "MKTAYIKQRISFVKSHFS", "MRTAYIAKQRWSFV"]


def entered(call: Callable, warm: bool = True) -> list[str]:
    """The project's files whose functions run in a call, in any thread.

    Parameters
    ----------
    call : callable without arguments
    warm : bool
        Call it once before, so that nothing is compiled or imported while counting.

    Returns
    -------
    list of str
        Paths under the root of the repository, sorted.
    """
    if warm:
        call()
    names: set[str] = set()

    def watch(frame, event, _argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            names.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in map(Path, names)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
    )


def command_line(folder: Path) -> Callable:
    """``jaxalign all`` of a small FASTA file in a folder, to a table beside it."""
    from jaxalign.cli.main import main

    records = (f">{k}\n{text}\n" for k, text in enumerate(PROTEINS))
    fasta, table = folder / "proteins.fasta", folder / "rows.tsv"
    fasta.write_text("".join(records))
    arguments = ["all", str(fasta), "-o", str(table), "--force", "-q"]
    return lambda: main(arguments)


def set_of_proteins() -> Callable:
    """``align_all`` of the same proteins, without the command line."""
    import jaxalign

    return lambda: jaxalign.align_all(PROTEINS)


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
        calls = {"all": command_line(Path(folder)), "triple": triple()}
        calls |= {"align_all": set_of_proteins(), "soft gradient": soft_gradient()}
        for name, call in calls.items():
            files = entered(call)
            print(f"{name}: {len(files)} files")
            print(*(f"  {file}" for file in files), sep="\n")


if __name__ == "__main__":
    main()
