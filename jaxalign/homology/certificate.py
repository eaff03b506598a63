"""Certificates, as JSON: of an audit, and of clusters that may grow.

Whoever has the sequences can verify that of an audit: the audit is done again, and
every field has to be the same. So nothing stands in it that another machine or version
would find otherwise, and the claim says everything that decides what was compared.

That of clusters says what a table of clusters is about: the rule of a link, and SHA-256
of the sequences and of the table.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from jaxalign.errors import (
    InputError,
    JaxalignError,
    UsageError,
    VerificationError,
)
from jaxalign.homology.evidence import checked_cut
from jaxalign.homology.options import LOCAL, Definition, define
from jaxalign.model import show
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Edges
from jaxalign.model.names import written
from jaxalign.model.scoring import Scoring
from jaxalign.model.system import is_endless
from jaxalign.options import HomologyOptions
from jaxalign.pairs.options import link_strand

FORMAT, FORMER = FORMATS = "jaxalign certificate, 3", "jaxalign certificate, 2"
ADDED = {"question"}  # fields that former certificates lack
# What a question says now, and what earlier ones say
REWORDED = "domains that make up much of a sequence", "domains that are much of it"
# What fields of another type than they should have raise
MALFORMED = TypeError, ValueError, AttributeError, OverflowError
# What the audit cannot be done again without.
KINDS = {"definition": dict, "parts": list, "inputs": list, "worst": list}
GROWING = "jaxalign clusters, 1"
GROWING_KINDS = {"definition": dict, "sha256": str, "next_cluster": int, "table": dict}
# Fields of a definition that say how many of the sequences are short
COUNTED = ("short_sequences", "or_with_a_short_sequence")


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
    record, in UTF-8; of two tracks behind those of the first those of the second."""
    digest = hashlib.sha256()
    names, texts = [*sequences.names], sequences.texts()
    if sequences.alphabet.states is not None:
        names, texts = 2 * names, texts + sequences.track(1).texts()
    for name, text in zip(names, texts, strict=True):
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
    tracks = {}
    if scoring.tracks and _foldseek(scoring.gap_open, scoring.gap_extend) == scoring:
        tracks = {"preset": "foldseek"}
    return (
        definition.about()
        | tracks
        | {
            "matrix": scoring.matrix if named else None,
            **{name: _plain(getattr(scoring, name)) for name in costs},
            "alphabet": alphabet if described else None,
            "scores_sha256": hashlib.sha256(scores.tobytes()).hexdigest(),
        }
    )


def _foldseek(gap_open: float, gap_extend: float) -> Scoring:
    """The preset of two tracks, with gap costs."""
    usual = Scoring.preset("foldseek")
    return replace(usual, gap_open=gap_open, gap_extend=gap_extend)


def _plain(number: float | None) -> float | None:
    """Write a whole number as an integer: 11, not 11.0."""
    if number is None or not float(number).is_integer():
        return number
    return int(number)


def read(path: str, growing: bool = False) -> dict[str, Any]:
    """Read a certificate of an audit, or of clusters, from a file.

    Raises InputError: it cannot be read, a field comes twice, or it is none
    """
    formats, kinds = ((GROWING,), GROWING_KINDS) if growing else (FORMATS, KINDS)
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
    if not isinstance(about, dict) or about.get("format") not in formats:
        what = "a certificate of clusters" if growing else "a certificate"
        raise InputError(f"{path}: is not {what}; its format is not {formats[0]!r}")
    lacking = [key for key, kind in kinds.items() if type(about.get(key)) is not kind]
    for key in () if growing else ("inputs", "parts"):
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
        if about.get("preset") == "foldseek":
            named = {"tracks": Scoring.preset("foldseek").tracks}
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
        for name in ("min_score", "min_relative_score"):
            settings[name] = about.get(name)
        strand = about.get("strand")
        if strand is not None:
            strand = link_strand(strand, scoring, about["mode"])
        settings["strand"] = strand
        settings["min_cov"] = about.get("min_cov")
        settings["coverage"] = about.get("coverage", "both")
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


@dataclass(frozen=True, eq=False)
class OldClusters:
    """Clusters of a set to which sequences are added.

    Attributes
    ----------
    names : tuple of str
        Of the clustered sequences.
    numbers : int64 (n,)
        Their clusters, by the numbers that stay.
    next_number : int
        No cluster has had this number or a larger one.
    sha256 : str
        Of the sequences.
    rule : dict
        The definition, as ``rule_of`` returns it.
    where : str
        What messages call them: the path of the certificate, if there is one.
    table : str, optional
        Path of the table that they come from.
    """

    names: tuple[str, ...]
    numbers: np.ndarray
    next_number: int
    sha256: str
    rule: dict[str, Any]
    where: str = "update"
    table: str | None = None

    @property
    def min_score(self) -> float | None:
        """The score that a link needs: more sequences do not raise it."""
        return self.rule.get("min_score")

    def rows(self, data: Sequences) -> np.ndarray:
        """Find the old sequences in a set that has more, int64 (n,).

        Raises InputError: a name is missing, or comes twice
        Raises VerificationError: the letters of a sequence have changed
        """
        places = {name: k for k, name in enumerate(data.names)}
        missing = [name for name in self.names if name not in places]
        if missing:
            raise InputError(
                f"{self.where}: {show.counted(len(missing), 'old sequence')} "
                f"({', '.join(map(written, missing[:3]))}) missing from the sequences; "
                "old and new ones are needed, and none can be left out of old clusters"
            )
        if len(places) < len(data) or len({*self.names}) < len(self.names):
            raise InputError(f"{self.where}: a name comes twice, so nothing says which")
        rows = np.array([places[name] for name in self.names], np.int64)
        if sha256_of(data.take(rows.tolist())) != self.sha256:
            raise VerificationError(
                f"{self.where}: the SHA-256 of the old sequences differs: one of them "
                "has changed, or their order in the table; cluster all anew"
            )
        return rows

    def check_rule(self, definition: Definition) -> None:
        """Refuse a definition by which the old clusters were not made.

        Raises UsageError: a field of the two differs
        """
        lines = differences(self.rule, rule_of(definition))
        if lines:
            said = "\n".join(lines)
            raise UsageError(f"{self.where}: its clusters have another rule\n{said}")


def check_growing(method: str, evidence: object = None) -> None:
    """Refuse clusters that depend on all pairs, or on tables that change."""
    if method != "components":
        raise UsageError(
            f"method {method}: only clusters of method components can grow; greedy, "
            "complete and average ones depend on all pairs, so cluster all anew"
        )
    if evidence is not None:
        raise UsageError(
            "edges: clusters with edges cannot grow, since a table of more edges may "
            "also link old sequences; cluster all anew"
        )


def rule_of(definition: Definition) -> dict[str, Any]:
    """Return a definition as plain values that do not depend on the sequences."""
    about = _definition(definition)
    return {name: value for name, value in about.items() if name not in COUNTED}


def differences(
    certificate: dict, recomputed: dict, names: Iterable[str] | None = None
) -> list[str]:
    """List the fields in which two certificates differ, a line each.

    Of a field that has fields the lines name those that differ, of a list of as many
    items the first item.

    certificate : as it was read
    recomputed : as it was made again
    names : compare these fields; else all that either has
    """
    if certificate.get("format") == FORMER:
        lacking = {name: recomputed[name] for name in recomputed.keys() - ADDED}
        recomputed = lacking | {"format": FORMER}
    if "question" in recomputed and REWORDED[1] in str(certificate.get("question")):
        recomputed |= {"question": recomputed["question"].replace(*REWORDED)}
    names = {*certificate, *recomputed} if names is None else {*names}
    compared = ({x: y for x, y in about.items() if x in names}
                for about in (certificate, recomputed))  # fmt: skip
    return [
        f"{path}: the certificate has {_shown(left)}, the computation {_shown(right)}"
        for path, left, right in _unlike("", *compared)
    ]


NO_FIELD = object()


def _unlike(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of each field in which two values differ."""
    if _text(left) == _text(right):
        return
    if isinstance(left, dict) and isinstance(right, dict):
        for name in {**left, **right}:
            sides = left.get(name, NO_FIELD), right.get(name, NO_FIELD)
            yield from _unlike(f"{path}.{name}" if path else str(name), *sides)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        k, sides = next((k, x) for k, x in pairs if _text(x[0]) != _text(x[1]))
        yield from _unlike(f"{path}[{k}]", *sides)
    else:
        yield path, left, right


def _text(value: Any) -> str:
    """Return a field as JSON: 1, 1.0 and true differ, and numbers are written whole."""
    return "none" if value is NO_FIELD else json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
