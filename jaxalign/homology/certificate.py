"""A certificate of an audit: what was compared with what, and what was found, as JSON.

Whoever has the sequences can verify it: the audit is done again, and everything that
does not depend on the machine has to be the same.
"""

import hashlib
import json
import sys
from dataclasses import fields
from typing import Any

import numpy as np

from jaxalign.errors import InputError, JaxalignError
from jaxalign.homology.audit import Audit
from jaxalign.homology.options import Definition, HomologyOptions, define
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.model.versions import package_versions
from jaxalign.runtime.devices import describe_device, select_device

FORMAT = "jaxalign certificate, 1"
PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "scipy")
# What two computations must agree in; versions, devices and excluded pairs may differ.
SAME = ("definition", "parts", "leaks", "worst")
KINDS = {"definition": dict, "parts": list, "inputs": list, "worst": list, "leaks": int}
TOLERANCE = 1e-12  # of identities that were written as text


def certificate_of(
    audit: Audit, inputs: list[dict] | None = None, split: dict | None = None
) -> dict[str, Any]:
    """The certificate of an audit, as plain values.

    Parameters
    ----------
    audit : Audit
    inputs : list of dict, optional
        Files that were read: their paths and SHA-256.
    split : dict, optional
        The file that says which sequence is in which part, in the same way.
    """
    pairs = {key: audit.info[key] for key in ("all", "aligned", "excluded")}
    return {
        "format": FORMAT,
        "claim": f"no pair of sequences of different parts has {audit.definition}",
        "holds": audit.holds,
        "definition": _definition(audit.definition),
        "inputs": inputs or [],
        "split": split,
        "parts": [
            {"name": name, "sequences": len(one), "sha256": sha256_of(one)}
            for name, one in zip(audit.names, audit.parts, strict=True)
        ],
        "pairs": pairs,
        "leaks": audit.leaks,
        "worst": _worst(audit),
        "versions": versions(),
        "device": _device(audit),
    }


def sha256_of(sequences: Sequences) -> str:
    """SHA-256 of names and letters: of the lines ``>name`` and letters of every record,
    in UTF-8."""
    digest = hashlib.sha256()
    for name, text in zip(sequences.names, sequences.texts(), strict=True):
        digest.update(f">{name}\n{text}\n".encode())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of the program, what it stands on, and Python."""
    return package_versions(PACKAGES)


def _device(audit: Audit) -> dict:
    if audit.info["implementation"] == "rows" or "jax" not in sys.modules:
        return {"platform": "cpu", "kind": "NumPy", "count": 1}
    return describe_device(select_device("auto"))


def _worst(audit: Audit) -> list[dict]:
    names = list(audit.worst)
    rows = zip(*(column.tolist() for column in audit.worst.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _definition(definition: Definition) -> dict[str, Any]:
    """What a definition is made of; of a matrix its name, and a SHA-256 of it."""
    scoring = definition.scoring
    scores = np.ascontiguousarray(scoring.scores.astype("<i4"))
    named = scoring.match is None and isinstance(scoring.matrix, str)
    return definition.about() | {
        "matrix": scoring.matrix if named else None,
        "match": scoring.match,
        "mismatch": scoring.mismatch,
        "alphabet": scoring.alphabet_name,
        "scores_sha256": hashlib.sha256(scores.tobytes()).hexdigest(),
    }


def read(path: str) -> dict[str, Any]:
    """A certificate from a file.

    Raises
    ------
    InputError
        It cannot be read, or is none.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            found = json.load(handle)
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: no certificate can be read ({why})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{path}: is no certificate; its format is not {FORMAT!r}")
    lacking = [key for key, kind in KINDS.items() if type(found.get(key)) is not kind]
    for key in ("inputs", "parts"):
        if not lacking and not all(isinstance(one, dict) for one in found[key]):
            lacking = [key]
    if lacking:
        raise InputError(f"{path}: the certificate lacks {', '.join(lacking)}")
    return found


def definition_of(certificate: dict, options: HomologyOptions) -> Definition:
    """The definition of a certificate, and whatever else is in some options.

    Raises
    ------
    InputError
        It cannot be made again, as where the matrix was an array.
    """
    about = certificate["definition"]
    try:
        own = {"matrix": about["matrix"]} if about["match"] is None else {}
        if own == {"matrix": None}:
            raise InputError("the certificate is of a matrix without a name or file")
        names = ("gap_open", "gap_extend", "match", "mismatch", "alphabet")
        scoring = Scoring(**own, **{name: about[name] for name in names})
        chosen = {x.name: getattr(options, x.name) for x in fields(options)}
        chosen |= {"mode": about["mode"], "identity": about["denominator"]}
        chosen["min_length_ratio"] = about["min_length_ratio"]
        free = about["mode"] == "global" and about["free_ends"]
        chosen["free_ends"] = tuple(about["free_ends"]) if free else None
        made = define(scoring, HomologyOptions(**chosen), "cut", about["cut"])
        digest = _definition(made)["scores_sha256"]
    except (KeyError, TypeError, ValueError, OverflowError, JaxalignError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise InputError(f"the definition of the certificate: {why}") from error
    if digest != about.get("scores_sha256"):
        raise InputError(
            f"the matrix {about['matrix']} is another one than that of the certificate"
        )
    return made


def differences(certificate: dict, again: dict) -> list[str]:
    """What two certificates do not agree in, a line each."""
    return [
        f"{name}: the certificate has {_short(certificate[name])}, the computation "
        f"{_short(again[name])}"
        for name in SAME
        if not _alike(certificate[name], again[name])
    ]


def _alike(a: Any, b: Any) -> bool:
    """Equal, floats but for how they were written."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= TOLERANCE
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a == b


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
