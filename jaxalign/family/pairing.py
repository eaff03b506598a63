"""Rows of the chains of a complex, paired by organism, and files of them.

Proteins of one organism have evolved together, so a row of one chain and a row of
another belong together if they have one taxon (Bryant, Pozzati and Elofsson 2022;
Mirdita et al. 2022). ``conventions.md`` defines the rules. Chains with equal letters
are one *entity*, which is searched and paired once.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.family.result import letters_of
from jaxalign.model.names import written

Rule = Literal["greedy", "complete"]
TAXON = re.compile(r"\b(?:OX|TaxID)=(\d+)\b")  # of UniProt, of UniRef
UNKNOWN = -1  # a taxon
MOST_CHAINS = 26 * 27  # with identifiers A to ZZ
UNPAIRED = -1  # the key of a row in the csv of Boltz


class EntityRows(NamedTuple):
    """What a search found for the letters of one or several chains.

    chains : numbers of the chains, from 0
    query : their letters
    names, rows : of the hits, best first; rows of a3m
    taxon : int64 (hits,), ``UNKNOWN`` where a hit has none
    bits : float64 (hits,)
    shown : bool (hits,). Hits of the unpaired alignment; pairs are made of all.
    """

    chains: tuple[int, ...]
    query: str
    names: Sequence[str]
    rows: Sequence[str]
    taxon: np.ndarray
    bits: np.ndarray
    shown: np.ndarray


def taxon_of(heading: str) -> int:
    """Find the taxon in a heading of UniProt (``OX=9606``) or UniRef (``TaxID=9606``).

    Examples
    --------
    >>> taxon_of("sp|P69905|HBA_HUMAN Hemoglobin OS=Homo sapiens OX=9606 GN=HBA1")
    9606
    >>> taxon_of("alpha")
    -1
    """
    found = TAXON.search(heading)
    return int(found[1]) if found else UNKNOWN


def entities_of(texts: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Chains with equal letters, in the order of the first of each: (letters, numbers).

    Examples
    --------
    >>> entities_of(["MKV", "GG", "mkv"])
    [('MKV', (0, 2)), ('GG', (1,))]
    """
    numbers: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        numbers.setdefault(letters_of(text), []).append(number)
    return [(text, tuple(chains)) for text, chains in numbers.items()]


def paired(entities: Sequence[EntityRows], rule: Rule) -> np.ndarray:
    """Pair the hits of all entities by taxon.

    Of each taxon the best hit of an entity counts, and has one row. ``complete`` keeps
    taxa that all entities have, ``greedy`` those that two or more have. Rows with more
    entities come first, of these the larger sum of bits, then the smaller taxon. The
    hits of a single entity all pair with themselves: its chains are copies.

    Returns
    -------
    int64 (rows, entities)
        Numbers of hits; -1 where an entity has no hit of the taxon.
    """
    if len(entities) == 1:
        return np.arange(len(entities[0].names))[:, None]
    best = []
    for entity in entities:
        known = np.flatnonzero(entity.taxon >= 0)
        taxa, first = np.unique(entity.taxon[known], return_index=True)
        best.append((taxa, known[first]))
    every = np.unique(np.concatenate([taxa for taxa, _ in best]))
    rows = np.full((len(every), len(entities)), -1, np.int64)
    bits = np.zeros(len(every))
    for column, ((taxa, hits), entity) in enumerate(zip(best, entities, strict=True)):
        at = np.searchsorted(every, taxa)
        rows[at, column] = hits
        bits[at] += entity.bits[hits]
    count = (rows >= 0).sum(axis=1)
    kept = np.flatnonzero(count >= (len(entities) if rule == "complete" else 2))
    order = np.lexsort((every[kept], -bits[kept], -count[kept]))
    return rows[kept[order]]


def identifiers(count: int) -> list[str]:
    """Identifiers of chains: A to Z, then AA, BA and so on, as AlphaFold 3 counts.

    Raises UsageError: more than ``MOST_CHAINS``
    """
    if count > MOST_CHAINS:
        raise UsageError(f"{count} chains: at most {MOST_CHAINS} are written")
    letters = [chr(ord("A") + k) for k in range(26)]
    return [
        letters[k % 26] + (letters[k // 26 - 1] if k >= 26 else "")
        for k in range(count)
    ]


def alphafold3(
    name: str, entities: Sequence[EntityRows], pairs: np.ndarray
) -> dict[str, Any]:
    """The input of AlphaFold 3: row k of each ``pairedMsa`` is of one organism."""
    count = sum(len(entity.chains) for entity in entities)
    ids = identifiers(count)
    proteins = [
        {
            "protein": {
                "id": [ids[chain] for chain in entity.chains],
                "sequence": entity.query,
                "pairedMsa": _a3m(_paired_rows(entity, pairs[:, column])),
                "unpairedMsa": _a3m(_unpaired_rows(entity)),
                "templates": [],
            }
        }
        for column, entity in enumerate(entities)
    ]
    head = {"name": name, "modelSeeds": [1], "dialect": "alphafold3", "version": 2}
    return head | {"sequences": proteins}


def boltz(entity: EntityRows, hits: np.ndarray) -> str:
    """The csv of an entity for Boltz: rows of one key pair with those of the other
    entities; the query has key 0.

    hits : of the entity, a row of ``paired`` each
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("key", "sequence"))
    rows.writerow((0, entity.query))
    for key, hit in enumerate(hits.tolist(), 1):
        if hit >= 0:
            rows.writerow((key, entity.rows[hit]))
    for _, row in [*_unpaired_rows(entity)][1:]:
        rows.writerow((UNPAIRED, row))
    return text.getvalue()


def colabfold(entities: Sequence[EntityRows], pairs: np.ndarray) -> Iterator[str]:
    """The a3m of a complex for ColabFold, line by line: lengths and numbers of copies
    of the entities, paired rows side by side, then the rows of each beside gaps."""
    sizes = ",".join(str(len(entity.query)) for entity in entities)
    copies = ",".join(str(len(entity.chains)) for entity in entities)
    yield f"#{sizes}\t{copies}\n"
    queries = [str(101 + k) for k in range(len(entities))]
    yield ">" + "\t".join(queries) + "\n" + "".join(x.query for x in entities) + "\n"
    if len(entities) > 1:
        for row in pairs.tolist():
            sides = list(zip(entities, row, strict=True))
            names = [_word(x.names[hit]) for x, hit in sides if hit >= 0]
            texts = (x.rows[hit] if hit >= 0 else _gaps(x) for x, hit in sides)
            yield ">" + "\t".join(names) + "\n" + "".join(texts) + "\n"
    for column, entity in enumerate(entities):
        before, after = (
            "".join(map(_gaps, some))
            for some in (entities[:column], entities[column + 1 :])
        )
        rows = _unpaired_rows(entity)
        for number, (name, row) in enumerate(rows):
            name = queries[column] if number == 0 else _word(name)
            yield f">{name}\n{before}{row}{after}\n"


def read_taxa(lines: Iterable[str], label: str) -> dict[str, int]:
    """Read a table of names and taxa, two columns with a tab between them.

    Raises InputError: a line has no number in its second column, or a name has two
    """
    taxa: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        name, _, taxon = line.rstrip("\r\n").partition("\t")
        if not name and not taxon:
            continue
        if not taxon.isascii() or not taxon.isdigit():
            if number == 1:
                continue  # a heading
            raise InputError(
                f"{label}, line {number}: {taxon!r} is no taxon, a whole number"
            )
        if taxa.setdefault(name, int(taxon)) != int(taxon):
            raise InputError(f"{label}, line {number}: {written(name)} has two taxa")
    return taxa


def taxa_of(names: Sequence[str], taxa: Mapping[str, int]) -> np.ndarray:
    """The taxon of each name, int64; ``UNKNOWN`` where there is none."""
    return np.array([taxa.get(name, UNKNOWN) for name in names], np.int64)


def to_json(job: dict[str, Any]) -> str:
    """The text of the input of AlphaFold 3."""
    return json.dumps(job, indent=1) + "\n"


def _paired_rows(entity: EntityRows, hits: np.ndarray) -> Iterator[tuple[str, str]]:
    yield "query", entity.query
    for number, hit in enumerate(hits.tolist(), 1):
        if hit >= 0:
            yield entity.names[hit], entity.rows[hit]
        else:  # as many rows for each entity
            yield f"none_{number}", _gaps(entity)


def _unpaired_rows(entity: EntityRows) -> Iterator[tuple[str, str]]:
    yield "query", entity.query
    for hit in np.flatnonzero(entity.shown).tolist():
        yield entity.names[hit], entity.rows[hit]


def _a3m(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f">{_word(name)}\n{row}\n" for name, row in rows)


def _gaps(entity: EntityRows) -> str:
    return "-" * len(entity.query)


def _word(name: str) -> str:
    return "_".join(written(name).split()) or "_"
