"""A certificate of an audit: what was compared with what, and what was found, as JSON.

Whoever has the sequences can verify it: the audit is done again, and every field has to
be the same. So nothing stands in it that another machine or version would find
otherwise, and the claim says everything that decides what was compared.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from jaxalign.errors import InputError, JaxalignError
from jaxalign.homology.evidence import checked_cut
from jaxalign.homology.options import LOCAL, Definition, define
from jaxalign.model import show
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Edges
from jaxalign.model.scoring import Scoring
from jaxalign.model.system import is_endless
from jaxalign.options import HomologyOptions

FORMAT, FORMER = "jaxalign certificate, 3", "jaxalign certificate, 2"
ADDED = {"question"}  # fields that former certificates lack
# What a question says now, and what earlier ones say
REWORDED = "domains that make up much of a sequence", "domains that are much of it"
# What fields of another type than they should have raise
MALFORMED = TypeError, ValueError, AttributeError, OverflowError
# What the audit cannot be done again without.
KINDS = {"definition": dict, "parts": list, "inputs": list, "worst": list}


def subject(
    definition: Definition,
    parts: dict[str, Sequences],
    left_out: dict[str, int],
    inputs: list[dict] | None = None,
    split: dict | None = None,
) -> dict[str, Any]:
    """Describe what is compared: all of a certificate that is known before the
    comparison.

    Parameters are those of ``Audit.certificate`` and fields of an ``Audit``.
    """
    inputs = inputs or []
    said = [str(definition), coverage(parts.values(), left_out)]
    if inputs:
        policies = ", ".join(sorted({str(item["unknown"]) for item in inputs}))
        said.append(f"letters outside the alphabet: {policies}")
        if any("strip_stop" in item for item in inputs):
            said.append("without stops at the ends")
    return {
        "format": FORMAT,
        "question": definition.question(),
        "claim": f"no pair of sequences of different parts has {'; '.join(said)}",
        "definition": _definition(definition),
        "inputs": inputs,
        "split": split,
        "parts": [
            {"name": name, "sequences": len(item), "sha256": sha256_of(item)}
            for name, item in parts.items()
        ],
        "left_out": dict(left_out),
    }


def coverage(parts: Collection[Sequences], left_out: dict[str, int]) -> str:
    """Say how many of all sequences are in no part, and why."""
    missing = sum(left_out.values())
    count = sum(map(len, parts)) + missing
    if not missing:
        return f"all {show.counted(count, 'sequence')} are in the parts"
    reasons = ", ".join(
        f"{number:,} {why}" for why, number in left_out.items() if number
    )
    verb = "is" if missing == 1 else "are"
    return (
        f"{missing:,} of {show.counted(count, 'sequence')} {verb} in no part "
        f"({reasons})"
    )


def sha256_of(sequences: Sequences) -> str:
    """Hash names and letters with SHA-256: the lines ``>name`` and letters of every
    record, in UTF-8."""
    digest = hashlib.sha256()
    for name, text in zip(sequences.names, sequences.texts(), strict=True):
        digest.update(f">{name}\n{text}\n".encode())
    return digest.hexdigest()


def _definition(definition: Definition) -> dict[str, Any]:
    """Return a definition as plain values; a matrix as its name, and a SHA-256 of
    it."""
    scoring = definition.scoring
    scores = np.ascontiguousarray(scoring.scores.astype("<i4"))
    named = scoring.match is None and isinstance(scoring.matrix, str)
    costs = ("gap_open", "gap_extend", "match", "mismatch")
    # Beside a matrix, which has letters, a name only says whether T is read as U.
    alphabet = scoring.alphabet_name or "dna"
    described = scoring.match is not None or alphabet == "rna"
    return definition.about() | {
        "matrix": scoring.matrix if named else None,
        **{name: _plain(getattr(scoring, name)) for name in costs},
        "alphabet": alphabet if described else None,
        "scores_sha256": hashlib.sha256(scores.tobytes()).hexdigest(),
    }


def _plain(number: float | None) -> float | None:
    """Write a whole number as an integer: 11, not 11.0."""
    if number is None or not float(number).is_integer():
        return number
    return int(number)


def read(path: str) -> dict[str, Any]:
    """Read a certificate from a file.

    Raises InputError: it cannot be read, a field comes twice, or it is none
    """
    if is_endless(path):
        raise InputError(f"{path}: is a device that has no end; name a file")
    try:
        with open(path, encoding="utf-8") as handle:
            about = json.load(handle, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: is not a certificate: it is not JSON") from error
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read as a certificate ({why})") from error
    if not isinstance(about, dict) or about.get("format") not in (FORMAT, FORMER):
        raise InputError(f"{path}: is not a certificate; its format is not {FORMAT!r}")
    lacking = [key for key, kind in KINDS.items() if type(about.get(key)) is not kind]
    for key in ("inputs", "parts"):
        if not lacking and not all(isinstance(item, dict) for item in about[key]):
            lacking = [key]
    if lacking:
        raise InputError(f"{path}: the certificate lacks {', '.join(lacking)}")
    return about


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    about = dict(pairs)
    if len(about) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{double!r} comes twice")
    return about


def definition_of(certificate: dict, options: HomologyOptions) -> Definition:
    """Rebuild the definition of a certificate, completed by options.

    Raises InputError: it cannot be made again, as where the matrix was an array
    """
    about = certificate["definition"]
    try:
        named = {"matrix": about["matrix"]} if about["match"] is None else {}
        if named == {"matrix": None}:
            raise InputError(
                "the matrix of the certificate has neither a name nor a file, so it "
                "cannot be read again"
            )
        names = ("gap_open", "gap_extend", "match", "mismatch", "alphabet")
        scoring = Scoring(**named, **{name: about[name] for name in names})
        settings = {x.name: getattr(options, x.name) for x in fields(options)}
        settings |= {"mode": about["mode"], "identity": about["denominator"]}
        settings["min_length_ratio"] = about["min_length_ratio"]
        settings["min_score"] = about.get("min_score")
        settings["link"] = LOCAL if about.get("short_sequences") else None
        free = about["mode"] == "global" and about["free_ends"]
        settings["edges"] = [_edges(x) for x in about.get("edges", ())] or None
        if "together" in about:
            settings["together"] = _path(about["together"], "groups")
        settings["free_ends"] = tuple(about["free_ends"]) if free else None
        definition = define(scoring, HomologyOptions(**settings), about["cut"])
        digest = _definition(definition)["scores_sha256"]
    except (KeyError, *MALFORMED, JaxalignError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise InputError(f"the definition of the certificate: {why}") from error
    if digest != about.get("scores_sha256"):
        raise InputError(
            f"the matrix {about['matrix']} is not the one of the certificate"
        )
    return definition


def _edges(about: dict[str, Any]) -> Edges:
    """The table of edges that a certificate describes."""
    sign, _, cut = about["rule"].partition(" ")
    rule = {{">=": "at_least", "<=": "at_most"}[sign]: float(cut)}
    words = {name: about[name] for name in ("column", "join", "unknown")}
    edges = Edges(_path(about, "edges"), **rule, **words)
    checked_cut(edges)
    return edges


def _path(about: dict[str, Any], noun: str) -> str:
    if not isinstance(about["path"], str):
        raise InputError(f"its {noun} are in no file, so they cannot be read again")
    return about["path"]


def differences(
    certificate: dict, recomputed: dict, names: Iterable[str] | None = None
) -> list[str]:
    """List the fields in which two certificates differ, a line each.

    certificate : as it was read
    recomputed : as it was made again
    names : compare these fields; else all that either has
    """
    if certificate.get("format") == FORMER:
        lacking = {name: recomputed[name] for name in recomputed.keys() - ADDED}
        recomputed = lacking | {"format": FORMER}
    if "question" in recomputed and REWORDED[1] in str(certificate.get("question")):
        recomputed |= {"question": recomputed["question"].replace(*REWORDED)}
    names = {**certificate, **recomputed} if names is None else names
    return [
        f"{name}: the certificate has {_shown(certificate, name)}, the computation "
        f"{_shown(recomputed, name)}"
        for name in names
        if _text(certificate, name) != _text(recomputed, name)
    ]


def _text(about: dict, name: str) -> str | None:
    """Return a field as JSON: 1, 1.0 and true differ, and numbers are written whole."""
    return json.dumps(about[name], sort_keys=True) if name in about else None


def _shown(about: dict, name: str) -> str:
    text = _text(about, name) or "none"
    return text if len(text) <= 200 else f"{text[:197]}..."
