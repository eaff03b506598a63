"""Structures: which residues are a chain's, what is missing, and files that are not
what they should be."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from biotite import structure
from biotite.structure.alphabet import to_3di
from biotite.structure.io import pdb, pdbx

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import InputError
from jaxalign.io import fasta, structures

CAPSID = Path(__file__).parents[1] / "data/1A8O.pdb.gz"
# SEQRES of the entry, with MSE as M; states as biotite 1.6 and 2.0 have them alike
LETTERS = "MDIRQGPKEPFRDYVDRFYKTLRAEQASQEVKNWMTETLLVQNANPDCKTILKALGPGATLEEMMTACQG"
STATES = "DPQAADPPHFLVVSVVVVVVVVVVVVDDPVVVLVCVLPVSLVRYDPVLNVQSVVVDPPQDPVNSNVSRGD"


@pytest.fixture(scope="module")
def atoms():
    with gzip.open(CAPSID, "rt") as text:
        return pdb.PDBFile.read(text).get_structure(model=1)


def written(path, atoms):
    """A structure file of some atoms, in the format of its suffix."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".pdb"):
        file, data = pdb.PDBFile(), io.StringIO()
        file.set_structure(atoms)
    else:
        binary = name.endswith(".bcif")
        file = pdbx.BinaryCIFFile() if binary else pdbx.CIFFile()
        data = io.BytesIO() if binary else io.StringIO()
        pdbx.set_structure(file, atoms, data_block="x")
    file.write(data)
    content = data.getvalue()
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def test_water_is_in_neither_track(atoms):
    (chain,) = structures.read_file(str(CAPSID))
    assert (chain.letters, chain.states) == (LETTERS, STATES)
    assert chain.heading == "1A8O_A nonstandard=4"
    assert sum(len(x) for x in to_3di(atoms)[0]) == 158


def test_chains_are_sequences_of_both_tracks(atoms, tmp_path):
    written(tmp_path / "b.cif", atoms)
    (tmp_path / "c.pdb").write_text("HEADER\n")
    with pytest.warns(UserWarning, match="left out: .*c.pdb: cannot be read"):
        found = jaxalign.read_structures([CAPSID, tmp_path], unreadable="remove")
    assert found.names == ("1A8O_A", "b_A") and found.codes.dtype == np.uint16
    assert found.offsets.tolist() == [0, 70, 140]
    assert [found.text(1), found.states(1).upper()] == [LETTERS, STATES]
    assert found.track(0).text(0) == LETTERS
    scoring = jaxalign.Scoring.preset("foldseek")
    table = jaxalign.align_all(found, scoring)
    assert table["score"].tolist() == scoring.self_scores(found)[:1].tolist()


def test_no_file_is_left(tmp_path, capsys):
    for name in ("a.pdb", "b.cif"):
        (tmp_path / name).write_text("HEADER\n")
    out = tmp_path / "set.fasta"
    for processes in ("1", "2"):
        line = ["structures", str(tmp_path), "-o", str(out), "--unreadable", "remove"]
        assert main([*line, "--processes", processes]) == InputError.exit_code
        assert "of 2 files none is left: " in capsys.readouterr().err
    assert not [*tmp_path.glob("*.fasta")]
    with pytest.raises(InputError, match=r"a\.pdb"):
        jaxalign.read_structures(tmp_path / "a.pdb", unreadable="remove")


@pytest.mark.parametrize("end", ["pdb", "ent.gz", "cif", "cif.gz", "bcif", "bcif.gz"])
def test_formats_give_the_same_tracks(atoms, tmp_path, end):
    path = written(tmp_path / f"a b.{end}".replace("ent", "pdb"), atoms)
    (chain,) = structures.read_file(path)
    assert (chain.name, chain.letters, chain.states) == ("a_b_A", LETTERS, STATES)


def test_chains_are_told_apart_and_two_gaps_are_counted(atoms, tmp_path):
    second = atoms.copy()
    second.chain_id[:] = "B"
    second = second[~np.isin(second.res_id, [170, 171, 190])]
    both = second + atoms  # B stands first, and residue numbers fall where A begins
    chains = structures.read_file(written(tmp_path / "x.pdb", both))
    assert [chain.heading.split()[:2] for chain in chains] == [
        ["x_B", "gaps=2"],
        ["x_A", "nonstandard=4"],
    ]
    assert [len(chain.letters) for chain in chains] == [67, 70]
    assert chains[1].states == STATES
    assert all(len(chain.states) == len(chain.letters) for chain in chains)


def test_a_residue_without_backbone_has_no_state(atoms, tmp_path):
    bare = atoms[~((atoms.res_id == 180) & (atoms.atom_name == "N"))]
    (chain,) = structures.read_file(written(tmp_path / "x.cif", bare))
    place = 180 - 151
    assert chain.letters == LETTERS and chain.states[place] == "X"
    assert chain.no_backbone == chain.states.count("X") == 1
    (chain,) = structures.read_file(
        written(tmp_path / "y.pdb", atoms[atoms.atom_name == "CA"])
    )
    # biotite's states are all d, which is a state of real structures
    assert chain.states == "X" * 70 and chain.heading.endswith("no_backbone=70")
    assert "1 of which so is every residue" in structures.missing([chain])


def test_free_amino_acids_and_ions_are_no_residues(atoms, tmp_path):
    free = atoms[(atoms.res_id == 180) & ~atoms.hetero].copy()
    free.hetero[:], free.res_id[:] = True, 900
    ion = free[:1].copy()
    ion.res_name[:], ion.atom_name[:], ion.res_id[:] = "CA", "CA", 901
    odd = free.copy()
    odd.res_name[:], odd.res_id[:] = "UNK", 902
    (chain,) = structures.read_file(
        written(tmp_path / "x.pdb", atoms + free + ion + odd)
    )
    assert chain.letters == LETTERS + "X"
    assert (chain.nonstandard, len(chain.states)) == (5, 71)


def test_other_files_are_refused_or_left_out(atoms, tmp_path):
    written(tmp_path / "b.pdb", atoms)
    (tmp_path / "c.cif").write_text("data_x\n_a.b 1\n")
    written(tmp_path / "d.bcif", atoms[structure.filter_solvent(atoms)])
    (tmp_path / "e.bcif.gz").write_bytes(b"\x1f\x8bno")
    (tmp_path / "readme.txt").write_text("no structure")
    files = structures.files_of(tmp_path)
    assert [Path(x).name for x in files] == ["b.pdb", "c.cif", "d.bcif", "e.bcif.gz"]
    with pytest.raises(InputError, match=r"c\.cif: cannot be read as a structure"):
        structures.read_files(files)
    chains, errors = structures.read_files(files, "remove")
    assert [chain.name for chain in chains] == ["b_A"]
    assert [str(x).split(":")[0].rsplit("/")[-1] for x in errors] == [
        "c.cif", "d.bcif", "e.bcif.gz",
    ]  # fmt: skip
    assert "no protein chain" in str(errors[1])
    written(tmp_path / "b.cif", atoms)
    with pytest.raises(InputError, match="b_A is in"):
        structures.read_files(structures.files_of(tmp_path), "remove")
    (tmp_path / "none").mkdir()
    for path in (tmp_path / "none", tmp_path / "readme.txt", tmp_path / "absent.pdb"):
        with pytest.raises(InputError):
            structures.files_of(path)


@pytest.mark.slow
def test_processes_give_the_same_chains(atoms, tmp_path):
    for k in range(2 * structures.FILES_AT_ONCE + 1):
        written(tmp_path / f"{k:02}.bcif", atoms[atoms.res_id < 170 + k])
    files, seen = structures.files_of(tmp_path), []
    alone = structures.read_files(files)[0]
    together = structures.read_files(files, "error", 2, lambda *x: seen.append(x))[0]
    assert together == alone and len({len(x.letters) for x in alone}) > 20
    assert seen[-1] == (len(files), len(files))


def test_the_verb_writes_both_tracks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["structures", str(CAPSID), "-o", "set.fasta"]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "1 chains of 1 files, 70 residues" in said
    assert "1 with nonstandard residues" in said
    letters, states = (fasta.read_raw(f"set{x}.fasta") for x in ("", "_ss"))
    assert letters.names == states.names == ("1A8O_A",)
    assert letters.texts() == [LETTERS] and states.texts() == [STATES]
    assert main(words) == 2  # both are there
    assert main([*words, "--force", "-q"]) == 0
    assert main(["structures", str(CAPSID), "--force"]) == 2
    (tmp_path / "set.pdb").write_text("")
    capsys.readouterr()
    assert main(["structures", str(tmp_path), "-o", "new.fasta"]) == 3
    assert "set.pdb" in capsys.readouterr().err and not Path("new.fasta").exists()
    assert main(["structures", str(tmp_path), str(CAPSID), "-o", "new.fasta",
                 "--unreadable", "remove", "--processes", "1"]) == 0  # fmt: skip
    assert "left out" in capsys.readouterr().err
    assert Path("new_ss.fasta").read_bytes() == Path("set_ss.fasta").read_bytes()
