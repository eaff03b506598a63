"""An input may be a file, a compressed file, a pipe, a FIFO or standard input: the
answer is the same to the byte, or the input is refused before any work is done.

Paths, SHA-256, seconds and names that a file gives its content may differ.
"""

import gzip
import importlib
import io
import os
import re
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import InputError, UsageError

LETTERS = [*"ARNDCQEGHILKMFPSTWYV"]
REFUSED = (UsageError.exit_code, InputError.exit_code)
KINDS = ("gz", "pipe", "fifo", "-", "/dev/stdin")
CUT = ("--min-identity", "0.6")
# Words of a command line; an input has @ before it, an output is o.*.
JOBS = {
    "align": ("align", "@a.fa", "@b.fa", "--matrix", "@m.mat", "-o", "o.tsv"),
    "align dna": ("align", "@g.fa", "@h.fa", "-o", "o.tsv"),
    "profile": ("align", "--profile", "@f.sto", "@b.fa", "-o", "o.tsv"),
    "all": ("all", "@a.fa", "--format", "graphpart", "-o", "o.tsv"),
    "three": ("three", "@three.fa"),
    "soft": ("soft", "@a.fa", "@b.fa"),
    "search": ("search", "@a.fa", "@c.fa", "-o", "o.m8"),
    "search dna": ("search", "@g.fa", "@h.fa", "-o", "o.m8"),
    "parts": ("search", "@a.fa", "@c.fa", "-o", "o.folder/"),
    "nearest": ("nearest", "@a.fa", "@c.fa", "-o", "o.tsv", "--report", "o.html"),
    "shard": ("nearest", "@a.fa", "@c.fa", "--shard", "1/2"),
    "family": ("family", "@q.fa", "@c.fa", "-o", "o.a3m"),
    "index": ("index", "@b.fa", "-o", "o.jaxdb"),
    "cluster": (
        *("cluster", "@a.fa", "--min-identity", "0.6"),
        *("--fasta", "o.fa", "-o", "o.tsv"),
    ),
    "dedup": ("dedup", "@a.fa", "--min-identity", "0.6"),
    "split": (
        *("split", "@a.fa", *CUT, "--parts", "x=.5,y=.5", "--labels", "@l.tsv"),
        *("--fasta", "o.folder", "--certificate", "o.json", "-o", "o.tsv"),
        *("--too-large", "keep"),
    ),
    "priority": (
        *("split", "@a.fa", *CUT, "--fixed", "@x.tsv", "--priority", "@w.tsv"),
        *("--too-large", "remove"),
    ),
    "split pairs": (
        "split",
        "@a.fa",
        *CUT,
        "--pairs",
        "@p.tsv",
        "--parts",
        "x=.5,y=.5",
    ),
    "audit": ("audit", "@a.fa", "@d.fa", *CUT, "-o", "o.json", "--leaks", "o.tsv"),
    "audit list": ("audit", "@a.fa", *CUT, "--split", "@x.tsv", "-o", "o.json"),
    "audit pairs": ("audit", "@a.fa", *CUT, "--pairs", "@z.tsv"),
    "verify": ("audit", "@a.fa", "@d.fa", "--verify", "@old.json"),
    "purge": (
        *("purge", "@c.fa", "--against", "@a.fa", *CUT),
        *("-o", "o.fa", "--list", "o.tsv", "--certificate", "o.json"),
    ),
    "purge out": ("purge", "@c.fa", "--against", "@a.fa", *CUT),
    "purge evalue": ("purge", "@c.fa", "--against", "@a.fa", "--max-evalue", "1"),
    "purge shard": ("purge", "@c.fa", "--against", "@a.fa", *CUT, "--shard", "2/2"),
    "purge dna": ("purge", "@h.fa", "--against", "@g.fa", *CUT),
    "repertoire": ("repertoire", "@r.tsv", "--against", "@s.tsv"),
    "genes": ("repertoire", "@r.tsv", "--v-loops", "@v.tsv", "--list", "o.tsv"),
    "receptors": ("repertoire", "@r.fa", "-o", "o.tsv"),
    "matrices": ("matrices", "@m.mat"),
    "info": ("info", "--plan", "@a.fa"),
    "embeddings": (
        *("align", "--embeddings", "@a.npz", "@b.npz", "--sequences", "@a.fa"),
        *("--gap-open", "2", "--gap-extend", "1", "-o", "o.fasta"),
    ),
}
QUICK = {"search dna", "nearest", "dedup", "purge"}
DIFFERING = re.compile(
    r'"(path|file|sha256|seconds|gcups|out)": [^\n]*|[0-9.]+ s\b|[0-9a-f]{64}'
    r"|(budget|free) [^\n]*"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind; headings have descriptions, and some residues are small."""
    root = tmp_path_factory.mktemp("inputs")
    for name in ("gz", "fifo"):
        (root / name).mkdir()
    random = np.random.default_rng(7)

    def texts(count, letters=LETTERS):
        return ["".join(random.choice(letters, 24)) for _ in range(count)]

    a, g = texts(4), texts(3, [*"ACGT"])
    b = [x[:20] + "AAAA" for x in a]
    sets = {"a": a, "b": b, "d": texts(3), "q": a[:1], "three": a[:3]}
    sets |= {"c": [*texts(2), *b[1:], *texts(1)]}
    sets |= {"g": g, "h": [x[:20] + "ACGT" for x in g[1:]] + texts(1, [*"ACGT"])}
    for name, some in sets.items():
        lines = (
            f">{name}{k} of {k}\n{x[:9].lower()}\n{x[9:]}\n" for k, x in enumerate(some)
        )
        (root / f"{name}.fa").write_text("".join(lines))
    rows = {
        "l": "name\tlabel\n" + "".join(f"a{k} of {k}\t{k % 2}\n" for k in range(4)),
        "x": "name\tpart\n"
        + "".join(f"a{k} of {k}\t{'xy'[k % 2]}\n" for k in range(4)),
        "w": "name\tpriority\n" + "".join(f"a{k}\t{k + 1}\n" for k in range(4)),
        "p": "a\tb\na0 of 0\ta1\na2\ta3\n",
        "z": "a\tb\tpart\na0\ta1\tx\na2\ta3\ty\n",
        "v": "gene\tcdr1\nTRBV1\tMK\nTRBV2\tMR\n",
        "s": "junction_aa\tv_call\nCASSLGTAYEQYF\tTRBV1\n",
    }
    rows["r"] = rows["s"] + "CASSLGQAYEQYF\tTRBV2\nCASSLGTAYEQFF\tTRBV1\n"
    for name, text in rows.items():
        (root / f"{name}.tsv").write_text(text)
    (root / "r.fa").write_text(">r0\nCASSLGTAYEQYF\n>r1\nCASSLGQAYEQYF\n")
    (root / "f.sto").write_text("# STOCKHOLM 1.0\nx ARNDCQEGHI\ny ARNDCQ-GHI\n//\n")
    matrix = "\n".join(
        f"{x} " + " ".join("2" if x == y else "-1" for y in LETTERS) for x in LETTERS
    )
    (root / "m.mat").write_text(" " + " ".join(LETTERS) + "\n" + matrix + "\n")
    for name in "ab":
        with open(root / f"{name}.npz", "wb") as file:
            np.savez(file, a0=np.ones((24, 3), np.float32))
    with pytest.MonkeyPatch.context() as context:
        context.chdir(root)
        assert main(["audit", "a.fa", "d.fa", *CUT, "-o", "old.json", "-q"]) == 0
    return root


@contextmanager
def as_kind(kind: str, file: Path, monkeypatch):
    """The word that names a file given in another way."""
    data = file.read_bytes()
    if kind == "gz":
        packed = file.parent / "gz" / f"{file.name}.gz"
        packed.write_bytes(gzip.compress(data))
        yield f"gz/{packed.name}"
        packed.unlink()
        return
    if kind == "fifo":
        path = str(file.parent / "fifo" / file.name)
        os.mkfifo(path)
        # Whoever opens a FIFO waits for the other side: one reader gets the data.
        writer = threading.Thread(target=Path(path).write_bytes, args=(data,))
        writer.daemon = True
        writer.start()
        yield f"fifo/{file.name}"
        if writer.is_alive():  # the command did not read it
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            writer.join(5)
            os.close(descriptor)
        os.unlink(path)
        return
    end, start = os.pipe()
    os.write(start, data)
    os.close(start)
    if kind == "pipe":
        yield f"/dev/fd/{end}"
    else:
        before = os.dup(0)
        os.dup2(end, 0)
        stream = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))
        with monkeypatch.context() as context:
            context.setattr(sys, "stdin", stream)
            yield kind
        os.dup2(before, 0)
        os.close(before)
    os.close(end)


def outputs(root: Path) -> dict[str, bytes | str]:
    """The content of the files that a command wrote, which are removed."""
    content = {}
    for path in sorted(root.rglob("*"), reverse=True):
        inside = any(part.startswith("o.") for part in path.relative_to(root).parts)
        if inside and path.is_dir():
            path.rmdir()
        elif inside:
            data = path.read_bytes()
            if path.suffix == ".parquet":  # with a digest of its run
                data = str(importlib.import_module("pyarrow.parquet").read_table(path))
            content[str(path.relative_to(root))] = data
            path.unlink()
    return content


def compared(content: bytes | str, *words: str) -> str:
    """An output without what may differ: what a file is called is ``words``."""
    text = content if isinstance(content, str) else content.decode("latin-1")
    names = sorted(
        {"alignment", *words, *(os.path.basename(x).split(".")[0] for x in words)}
    )
    called = "|".join(re.escape(name) for name in names[::-1])
    text = text.replace("standard input", "-")
    return DIFFERING.sub("…", re.sub(rf"(?<![\w-])({called})(?![\w-])", "…", text))


def jobs(quick):
    """Each job with each of its inputs."""
    for job, words in JOBS.items():
        for number, word in enumerate(words):
            if word.startswith("@"):
                marks = () if job in quick else pytest.mark.slow
                yield pytest.param(job, number, marks=marks, id=f"{job} {word[1:]}")


@pytest.mark.parametrize("job, number", [*jobs(QUICK)])
def test_an_input_of_any_kind_is_that_input(folder, monkeypatch, capfd, job, number):
    monkeypatch.chdir(folder)
    plain = [word.removeprefix("@") for word in JOBS[job]]
    plain += ["-q"] * (job != "matrices")
    outputs(folder)
    code = main(plain)
    out, err = capfd.readouterr()
    usual, name = outputs(folder), plain[number]
    assert code in (0, 6), err
    assert usual or out or job == "audit pairs"
    for kind in KINDS:
        with as_kind(kind, folder / name, monkeypatch) as word:
            words = [*plain]
            words[number] = word
            again = main(words)
            other_out, other_err = capfd.readouterr()
        content = outputs(folder)
        if again in REFUSED or (job, kind, again) == ("verify", "gz", 7):
            assert not content and not other_out, (kind, other_err)
            said = re.search("empty|no rows|unknown matrix|no such|hint: -v", other_err)
            assert not said, (kind, other_err)
            continue
        assert again == code, (kind, other_err)
        assert content.keys() == usual.keys(), kind
        pairs = [(other_out, out), (other_err, err)]
        pairs += [(content[file], usual[file]) for file in usual]
        for other, data in pairs:
            assert compared(other, word, name) == compared(data, word, name), kind


def longer(data: bytes, place: int) -> bytes:
    """A text file with a word of 60,000 letters, or a name of a FASTA that is bad
    too."""
    words = re.findall(rb"\S+|\s+", data)
    words[2 * place] += b"n" * 60_000 + b" " + b"1" * (place % 2)
    return b"".join(words)


@pytest.mark.parametrize("job, number", [*jobs({"dedup", "split", "genes"})])
def test_long_names_make_short_messages(folder, monkeypatch, capfd, job, number):
    monkeypatch.chdir(folder)
    words = [word.removeprefix("@") for word in JOBS[job]]
    data = (folder / words[number]).read_bytes()
    if b"\0" in data:
        return
    words[number] = "long." + words[number].partition(".")[2]
    for place in range(4):
        Path(words[number]).write_bytes(longer(data, place))
        main(words)
        _, err = capfd.readouterr()
        assert len(err) < 10_000 and "hint: -v" not in err, err[:2000]
        outputs(folder)
    Path(words[number]).unlink()


CALLS = {
    "align_all": lambda c, _: jaxalign.align_all(c)["score"].tolist(),
    "search": lambda c, a: jaxalign.search(a, c)["target"].tolist(),
    "nearest": lambda c, a: jaxalign.nearest(a, c).columns()["nearest"].tolist(),
    "purge": lambda c, a: jaxalign.purge(c, a, min_identity=0.6).kept.tolist(),
    "evalue": lambda c, a: jaxalign.purge(c, a, max_evalue=1.0).kept.tolist(),
    "family": lambda c, a: jaxalign.search_family(Path("q.fa"), c)[0].names,
    "cluster": lambda c, _: jaxalign.cluster(c, min_identity=0.6).labels.tolist(),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_read_a_pipe_once(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    call, corpus, tests = CALLS[name], Path("c.fa"), Path("a.fa")
    want = call(corpus, tests)
    for kind in ("pipe", "fifo"):
        with as_kind(kind, corpus, monkeypatch) as word:
            try:
                assert call(Path(word), tests) == want
            except UsageError as error:
                assert "give a file" in str(error) and name == "family"
        with as_kind(kind, tests, monkeypatch) as word:
            assert call(corpus, Path(word)) == want
    with as_kind("pipe", corpus, monkeypatch) as word:
        Path(word).read_bytes()
        with pytest.raises(
            (InputError, UsageError), match="was read before|give a file"
        ):
            call(Path(word), tests)
