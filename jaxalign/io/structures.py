"""Protein structures in: amino acids and 3Di states of every chain, by biotite.

PDB, mmCIF and BinaryCIF, plain or compressed, and folders of them. A chain is a record;
its name is that of the file without its suffixes, and the chain's own identifier. Of
several models the first one counts, and of alternative locations the first one.

Which residues belong to a chain is decided here, so that both tracks have one length:
biotite's ``to_3di`` has a state for every residue, of water too. A residue has an atom
CA, and is an amino acid by the Chemical Component Dictionary or has the atoms N and C;
a free amino acid (a heteroatom record with one of the 20 names) is none.
"""

import multiprocessing
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Literal, get_args

import numpy as np

from jaxalign.errors import InputError, JaxalignError, UsageError
from jaxalign.model.source import label, open_bytes, open_text
from jaxalign.runtime.pipeline import default_threads

SUFFIX = re.compile(r"\.(pdb|ent|cif|mmcif|bcif)(\.(gz|bz2|xz|zst))?$", re.IGNORECASE)
STANDARD = "ARNDCQEGHILKMFPSTWYV"
NAMES = (
    "ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL"
).split()
UNKNOWN = "X"  # of amino acids, and of states
# Å: consecutive CA are 3.8 apart, and 2.9 where the peptide bond is cis
MAX_BOND = 4.5
BACKBONE = ("N", "CA", "C")
WIDTH = 60  # letters of a line
FILES_AT_ONCE = 16  # that a process gets together
Unreadable = Literal["error", "remove"]


@dataclass(frozen=True)
class ProteinChain:
    """The residues of a protein chain.

    name : file name without suffixes, ``_`` and the chain's identifier
    letters : amino acids; modified ones as their parent, X where there is none
    states : 3Di states as upper case letters, as many as ``letters``; X of a residue
        without N, CA or C, for which biotite gives the state D
    gaps : places where consecutive CA are more than ``MAX_BOND`` apart
    nonstandard : residues other than the 20 amino acids
    no_backbone : residues without N, CA or C
    """

    name: str
    letters: str
    states: str
    gaps: int = 0
    nonstandard: int = 0
    no_backbone: int = 0

    @property
    def heading(self) -> str:
        """The name, and what is missing."""
        missing = ("gaps", "nonstandard", "no_backbone")
        counts = ((name, getattr(self, name)) for name in missing)
        return " ".join([self.name, *(f"{name}={n}" for name, n in counts if n)])


def fasta_of(chains: Sequence[ProteinChain], track: str) -> Iterator[str]:
    """Yield chains as FASTA, with the lines of ``letters`` or ``states``."""
    for chain in chains:
        text = getattr(chain, track)
        yield f">{chain.heading}\n"
        yield from (f"{text[k : k + WIDTH]}\n" for k in range(0, len(text), WIDTH))


def missing(chains: Sequence[ProteinChain]) -> str:
    """Say what chains lack; nothing where nothing is missing."""
    whole = [chain for chain in chains if chain.no_backbone == len(chain.letters)]
    counts = {
        "with gaps": sum(chain.gaps > 0 for chain in chains),
        "with nonstandard residues": sum(chain.nonstandard > 0 for chain in chains),
        "with residues without backbone, whose state is X": sum(
            chain.no_backbone > 0 for chain in chains
        ),
        "of which so is every residue": len(whole),
    }
    said = [f"{count:,} {what}" for what, count in counts.items() if count]
    return f"chains: {', '.join(said)}" if said else ""


def files_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """List the structure files of a folder, by name; of a file itself.

    Raises InputError: there is none.
    """
    path = os.fspath(path)
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise InputError(f"{label(path)}: no such file")
        if not SUFFIX.search(path):
            raise InputError(f"{label(path)}: a name ends with .pdb, .cif or .bcif")
        return (path,)
    names = (x for x in os.listdir(path) if SUFFIX.search(x) and x[0] != ".")
    files = [os.path.join(path, name) for name in sorted(names)]
    files = [file for file in files if os.path.isfile(file)]
    if not files:
        raise InputError(
            f"{label(path)}: the folder has no file that ends with .pdb, .ent, .cif, "
            ".mmcif or .bcif, plain or compressed"
        )
    return tuple(files)


def read_file(path: str) -> list[ProteinChain]:
    """Read the protein chains of a structure file, in its order; none of nucleic acids.

    Raises InputError: it is no such file, or damaged.
    """
    from biotite.structure.io import pdb, pdbx

    suffix = SUFFIX.search(path)
    kind, end = (suffix[1].lower(), suffix[0]) if suffix else ("pdb", "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of biotite, about elements it guesses
            if kind == "bcif":
                with open_bytes(path) as data:
                    file = pdbx.BinaryCIFFile.read(data)
                atoms = pdbx.get_structure(file, model=1, use_author_fields=True)
            elif kind in ("cif", "mmcif"):
                with open_text(path) as text:
                    file = pdbx.CIFFile.read(text)
                atoms = pdbx.get_structure(file, model=1, use_author_fields=True)
            else:
                with open_text(path) as text:
                    atoms = pdb.PDBFile.read(text).get_structure(model=1)
            return _chains(os.path.basename(path).removesuffix(end), atoms)
    except (JaxalignError, KeyboardInterrupt, SystemExit):
        raise
    # biotite raises whatever its parsers meet; what its Rust meets is no Exception
    except BaseException as error:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(f"{label(path)}: cannot be read as a structure ({why})") from (
            error
        )


def _chains(stem: str, atoms: Any) -> list[ProteinChain]:
    """The protein chains of atoms, in the order of their first residues."""
    from biotite import structure
    from biotite.structure import info
    from biotite.structure.alphabet import to_3di

    if not len(atoms):
        return []
    starts = structure.get_residue_starts(atoms)
    number = np.zeros(len(atoms), np.intp)  # of the residue of each atom
    number[starts[1:]] = 1
    number = np.cumsum(number)
    has = np.zeros((len(BACKBONE), len(starts)), bool)
    placed = ~np.isnan(atoms.coord).any(axis=1)
    for k, name in enumerate(BACKBONE):
        has[k, number[(atoms.atom_name == name) & placed]] = True
    amino = np.isin(atoms.res_name[starts], info.amino_acid_names())
    free = atoms.hetero[starts] & np.isin(atoms.res_name[starts], NAMES)
    is_residue = has[1] & (amino | has.all(axis=0)) & ~free
    chains = []
    for chain in dict.fromkeys(atoms.chain_id[starts][is_residue].tolist()):
        residues = np.flatnonzero(is_residue & (atoms.chain_id[starts] == chain))
        part = atoms[np.isin(number, residues)]
        # Numbers of its own: biotite 2 begins a chain where these fall.
        firsts = structure.get_residue_starts(part)
        part.res_id = np.repeat(
            np.arange(len(firsts)), np.diff(np.append(firsts, len(part)))
        )
        part.ins_code[:] = ""
        states = np.array(list(str(to_3di(part)[0][0]).upper()))
        bare = ~has[:, residues].all(axis=0)
        states[bare] = UNKNOWN
        names = atoms.res_name[starts][residues].tolist()
        codes = [info.one_letter_code(name) or UNKNOWN for name in names]
        letters = [code if code in STANDARD else UNKNOWN for code in codes]
        (ca,) = np.nonzero(part.atom_name == "CA")
        ca = part.coord[ca[np.unique(part.res_id[ca], return_index=True)[1]]]
        distance = np.linalg.norm(np.diff(ca, axis=0), axis=1)
        name = re.sub(r"\s+", "_", f"{stem}_{chain}" if chain.strip() else stem)
        chains.append(
            ProteinChain(
                name,
                "".join(letters),
                "".join(states),
                int((distance > MAX_BOND).sum()),
                sum(x not in NAMES for x in names),
                int(bare.sum()),
            )
        )
    return chains


def read_files(
    files: Sequence[str],
    unreadable: Unreadable = "error",
    processes: int | None = 1,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[list[ProteinChain], list[InputError]]:
    """Read the chains of structure files, in order.

    Parameters
    ----------
    files : paths, as ``files_of`` lists them
    unreadable : what to do with files that cannot be read, or have no protein chain.
        They are refused, or left out.
    processes : that read files side by side, None for one a core. They are started
        anew (``spawn``), so a script that asks for more than one guards its own start.
    progress : called with (files read, files in all)

    Returns
    -------
    chains, and the errors of files that were left out

    Raises
    ------
    InputError
        A file cannot be read, no file is left, or two chains have one name.
    """
    if unreadable not in get_args(Unreadable):
        raise UsageError(f"unreadable = {unreadable!r}: error or remove is needed")
    parts = [files[k : k + FILES_AT_ONCE] for k in range(0, len(files), FILES_AT_ONCE)]
    workers = default_threads() if processes is None else processes
    if workers < 1:
        raise UsageError(f"processes = {processes}: 1 or more are needed")
    workers = min(workers, len(parts))
    pool = None
    if workers > 1:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
    chains: list[ProteinChain] = []
    errors: list[InputError] = []
    file_of: dict[str, str] = {}
    count = 0
    try:
        for answers in (map if pool is None else pool.map)(_read_part, parts):
            for answer in answers:
                file, count = files[count], count + 1
                if isinstance(answer, InputError):
                    if unreadable == "error":
                        raise answer
                    errors.append(answer)
                    continue
                for chain in answer:
                    if (first := file_of.setdefault(chain.name, file)) != file:
                        raise InputError(
                            f"{label(file)}: the chain {chain.name} is in "
                            f"{label(first)} too; names must differ"
                        )
                chains += answer
            if progress is not None:
                progress(count, len(files))
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    if not chains:
        raise InputError(f"of {len(files):,} files none is left: {errors[0]}")
    return chains, errors


def _read_part(files: Sequence[str]) -> list[list[ProteinChain] | InputError]:
    """The chains of each of some files, or why there are none."""
    answers: list[list[ProteinChain] | InputError] = []
    for file in files:
        try:
            chains = read_file(file)
            if not chains:
                raise InputError(f"{label(file)}: has no protein chain")
            answers.append(chains)
        except InputError as error:
            answers.append(error)
    return answers


def _end_with_parent() -> None:
    """Have a process end when the one that started it has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel
        threading.Thread(
            target=lambda: (wait([sentinel]), os._exit(1)), daemon=True
        ).start()
