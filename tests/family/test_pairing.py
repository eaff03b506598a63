"""Rows of chains paired by taxon: the rules read aloud, and each file by a plain reader
of its program's rules."""

import csv
import io
import json
import re
from collections import defaultdict, deque
from importlib.resources import files
from itertools import product

import numpy as np
import pytest

import jaxalign
from jaxalign.database import pieces
from jaxalign.errors import InputError, UsageError
from jaxalign.family import pairing
from jaxalign.family.pairing import EntityHits
from jaxalign.io import delimited, fasta

GLOBINS = files("jaxalign.data") / "globins.fasta"
TAXA = {"Homo sapiens": 9606, "Equus caballus": 9796, "Physeter catodon": 9755}


def entity_of(chains, size, rows, taxon, bits, shown):
    names = [f"e{chains[0]}h{k}" for k in range(len(rows))]
    lookup = np.array([*rows, ""], object)  # an array of texts, if of one alone
    return EntityHits(
        chains,
        "M" * size,
        names,
        lambda hits: lookup[np.asarray(hits, int)].tolist(),
        taxon,
        bits,
        np.flatnonzero(shown),
    )


def drawn(rng, chains, taxa=6, hits=8):
    """Entities with hits of few taxa, some of which are unknown or come again; no two
    rows have the same residues."""
    entities = []
    for k, numbers in enumerate(chains):
        count, size = int(rng.integers(0, hits)), 4 + 3 * k
        rows = [
            "ARNDCEGHI"[j] + "acd"[: j % 4] + "".join(rng.choice([*"AR-"], size - 1))
            for j in range(count)
        ]
        bits = np.sort(rng.integers(1, 9, count))[::-1].astype(float)
        about = rng.integers(-1, taxa, count), bits, rng.random(count) < 0.5
        entities.append(entity_of(numbers, size, rows, *about))
    return entities


def by_the_rules(entities, strategy):
    """A taxon at a time."""
    rows = []
    for taxon in {int(x) for entity in entities for x in entity.taxon if x >= 0}:
        row, bits = [], 0.0
        for entity in entities:
            of_taxon = [k for k, x in enumerate(entity.taxon) if x == taxon]
            row.append(of_taxon[0] if of_taxon else -1)
            bits += entity.bits[of_taxon[0]] if of_taxon else 0
        count = sum(hit >= 0 for hit in row)
        if count == len(entities) or (strategy == "greedy" and count >= 2):
            rows.append((-count, -bits, taxon, row))
    return [row for *_, row in sorted(rows)]


@pytest.mark.parametrize("strategy", ["greedy", "complete"])
def test_pairs_are_those_of_the_rules(strategy):
    rng, sizes = np.random.default_rng(3), set()
    for _, count in product(range(60), (2, 3, 4)):
        entities = drawn(rng, [(k,) for k in range(count)])
        pairs = pairing.paired(entities, strategy)
        assert pairs.shape[1] == count
        assert pairs.tolist() == by_the_rules(entities, strategy)
        partial = bool((pairs < 0).any())
        assert not (partial and strategy == "complete")
        sizes.add((count, len(pairs) > 0, partial))
    assert {(2, True, False), (2, False, False), (3, True, False)} <= sizes
    assert strategy == "complete" or (3, True, True) in sizes


def test_one_sequence_has_no_pairs():
    for chains in [(0,), (0, 1, 2)]:
        entities = drawn(np.random.default_rng(8), [chains])
        assert len(entities[0].names) > 1
        assert pairing.paired(entities, "greedy").shape == (0, 1)


def test_taxa_of_headings():
    headings = {
        "sp|P1|A_HUMAN Alpha OS=Homo sapiens (Human) OX=9606 GN=A PE=1": 9606,
        "UniRef100_P1 Alpha n=3 Tax=Homo TaxID=9605 RepID=A": 9605,
        "alpha FOX=12": -1,
        "alpha OX=": -1,
        "alpha OX=1234567890": -1,
        "alpha OX=12x OX=13": 13,
    }
    assert {x: fasta.taxon_of(x) for x in headings} == headings


def test_taxa_of_a_table(tmp_path):
    path = tmp_path / "t.tsv"
    lines = ["name\ttaxon\r\n", "a\t7\n", "\n", "b\\t\t9\n", "a\t7\n"]
    path.write_text("".join(lines))
    taxa = delimited.read_taxa(str(path))
    assert taxa == {"a": 7, "b\t": 9}
    assert pairing.taxa_of(["b\t", "c", "a"], taxa).tolist() == [9, -1, 7]
    for bad, text in (("a\t8\n", "line 6.*two taxa"), ("c\tx\n", "line 6.*'x'")):
        path.write_text("".join([*lines, bad]))
        with pytest.raises(InputError, match=text):
            delimited.read_taxa(str(path))
    path.write_text("name\ttaxon\n")
    with pytest.raises(InputError, match="no taxon"):
        delimited.read_taxa(str(path))


# What three programs do with the files, in our words.


def a3m(text):
    lines = text.splitlines()
    assert all(x.startswith(">") for x in lines[::2])
    return list(zip([x[1:] for x in lines[::2]], lines[1::2], strict=True))


def positions(row):
    return "".join(x for x in row if not x.islower())


def read_by_alphafold3(job):
    """AlphaFold 3, ``data/msa_identifiers.py`` and ``model/msa_pairing.py``: rows of a
    species that stands in two or more chains are a pair, species of more chains first,
    then by the product of their places.

    Returns, of each chain in their order, the paired rows, None for a gap; the unpaired
    rows.
    """
    paired, unpaired = {}, {}
    for entry in job["sequences"]:
        protein = entry["protein"]
        for column in ("pairedMsa", "unpairedMsa"):
            rows = a3m(protein[column])
            assert rows[0][1] == protein["sequence"]
            assert {len(positions(row)) for _, row in rows} == {len(rows[0][1])}
        for chain in protein["id"]:
            paired[chain] = a3m(protein["pairedMsa"])
            unpaired[chain] = [row for _, row in a3m(protein["unpairedMsa"])]
    places = defaultdict(dict)
    for chain, rows in paired.items():
        for place, (heading, _) in enumerate(rows[1:], 1):
            word = heading.split()[0].partition("/")[0]
            pattern = r"(?:tr|sp)\|[A-Za-z0-9]{6,10}(?:_\d)?\|[A-Za-z0-9]+_"
            match = re.fullmatch(pattern + r"([A-Za-z0-9]{1,5})(?:_\d+)?", word)
            assert match and chain not in places[match[1]]
            places[match[1]][chain] = place
    species = sorted(
        (x for x in places.values() if len(x) > 1),
        key=lambda x: (-len(x), np.prod([*x.values()])),
    )
    columns = {
        chain: [paired[chain][x[chain]][1] if chain in x else None for x in species]
        for chain in sorted(paired)
    }
    return columns, unpaired


def read_by_boltz(files):
    """Boltz, ``data/parse/csv.py`` and ``feature/featurizerv2.py``: a row whose
    residues came before is left out; rows of one key that two or more chains have are a
    pair, and a chain without the key gets its next row.

    Returns, of each chain in their order, the rows of the keys, None for another row.
    """
    entries = re.findall(
        r"  - protein:\n      id: (.*)\n      sequence: (.*)\n      msa: (.*)\n",
        files["boltz.yaml"],
    )
    keyed, residues = {}, {}
    for ids, sequence, file in entries:
        reader = csv.reader(io.StringIO(files[file]))
        assert next(reader) == ["key", "sequence"]
        rows, seen = [], set()
        for key, row in reader:
            letters = row.replace("-", "").upper()
            if letters not in seen:
                seen.add(letters)
                rows.append((int(key), row))
        assert rows[0] == (0, json.loads(sequence))
        assert {len(positions(row)) for _, row in rows} == {len(json.loads(sequence))}
        for chain in json.loads(ids):
            keyed[chain], residues[chain] = rows, seen
    keys = defaultdict(dict)
    for chain, rows in keyed.items():
        for key, row in rows[1:]:
            if key != -1:
                assert chain not in keys[key]
                keys[key][chain] = row
    pairs = [x for _, x in sorted(keys.items()) if len(x) > 1]
    return {chain: [x.get(chain) for x in pairs] for chain in sorted(keyed)}


def read_by_colabfold(text):
    """ColabFold, ``batch.py``: lengths and copies in the first line; a row is cut at
    the lengths, lower case not counted; it is a pair if two or more parts have a
    residue.

    Returns the copies, and of each sequence the paired rows and the unpaired ones.
    """
    first, *lines = text.splitlines()
    match = re.fullmatch(r"#([\d,]+)\t([\d,]+)", first)
    sizes, copies = ([int(x) for x in part.split(",")] for part in match.groups())
    paired, unpaired = [[] for _ in sizes], [[] for _ in sizes]
    for heading, row in a3m("\n".join(lines)):
        letters, parts = deque(row), []
        for size in sizes:
            part = ""
            while size:
                part += letters.popleft()
                size -= not part[-1].islower()
            parts.append(part)
        assert not letters
        present = [k for k, part in enumerate(parts) if set(part) != {"-"}]
        if len(present) > 1:
            assert len(heading.split("\t")) == len(sizes)
            for k, part in enumerate(parts):
                paired[k].append(part)
        else:
            for k in present:
                unpaired[k].append(parts[k])
    return copies, paired, unpaired


def complex_of(rng):
    """Three entities of four chains."""
    return drawn(rng, [(0, 2), (1,), (3,)])


def wanted(entities, pairs):
    """Rows of each chain by the pairs, None for an entity that has none."""
    columns = {}
    for entity, hits in zip(entities, pairs.T.tolist(), strict=True):
        column = [entity.rows([k])[0] if k >= 0 else None for k in hits]
        columns |= {"ABCD"[chain]: column for chain in entity.chains}
    return dict(sorted(columns.items()))


def rows_across(columns):
    return [*zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("strategy", ["greedy", "complete"])
def test_alphafold3_pairs_the_rows(strategy):
    rng, counts = np.random.default_rng(4), set()
    for _ in range(30):
        entities = complex_of(rng)
        pairs = pairing.paired(entities, strategy)
        text = json.dumps(pairing.alphafold3("job", entities, pairs))
        columns, unpaired = read_by_alphafold3(json.loads(text))
        rows, found = rows_across(wanted(entities, pairs)), rows_across(columns)
        assert sorted(rows, key=str) == sorted(found, key=str)
        whole = [row for row in rows if None not in row]
        assert [row for row in found if None not in row] == whole
        for entity in entities:
            for chain in entity.chains:
                shown = [entity.query, *entity.rows(entity.shown)]
                assert unpaired["ABCD"[chain]] == shown
        counts.add((len(whole) > 1, len(whole) < len(rows)))
    assert (True, strategy == "greedy") in counts


@pytest.mark.parametrize("strategy", ["greedy", "complete"])
def test_boltz_pairs_the_rows(strategy):
    rng = np.random.default_rng(5)
    for _ in range(30):
        entities = complex_of(rng)
        pairs = pairing.paired(entities, strategy)
        files = pairing.boltz(entities, pairs)
        assert [*files] == ["boltz.yaml", "A.csv", "B.csv", "D.csv"]
        assert read_by_boltz(files) == wanted(entities, pairs)
        for entity in entities:
            file = files["ABCD"[entity.chains[0]] + ".csv"]
            rest = [line[3:] for line in file.splitlines() if line.startswith("-1,")]
            assert rest == entity.rows(entity.shown)


def test_colabfold_pairs_the_rows():
    rng = np.random.default_rng(6)
    for _ in range(30):
        entities = complex_of(rng)
        pairs = pairing.paired(entities, "greedy")
        text = "".join(pairing.colabfold(entities, pairs))
        copies, paired, unpaired = read_by_colabfold(text)
        assert copies == [2, 1, 1]
        columns = wanted(entities, pairs)
        for k, entity in enumerate(entities):
            column = columns["ABCD"[entity.chains[0]]]
            gaps = "-" * len(entity.query)
            assert paired[k] == [entity.query, *(x or gaps for x in column)]
            assert unpaired[k] == [entity.query, *entity.rows(entity.shown)]


def test_copies_of_one_sequence():
    assert pairing.entities_of(["MKV", "mkv", "M*V"]) == {"MKV": (0, 1), "MXV": (2,)}
    entities = drawn(np.random.default_rng(8), [(0, 1, 2)])
    rows, pairs = (
        entities[0].rows(entities[0].shown),
        pairing.paired(entities, "greedy"),
    )
    assert len(rows) > 1
    columns, unpaired = read_by_alphafold3(pairing.alphafold3("x", entities, pairs))
    assert columns == {"A": [], "B": [], "C": []}
    assert unpaired == dict.fromkeys("ABC", [entities[0].query, *rows])
    assert read_by_boltz(pairing.boltz(entities, pairs)) == columns
    copies, paired, unpaired = read_by_colabfold(
        "".join(pairing.colabfold(entities, pairs))
    )
    assert copies == [3] and paired == [[]]
    assert unpaired == [[entities[0].query] * 2 + rows]


def test_identifiers_of_many_chains():
    ids = pairing.identifiers(pairing.MOST_CHAINS)
    assert ids[:2] + ids[25:28] + ids[-1:] == ["A", "B", "Z", "AA", "BA", "ZZ"]
    assert len(set(ids)) == len(ids)
    with pytest.raises(UsageError, match="703 chains"):
        pairing.identifiers(703)


# Searches: hemoglobin, and a chain that nothing is related to.


@pytest.fixture(scope="module")
def proteins():
    return fasta.read(str(GLOBINS), jaxalign.Scoring().alphabet)


@pytest.fixture
def database(tmp_path):
    """Globins, of which three organisms have a taxon in their headings."""
    lines = GLOBINS.read_text().splitlines()
    for name, taxon in TAXA.items():
        lines = [x + f" OX={taxon}" * x.endswith(f"OS={name}") for x in lines]
    path = tmp_path / "globins.fasta"
    path.write_text("\n".join(lines) + "\n")
    return path


def letters(proteins, name):
    return proteins.text(proteins.names.index(name))


@pytest.fixture
def complexes(proteins):
    alpha, beta = letters(proteins, "P69905")[2:90], letters(proteins, "P68871")[5:]
    return {
        "hemoglobin": {"a": alpha, "b": beta, "c": alpha.lower(), "d": beta},
        "dimer": {"x": beta, "y": beta},
        "alone": {"a": alpha, "reversed": alpha[::-1]},
        "three": {"a": alpha, "b": beta, "reversed": alpha[::-1]},
    }


def human_and_horse(result):
    """The pairs of hemoglobin: the best hit of each chain of each organism."""
    columns = result.columns()
    rows = zip(columns["taxon"].tolist(), columns["a"], columns["b"], strict=True)
    assert [*rows][:2] == [(9606, "P69905", "P68871"), (9796, "P01958", "P02062")]


def test_complexes(complexes, database):
    results = jaxalign.search_complexes(complexes, database)
    hemoglobin, dimer, alone, three = results
    assert [x.name for x in results] == [*complexes]
    assert hemoglobin.chains == ("a", "b", "c", "d")
    assert [x.chains for x in hemoglobin.entities] == [(0, 2), (1, 3)]
    human_and_horse(hemoglobin)
    human_and_horse(three)
    assert set(three.columns()["reversed"]) == {None} and len(dimer) == len(alone) == 0
    # A sequence is searched once, and its unpaired alignment is that of search_family.
    assert hemoglobin.families[1] is dimer.families[0] is three.families[1]
    chains = complexes["three"]
    families = jaxalign.search_family(chains, database)
    for family, other, entity in zip(
        families, three.families, three.entities, strict=True
    ):
        assert family.names == other.names and family.rows() == other.rows()
        assert entity.rows(entity.shown) == family.rows()[1:]
    (complete,) = jaxalign.search_complexes(
        {"three": chains}, database, pair_strategy="complete"
    )
    assert len(complete) == 0 and repr(complete).startswith(
        "<ComplexAlignment: 'three'"
    )


@pytest.mark.slow
def test_taxa_are_the_same_from_anywhere(complexes, database, tmp_path, monkeypatch):
    chains = {"hemoglobin": complexes["hemoglobin"]}
    (result,) = jaxalign.search_complexes(chains, database)
    expected = result.columns()["a"].tolist()
    with monkeypatch.context() as context:
        context.setattr(pieces, "BLOCK_RECORDS", 3)
        (blocks,) = jaxalign.search_complexes(chains, database)
    assert blocks.columns()["a"].tolist() == expected
    index = tmp_path / "d.jaxdb"
    jaxalign.index_database(database, index)
    headings = [x[1:] for x in database.read_text().splitlines() if x.startswith(">")]
    taxa = {x.split()[0]: fasta.taxon_of(x) for x in headings if "OX=" in x}
    table = tmp_path / "taxa.csv"
    table.write_text("".join(f"{name},{taxon}\n" for name, taxon in taxa.items()))
    plain = str(GLOBINS)
    calls = [(index, None), (plain, taxa), (plain, table)]
    for place, known in calls:
        (other,) = jaxalign.search_complexes(chains, place, taxa=known)
        assert other.columns()["a"].tolist() == expected
    jaxalign.index_database(plain, tmp_path / "old.jaxdb")
    with pytest.raises(UsageError, match="the index has no taxa.*make it again"):
        jaxalign.search_complexes(chains, tmp_path / "old.jaxdb")
    records = fasta.read(str(database), jaxalign.Scoring().alphabet)
    named = dict(zip(headings, records.texts(), strict=True))
    (other,) = jaxalign.search_complexes(chains, named)
    columns = other.columns()["a"].tolist()
    assert [x.split()[0] for x in columns] == expected


def test_pairs_are_of_hits_that_are_not_shown(complexes, database):
    chains = {"hemoglobin": complexes["hemoglobin"]}
    filters = {"max_identity": 0.3, "max_evalue": 1e-30}
    (result,) = jaxalign.search_complexes(chains, database, **filters)
    human_and_horse(result)
    shown = {name for family in result.families for name in family.names}
    assert "P01958" not in shown
    (strict,) = jaxalign.search_complexes(chains, database, pair_evalue=1e-200)
    assert len(strict) == 0 and len(strict.families[0]) > 1


def test_files_are_written(complexes, database, tmp_path):
    (result,) = jaxalign.search_complexes({"x": complexes["three"]}, database)
    folder = tmp_path / "out"
    result.write(folder)
    files = {x.name: x.read_text() for x in folder.iterdir()}
    columns, _ = read_by_alphafold3(json.loads(files["alphafold3.json"]))
    assert columns == wanted(result.entities, result.pairs)
    # Boltz leaves out the rows of man, which are the queries' letters.
    others = {chain: rows[1:] for chain, rows in columns.items()}
    assert read_by_boltz(files) == others and len(result) > 1
    copies, paired, _ = read_by_colabfold(files["colabfold.a3m"])
    assert copies == [1, 1, 1] and [len(x) for x in paired] == [1 + len(result)] * 3
    with pytest.raises(UsageError, match="exists"):
        result.write(folder)
    result.write(folder, force=True)


@pytest.mark.parametrize(
    "chains, options, error, words",
    [
        ({}, {}, InputError, "x: the complex has no chain"),
        ({"a": "MKV", "b": ""}, {}, InputError, "x: the chain 'b' is empty"),
        ({"a": "MKV"}, {"pair_strategy": "best"}, UsageError, "greedy, complete"),
        ({"a": "MKV"}, {"pair_evalue": -1}, UsageError, "pair_evalue = -1"),
        ({"a": "MKV"}, {"min_cov": 2}, UsageError, "min_cov"),
        ({"a": "MKV", "b": "M"}, {"taxa": {"P69905": "man"}}, UsageError, "'man'"),
        ({"a": "MKV", "b": "M"}, {"taxa": {"P69905": 10**9}}, UsageError, "0 to 999"),
        ({"a": "MKV", "b": "M"}, {"taxa": [9606]}, UsageError, "a mapping"),
    ],
)
def test_refusals(chains, options, error, words):
    with pytest.raises(error, match=words):
        jaxalign.search_complexes({"x": chains}, str(GLOBINS), **options)
    with pytest.raises(UsageError, match="a mapping of names"):
        jaxalign.search_complexes([chains], str(GLOBINS))  # pyright: ignore


RNA = "GGAUACGUCCAUUGCAGCUUAGCAUCGAACGUAUGCCAGUUACG"
GENE = RNA[::-1].translate(str.maketrans("ACGU", "TGCA"))


@pytest.mark.parametrize("strategy", ["greedy", "complete"])
def test_proteins_with_nucleic_acids(complexes, database, strategy, tmp_path):
    """Proteins are paired as without them; an RNA has an unpaired alignment of its own
    database, in its letters, and a DNA has none."""
    (name, chains), *_ = complexes.items()
    alone, mixed = (
        jaxalign.search_complexes({name: x}, database, pair_strategy=strategy, **more)[
            0
        ]
        for x, more in (
            (chains, {}),
            (
                {"R": RNA.lower(), **chains, "D": GENE, "S": RNA},
                {
                    "rna_database": [
                        ("long", "ACCTGAT" * 30 + GENE),
                        ("other", "AC" * 9),
                    ]
                },
            ),
        )
    )
    kinds = [entity.kind for entity in mixed.entities]
    proteins = [k for k, kind in enumerate(kinds) if kind == "protein"]
    assert kinds[0] == "rna" and kinds[-1] == "dna" and len(proteins) > 1
    assert mixed.entities[0].chains == (0, len(chains) + 2)
    np.testing.assert_array_equal(mixed.pairs[:, proteins], alone.pairs)
    assert (np.delete(mixed.pairs, proteins, 1) == -1).all() and len(alone.pairs)
    assert mixed.heading().endswith(alone.heading().rpartition(", ")[2])
    mixed.write(tmp_path / "m")
    alone.write(tmp_path / "a")
    job = json.loads((tmp_path / "m" / "alphafold3.json").read_text())["sequences"]
    rna, dna = job[0]["rna"], job[-1]["dna"]
    last = chr(ord("A") + len(chains) + 2)
    assert rna["id"] == ["A", last] and rna["sequence"] == RNA
    assert rna["unpairedMsa"] == f">query\n{RNA}\n>long\n{RNA}\n"
    assert dna == {"id": [chr(ord(last) - 1)], "sequence": GENE}
    others = json.loads((tmp_path / "a" / "alphafold3.json").read_text())["sequences"]
    for one, other in zip(job[1:-1], others, strict=True):
        assert one["protein"] | {"id": 0} == other["protein"] | {"id": 0}
    yaml = (tmp_path / "m" / "boltz.yaml").read_text()
    parts = yaml.split("  - ")[1:]
    assert [part.partition(":")[0] for part in parts] == kinds
    assert ["msa:" in part for part in parts] == [x == "protein" for x in kinds]
    files = {x.name for x in (tmp_path / "m").iterdir()}
    assert {x for x in files if x.endswith(".csv")} == {
        line.split()[1] for line in yaml.splitlines() if "msa:" in line
    }
    texts = [(tmp_path / x / "colabfold.a3m").read_text() for x in "ma"]
    assert texts[0] == texts[1]


def test_nucleic_acids_alone(tmp_path):
    """Without a database the alignment of an RNA is the RNA."""
    chains = {"x": {"a": RNA.replace("U", "T").replace("T", "U", 1), "b": GENE}}
    (found,) = jaxalign.search_complexes(chains, ["MKTAYIAKQRQISFVKSHFSRQ"] * 2)
    assert [x.query for x in found.entities] == [RNA, GENE] and not len(found)
    found.write(tmp_path)
    assert {x.name for x in tmp_path.iterdir()} == {"alphafold3.json", "boltz.yaml"}
    job = json.loads((tmp_path / "alphafold3.json").read_text())["sequences"]
    assert job[0]["rna"]["unpairedMsa"] == f">query\n{RNA}\n"
