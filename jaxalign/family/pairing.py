"""Rows of the chains of a complex, paired by organism, and files of them.

Proteins of one organism have evolved together, so a row of one chain and a row of
another belong together if they have one taxon (Bryant, Pozzati and Elofsson, Nature
Communications 13:1265, 2022; Mirdita et al., Nature Methods 19:679, 2022). Chains with
equal letters are one *entity*, which is searched and paired once. ``conventions.md``
defines the rules.
"""

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.family import engine
from jaxalign.family.engine import PassHits, Search, Source
from jaxalign.family.result import FamilyAlignment, a3m_rows, letters_of
from jaxalign.io import delimited, encoded_database, fasta, output
from jaxalign.io.fasta import NO_TAXON, TAXON_DIGITS
from jaxalign.model import frames
from jaxalign.model.alphabet import Alphabet, Sequences, from_parts
from jaxalign.model.names import written
from jaxalign.model.numbers import check_between
from jaxalign.model.show import counted
from jaxalign.model.source import label, reads_again
from jaxalign.model.strands import molecule_of
from jaxalign.model.table import Table
from jaxalign.options import ComplexOptions, PairStrategy

MOST_CHAINS = 26 * 27  # with identifiers A to ZZ
UNPAIRED = -1  # the key of a row in the csv of Boltz
ALPHAFOLD3, BOLTZ, COLABFOLD = "alphafold3.json", "boltz.yaml", "colabfold.a3m"


class EntityHits(NamedTuple):
    """The hits of the letters of one or several chains.

    chains : numbers of the chains, from 0
    query : their letters
    names : of the hits, best first
    rows : from numbers of hits to their rows of a3m
    taxon : int32 (hits,), ``NO_TAXON`` where a hit has none
    bits : float64 (hits,)
    shown : int64, ascending. Hits of the unpaired alignment; pairs are made of all.
    kind : protein, dna or rna. Only hits of proteins are paired.
    """

    chains: tuple[int, ...]
    query: str
    names: Sequence[str]
    rows: Callable[[np.ndarray], Sequence[str]]
    taxon: np.ndarray
    bits: np.ndarray
    shown: np.ndarray
    kind: str = "protein"

    def __repr__(self) -> str:
        return f"<EntityHits: {len(self.names):,} hits of {len(self.query):,} residues>"


@dataclass(frozen=True, eq=False)
class Chains:
    """The chains of a complex.

    texts : their letters, as a file has them
    """

    name: str
    sequences: Sequences
    texts: Sequence[str]

    @cached_property
    def entities(self) -> dict[str, tuple[int, ...]]:
        """Numbers of chains by their letters."""
        return entities_of(self.texts)

    def file_names(self) -> list[str]:
        """The files that the inputs of structure prediction take."""
        return file_names(self.entities.values(), map(molecule_of, self.entities))


# ------------------------------------------------------------------------------
# The rules.


def entities_of(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Group the numbers of chains with equal letters, in the order of the first ones.

    Examples
    --------
    >>> entities_of(["MKV", "GG", "mkv"])
    {'MKV': (0, 2), 'GG': (1,)}
    """
    numbers: dict[str, tuple[int, ...]] = {}
    for number, text in enumerate(texts):
        letters = letters_of(text)
        if molecule_of(letters) == "rna":
            letters = letters.replace("T", "U")
        numbers[letters] = (*numbers.get(letters, ()), number)
    return numbers


def taxa_of(names: Iterable[str], taxa: Mapping[str, int]) -> np.ndarray:
    """Look up the taxon of each name, int32; ``NO_TAXON`` where there is none."""
    return np.array([taxa.get(name, NO_TAXON) for name in names], np.int32)


def paired(entities: Sequence[EntityHits], strategy: PairStrategy) -> np.ndarray:
    """Pair the hits of all entities by taxon.

    Of each taxon the best hit of an entity counts, and has one row. ``complete`` keeps
    taxa that all entities have, ``greedy`` those that two or more have. Rows with more
    entities come first, of these the larger sum of bits, then the smaller taxon. A
    single entity has no pairs. Entities are proteins here; others have no hits.

    Returns
    -------
    int64 (rows, entities)
        Numbers of hits; -1 where an entity has no hit of the taxon.
    """
    proteins = sum(entity.kind == "protein" for entity in entities)
    if proteins < 2:
        return np.zeros((0, len(entities)), np.int64)
    best = []
    for entity in entities:
        hits = np.flatnonzero(entity.taxon != NO_TAXON)
        taxa, first = np.unique(entity.taxon[hits], return_index=True)
        best.append((taxa, hits[first]))
    taxa = np.unique(np.concatenate([x for x, _ in best]))
    rows = np.full((len(taxa), len(entities)), -1, np.int64)
    bits = np.zeros(len(taxa))
    for column, ((of_entity, hits), entity) in enumerate(
        zip(best, entities, strict=True)
    ):
        at = np.searchsorted(taxa, of_entity)
        rows[at, column] = hits
        bits[at] += entity.bits[hits]
    count = (rows >= 0).sum(axis=1)
    order = np.lexsort((taxa, -bits, -count))
    least = proteins if strategy == "complete" else 2
    return rows[order[count[order] >= least]]


# ------------------------------------------------------------------------------
# Texts for three readers.


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


def file_names(chains: Iterable[Sequence[int]], kinds: Iterable[str]) -> list[str]:
    """Name the files of a complex.

    chains, kinds : numbers of the chains of each entity, and its molecule
    """
    numbers, molecules = [*chains], [*kinds]
    ids = identifiers(sum(map(len, numbers)))
    pairs = zip(numbers, molecules, strict=True)
    files = [f"{ids[x[0]]}.csv" for x, kind in pairs if kind == "protein"]
    return [ALPHAFOLD3, *[COLABFOLD] * bool(files), BOLTZ, *files]


def _ids(entities: Sequence[EntityHits]) -> list[list[str]]:
    """Identifiers of the chains of each entity."""
    ids = identifiers(sum(len(entity.chains) for entity in entities))
    return [[ids[chain] for chain in entity.chains] for entity in entities]


def alphafold3(
    name: str, entities: Sequence[EntityHits], pairs: np.ndarray
) -> dict[str, Any]:
    """The input of AlphaFold 3.

    It pairs rows of ``pairedMsa`` whose headings have one species, the last word of a
    name of UniProt. So the species of row k is k in base 36, of 5 digits.
    """
    molecules = []
    for ids, entity, hits in zip(_ids(entities), entities, pairs.T, strict=True):
        if entity.kind != "protein":  # a DNA has no alignment there
            chain = {"id": ids, "sequence": entity.query}
            if entity.kind == "rna":
                rows = [("query", entity.query), *_unpaired(entity)]
                chain["unpairedMsa"] = _a3m(rows)
            molecules.append({entity.kind: chain})
            continue
        places = np.flatnonzero(hits >= 0)
        species = [np.base_repr(row, 36).zfill(5) for row in (places + 1).tolist()]
        names = map(_word, _names(entity, hits[places]))
        headings = [
            f"tr|PAIRED|ROW_{code} {name}"
            for code, name in zip(species, names, strict=True)
        ]
        rows = zip(headings, entity.rows(hits[places]), strict=True)
        protein = {
            "id": ids,
            "sequence": entity.query,
            "pairedMsa": _a3m([("query", entity.query), *rows]),
            "unpairedMsa": _a3m([("query", entity.query), *_unpaired(entity)]),
            "templates": [],
        }
        molecules.append({"protein": protein})
    head = {"name": name, "modelSeeds": [1], "dialect": "alphafold3", "version": 2}
    return head | {"sequences": molecules}


def boltz(entities: Sequence[EntityHits], pairs: np.ndarray) -> dict[str, str]:
    """The files of Boltz, by name: its YAML, and a csv for each protein. Rows of one
    key are a pair; the query has key 0, and unpaired rows have -1."""
    files, lines = {}, ["version: 1", "sequences:"]
    for ids, entity, hits in zip(_ids(entities), entities, pairs.T, strict=True):
        lines += [
            f"  - {entity.kind}:",
            f"      id: {json.dumps(ids)}",  # quoted: NO is no word of YAML
            f"      sequence: {json.dumps(entity.query)}",
        ]
        if entity.kind != "protein":
            continue
        text, file = io.StringIO(), f"{ids[0]}.csv"
        rows = csv.writer(text, lineterminator="\n")
        rows.writerows([("key", "sequence"), (0, entity.query)])
        places = np.flatnonzero(hits >= 0)
        rows.writerows(
            zip((places + 1).tolist(), entity.rows(hits[places]), strict=True)
        )
        rows.writerows((UNPAIRED, row) for _, row in _unpaired(entity))
        files[file] = text.getvalue()
        lines.append(f"      msa: {file}")
    return {BOLTZ: "\n".join(lines) + "\n"} | files


def colabfold(entities: Sequence[EntityHits], pairs: np.ndarray) -> Iterator[str]:
    """The a3m of a complex for ColabFold, line by line: lengths and numbers of copies
    of the proteins, paired rows side by side, then the rows of each beside gaps."""
    column = [k for k, entity in enumerate(entities) if entity.kind == "protein"]
    entities, pairs = [entities[k] for k in column], pairs[:, column]
    sizes = ",".join(str(len(entity.query)) for entity in entities)
    copies = ",".join(str(len(entity.chains)) for entity in entities)
    yield f"#{sizes}\t{copies}\n"
    queries = [str(101 + k) for k in range(len(entities))]
    yield ">" + "\t".join(queries) + "\n" + "".join(x.query for x in entities) + "\n"
    sides = []
    for entity, hits in zip(entities, pairs.T, strict=True):
        places = np.flatnonzero(hits >= 0)
        side = [("DUMMY", _gaps(entity))] * len(hits)
        names, texts = _names(entity, hits[places]), entity.rows(hits[places])
        for place, name, text in zip(places.tolist(), names, texts, strict=True):
            side[place] = _word(name), text
        sides.append(side)
    for row in zip(*sides, strict=True):
        names, texts = zip(*row, strict=True)
        yield ">" + "\t".join(names) + "\n" + "".join(texts) + "\n"
    for column, entity in enumerate(entities):
        before = "".join(map(_gaps, entities[:column]))
        after = "".join(map(_gaps, entities[column + 1 :]))
        for name, row in [(queries[column], entity.query), *_unpaired(entity)]:
            yield f">{_word(name)}\n{before}{row}{after}\n"


def _unpaired(entity: EntityHits) -> Iterator[tuple[str, str]]:
    """Names and rows of the unpaired alignment."""
    names, rows = _names(entity, entity.shown), entity.rows(entity.shown)
    return zip(names, rows, strict=True)


def _names(entity: EntityHits, hits: np.ndarray) -> list[str]:
    return [entity.names[int(hit)] for hit in hits]


def _a3m(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f">{written(heading)}\n{row}\n" for heading, row in rows)


def _gaps(entity: EntityHits) -> str:
    return "-" * len(entity.query)


def _word(name: str) -> str:
    return "_".join(written(name).split()) or "_"


# ------------------------------------------------------------------------------
# The result of a search.


@dataclass(frozen=True, eq=False, repr=False)
class ComplexAlignment:
    """The alignments of the chains of a complex, and their rows paired by taxon.

    Attributes
    ----------
    name : str
        Name of the complex.
    chains : tuple of str
        Names of its chains.
    families : tuple of FamilyAlignment
        The unpaired alignment of each entity: of chains with equal letters.
    entities : tuple of EntityHits
        The hits of each entity that pairs are made of, best first.
    pairs : int64 (rows, entities)
        Numbers of hits of one taxon; -1 where an entity has none.
    """

    name: str
    chains: tuple[str, ...]
    families: tuple[FamilyAlignment, ...]
    entities: tuple[EntityHits, ...]
    pairs: np.ndarray

    to_pandas, to_arrow, to_polars = frames.METHODS[:3]
    __repr__, _repr_html_ = frames.METHODS[-2:]

    def __len__(self) -> int:
        """Paired rows, without those of the queries."""
        return len(self.pairs)

    def heading(self) -> str:
        """Summarise the chains, the entities and the paired rows."""
        proteins = [entity.kind == "protein" for entity in self.entities]
        whole = int((self.pairs[:, proteins] >= 0).all(axis=1).sum())
        chains, rows = counted(len(self.chains), "chain"), counted(len(self), "row")
        sequences = counted(len(self.entities), "sequence")
        return f"{self.name!r}, {chains} of {sequences}, {rows} paired, {whole} of all"

    def columns(self) -> dict[str, Any]:
        """Return the paired rows as columns: the taxon, and of each entity, by the name
        of its first chain, the name of its hit; None where it has none."""
        taxon = np.full(len(self), NO_TAXON, np.int32)
        columns: dict[str, Any] = {"taxon": taxon}
        for entity, hits in zip(self.entities, self.pairs.T, strict=True):
            present = hits >= 0
            taxon[present] = entity.taxon[hits[present]]
            names = [entity.names[k] if k >= 0 else None for k in hits.tolist()]
            columns[self.chains[entity.chains[0]]] = np.array(names, object)
        return columns

    def write(self, folder: str | os.PathLike[str], force: bool = False) -> None:
        """Write the inputs of AlphaFold 3, Boltz and ColabFold into a folder.

        Parameters
        ----------
        folder : path
            It is made if it is not there. It gets ``alphafold3.json``, ``boltz.yaml``
            with ``A.csv`` and so on, and ``colabfold.a3m``.
        force : bool
            Replace existing files.

        Raises
        ------
        UsageError
            A file exists and ``force`` is false, or there are more than 702 chains.
        """
        os.makedirs(folder, exist_ok=True)
        chains, kinds = (
            [getattr(x, y) for x in self.entities] for y in ("chains", "kind")
        )
        files = file_names(chains, kinds)
        for file in files:
            output.check(os.path.join(folder, file), force)
        job = alphafold3(self.name, self.entities, self.pairs)
        texts = boltz(self.entities, self.pairs)
        texts[ALPHAFOLD3] = json.dumps(job, indent=1) + "\n"
        for file, text in texts.items():
            output.write_text(os.path.join(folder, file), [text])
        if COLABFOLD in files:
            lines = colabfold(self.entities, self.pairs)
            output.write_text(os.path.join(folder, COLABFOLD), lines)


# ------------------------------------------------------------------------------
# From complexes to queries, and from hits to complexes.

TaxaOf = Callable[[PassHits], np.ndarray]  # int32 (hits,)


def queries_of(
    complexes: Iterable[Chains], alphabet: Alphabet, kind: str
) -> tuple[Sequences, list[str]]:
    """Collect the proteins, RNA or DNA of complexes, each once, and their letters. A
    sequence has the name of its first chain.

    Raises InputError: a complex or a chain is empty
    """
    queries: dict[str, tuple[str, np.ndarray]] = {}
    for chains in complexes:
        if not chains.texts:
            raise InputError(f"{chains.name}: the complex has no chain")
        for text, (first, *_) in chains.entities.items():
            name = chains.sequences.names[first]
            if not text:
                raise InputError(f"{chains.name}: the chain {name!r} is empty")
            if kind == molecule_of(text):
                protein = kind == "protein"
                codes = chains.sequences[first] if protein else alphabet.encode(text)
                queries.setdefault(text, (name, codes))
    names, parts = zip(*queries.values(), strict=True) if queries else ((), ())
    return from_parts(names, parts, alphabet), [*queries]


def taxa_source(
    complexes: Iterable[Chains], database: Any, options: ComplexOptions
) -> TaxaOf | None:
    """Find out where taxa of hits are, before a search: in a table, an index, or the
    headings of FASTA, which are read once more. None if no complex needs them.

    database : path, or sequences whose names are headings

    Raises
    ------
    UsageError
        An index has no taxa, or FASTA is read only once.
    """
    kinds = [[*map(molecule_of, chains.entities)] for chains in complexes]
    if all(molecules.count("protein") < 2 for molecules in kinds):
        return None
    table, hint = options.taxa, "give a table of taxa"
    if table is not None:
        if isinstance(table, str | os.PathLike):
            table = delimited.read_taxa(os.fspath(table))
        elif not hasattr(table, "items"):
            raise UsageError("taxa: give the path of a table, or a mapping of names")
        for name, taxon in table.items():
            check_between(f"taxa[{name!r}]", taxon, 0, 10**TAXON_DIGITS - 1)
        return lambda hits: taxa_of(_hit_names(hits.table), table)
    if not isinstance(database, str | os.PathLike):
        names_to_taxa = partial(map, fasta.taxon_of)
        return lambda hits: np.array([*names_to_taxa(_hit_names(hits.table))], np.int32)
    path = os.fspath(database)
    if encoded_database.is_database(path):
        taxa = encoded_database.taxa_of(path)
        if taxa is None:
            raise UsageError(
                f"{path}: the index has no taxa: an earlier version made it, or no "
                f"heading has OX= or TaxID=; make it again, or {hint}"
            )
        return lambda hits: taxa[hits.records]
    if not reads_again(path):
        raise UsageError(
            f"{label(path)}: headings are read again for their taxa: give a file, or "
            f"{hint}"
        )
    of_file = cache(partial(fasta.read_taxa, path))

    def taxa_of_file(hits: PassHits) -> np.ndarray:
        if len(of_file()) != hits.table.info["sequences"]:
            raise InputError(f"{path}: the file changed while it was being read")
        return of_file()[hits.records]

    return taxa_of_file


def aligned(
    complexes: Iterable[Chains],
    searches: Sequence[Search],
    taxa: TaxaOf | None,
    source: Source,
    options: ComplexOptions,
) -> list[ComplexAlignment]:
    """Pair the hits of the searches of ``queries_of``."""
    families: dict[str, tuple[EntityHits, FamilyAlignment]] = {}
    for search in searches:
        assert search.hits is not None
        table, shown = search.hits.table, engine.rows_of(search, options)
        taxon, kind = np.full(len(table), NO_TAXON, np.int32), molecule_of(search.text)
        if taxa is not None and kind == "protein":
            paired_hits = table["evalue"] <= options.pair_evalue
            taxon[paired_hits] = taxa(search.hits)[paired_hits]
        rows = partial(_rows, table, len(search.text))
        names, bits = _hit_names(table), table["bits"]
        entity = EntityHits((), search.text, names, rows, taxon, bits, shown, kind)
        family = engine.alignment_of(search, shown, source, options)
        families[search.text] = entity, family
    alignments = []
    for chains in complexes:
        entities = tuple(
            families[text][0]._replace(chains=numbers)
            for text, numbers in chains.entities.items()
        )
        unpaired = tuple(families[text][1] for text in chains.entities)
        pairs = paired(entities, options.pair_strategy)
        about = chains.name, tuple(chains.sequences.names), unpaired
        alignments.append(ComplexAlignment(*about, entities, pairs))
    return alignments


def _hit_names(table: Table) -> list[str]:
    return [table.targets.names[k] for k in table["target"].tolist()]


def _rows(table: Table, length: int, hits: np.ndarray) -> list[str]:
    return a3m_rows(table.filter(hits), length)
