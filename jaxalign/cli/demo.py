"""``jaxalign demo``: the main job on a family of globins that ships with jaxalign."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxalign.model.table import Table


PAIR = "P69905", "P68871"  # human haemoglobin, alpha and beta


def demo() -> int:
    """Align 16 globins, all against all; show a table and one alignment."""
    from importlib.resources import as_file, files

    from jaxalign.cli import report
    from jaxalign.cli.terminal import answer, say
    from jaxalign.io import fasta, formats
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs import api

    scoring = Scoring()
    with as_file(files("jaxalign.data") / "globins.fasta") as path:
        sequences = fasta.read(path, scoring.alphabet)
    table = api.align_all(sequences, scoring, output="alignment")
    reason = table.info["reason"]
    answer([f"jaxalign all globins.fasta: {scoring}; {table.mode}; {reason}"])
    _show(table)
    query, target = (sequences.names.index(name) for name in PAIR)
    shown = (table["query"] == query) & (table["target"] == target)
    formats.write(table.filter(shown), "-", "pair")
    say(report.summary(table.info, len(table), ""))
    return 0


def _show(table: "Table", best: int = 10, least: int = 3) -> None:
    """The best pairs and the worst ones."""
    from rich.console import Console
    from rich.table import Table

    from jaxalign.cli.terminal import standard_output

    view = Table(title=f"best {best}, last {least} of {len(table)} pairs")
    for name in ("query", "target", "score", "identity", "columns", "gaps"):
        view.add_column(
            name, justify="left" if name in ("query", "target") else "right"
        )
    order = (-table["score"]).argsort(kind="stable")
    identity = table.identity("alignment")
    for place, row in enumerate((*order[:best], *order[-least:]), 1):
        view.add_row(
            *_cells(table.row(row), float(identity[row])), end_section=place == best
        )
    Console(file=standard_output()).print(view)


def _cells(row: dict, identity: float) -> list[str]:
    numbers = (row["score"], f"{identity:.1%}", row["columns"], row["gaps"])
    return [row["query"], row["target"], *map(str, numbers)]
