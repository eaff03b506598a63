"""Every verb in broken environments: closed or full streams, no home, no temporary
folder, an ASCII locale, names of files and records that a terminal would obey.

Most of it runs in process; ``test_processes.py`` starts a process for each verb and
each environment.
"""

import errno
import io
import json
import os
import re
import sys
import tempfile
from itertools import cycle

import jax  # noqa: F401  (before main(), as in test_cli.py)
import pytest
from verb_jobs import (
    FIRST,
    OTHERS,
    VERBS,
    fasta,
    first_fasta,
    has,
    out_file,
    reads,
    verb_of,
    words,
)

from jaxalign import warmup
from jaxalign.cli.main import main
from jaxalign.errors import EXIT_CODES

DONE, FAILED, USAGE, INPUT = 0, 1, 2, 3
HOSTILE = "x\x1b]0;y\x07\x9b\x7f"  # a title, a bell, two controls
FILES = ["a\x1b[31m\njaxalign: done\x9b.fa", "b\udcff\u2028.fa"]
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def by_turns(verbs):
    """Every third of some verbs is quick: they share the code that these tests are
    about."""
    return [
        pytest.param(verb, marks=pytest.mark.slow if k % 3 else [])
        for k, verb in enumerate(verbs)
    ]


every_verb = pytest.mark.parametrize("verb", by_turns(VERBS))
READERS = [verb for verb in VERBS if reads(verb)]
WRITERS = [verb for verb in READERS if has(verb, "out")]


@pytest.fixture(autouse=True)
def folder(request, tmp_path, monkeypatch):
    """A working directory with two files of records, and a folder of programs."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("JAXALIGN_CACHE_DIR", str(tmp_path))
    write("a.fa", first_fasta(verb_of(request)))
    write("b.fa", fasta(texts=OTHERS))
    # Programs of usual jobs take a minute.
    monkeypatch.setattr(warmup, "usual_jobs", lambda _: [("none", lambda: None)])
    monkeypatch.setattr("jaxalign.selftest.selftest", lambda _, tell: ("a card", True))
    return tmp_path / "work"


@pytest.fixture
def run(capsys):
    def run(*words):
        code = main(list(words))
        out, err = capsys.readouterr()
        assert code in EXIT_CODES and "hint: -v shows where" not in err, (code, err)
        return code, out, err

    return run


# ------------------------------------------------------------------- what is printed


def write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def harmless(out: str, err: str) -> None:
    """Nothing that a terminal would obey, and no line that a name has made up."""
    for text in (out, err):
        assert not RAW.search(text), RAW.search(text)
        assert "\njaxalign: done" not in text


OTHER_KINDS = cycle(("json", "twice", "missing", "bad letter"))


@pytest.mark.parametrize(
    "verb, kind",
    [
        *zip(READERS, cycle(("right",)), strict=False),
        *zip(
            [verb for verb in READERS if has(verb, "json")], OTHER_KINDS, strict=False
        ),
    ],
)
def test_names_cannot_command_a_terminal(run, monkeypatch, verb, kind):
    """Those of files and of records, in answers and in errors."""
    names = [HOSTILE, "\u2028y", HOSTILE if kind == "twice" else "z\x85"]
    if kind != "missing":
        bad = "1\x1b" if kind == "bad letter" else ""
        some, others = ([text + bad for text in texts] for texts in (FIRST, OTHERS))
        write(FILES[0], first_fasta(verb, names, some))
        write(FILES[1], fasta(names, others))
    more = ("--json",) if kind == "json" else ()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, err = run(*words(verb, FILES, *more))
    if kind in ("right", "json"):
        assert code == DONE
    harmless(out, err)
    if kind == "json":
        json.loads(out)


@every_verb
def test_nor_can_words_that_are_no_options(run, verb):
    for word in (f"--{HOSTILE}", f"--top={HOSTILE}", f"-o{HOSTILE}", HOSTILE):
        harmless(*run(verb, "a.fa", "b.fa", word)[1:])


@pytest.mark.parametrize("verb", by_turns(x for x in READERS if has(x, "verbose")))
def test_nor_can_a_traceback(run, verb):
    harmless(*run(*words(verb, FILES, "-v"))[1:])


def test_nor_can_a_certificate(run):
    """Names of files, parts and records in it."""
    for path, texts in zip(FILES, (FIRST, OTHERS), strict=True):
        write(path, fasta([HOSTILE, "y\x85", "z"], texts))
    cut = ("--min-identity", "0.5")
    code, out, err = run("audit", *FILES, *cut, "-o", "c.json")
    assert code == DONE
    harmless(out, err)
    with open("c.json", encoding="utf-8") as file:
        about = json.load(file)
    assert [one["path"] for one in about["inputs"]] == FILES
    code, out, err = run("audit", "--verify", "c.json")
    assert code == DONE
    harmless(out, err)
    for path in (HOSTILE, "\ud800", "\x00", "\njaxalign: done"):
        about["inputs"][0]["path"] = path
        with open("c.json", "w", encoding="ascii") as file:
            json.dump(about, file)
        code, out, err = run("audit", "--verify", "c.json")
        assert code != DONE
        harmless(out, err)


# -------------------------------------------------------------------- broken streams


class Stream(io.TextIOWrapper):
    """Standard output as a process has it, with its bytes at hand."""

    def __init__(self, encoding):
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, newline="\n")

    def close(self):
        """Not by the interpreter: the bytes are still wanted."""


def printed(monkeypatch, encoding: str, line: list[str]) -> bytes:
    stream = Stream(encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(line) == DONE
        sys.stdout.flush()
    return stream.bytes.getvalue()


@every_verb
def test_the_locale_changes_no_answer(monkeypatch, verb):
    """Answers are UTF-8, as in files."""
    write("\u00e9.fa", first_fasta(verb, ["\u00e9", "\u4e2d", "c"]))
    line = words(verb, ["\u00e9.fa", "b.fa"])
    line += ["--force"] if verb == "index" else []
    wide, narrow = (printed(monkeypatch, x, line) for x in ("utf-8", "ascii"))
    changing = re.compile(rb"\d+\.\d+ s|free bytes: [\d,]+|budget bytes: [\d,]+")
    assert changing.sub(b"", wide) == changing.sub(b"", narrow)


@every_verb
def test_an_answer_that_cannot_be_written_is_an_error(monkeypatch, capsys, verb):
    """A full disk behind standard output."""
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code = main(words(verb, ["a.fa", "b.fa"]))
    err = capsys.readouterr().err
    assert code == (DONE if verb in ("index", "warmup") else FAILED)
    if code:
        said = "jaxalign: error: standard output: cannot be written (No space left"
        assert said in err and "hint: -v" not in err


@pytest.mark.parametrize(
    "verb, closed",
    [
        *((verb, "stdout") for verb in VERBS),
        *zip(VERBS, cycle(("stdin", "stderr")), strict=False),
    ],
)
def test_closed_streams(monkeypatch, capsys, verb, closed):
    with monkeypatch.context() as patch:
        patch.setattr(sys, closed, None)
        code = main(words(verb, ["a.fa", "b.fa"]))
    out, err = capsys.readouterr()
    if closed == "stderr":  # messages are no answer
        assert "jaxalign: error" not in out and "computed" not in out
    silent = closed == "stdout" and verb not in ("index", "warmup")
    assert code == (FAILED if silent else DONE), err
    if silent:
        assert "jaxalign: error: standard output: cannot be written (closed" in err


# ------------------------------------------------------------------------- no folders


@every_verb
def test_no_home_and_no_temporary_folder(run, monkeypatch, verb):
    def refuse(*_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("JAXALIGN_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", refuse)
    code = run(*words(verb, ["a.fa", "b.fa"]))[0]
    assert code == (USAGE if verb == "warmup" else DONE)


@pytest.mark.parametrize("verb", by_turns(WRITERS))
def test_a_place_that_cannot_be_written_to(run, verb):
    for path in ("/dev/full", "/proc/out.tsv", "none/out.tsv", "."):
        if verb == "family" and path == ".":  # it writes a file into a folder
            continue
        code, out, err = run(*words(verb, ["a.fa", "b.fa"], "-o", path))
        assert code in (FAILED, USAGE) and path in err and not out, path


@pytest.mark.parametrize("verb", by_turns(WRITERS))
def test_a_new_file_has_the_mode_of_the_mask_and_a_replaced_one_its_own(run, verb):
    out = out_file(verb)
    line = words(verb, ["a.fa", "b.fa"], "-o", out)
    before = os.umask(0o077)
    try:
        assert run(*line)[0] == DONE
        assert os.stat(out).st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    for mode in (0o600, 0o640, 0o400):
        os.chmod(out, mode)
        assert run(*line, "--force")[0] == DONE
        assert os.stat(out).st_mode & 0o777 == mode


# ---------------------------------------------------------------------------- the words


@pytest.mark.parametrize("verb", by_turns(READERS))
def test_files_after_two_hyphens_may_begin_with_one(run, verb):
    write("-in.fa", first_fasta(verb))
    name, *rest = words(verb, ["-in.fa", "b.fa"])
    count = next((k for k, x in enumerate(rest) if x.startswith("--")), len(rest))
    assert run(name, *rest[count:], "--", *rest[:count])[0] == DONE


@every_verb
def test_every_verb_that_says_something_can_be_quiet(run, verb):
    line = words(verb, ["a.fa", "b.fa"])
    if has(verb, "quiet"):
        assert run(*line, "-q")[2] == ""
    else:
        assert verb == "demo" or run(*line)[2] == ""
