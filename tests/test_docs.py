"""The examples of README.md and docs/ run: a page is one session in an empty folder.

Blocks of Python and of the shell run in the order in which a reader meets them. What
they print is compared with the page, except for times, sizes of memory and paths. Every
command of this project runs; those of ``FOREIGN`` are programs of others.
"""

import doctest
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jax
import pytest

import jaxalign
from jaxalign.cli.main import app, main
from jaxalign.errors import EXIT_CODES, UsageError
from jaxalign.io.columns import known
from jaxalign.model.scoring import PRESET_NAMES, preset

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
START = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
FENCE = re.compile(r"^```.*$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command, which a backslash continues in the next line, and what it prints.
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What differs between runs and machines.
MASKS = (
    # Progress, of which a busy machine has lines that others lack.
    (re.compile(r"^jaxalign: (?: *\d+% of )?\S+ cells, .*\n", re.MULTILINE), ""),
    (re.compile(r"\b\d[\d.,]* (?:m?s|min|h|[KMG]i?B|[GT]CUPS)\b"), "<figure>"),
    (re.compile(r"(?<![\w/])/(?:[\w.+-]+/)+"), "<path>/"),
)

UNIX = set("awk cat echo grep gzip head ls printf rm sed sort tail tr wc".split())
OURS = {"jaxalign", "python"}
NOTHING = ":"
# Programs of others, and what runs in their place: what commands after them need.
FOREIGN = {
    **dict.fromkeys("conda datasail docker make needle pip".split(), NOTHING),
    **dict.fromkeys(("foldseek", "USalign"), NOTHING),
    "graphpart": "jaxalign split bare.fasta --min-identity 0.4 --folds 5 -q"
    " -o part.csv; sed '1 s/name,part/AC,cluster/' part.csv > graphpart.csv",
    "sbatch": 'for k in $(seq 16); do SLURM_ARRAY_TASK_ID=$k bash -c "$3"; done',
}
# Pages whose blocks of Python are whole programs, or parts of another's.
PROGRAMS = {
    "multiprocessing.md",
    "other-libraries.md",
    "pipelines.md",
    "gpu-targets.md",
}
LANGUAGES = set("console groovy json pycon python text yaml".split()) | {""}
NEEDED = {
    "import torch": "torch",
    "from flax": "flax",
    "import equinox": "equinox",
    "import Align": "Bio",
    "import parasail": "parasail",
    "import pyarrow": "pyarrow",
    ".parquet": "pyarrow",
    "--plot": "matplotlib",
    "--dendrogram": "matplotlib",
}
SLOW = {
    "README.md",
    "align-a-family.md",
    "align-reads.md",
    "benchmark-leaks.md",
    "embeddings.md",
    "evidence.md",
    "fit-a-profile.md",
    "homology-split.md",
    "inside-jit.md",
    "install.md",
    "large-jobs.md",
    "learn-a-scoring.md",
    "plots.md",
    "posterior-decoding.md",
    "profiles.md",
    "pytorch.md",
    "repertoires.md",
    "search-a-database.md",
    "soft-alignment.md",
    "start-up.md",
    "three-sequences.md",
    "train-an-aligner.md",
}


@dataclass(frozen=True)
class Command:
    """A command of the shell, and what the page says that it prints."""

    text: str
    shown: str

    @cached_property
    def programs(self) -> set[str]:
        """The programs that it starts: first words of the parts of a pipe or list."""
        programs, first = set(), True
        for word in shlex.shlex(self.text, posix=True, punctuation_chars="|;&"):
            if set(word) <= set("|;&"):
                first = True
            elif first and word != "\n" and "=" not in word:
                programs.add(word)
                first = False
        return programs


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the line that it begins in."""

    language: str
    text: str
    line: int

    @cached_property
    def commands(self) -> list[Command]:
        commands = [Command(*parts) for parts in COMMAND.findall(self.text)]
        whole = "".join(f"$ {x.text}\n{x.shown}" for x in commands)
        assert whole == self.text, f"line {self.line}: a block begins with a command"
        return commands


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield Block(match[1], match[2], text[: match.start(2)].count("\n"))


def run_python(block: Block, page: Path, names: dict) -> None:
    """The examples of a block, in the names that earlier ones left."""
    test = doctest.DocTestParser().get_doctest(
        block.text, names, page.name, str(page), block.line
    )
    test.globs = names
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(
        test, clear_globs=False
    )
    assert tried and not failed


def run_shell(block: Block, folder: Path, environment: dict[str, str]) -> None:
    """The commands of a block, in one shell."""
    mark = "code=$?; printf '\\0%s\\0' $code; (exit $code)"
    stand_ins = [f"{name}() {{ {body}; }}" for name, body in FOREIGN.items()]
    lines = [line for x in block.commands for line in (x.text, mark)]
    shell = subprocess.run(
        ["bash", "-c", "\n".join(["exec 2>&1", *stand_ins, *lines])],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=900,
    )
    outcomes = shell.stdout.split("\0")
    printed, codes = outcomes[:-1:2], outcomes[1::2]
    for k, command in enumerate(block.commands):
        if any(FOREIGN.get(x) == NOTHING for x in command.programs):
            continue
        where = f"line {block.line}: {command.text}\n{printed[k]}"
        fails = "error: " in command.shown
        is_said = block.commands[k + 1 : k + 2] == [Command("echo $?", f"{codes[k]}\n")]
        assert is_said or (codes[k] != "0") == fails, where
        if command.shown.strip() and not command.programs & FOREIGN.keys():
            assert same_print(command.shown, printed[k]), f"{where}\n{command.shown}"


def same_print(shown: str, printed: str) -> bool:
    for pattern, word in MASKS:
        shown, printed = pattern.sub(word, shown), pattern.sub(word, printed)
    shown, printed = (x.strip("\n") + "\n" for x in (shown, printed))
    return doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


EXAMPLES = [
    page for page in PAGES if {x.language for x in blocks(page)} & {"console", "pycon"}
]
MARKED = [
    pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW))
    for page in EXAMPLES
]


@pytest.fixture
def environment(tmp_path):
    """What a user's shell has, the programs of this project first; it keeps what it
    compiles for the commands of one page."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("jaxalign", "-P -m jaxalign"), ("python", "-P")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    strict = ("JAX_NUMPY_RANK_PROMOTION", "JAX_NUMPY_DTYPE_PROMOTION")
    inherited = {name: x for name, x in os.environ.items() if name not in strict}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    cache = str(tmp_path / "programs")
    return inherited | {
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "JAXALIGN_CACHE_DIR": cache,
    }


@pytest.mark.parametrize("page", MARKED, ids=_named)
def test_examples(page, tmp_path, monkeypatch, environment):
    text = page.read_text(encoding="utf-8")
    for word, library in NEEDED.items():
        if word in text:
            pytest.importorskip(library)
    folder, names = tmp_path / "empty", {"__name__": "__main__"}
    folder.mkdir()
    monkeypatch.chdir(folder)
    # optax promotes dtypes, as JAX does by default.
    promotion = "standard" if "import optax" in text else "strict"
    with jax.numpy_dtype_promotion(promotion):
        for block in blocks(page):
            if block.language == "pycon":
                run_python(block, page, names)
            elif block.language == "console":
                run_shell(block, folder, environment)


def test_slow_pages_have_examples():
    assert {page.name for page in EXAMPLES} >= SLOW


def test_every_block_runs_or_is_known():
    """A block of the shell has commands alone, of known programs. Ours run. Examples of
    Python are sessions, or other files test them."""
    for page in PAGES:
        fences = FENCE.findall(page.read_text(encoding="utf-8"))
        languages = [x[3:] for x in fences[::2]]
        assert languages == [x.language for x in blocks(page)], page
        assert set(languages) <= LANGUAGES, page
        assert "python" not in languages or page.name in PROGRAMS, page
        for block in blocks(page):
            if block.language != "console":
                assert not re.search(r"^[A-Z_=/. ]*jaxalign ", block.text, re.M), page
            else:
                for command in block.commands:
                    unknown = command.programs - UNIX - OURS - FOREIGN.keys()
                    assert not unknown, (page, block.line, command.text)
                    foreign = command.programs & FOREIGN.keys()
                    assert not (foreign and command.programs & OURS), command.text


def test_what_a_shell_starts_is_noticed():
    text = "A=1 head -4 'a;b.fa' | jaxalign x - && needle 'jaxalign;' \\\n -b # sed\n"
    ((command,),) = [Block("console", f"$ {text}", 1).commands]
    assert command.programs == {"head", "jaxalign", "needle"}


def test_another_print_is_noticed():
    shown = "jaxalign: 3 kept of 12; 1.5 s\n  /a/b/c.fa\n...\nend\n"
    printed = "jaxalign: 3 kept of 12; 22 s\n  /work/c.fa\nmore\nend\n\n"
    assert same_print(shown, printed)
    assert not same_print(shown, printed.replace("3 kept", "4 kept"))


@pytest.mark.parametrize("line", ["false", "echo a"])
def test_a_failing_command_fails(line, tmp_path, environment):
    with pytest.raises(AssertionError):
        run_shell(Block("console", f"$ {line}\nb\n", 1), tmp_path, environment)
    run_shell(Block("console", "$ false\n$ echo $?\n1\n", 1), tmp_path, environment)


def test_no_line_of_prose_is_a_comment_of_the_site():
    """MyST leaves out what follows ``%`` at the start of a line."""
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
        lines = [x for x in prose.splitlines() if x.lstrip().startswith("%")]
        assert not lines, (page, lines)


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page, outside of its code."""
    prose = "".join(FENCE.split(page.read_text(encoding="utf-8"))[::2])
    headings = [heading.strip().lower() for heading in HEADING.findall(prose)]
    return {re.sub(r"[^\w\- ]", "", words).replace(" ", "-") for words in headings}


def _dead_links(page: Path) -> list[tuple[str, str]]:
    """Links to a file that is not there, or to an anchor that the file lacks."""
    dead = []
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in _anchors(target):
            dead.append((path, anchor))
    return dead


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_links(page):
    assert not _dead_links(page)


def test_a_dead_link_is_noticed(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# X2.1 (`f`): m, n\n```\n# no heading\n```\n", encoding="utf-8")
    links = "[a](other.md#x21-f-m-n) [b](#a-b) [c](other.md#no-heading) [d](#b)"
    page.write_text(f"## A b\n{links} [e](lost.md)\n", encoding="utf-8")
    assert _dead_links(page) == [("other.md", "no-heading"), ("", "b"), ("lost.md", "")]


def test_the_pages_a_reader_starts_from_have_examples():
    assert set(START) <= set(EXAMPLES)


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in jaxalign.__all__ if f"`{name}`" not in page] == []


def test_the_site_has_the_docstring_of_every_public_name(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    site = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    page = site["_with_docstrings"]((ROOT / "docs" / "api.md").read_text("utf-8"))
    assert [x for x in jaxalign.__all__ if f":: jaxalign.{x}\n" not in page] == []


def test_the_site_has_the_options_of_every_verb(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = runpy.run_path(str(ROOT / "docs" / "conf.py"))["_helps"]()
    for verb in app():
        assert verb.startswith("-") or f"## {verb}\n\n```text\nUsage: " in page
    assert page.count("--min-identity") >= 4


def test_exit_codes_are_on_the_page_of_the_command_line():
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert all(f"| {code} | {text} |\n" in page for code, text in EXIT_CODES.items())


def test_presets_and_columns_are_on_the_page_of_the_command_line():
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    presets, columns = page.partition("## Presets")[2].split("## Columns")
    rows = [line for line in presets.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{name}` | {preset(name).scoring} | `{preset(name).mode}` "
        f"| `{preset(name).identity}` |"
        for name in PRESET_NAMES
    ]
    tables = {
        output: jaxalign.align_all(["MKTAYIA", "MKTAIA"], output=output)
        for output in ("score", "identity", "stats", "alignment")
    }
    names = {name for table in tables.values() for name in known(table)}
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| `(\w+)` \|$", columns, re.MULTILINE)
    assert {name for name, *_ in rows} == names and len(rows) == len(names)
    for name, meaning, least in rows:
        tables[least].to_pandas([name])
        if least != "score":
            with pytest.raises(UsageError):
                tables["score"].to_pandas([name])
        if least in ("stats", "alignment"):
            with pytest.raises(UsageError):
                tables["identity"].to_pandas([name])
        if same := re.fullmatch(r"`(\w+)`", meaning):
            both = (tables[least].to_pandas([x])[x] for x in (name, same[1]))
            assert [*map(str, next(both))] == [*map(str, next(both))]


def test_the_index_names_pages_by_their_titles():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    links = re.findall(r"^- \[([^]]+)\]\((how-to/[^)]+)\)", page, re.MULTILINE)
    assert {path for _, path in links} == {
        f"how-to/{x.name}" for x in (ROOT / "docs" / "how-to").glob("*.md")
    }
    for title, path in links:
        first = (ROOT / "docs" / path).read_text(encoding="utf-8").partition("\n")[0]
        assert first == f"# {title}"


@pytest.mark.parametrize("folder", ["files", "files/deeper"])
def test_examples_are_copied_once(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--files", folder]) == 0
    assert main(["demo", "--files", folder]) == 0
    copies = {x.relative_to(folder) for x in Path(folder).rglob("*") if x.is_file()}
    source = ROOT / "jaxalign" / "data"
    assert copies == {
        x.relative_to(source)
        for x in source.rglob("*")
        if x.suffix in (".fasta", ".tsv")
    }
    Path(folder, "globins.fasta").write_text(">mine\nMKT\n")
    assert main(["demo", "--files", folder]) == UsageError.exit_code
    assert Path(folder, "globins.fasta").read_text() == ">mine\nMKT\n"
    assert "exists and differs" in capsys.readouterr().err
