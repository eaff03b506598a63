"""Reports of a run about itself: a line before, a line after, or one JSON object."""

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxalign.model.scoring import Scoring, resolve_ends
from jaxalign.model.show import counted
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.model.system import package_versions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from jaxalign.cli.inputs import Inputs
    from jaxalign.cli.request import Request
    from jaxalign.options import Execution


PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "biotite")


def versions() -> dict[str, str]:
    """Versions of the program, what it stands on, and Python."""
    return package_versions(PACKAGES)


def heading(request: "Request", plan: Mapping) -> str:
    """Scoring formula, mode, alphabet, implementation, size of the job."""
    return "; ".join(
        (
            str(request.scoring),
            mode(request),
            f"{request.scoring.alphabet.kind} alphabet",
            f"output {request.options.output}",
            f"{plan['implementation']} ({plan['reason']})",
            f"{pairs(plan)}, {plan['cells']:,} cells",
        )
    )


def mode(request: "Request") -> str:
    """The mode, and the ends that are free."""
    if not request.options.free_ends:
        return request.options.mode
    return f"{request.options.mode} with free {', '.join(request.options.free_ends)}"


def plan_lines(plan: Mapping) -> list[str]:
    """The memory plan, a line a figure."""
    return [f"{name.replace('_', ' ')}: {_shown(v)}" for name, v in plan.items()]


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def summary(info: Mapping, rows: int, filters: str) -> str:
    """Summary line: pairs computed, kept and excluded by proof, and speed."""
    cut = f", {rows:,} kept ({filters})" if filters else ""
    return (
        f"{pairs(info)} computed{cut}; {cells(info):,} cells in {speed(info)}"
        f"{excluded(info)}{halved(info)}{strands(info)}"
    )


def strands(info: Mapping) -> str:
    """Which strands were aligned, where that was a question."""
    words = {PLUS: "plus", MINUS: "minus"}
    names = [words[sign] for sign in info.get("strands", ())]
    return f"; strands {' and '.join(names)}" if names else ""


def cells(info: Mapping) -> int:
    """Cells of the pairs that were aligned."""
    return info.get("aligned_cells", info["cells"])


def expected(
    cells: float,
    output: str,
    options: "Execution",
    row_bytes: Callable[[], float] | None = None,
    proofs: bool = False,
) -> list[str]:
    """A line about a job that will take more than a minute; none of any other.

    Parameters
    ----------
    cells : of all of its pairs
    output : of the pairs
    row_bytes : of all rows, as they are written; asked for a long job alone, and None
        where nobody knows
    proofs : whether pairs are left out by proofs, nobody knows how many
    """
    from jaxalign.pairs import api

    seconds = api.expected_seconds(cells, "proofs" if proofs else output, options)
    further = ", or more where proofs leave many pairs to align" if proofs else ""
    return long_job(seconds, row_bytes, further=further)


def long_job(
    seconds: float,
    size_of: Callable[[], float] | None = None,
    what: str = "rows",
    further: str = "",
) -> list[str]:
    """A line about a job of so many seconds, if they are more than a minute.

    Parameters
    ----------
    size_of : bytes that it writes, None where nobody knows
    what : they are of
    further : said of the time
    """
    from jaxalign.pairs import api

    if seconds < api.LONG_JOB:
        return []
    text = f"about {duration(seconds)}{further}"
    return [text if size_of is None else f"{text}, {size(size_of())} of {what}"]


def duration(seconds: float) -> str:
    """Seconds as people say them, to two digits."""
    for unit, length in (("day", 86400), ("hour", 3600)):
        if seconds >= 1.5 * length:
            return f"{float(f'{seconds / length:.2g}'):g} {unit}s"
    return counted(round(float(f"{seconds / 60:.2g}")), "minute")


def size(count: float) -> str:
    """Bytes as people say them: ``3.3 GB``."""
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.5:
            return f"{float(f'{count:.2g}'):g} {unit}"
    return f"{float(f'{count / 1000:.2g}'):g} TB"


def excluded(info: Mapping) -> str:
    """The pairs that were not aligned, by the inequality that shows that they cannot
    pass; or that there is none."""
    counts = {name: n for name, n in info.get("excluded", {}).items() if n}
    if counts:
        left = info["aligned_pairs"]
        every = ", ".join(f"{count:,} by {name}" for name, count in counts.items())
        return f"; {left:,} aligned, excluded {every}"
    bound = info.get("bound", "")
    return f"; bound {bound}" if bound.startswith("none") else ""


def halved(info: Mapping) -> str:
    """Launches for which a GPU had no memory, if there were any."""
    count = info.get("halved_launches", 0)
    some = f"{count:,} launch" + "es" * (count != 1)
    return f"; {some} halved, the GPU had no memory for more" if count else ""


def pairs(info: Mapping) -> str:
    """How many pairs: ``1 pair``, ``1,225 pairs``."""
    return f"{info['pairs']:,} pair" + "s" * (info["pairs"] != 1)


def speed(info: Mapping) -> str:
    """Seconds, and of a job that took one or more its GCUPS: of a shorter one they
    would tell of its start alone."""
    seconds = f"{info['seconds']:.2f} s"
    return seconds if info["seconds"] < 1 else f"{seconds}, {gcups(info):.3g} GCUPS"


def gcups(info: Mapping) -> float:
    """10^9 cells a second, compilation included."""
    return cells(info) / info["seconds"] / 1e9 if info["seconds"] > 0 else 0.0


def about_run(
    request: "Request", inputs: "Inputs", info: Mapping, rows: dict, device: Any
) -> dict:
    """Facts of a run for ``--json``; ``rows``: how many are kept, the best score."""
    # Who has computed depends on calls before, and so is in no file.
    elsewhere = ("implementation", "ran", "reason", "seconds", "cells", "pairs")
    elsewhere += ("aligned_pairs", "aligned_cells", "excluded", "bound", "strands")
    return {
        "device": device,
        "implementation": info["implementation"],
        "reason": info["reason"],
        "scoring": scoring(request.scoring),
        "mode": request.options.mode,
        "free_ends": free_ends(request),
        "strands": list(info.get("strands", (PLUS,))),
        "identity": request.identity,
        "filters": request.filters,
        "output": request.options.output,
        "out": request.out,
        "format": request.format,
        "inputs": files(inputs),
        "pairs": {"computed": info["pairs"], "kept": rows["kept"]},
        "aligned": info.get("aligned_pairs", info["pairs"]),
        "excluded": info.get("excluded", {}),
        "bound": info.get("bound"),
        "max_score": rows["max_score"],
        "seconds": info["seconds"],
        "cells": info["cells"],
        "gcups": gcups(info),
        "plan": {name: x for name, x in info.items() if name not in elsewhere},
    }


def free_ends(request: "Request") -> list[str]:
    """The ends that are free, whatever says so."""
    return sorted(resolve_ends(request.options.mode, request.options.free_ends))


def manifest(inputs: list[dict], costs: Scoring, about: dict) -> dict:
    """All that the rows of a run depend on, by which a later run knows it again."""
    return {
        "inputs": inputs,
        "scoring": scoring(costs) | {"scores_sha256": digest(costs.scores)},
        **about,
        "jaxalign": versions()["jaxalign"],
    }


def digest(numbers: "ArrayLike") -> str:
    """SHA-256 of integers."""
    data = np.ascontiguousarray(np.asarray(numbers, "<i8"))
    return hashlib.sha256(data.tobytes()).hexdigest()


def scoring(costs: Scoring) -> dict:
    """Formula, matrix, gap costs and alphabet."""
    return {
        "formula": str(costs),
        "matrix": costs.matrix_name,
        "gap_open": costs.gap_open,
        "gap_extend": costs.gap_extend,
        "alphabet": costs.alphabet.kind,
        "letters": costs.alphabet.letters,
    }


def files(inputs: "Inputs") -> list[dict]:
    """Each input with its SHA-256 and what was read from it."""
    columns = (inputs.paths, inputs.hashes, inputs.sequences, inputs.substituted)
    return [
        {
            "path": path,
            "sha256": digest,
            "records": len(sequences),
            "residues": int(np.sum(sequences.lengths)),
            "substituted": count,
        }
        for path, digest, sequences, count in zip(*columns, strict=True)
    ]
