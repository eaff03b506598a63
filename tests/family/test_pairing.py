"""Rows of chains paired by taxon, against the rules read aloud; files as their readers
take them."""

import csv
import io
import json
from itertools import product

import numpy as np
import pytest

from jaxalign.errors import InputError, UsageError
from jaxalign.family import pairing
from jaxalign.family.pairing import EntityRows


def drawn(rng, entities, taxa=6, hits=8):
    """Entities with hits of few taxa, some of which are unknown or come again."""
    made = []
    for number in range(entities):
        count, size = int(rng.integers(0, hits)), 4 + 3 * number
        rows = ["".join(rng.choice([*"ARN-"], size)) for _ in range(count)]
        bits = np.sort(rng.integers(1, 9, count))[::-1].astype(float)
        made.append(
            EntityRows(
                (number,),
                "M" * size,
                [f"e{number}h{k}" for k in range(count)],
                rows,
                rng.integers(-1, taxa, count),
                bits,
                rng.random(count) < 0.5,
            )
        )
    return made


def by_the_rules(entities, rule):
    """A taxon at a time."""
    if len(entities) == 1:
        return [[k] for k in range(len(entities[0].names))]
    rows = []
    for taxon in {int(x) for entity in entities for x in entity.taxon if x >= 0}:
        row, bits = [], 0.0
        for entity in entities:
            of_taxon = [k for k, x in enumerate(entity.taxon) if x == taxon]
            row.append(of_taxon[0] if of_taxon else -1)
            bits += entity.bits[of_taxon[0]] if of_taxon else 0
        count = sum(hit >= 0 for hit in row)
        if count == len(entities) or (rule == "greedy" and count >= 2):
            rows.append((-count, -bits, taxon, row))
    return [row for *_, row in sorted(rows)]


@pytest.mark.parametrize("rule", ["greedy", "complete"])
def test_pairs_are_those_of_the_rules(rule):
    rng, sizes = np.random.default_rng(3), set()
    for _, entities in product(range(60), (1, 2, 3, 4)):
        made = drawn(rng, entities)
        found = pairing.paired(made, rule)
        assert found.shape[1] == entities
        assert found.tolist() == by_the_rules(made, rule)
        sizes.add((entities, len(found) > 0))
    assert {(n, True) for n in (1, 2, 3)} | {(4, False)} <= sizes


def test_taxa_of_headings_and_tables():
    headings = {
        "sp|P1|A_HUMAN Alpha OS=Homo sapiens (Human) OX=9606 GN=A PE=1": 9606,
        "UniRef100_P1 Alpha n=3 Tax=Homo TaxID=9605 RepID=A": 9605,
        "alpha FOX=12": -1,
        "alpha OX=": -1,
    }
    assert {x: pairing.taxon_of(x) for x in headings} == headings
    lines = ["name\ttaxon\n", "a\t7\r\n", "\n", "b\t9\n", "a\t7\n"]
    taxa = pairing.read_taxa(lines, "t.tsv")
    assert pairing.taxa_of(["b", "c", "a"], taxa).tolist() == [9, -1, 7]
    for bad, text in (("a\t8\n", "line 6.*two taxa"), ("c\tx\n", "line 6.*'x'")):
        with pytest.raises(InputError, match=text):
            pairing.read_taxa([*lines, bad], "t.tsv")


def a3m(text):
    lines = text.splitlines()
    return list(zip([x[1:] for x in lines[::2]], lines[1::2], strict=True))


def positions(row):
    return "".join(x for x in row if not x.islower())


def complex_of(rng):
    """Three entities of four chains."""
    made = drawn(rng, 3)
    first = made[0]._replace(chains=(0, 2))
    return [first, made[1]._replace(chains=(1,)), made[2]._replace(chains=(3,))]


@pytest.mark.parametrize("rule", ["greedy", "complete"])
def test_alphafold_3_reads_rows_of_one_organism(rule):
    """Row k of all paired alignments; chains without a hit have gaps there."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        entities = complex_of(rng)
        pairs = pairing.paired(entities, rule)
        job = json.loads(pairing.to_json(pairing.alphafold3("job", entities, pairs)))
        proteins = [x["protein"] for x in job["sequences"]]
        assert [x["id"] for x in proteins] == [["A", "C"], ["B"], ["D"]]
        for protein, entity, column in zip(proteins, entities, pairs.T, strict=True):
            paired, unpaired = a3m(protein["pairedMsa"]), a3m(protein["unpairedMsa"])
            assert paired[0][1] == unpaired[0][1] == protein["sequence"]
            assert len(paired) == 1 + len(pairs)
            for (name, row), hit in zip(paired[1:], column.tolist(), strict=True):
                assert len(positions(row)) == len(entity.query)
                if hit >= 0:
                    assert (name, row) == (entity.names[hit], entity.rows[hit])
                else:
                    assert set(row) == {"-"}
            shown = np.array(entity.names, object)[entity.shown].tolist()
            assert [name for name, _ in unpaired[1:]] == shown


def test_boltz_pairs_rows_of_one_key():
    rng = np.random.default_rng(5)
    entities = complex_of(rng)
    pairs = pairing.paired(entities, "greedy")
    for entity, hits in zip(entities, pairs.T, strict=True):
        rows = [*csv.DictReader(io.StringIO(pairing.boltz(entity, hits)))]
        assert rows[0] == {"key": "0", "sequence": entity.query}
        keyed = {int(x["key"]): x["sequence"] for x in rows if int(x["key"]) > 0}
        want = enumerate(hits.tolist(), 1)
        assert keyed == {key: entity.rows[hit] for key, hit in want if hit >= 0}
        rest = [x["sequence"] for x in rows if x["key"] == "-1"]
        assert rest == np.array(entity.rows, object)[entity.shown].tolist()


def test_colabfold_has_lengths_and_copies():
    entities = complex_of(np.random.default_rng(6))
    pairs = pairing.paired(entities, "complete")
    first, *lines = "".join(pairing.colabfold(entities, pairs)).splitlines()
    sizes = [len(x.query) for x in entities]
    assert first == "#" + ",".join(map(str, sizes)) + "\t2,1,1"
    rows = a3m("\n".join(lines))
    assert rows[0][0] == "101\t102\t103"
    assert all(len(positions(row)) == sum(sizes) for _, row in rows)
    assert len(rows) == 1 + len(pairs) + sum(1 + x.shown.sum() for x in entities)


def test_copies_of_one_chain():
    """A homo-oligomer: every hit pairs with itself, and ColabFold repeats it."""
    (entity,) = drawn(np.random.default_rng(8), 1)
    entity = entity._replace(chains=(0, 1, 2))
    assert pairing.entities_of(["MKV", "mkv", "M*V"]) == [
        ("MKV", (0, 1)),
        ("MXV", (2,)),
    ]
    pairs = pairing.paired([entity], "complete")
    assert pairs.tolist() == [[k] for k in range(len(entity.names))]
    text = "".join(pairing.colabfold([entity], pairs))
    assert text.startswith(f"#{len(entity.query)}\t3\n>101\n")
    assert text.count(">") == 2 + entity.shown.sum()


def test_identifiers_of_many_chains():
    ids = pairing.identifiers(pairing.MOST_CHAINS)
    assert ids[:2] + ids[25:28] + ids[-1:] == ["A", "B", "Z", "AA", "BA", "ZZ"]
    assert len(set(ids)) == len(ids)
    with pytest.raises(UsageError, match="703 chains"):
        pairing.identifiers(703)
