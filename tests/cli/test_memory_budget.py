"""``--memory-budget`` bounds what a process needs beyond the same verb on two records.

Peaks are those that the kernel counts of a process, whatever allocates. The quick draws
count what Python and NumPy allocate, of jobs that compile nothing.
"""

import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import numpy as np
import pytest

from jaxalign.corpus import Corpus
from jaxalign.database import pieces
from jaxalign.errors import EXIT_CODES, LeakError
from jaxalign.homology import api
from jaxalign.homology.links import link_jobs, parts_of
from jaxalign.io import fasta
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import Scoring
from jaxalign.options import HomologyOptions
from jaxalign.pairs.cpu import partition
from jaxalign.pairs.result import Output
from jaxalign.runtime import devices

DONE, _, _, _, TOO_LARGE, *_ = EXIT_CODES
LEAK = LeakError.exit_code
LETTERS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)
SHARE = 1.3  # of the budget, at most, beyond the process itself
FEW = 8  # letters
SECONDS = 300  # of a process, at most
CHILD = """
import os, sys
if "TEST_CORES" in os.environ:
    cores = set(range(int(os.environ["TEST_CORES"])))
    os.sched_getaffinity = lambda process: cores
from jaxalign.cli import process
from jaxalign.cli.main import main
process.begin()
if "JAXALIGN_ROWS" in os.environ:
    import jax
    jax.jit(lambda x: x + 1)(1)
code = main(sys.argv[2:])
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
print(code, peak, file=open(sys.argv[1], "w"))
"""


class Job(NamedTuple):
    """A verb, the files that it reads and how large they are.

    words : of the command line; "big.fa" and "big.tsv" are the files whose size counts
    records, letters : of the large file
    others : records of "few.fa", of ``FEW`` letters
    compiled : whether it needs JAX, which the small one starts, too
    codes : of a job that is done, or refused
    """

    words: str
    records: int
    letters: int
    others: int = 6
    compiled: bool = False
    codes: tuple[int, ...] = (DONE,)


NEAREST, PURGE = "nearest few.fa big.fa", "purge big.fa --against few.fa -o o.fa"
CUT = "--min-identity"
EDITS = "repertoire big.tsv --metric levenshtein -o o.npz --cutoff"
JOBS = {
    "nearest": Job(NEAREST, 50_000, 600),
    "nearest of short records": Job(NEAREST, 500_000, 12, 6, True),
    "nearest of many tests": Job(NEAREST, 3_000, 60, 2000, True),
    "nearest, all aligned": Job(f"{NEAREST} --no-filter", 20_000, 60, 50, True),
    "nearest by score": Job(f"{NEAREST} --by score", 50_000, 600, 6, True),
    "purge": Job(f"{PURGE} --min-identity 0.5", 50_000, 600),
    "purge of many tests": Job(f"{PURGE} --min-identity .5", 10_000, 60, 3000, True),
    "purge by score": Job(f"{PURGE} --score 60", 50_000, 600, 6, True),
    "search": Job("search few.fa big.fa -o o.m8", 50_000, 600, 6, True),
    "search by rows": Job("search few.fa big.fa -o o.m8", 60_000, 12, 2),
    "many edits": Job(f"{EDITS} 8", 8000, 15, 6, True, (DONE, TOO_LARGE)),
    "few edits": Job(f"{EDITS} 2", 30_000, 15, 6, True),
    "no gaps": Job("repertoire big.tsv --metric hamming -o o.npz", 30_000, 15, 6, True),
    "receptors": Job("repertoire big.tsv -o o.npz", 20_000, 15, 6, True),
    "all": Job("all big.fa -o o.tsv", 900, 60, 6, True),
    "all to Parquet": Job("all big.fa -o o.parquet", 1200, 60, 6, True),
    "by rows to Parquet": Job("all big.fa --implementation rows -o o.parquet", 900, 30),
    "all near": Job("all big.fa --min-identity .5 -o o.tsv", 4000, 60, 6, True),
    "cluster": Job("cluster big.fa --min-identity .5 -o o.tsv", 6000, 60, 6, True),
    "cluster all": Job("cluster big.fa --min-identity .1 -o o.tsv", 3000, 60, 6, True),
    "split": Job(f"split big.fa {CUT} .5 --folds 2 -o o.tsv", 6000, 60, 6, True),
}
ON_MANY_CORES = "nearest of many tests", "nearest, all aligned"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(job: Job, records: int) -> None:
    random = np.random.default_rng(len(job.words))
    sizes = {"big": (records, job.letters), "few": (min(job.others, records), FEW)}
    for path, size in sizes.items():
        codes = random.integers(0, 20, size)
        rows = [x.tobytes().decode() for x in LETTERS[codes]]
        fasta = (f">{path}{k}\n{row}\n" for k, row in enumerate(rows))
        Path(f"{path}.fa").write_text("".join(fasta))
        table = (f"{k}\tC{row[2:]}F\n" for k, row in enumerate(rows))
        Path(f"{path}.tsv").write_text("sequence_id\tjunction_aa\n" + "".join(table))


def peak(job: Job, budget: int, cores: int = 2) -> int:
    """Bytes of a process that does a job, with a thread for each core of a machine."""
    words = (*job.words.split(), "--memory-budget", str(budget), "-q", "--force")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX")}
    environment |= {"JAXALIGN_ROWS": "off"} if job.compiled else {}
    environment |= {"TEST_CORES": str(cores)}
    words = (*words, "--threads", str(cores))
    command = [sys.executable, "-c", CHILD, "peak", *words]
    with open(os.devnull, "w") as none:
        subprocess.run(command, stdout=none, timeout=SECONDS, env=environment)
    code, kilobytes = map(int, Path("peak").read_text().split())
    assert code in job.codes
    return kilobytes * 1024


QUICK = {
    "nearest": Job(NEAREST, 4000, 1000),
    "nearest of short records": Job(NEAREST, 20_000, 12),
    "purge": Job(f"{PURGE} --min-identity 0.5", 4000, 1000),
    "edits": Job(f"{EDITS} 3", 800, 15),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_what_is_allocated_stays_within_the_budget(name, folder, run, monkeypatch):
    monkeypatch.setattr(fasta, "CHUNK", 2**17)  # of which no more than is there counts
    job, budget = QUICK[name], 2**22
    words = (*job.words.split(), "--memory-budget", str(budget), "-q", "--force")
    peaks = []
    for records in (2, 2, job.records):  # the first one imports
        write(job, records)
        tracemalloc.start()
        try:
            assert run(*words)[0] in job.codes
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < SHARE * budget


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="Linux counts it")
@pytest.mark.parametrize(
    "name, budget, cores",
    [
        *((x, 2**26, 16 if x in ON_MANY_CORES else 2) for x in JOBS),
        ("all", 2**27, 2),
    ],
)
def test_a_process_stays_within_its_budget(name, budget, cores, folder):
    job = JOBS[name]
    write(job, 2)
    times = 1 + job.compiled  # the first one may compile
    base = min(peak(job, budget, cores) for _ in range(times))
    write(job, job.records)
    tries = (peak(job, budget, cores) - base for _ in range(2))
    assert any(size < SHARE * budget for size in tries)


# Of "long.fa", where one sequence is much longer than the others, and "short.fa"; what
# each writes is equal whatever the budget.
LONG = {
    "all": "all long.fa",
    "all of scores": "all long.fa --output score",
    "all near": "all long.fa --min-identity .4",
    "all to Parquet": "all long.fa -o o.parquet",
    "all into a folder": "all long.fa -o parts/ --part-rows 20",
    "align": "align long.fa long.fa --output alignment --format paf",
    "search": "search long.fa other.fa",
    "nearest": "nearest long.fa other.fa",
    "nearest by score": "nearest long.fa other.fa --by score",
    "audit": "audit long.fa other.fa --min-identity .4 --leaks o.tsv",
    "cluster": "cluster long.fa --min-identity .4",
    "dedup": "dedup long.fa --min-identity .4 -o o.fa",
    "purge": "purge long.fa --against other.fa --min-identity .4 -o o.fa",
}
REFUSED = re.compile(r"a budget of (\d+) bytes would fit")


def write_long(seed: int, letters: int) -> None:
    random = np.random.default_rng(seed)
    base, titin = (LETTERS[random.integers(0, 20, n)] for n in (40, letters))

    def like(text):
        new = LETTERS[random.integers(0, 20, len(text))]
        return np.where(random.random(len(text)) < 0.3, new, text).tobytes().decode()

    for path in ("long", "other"):
        texts = {f"{path}{k}": like(base) for k in range(6)}
        texts |= {f"{path}-titin{k}": like(titin) for k in range(1 + (path == "long"))}
        order = random.permutation([*texts])
        lines = (f">{name}\n{texts[name]}\n" for name in order)
        Path(f"{path}.fa").write_text("".join(lines))


def outcome(run, name: str, *more: str) -> tuple[int, dict, str, int]:
    """(exit code, what is written, messages, rows that were computed) of a job."""
    before, rows = {*Path().rglob("*")}, []
    put = Output.put
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Output, "put", lambda x, y: rows.append(y.at) or put(x, y))
        code, out, err = run(*LONG[name].split(), "-q", *more)
    files = sorted({*Path().rglob("*")} - before)
    written = {str(x): x.read_bytes() for x in files if x.is_file()}
    for path in reversed(files):
        path.rmdir() if path.is_dir() else path.unlink()
    # Of a folder the parts; a manifest has the options
    written = {x: y for x, y in written.items() if "json" not in x}
    return code, {"": out} | written, err, sum(map(len, rows))


QUICK_LONG = ("all", "search", "nearest", "audit")


@pytest.mark.parametrize("name", QUICK_LONG)
def test_a_long_sequence_is_refused_before_others_are_aligned(name, folder, run):
    """It is named."""
    write_long(len(name), 5000)
    code, written, err, rows = outcome(run, name, "--memory-budget", "1MB")
    assert (code, rows, any(written.values())) == (TOO_LARGE, 0, False)
    assert REFUSED.search(err) and "-titin" in err


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("budget", ["1MB", "2500kB", "12MB", "40MB"])
def test_a_long_sequence_changes_nothing_or_is_refused(name, budget, folder, run):
    """A budget that is said to fit does."""
    write_long(len(name + budget), 5000)
    code, want, err, _ = outcome(run, name)
    assert code in (DONE, LEAK), err
    got = outcome(run, name, "--memory-budget", budget)
    if got[0] == TOO_LARGE:
        said = REFUSED.search(got[2])
        assert said and "-titin" in got[2] and got[3] == 0, got[2]
        got = outcome(run, name, "--memory-budget", said[1])
    assert got[0] == code, got[2]
    if "parquet" not in LONG[name] and "parts/" not in LONG[name]:
        assert got[1] == want


def test_rows_that_filters_keep_are_refused_beyond_the_budget(folder, run):
    """In a folder of parts there is room for them."""
    write(Job("", 400, 9), 400)
    line = "all big.fa --output identity --min-identity 0 --implementation rows"
    words = (*line.split(), "--memory-budget", "2MB", "-q")
    code, out, err = run(*words)
    assert (code, out) == (TOO_LARGE, "") and "-o FOLDER/" in err
    assert run(*words, "-o", "parts/")[0] == DONE


def test_a_large_result_beyond_the_budget_is_refused_at_once(folder, run, monkeypatch):
    """No pair of it is listed alone."""
    monkeypatch.setattr(partition, "pairs", None)
    job = Job("all big.fa -o o.tsv --memory-budget 1MB", 1500, 400)
    write(job, job.records)
    code, _, err = run(*job.words.split())
    assert code == TOO_LARGE and "would fit" in err


SMALL, LARGE = 2**23, 2**40  # bytes that are free
MASKED = r'"(seconds|gcups|budget_bytes|result_bytes)": [^,\n}]+'
# Of "set.fa", whose links a list of parts and one of pairs divide, and "few.fa"
LINKED = {
    "cluster": "cluster set.fa CUT -o o.tsv",
    "cluster by score": "cluster set.fa --min-identity .5 -o o.tsv",
    "cluster, greedy": "cluster set.fa CUT --method greedy -o o.tsv",
    "dedup": "dedup set.fa CUT -o o.fa --list o.tsv",
    "split": "split set.fa CUT --folds 3 -o o.tsv --certificate o.json",
    "split --pairs": "split set.fa --pairs pairs.tsv CUT --folds 3 -o o.tsv",
    "audit": "audit few.fa set.fa CUT -o o.json --leaks o.tsv",
    "audit --split": "audit set.fa --split parts.tsv CUT -o o.json",
    "audit --pairs": "audit set.fa --pairs parted.tsv CUT --leaks o.tsv",
    "nearest": "nearest few.fa set.fa --link whole -o o.tsv",
    "nearest by score": "nearest few.fa set.fa -o o.tsv",
    "purge": "purge set.fa --against few.fa CUT -o o.fa --certificate o.json",
    "purge by score": "purge set.fa --against few.fa --min-score 60 -o o.fa",
    "all": "all set.fa --min-identity .5 -o o.tsv",
    "search": "search few.fa set.fa -o o.m8",
}


def write_set(records: int) -> None:
    random = np.random.default_rng(records)
    bases = [LETTERS[random.integers(0, 20, n)] for n in random.integers(25, 40, 150)]
    texts = []
    for k in random.integers(0, len(bases), records).tolist():
        new = LETTERS[random.integers(0, 20, len(bases[k]))]
        share = random.choice([0.1, 0.3, 0.5, 0.7])
        text = np.where(random.random(len(new)) < share, new, bases[k])
        texts.append(text.tobytes().decode())
    for path, some in {"set": texts, "few": texts[::40]}.items():
        lines = (f">{path}{k}\n{text}\n" for k, text in enumerate(some))
        Path(f"{path}.fa").write_text("".join(lines))
    pairs = {(a, b) for a, b in random.integers(0, records, (200, 2)).tolist()}
    names = [f"set{a}\tset{b}" for a, b in sorted(pairs)]
    parts = [f"set{k}\t{'xy'[k % 2]}" for k in range(records)]
    parted = [f"{name}\t{'xy'[k % 2]}" for k, name in enumerate(names)]
    for path, rows in {"pairs": names, "parts": parts, "parted": parted}.items():
        Path(f"{path}.tsv").write_text("\n".join(rows) + "\n")


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", LINKED)
def test_nothing_that_is_written_depends_on_the_memory_that_is_free(
    name, folder, run, monkeypatch
):
    """Nor what is printed, but for seconds, and what a plan says of memory."""
    write_set(600)  # 64 of which meet the others in more pairs than 4 MiB hold
    words = LINKED[name].replace("CUT", "--link whole --min-identity .5").split()
    outcomes, before = [], {*Path().iterdir()}
    for free in (SMALL, LARGE):
        monkeypatch.setattr(devices, "_free_memory", lambda size=free: size)
        code, out, err = run(*words, "--json", "-q")
        assert code in (DONE, LEAK) and not err
        files = sorted({*Path().iterdir()} - before)
        written = [(path.name, path.read_bytes()) for path in files]
        out = re.sub(MASKED, "", out)
        outcomes.append((code, out, written))
        for path in files:
            path.unlink()
    assert outcomes[0] == outcomes[1]


def test_parts_and_blocks_do_not_depend_on_the_memory_that_is_free(monkeypatch):
    """Counts of aligned pairs depend on them; a budget is an argument."""
    sequences = as_sequences(["MKTAYIAKQR"] * 2000, Scoring().alphabet)

    def sizes(budget=None) -> tuple:
        corpus = Corpus(["MKT"], Scoring(), memory_budget=budget)
        options = HomologyOptions(link="whole", memory_budget=budget)
        definition = api.define(Scoring(), options, 0.5, [sequences])
        (job,) = link_jobs(sequences, definition)
        rows = parts_of(job.tasks[0], definition)[0].stop
        return pieces.sizes_of(budget), corpus._sizes, rows

    whole = sizes()
    for free in (2**24, 2**28, 2**31, 2**40):
        monkeypatch.setattr(devices, "_free_memory", lambda size=free: size)
        assert sizes() == whole
    small = sizes("10MB")
    assert all(x < y for x, y in zip(small, whole, strict=True))
