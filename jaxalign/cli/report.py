"""What a run says about itself: a line before, a line after, or one JSON object."""

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from jaxalign.model.scoring import resolve_ends

PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "biotite")


def say(text: str) -> None:
    """A line on standard error."""
    print(f"jaxalign: {text}", file=sys.stderr)


def versions() -> dict[str, str]:
    """Versions of the program, what it stands on, and Python."""
    return {name: _version(name) for name in PACKAGES} | {
        "python": platform.python_version()
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def heading(request, plan: dict) -> str:
    """Scoring formula, mode, alphabet, implementation, size of the job."""
    return "; ".join(
        (
            str(request.scoring),
            mode(request),
            f"{request.scoring.alphabet.kind} alphabet",
            f"output {request.output}",
            f"{plan['implementation']} ({plan['reason']})",
            f"{plan['pairs']:,} pairs, {plan['cells']:,} cells",
        )
    )


def mode(request) -> str:
    """The mode, and the ends that are free."""
    if not request.free_ends:
        return request.mode
    return f"{request.mode} with free {', '.join(request.free_ends)}"


def plan_lines(plan: dict) -> list[str]:
    """The memory plan, a line a figure."""
    return [f"{name.replace('_', ' ')}: {_shown(v)}" for name, v in plan.items()]


def _shown(value) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def summary(table, kept: int, identity: str, least: float | None) -> str:
    """Pairs computed and kept, speed."""
    cells, seconds = table.info["cells"], table.info["seconds"]
    speed = f"{seconds:.2f} s, {gcups(table):.3g} GCUPS"
    cut = ""
    if least is not None:
        cut = f", {kept:,} kept (identity {identity} >= {least:g})"
    return f"{len(table):,} pairs computed{cut}; {cells:,} cells in {speed}"


def gcups(table) -> float:
    """10^9 cells a second, compilation included."""
    seconds = table.info["seconds"]
    return table.info["cells"] / seconds / 1e9 if seconds > 0 else 0.0


def as_json(request, inputs, table, kept, least, device, warnings) -> str:
    """One JSON object about a run."""
    return json.dumps(
        {
            "versions": versions(),
            "device": device,
            "implementation": table.implementation,
            "reason": table.info["reason"],
            "scoring": scoring(request.scoring),
            "mode": request.mode,
            "free_ends": sorted(resolve_ends(request.mode, request.free_ends)),
            "identity": request.identity,
            "min_identity": least,
            "output": request.output,
            "out": request.out,
            "format": request.format,
            "inputs": files(inputs),
            "pairs": {"computed": len(table), "kept": kept},
            "max_score": table["score"].max().item() if len(table) else None,
            "seconds": table.info["seconds"],
            "cells": table.info["cells"],
            "gcups": gcups(table),
            "plan": _plan(table.info),
            "warnings": warnings,
        },
        indent=2,
    )


def scoring(made) -> dict:
    """Formula, matrix, gap costs and alphabet."""
    return {
        "formula": str(made),
        "matrix": made.matrix_name,
        "gap_open": made.gap_open,
        "gap_extend": made.gap_extend,
        "alphabet": made.alphabet.kind,
        "letters": made.alphabet.letters,
    }


def files(inputs) -> list[dict]:
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


def _plan(info: dict) -> dict:
    elsewhere = ("implementation", "reason", "seconds", "cells", "pairs")
    return {name: value for name, value in info.items() if name not in elsewhere}
