"""Whole processes of every verb in broken environments, and processes that are told to
end: one line, a code that tells, nothing half written left."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from draws import pairwise
from verb_jobs import (
    FIRST,
    OTHERS,
    VERBS,
    fasta,
    first_fasta,
    out_file,
    reads,
    verb_of,
    words,
)

import jaxalign

COMMAND = [sys.executable, "-m", "jaxalign"]
DONE, FAILED, USAGE = 0, 1, 2
SILENT = ("index", "warmup")  # which print no answer
ANYWHERE = [verb for verb in VERBS if verb != "selftest"]  # which needs a GPU
KINDS = (  # verbs by what they print
    ("align", "all", "search", "nearest", "repertoire"),  # a table of pairs
    ("cluster", "split", "audit"),  # a table of sequences
    ("three", "family", "dedup", "purge"),  # sequences
    ("soft", "info", "matrices", "demo"),  # lines
    SILENT,
)
OWN = {"HOME": "home", "TMPDIR": "tmp", "JAXALIGN_CACHE_DIR": "off", "TERM": "xterm"}


@pytest.fixture
def folder(request, tmp_path):
    """A working directory with two files of records, a home, and a folder of
    temporary files."""
    for name in ("work", "home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "a.fa").write_bytes(first_fasta(verb_of(request)))
    (tmp_path / "work" / "b.fa").write_bytes(fasta(texts=OTHERS))
    return tmp_path / "work"


def variables(folder: Path) -> dict[str, str]:
    """The environment of a process whose home and temporary files are in sight."""
    kept = ("PATH", "PYTHONPATH", "JAX_", "XLA_")
    own = {name: x for name, x in os.environ.items() if name.startswith(kept)}
    places = {"HOME": str(folder.parent / "home"), "TMPDIR": str(folder.parent / "tmp")}
    return own | OWN | places | {"LC_ALL": "C.UTF-8"}


def by_shell(script: str):
    """Words that a shell runs, which closes streams, say, before."""
    return lambda line: ["sh", "-c", script, "sh", *line]


def in_namespace(script: str):
    """The same with mounts of its own, seen by nobody else."""
    return lambda line: ["unshare", "-rm", "sh", "-c", f"{script} exec $@", "sh", *line]


# What a process needs, which a test must not hide
NEEDED = [
    Path(place).resolve()
    for place in (sys.prefix, sys.base_prefix, jaxalign.__file__, np.__file__)
]
READ_ONLY = 'mount --bind "$PWD" /mnt && cd /mnt && ' + "".join(
    f"mount -t tmpfs -o ro none {place} && "
    for place in ('"$HOME"', "/var/tmp", "/dev/shm", "/tmp")  # the last hides others
    if not any(needed.is_relative_to(place) for needed in NEEDED)
)
# (how the words are run, changes of the environment; None takes a variable away)
ENVIRONMENTS = {
    "none broken": (list, {}),
    "no home": (list, {"HOME": None, "TMPDIR": "/none"}),
    "a home that is no folder": (
        list,
        {"HOME": "/dev/null", "XDG_CACHE_HOME": "/proc"},
    ),
    "no standard input": (by_shell('exec "$@" <&-'), {}),
    "no standard output": (by_shell('exec "$@" >&-'), {}),
    "no standard error": (by_shell('exec "$@" 2>&-'), {}),
    "no streams": (by_shell('exec "$@" <&- >&- 2>&-'), {}),
    "a full standard output": (by_shell('exec "$@" >/dev/full'), {}),
    "a full standard error": (by_shell('exec "$@" 2>/dev/full'), {}),
    "a closed reader": (by_shell('"$@" | true'), {}),
    "ascii": (list, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "a strict mask": (by_shell('umask 077; exec "$@"'), {}),
    "read only": (in_namespace(READ_ONLY), {"TMPDIR": None}),
}
NO_ANSWER = ("no standard output", "no streams", "a full standard output")


def test_every_verb_has_a_kind():
    assert sorted(verb for verbs in KINDS for verb in verbs) == sorted(ANYWHERE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, verb",
    [
        (name, verbs[k % len(verbs)])
        for k, name in enumerate(ENVIRONMENTS)
        for verbs in KINDS
    ],
)
def test_every_kind_of_verb_in_every_environment(folder, name, verb):
    """And every verb in some: those of a kind take turns."""
    change, changes = ENVIRONMENTS[name]
    if name == "read only" and not _has_namespaces():
        pytest.skip("no namespaces of a user's own here")
    line = change([*COMMAND, *words(verb, ["a.fa", "b.fa"])])
    own = {k: x for k, x in (variables(folder) | changes).items() if x is not None}
    process = subprocess.run(
        line, cwd=folder, env=own, capture_output=True, timeout=120
    )
    said, code = process.stderr.decode(), process.returncode
    assert "Traceback" not in said and "hint: -v" not in said, said
    fails = name in NO_ANSWER and verb not in SILENT
    want = USAGE if verb == "warmup" else FAILED if fails else DONE
    assert code == (DONE if name == "a closed reader" else want), said
    if fails and name != "no streams":
        assert "standard output: cannot be written (" in said
    if verb not in SILENT and not fails and name != "a closed reader":
        assert process.stdout and b"jaxalign: error" not in process.stdout
    left = {path.name for path in folder.iterdir()} - {"a.fa.jaxdb"}
    assert left == {"a.fa", "b.fa"}
    assert not [*(folder.parent / "tmp").iterdir()]


def _has_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "ro", "none", "/tmp"]
    return subprocess.run(words, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["align", "split", "three", "dedup", "soft", "index"])
def test_a_full_disk_leaves_nothing(folder, verb):
    """A disk of one page, which is taken."""
    if not _has_namespaces():
        pytest.skip("no namespaces of a user's own here")
    mount = (
        "mkdir disk && mount -t tmpfs -o size=4k none disk && "
        "head -c 4096 /dev/zero >disk/full; "
    )
    out = out_file(verb)
    script = mount + '"$@"; code=$?; ls -A disk; exit $code'
    line = [*COMMAND, *words(verb, ["a.fa", "b.fa"], "-o", f"disk/{out}")]
    line = ["unshare", "-rm", "sh", "-c", script, "sh", *line]
    process = subprocess.run(
        line, cwd=folder, env=variables(folder), capture_output=True, timeout=120
    )
    said = process.stderr.decode()
    assert process.returncode == FAILED and f"disk/{out}: cannot be written" in said
    assert process.stdout == b"full\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "verb, term", [*zip(ANYWHERE, cycle(["xterm", "dumb", None]), strict=False)]
)
def test_every_verb_on_a_terminal(folder, verb, term):
    """Names cannot command it; only the table of the demo and the bar may, which a slow
    machine shows: neither begins with what these names begin with."""
    names = ["a\x1b]0;name", "b\x07", "c\x9b"]
    (folder / "a.fa").write_bytes(first_fasta(verb, names))
    own = variables(folder) | {"TERM": term or ""}
    if term is None:
        own.pop("TERM")
    code, shown = on_terminal([*COMMAND, *words(verb, ["a.fa", "b.fa"])], folder, own)
    assert code == (USAGE if verb == "warmup" else DONE), shown
    if reads(verb):
        assert not any(command in shown for command in ("\x1b]", "\x07", "\x9b"))


def on_terminal(line: list[str], folder: Path, own: dict[str, str]) -> tuple[int, str]:
    """(exit code, what was shown) of a process whose streams are a terminal."""
    ours, theirs = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = subprocess.Popen(line, cwd=folder, env=own, **streams)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how Linux says that nobody has the other end
        pass
    os.close(ours)
    return process.wait(), shown.decode()


# ----------------------------------------------------------------------------- signals

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
# Whoever runs the tests may ignore some, and children inherit that.
HEEDING_SIGNALS = ("env", "--default-signal=INT,TERM,HUP")
LONG = {
    "all": ["all", "many.fa", "--implementation", "sweep", "-o", "out.tsv"],
    "parts": ["all", "many.fa", "-o", "out/", "--part-rows", "2000"],
    "rows": ["all", "many.fa", "--implementation", "rows", "--output", "alignment"],
    "three": ["three", "three.fa"],
    "search": ["search", "many.fa", "many.fa", "-o", "out.m8"],
    "soft": ["soft", "long.fa", "long.fa", "-o", "out.npz"],
    "split": ["split", "many.fa", "--min-identity", "0.2", "--folds", "2"],
}
SECONDS = (0.02, 0.1, 0.4, 0.8, 1.5, 3.0)


@pytest.fixture
def many(folder):
    """Files whose jobs take longer than the signal is waited for."""
    texts = ["".join(FIRST[(k + j) % 3] for j in range(12)) for k in range(900)]
    names = [f"r{k}" for k in range(900)]
    (folder / "many.fa").write_bytes(fasta(names, texts))
    (folder / "three.fa").write_bytes(fasta(texts=[text * 12 for text in FIRST]))
    (folder / "long.fa").write_bytes(fasta(["a"], [FIRST[0] * 200]))
    return folder


def ended(folder: Path, line: list[str], number: int, seconds: float):
    """(code, standard error, seconds until the end) of a process that gets a signal so
    many seconds after it has begun to watch for it."""
    with subprocess.Popen(
        [*HEEDING_SIGNALS, *COMMAND, *line, "-q"],
        cwd=folder,
        env=variables(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        latest = time.monotonic() + 60
        while process.poll() is None and not _catches(process.pid, signal.SIGHUP):
            if time.monotonic() > latest:
                process.kill()
                pytest.fail("the process does not watch for a hang-up")
            time.sleep(0.001)
        time.sleep(seconds)
        process.send_signal(number)
        began = time.monotonic()
        said = process.communicate(timeout=60)[1].decode()
    return process.returncode, said, time.monotonic() - began


def _catches(pid: int, number: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    "job, number, seconds",
    [
        ("rows", signal.SIGINT, 0.0),
        ("rows", signal.SIGTERM, 0.3),
        *(
            pytest.param(*case, seconds, marks=pytest.mark.slow)
            for case, seconds in zip(
                pairwise([*LONG], [*CODES]), cycle(SECONDS), strict=False
            )
        ),
    ],
)
def test_a_signal_ends_the_process_at_once(many, job, number, seconds):
    """While it imports, compiles, or computes in a library."""
    code, said, waited = ended(many, LONG[job], number, seconds)
    assert code == CODES[number], said
    assert said.count("\n") == 1 and said.startswith("jaxalign: error: "), said
    assert waited < 5
    hidden = [path.name for path in many.rglob(".*")]
    assert not hidden and not [*(many.parent / "tmp").iterdir()]
    assert not {"out.tsv", "out.m8", "out.npz"} & {path.name for path in many.iterdir()}


def test_what_is_to_be_ignored_is_ignored(folder):
    """As below ``nohup``."""
    code = "trap '' HUP; echo; exec \"$@\""
    line = ["sh", "-c", code, "sh", *COMMAND, *words("all", ["a.fa", "b.fa"])]
    with subprocess.Popen(
        line, cwd=folder, env=variables(folder), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"\n"
        for _ in range(20):
            process.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        assert process.communicate()[0] and process.returncode == DONE
