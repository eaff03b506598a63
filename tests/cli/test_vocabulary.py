"""One concept has one name, over all verbs and functions (docs/conventions.md)."""

import inspect
import re
from collections import defaultdict
from functools import cache
from io import StringIO
from pathlib import Path

import jax  # noqa: F401  (before main(), as in test_cli.py)
import numpy as np
import pytest
from rich.console import Console
from verb_jobs import ONE_QUERY, VERBS
from verb_jobs import words as job

import jaxalign
from jaxalign.cli.main import app, main
from jaxalign.cli.verbs import EXAMPLES
from jaxalign.options import OLD_WORDS, OTHERS_HAVE, current_word

CONVENTIONS = Path(__file__).parents[2] / "docs" / "conventions.md"
FUNCTIONS = [x for x in jaxalign.__all__ if inspect.isfunction(getattr(jaxalign, x))]
# What a name of an option says, or its text -> the words that may.
CONCEPTS = {
    r"name: .*cov": "min-cov include-cov coverage",
    r"name: .*score": "min-score min-relative-score",
    r"name: m..-identity": "min-identity max-identity",
    r"name: .*gap-": "gap-open gap-extend gap-style gap-model gap-penalty "
    "forbid-adjacent-gaps sliding-gap",
    r"text: the cut, 0 to 1": "min-identity",
    r"text: (\S+ )?verify": "verify",
    r"text: .*and write a certificate": "certificate",
    r"text: write a certificate": "out",  # the answer of an audit
    r"text: write the (FASTA of each part|representative)": "fasta",
    r"text: write a table of": "list",
    r"text: compare with these": "against",
    r"text: .*(computed and written together|of rows in a part)": "part-rows",
    r"text: continue an interrupted": "resume",
    r"text: .*an HTML page": "report",
    r"text: print one JSON": "json",
}
# Of these the values differ: a file or a flag, a folder or a file, and so on.
OTHER_VALUES = {"verify", "output", "format", "identity", "traceback", "implementation"}
OTHER_VALUES |= {"mode", "gap-penalty", "sequences", "memory-budget", "matrix"}


@cache
def program(verb, brief=False):
    """The program as it is made to run a verb."""
    return app(verb, brief)


def help_of(verb, brief=False):
    """What --help-all prints on 80 columns, or --help."""
    text = StringIO()
    program(verb, brief).help_print([verb], console=Console(file=text, width=80))
    return text.getvalue()


@cache
def told(verb):
    """(name, text, type) of each option of a verb."""
    called = program(verb)[verb]
    doc = inspect.getdoc(called.default_command) or ""
    described = dict(re.findall(r"^(\w+)\n((?:    .*\n?)+)", doc, re.MULTILINE))
    return [
        (x.name[2:], x.parameter.help or described.get(x.field_info.name, ""), x.hint)
        for x in called.assemble_argument_collection()
        if x.name.startswith("--")
    ]


def second_words(options):
    """Options that say a concept by another word than its own."""
    for verb, name, text in options:
        for concept, words in CONCEPTS.items():
            where, _, pattern = concept.partition(": ")
            said = name if where == "name" else " ".join(text.split())
            if re.match(pattern, said, re.IGNORECASE) and name not in words.split():
                yield verb, name, concept


def test_a_concept_has_one_word_in_every_help():
    every = [(verb, name, text) for verb in VERBS for name, text, _ in told(verb)]
    assert list(second_words(every)) == []
    for concept, words in CONCEPTS.items():  # which are there at all
        where, _, pattern = concept.partition(": ")
        said = (x[1] if where == "name" else " ".join(x[2].split()) for x in every)
        assert any(re.match(pattern, x, re.IGNORECASE) for x in said), concept
        assert {*words.split()} <= {x[1] for x in every}, words


@pytest.mark.parametrize(
    "option",
    [
        ("x", "coverage-min", ""),
        ("x", "cut", "The cut, 0 to 1."),
        ("x", "representatives", "Write the representative of each cluster."),
    ],
)
def test_a_second_word_is_noticed(option):
    assert len([*second_words([option])]) == 1


def test_a_text_stands_under_one_name():
    names = defaultdict(set)
    for verb in VERBS:
        for name, text, _ in told(verb):
            names[text].add(name)
    assert {x: y for x, y in names.items() if x and len(y) > 1} == {}


def test_a_name_has_values_of_one_kind():
    kinds = defaultdict(set)
    for verb in VERBS:
        for name, _, hint in told(verb):
            words = re.findall(r"\b(?:bool|int|float|str)\b", str(hint))
            kinds[name] |= {*words}
    several = {x for x, y in kinds.items() if len(y) > 1}
    assert several <= OTHER_VALUES, several - OTHER_VALUES


def test_no_help_and_no_signature_has_an_old_word():
    for verb in VERBS:
        for name, _, _ in told(verb):
            assert current_word(name.replace("-", "_"), verb) is None, (verb, name)
    for name in FUNCTIONS:
        for parameter in inspect.signature(getattr(jaxalign, name)).parameters:
            assert current_word(parameter, name) is None, (name, parameter)


def test_an_option_of_related_verbs_is_refused_with_the_reason(run):
    """Verbs that the reason names have the option, and those of the table say why they
    do not."""
    for option, (places, reason) in OTHERS_HAVE.items():
        flag = "--" + option.replace("_", "-")
        taking = reason.rpartition("; ")[2]
        having = {x for x in re.findall(r"[a-z]+", taking) if x in VERBS}
        assert having, option
        for verb in having:
            assert flag[2:] in {name for name, _, _ in told(verb)}, (verb, flag)
        for place in places.split():
            if place in VERBS:
                code, _, err = run(place, "s.fa", f"{flag}=x")
                assert code == 2 and f"{place} has no option {flag}: {reason}" in err
            if (function := getattr(jaxalign, place, None)) is not None:
                with pytest.raises(jaxalign.UsageError, match="has no option") as error:
                    function("s.fa", **{option: 1})
                assert reason in str(error.value), (place, option)


def test_the_table_of_words_is_that_of_the_options():
    text = CONVENTIONS.read_text().partition("## Words of options")[2]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]*) \|$", text, re.MULTILINE)[1:]
    former = {x.replace("-", "_") for _, old in rows for x in words_in(old)}
    assert former == {*OLD_WORDS}
    known = {name for verb in VERBS for name, _, _ in told(verb)}
    for now, _ in rows:
        assert words_in(now) <= known, now
    for word, _ in OLD_WORDS.values():
        assert any(word.replace("_", "-") in words_in(now) for now, _ in rows), word


def words_in(cell):
    """The options and keywords of a cell."""
    return {
        x.lstrip("-").split()[-1].lstrip("-") for x in re.findall("`([^`]+)`", cell)
    }


# Old words still work, with a line

PROTEINS = ">a\nMKTAYIAKQRQISFVKSH\n>b\nMKTAYIAKQRQISFVKSH\n>c\nGGGGWWWWHHHHEEEE\n"
CDR3 = ">r1\nCASSLGQAYEQYF\n>r2\nCASSLGTAYEQYF\n"
PAIRS = {
    "split s.fa --max-identity 0.5 --folds 2 --stratify l.tsv": 2,
    "audit s.fa --split p.tsv --max-identity=0.5": 1,
    "purge s.fa --against t.fa --max-identity 0.5 --removed r.tsv": 2,
    "purge s.fa --against t.fa --score 50": 1,
    "cluster s.fa --min-identity 0.5 --representatives r.fa": 1,
    "audit --certificate c.json": 1,
    "repertoire r.fasta --reference r.fasta --block-rows 1": 2,
    "align s.fa s.fa -gapopen 5 -gapextend=1": 2,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "s.fa": PROTEINS,
        "t.fa": PROTEINS[:22],
        "two.fa": PROTEINS[:44],
        "r.fasta": CDR3,
        "l.tsv": "name\tlabel\na\tx\nb\tx\nc\tx\n",
        "p.tsv": "name\tpart\na\tx\nb\tx\nc\ty\n",
    }.items():
        (tmp_path / name).write_text(text)
    words = "audit s.fa --split p.tsv --min-identity 0.5 -o c.json -q"
    assert main(words.split()) == 0
    return tmp_path


@pytest.mark.parametrize("line", PAIRS)
def test_an_old_word_does_the_same_with_a_line(run, folder, line):
    verb, *words = line.split()
    new = []
    for word in words:
        flag, equals, value = word.partition("=")
        now = current_word(flag.lstrip("-").replace("-", "_"), verb)
        is_old = flag.startswith("-") and now
        new.append(f"--{now.replace('_', '-')}{equals}{value}" if is_old else word)
    code, out, err = run(verb, *words)
    before = (folder / "c.json").read_bytes()
    assert err.count(" is now --") == PAIRS[line], err
    for path in folder.glob("r.[tf][sa]*"):
        path.name == "r.fasta" or path.unlink()
    again = run(verb, *new)
    assert (code, out) == again[:2] and " is now " not in again[2]
    assert (folder / "c.json").read_bytes() == before, "an old word never writes"
    assert " is now " not in run(verb, *words, "--force", "-q")[2]


def test_a_word_that_a_verb_never_had_is_no_old_word(run, folder):
    for line in ("cluster s.fa --max-identity 0.5", "align s.fa s.fa --score 3"):
        code, _, err = run(*line.split())
        assert code == 2 and " is now " not in err


@pytest.mark.parametrize(
    "call",
    [
        lambda: jaxalign.split(["MKTAYIA", "WWWW"], max_identity=0.5, folds=2),
        lambda: jaxalign.purge(["MKTAYIA"], ["MKTAYIA"], score=9),
        lambda: [*jaxalign.stream_repertoire(["CASSF"], block_rows=1)],
    ],
)
def test_python_takes_old_words_with_a_warning(call):
    with pytest.warns(DeprecationWarning, match="is now"):
        call()
    with pytest.raises(jaxalign.UsageError, match="has no option 'max_identity'"):
        jaxalign.cluster(["MK"], min_identity=0.5, max_identity=0.5)


# Help and messages


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_short_and_has_examples(verb):
    lines = [line for line in EXAMPLES.splitlines() if line.split()[:1] == [verb]]
    assert len(lines) in (2, 3)
    for line in lines:
        words = line.split()
        program(verb).parse_args(words, exit_on_error=False, print_error=False)
    brief = help_of(verb, brief=True)
    assert len(brief.splitlines()) <= 80
    assert not re.search(r" \.\.", brief), "a text is cut before its first word"
    for line in lines:
        assert f"jaxalign {line[:50]}" in brief
    described = [name for name, text, _ in told(verb) if not text and name != "help"]
    assert described == [], "options without a text"
    seen = {*re.findall(r"--[a-z][a-z-]+", help_of(verb))}
    assert {f"--{name}" for name, _, _ in told(verb)} <= seen
    # What replaces files, and what chooses among answers, is not hidden.
    shown = {name for name, _, _ in told(verb)} & {"force", "seed"}
    assert {f"--{name}" for name in shown} <= {*re.findall(r"--[a-z]+", brief)}


def test_the_program_prints_the_help_that_is_asked_for(run, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for flag, brief in {"--help": True, "-h": True, "--help-all": False}.items():
        assert run("index", flag) == (0, help_of("index", brief), "")


# Verbs that look at other strands if asked, those that link along either unless told
# otherwise, those that take nucleotides as they are given, and those that take none, or
# align nothing.
STRANDS = {"align", "search", "family"}
LINKED = {"nearest", "cluster", "dedup", "split", "audit", "purge"}
AS_GIVEN = {"all", "three", "soft"}
NO_STRANDS = {"repertoire", "index", "info", "warmup", "selftest", "matrices"}
NO_STRANDS |= {"demo"}


def test_verbs_have_strands_or_say_that_they_do_not(run, folder):
    assert {*VERBS} == STRANDS | LINKED | AS_GIVEN | NO_STRANDS
    stranded = {x for x in VERBS if "strand" in {y for y, _, _ in told(x)}}
    assert stranded == STRANDS | LINKED
    gene = "ACGTTGCAAGGCTTACGATTACG"
    for name in ("d.fa", "e.fa"):
        records = (f">{name[0]}{k}\n{gene[k:]}\n" for k in range(3))
        (folder / name).write_text("".join(records))
    (folder / "q.fa").write_text(f">q\n{gene}\n")
    for verb in sorted((stranded | AS_GIVEN) - {"soft"}):  # which compiles
        more = ("--too-large", "keep") if verb == "split" else ()
        for strand in ((), ("--strand", "plus"))[: 1 + (verb in LINKED)]:
            inputs = ["q.fa" if verb in ONE_QUERY else "d.fa", "e.fa"]
            code, _, err = run(*job(verb, inputs, *more, *strand))
            assert code in (0, 6), (verb, err)
            said = "along the strands that are given; --alphabet protein" in err
            assert said == (verb in AS_GIVEN or bool(strand)), (verb, err)
            assert ("; either strand" in err) == (verb in LINKED and not strand), err
            assert ("; plus strands" in err) == bool(strand), (verb, err)


def test_an_index_has_the_options_that_count():
    scoring = help_of("index").partition(" Scoring ")[2]
    names = re.findall(r"^│ (--[a-z-]+)", scoring.partition("╰")[0], re.MULTILINE)
    letters = ["--preset", "--matrix", "--alphabet"]  # a preset may have two tracks
    assert names == [*letters, "--unknown", "--strip-stop", "--names"]


def missing_choices(verb, options):
    """Names and texts of options that say "with" a choice that a verb does not have."""
    choices = {name: str(hint) for name, _, hint in options}
    every = (x for each in VERBS for x in told(each))
    chosen = {name for name, _, hint in every if "Literal" in str(hint)}
    for name, text, _ in options:
        for option, value in re.findall(r"\bwith (?:--)?([a-z-]+) ([a-z0-9]+)\b", text):
            if option in chosen and f"'{value}'" not in choices.get(option, ""):
                yield verb, name, option, value


def test_help_names_choices_that_there_are():
    missing = [x for verb in VERBS for x in missing_choices(verb, told(verb))]
    assert missing == []
    wrong = [("identity", "Over its columns. [with output identity longer]", "")]
    assert [*missing_choices("search", wrong)]


@pytest.mark.parametrize(
    "text, hint",
    [
        ("@r1\nACGT\n+\nIIII\n", "FASTQ; awk 'NR % 4 == 1"),
        ("LOCUS  X\nORIGIN\n", "GenBank"),
        ("# STOCKHOLM 1.0\nx MK\n", "Stockholm"),
        ("HMMER3/f\nNAME x\n", "a profile of HMMER"),
    ],
)
def test_files_of_other_formats_are_named(run, folder, text, hint):
    (folder / "x.fa").write_text(text)
    code, _, err = run("all", "x.fa")
    assert code == 3 and "a FASTA file starts with" in err
    assert f"hint: this looks like {hint}" in err.replace("an alignment in ", "")


def test_files_that_are_not_meant_are_refused(run, folder):
    gene = "ACGTTGCAAGGCTTACGATTACG"
    (folder / "d.fa").write_text(f">d\n{gene}\n")
    assert run("index", "d.fa", "-q")[0] == 0
    for line, why in {
        "all s.fa --preset blastn": "these are letters of proteins, the scoring is of",
        "all .": ".: is a folder, and a file is needed",
        "repertoire d.fa": "d.fa: has nucleotides; CDR3 sequences of amino acids",
        "audit --verify s.fa": "s.fa: is not a certificate: it is not JSON",
        "search s.fa d.fa.jaxdb -q": "made for the dna letters ACGTRYSWKMBDHVN, and "
        "the scoring has the protein letters",
    }.items():
        code, _, err = run(*line.split())
        assert code == 3 and why in err, (line, err)


@pytest.mark.parametrize(
    "line, text",
    [
        ("cluster s.fa", "cluster: --min-identity is missing"),
        ("align s.fa", "align: B is missing\nhint: see jaxalign align --help"),
        ("nosuch", "hint: see jaxalign --help"),
        ("all s.fa --matrix BLOSSUM62", "did you mean BLOSUM62?"),
        ("all s.fa --matrix BLOSUM26", "did you mean BLOSUM62?"),
        ("all s.fa --preset blast", 'Did you mean "blastp"?'),
        ("all s.fa --min-identity 30", "did you mean 0.3?"),
        ("split s.fa --min-identity 40 --folds 2", "did you mean 0.4?"),
        ("split s.fa --folds 2", "split: --min-identity is missing"),
        ("audit s.fa t.fa", "audit: --min-identity is missing"),
        ("all s.fa -o t.fa", "t.fa: exists; use --force to replace it"),
        ("all s.fa --matrix blosum", "did you mean BLOSUM62?"),
        ("all s.fa --min-identity 1.5", "from 0 to 1 is needed\n"),
        ("all s.fa --columns qury", "did you mean query?"),
        (
            "all s.fa --gap-open x",
            "--gap-open x: a number is needed\nhint: see jaxal",
        ),
        ("all s.fa --threads 1.5", "--threads 1.5: a whole number is needed"),
        ("split s.fa --folds 2.5", "--folds 2.5: a whole number is needed"),
        ("search s.fa t.fa --top x", "--top x: a whole number is needed"),
        ("all s.fa -o x.tsv.gz", "x.tsv.gz: outputs are not compressed; give x.tsv"),
        ("all s.fa -o x.tsv --resume", "needs a folder: -o FOLDER/"),
        ("all s.fa -o x.parquet --part-rows 3", "needs a folder: -o FOLDER/"),
        (
            "nearest s.fa t.fa --report r.pdf",
            "r.pdf: --report writes HTML; give a name",
        ),
        ("soft s.fa s.fa --threshold 50", "did you mean 0.5?"),
        ("soft s.fa s.fa -o x.png", "x.png: -o writes an npz file; --plot x.png draws"),
        ("all s.fa -o .", ".: is a folder; name a file in it"),
        ("align s.fa s.fa t.fa", "align: too many files: t.fa\nhint: see jaxalign al"),
        ("align s.fa two.fa", "hint: `jaxalign search` aligns each record of one file"),
        (
            "audit s.fa --min-identity 0.5",
            "needs two or more files, not 1, or one fi",
        ),
        pytest.param(
            *("soft s.fa s.fa --temperature 0", "error: the temperature must be above"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_messages_say_what_to_do(run, folder, line, text):
    code, _, err = run(*line.split())
    assert code == 2 and text in err and "True" not in err


def test_the_summary_names_the_files(run, folder):
    for line in ("nearest t.fa s.fa", "purge s.fa --against t.fa --min-identity 0.5"):
        first, second = [x for x in line.split() if x.endswith(".fa")]
        assert f"{first} against {second}: " in run(*line.split())[2]


def test_pairs_are_written_with_commas(run, folder):
    (folder / "c.fa").write_text('>a,b\nMKTAYIA\n>c"d\nMKTAIA\n')
    for verb, words in {"all": ("c.fa",), "search": ("c.fa", "c.fa")}.items():
        assert run(verb, *words, "-o", f"{verb}.csv", "-q")[0] == 0
        tabs = run(verb, *words, "-q")[1].splitlines()
        pandas = pytest.importorskip("pandas")
        table = pandas.read_csv(f"{verb}.csv", dtype=str, keep_default_na=False)
        assert [*table.columns] == tabs[0].split("\t")
        assert table.values.tolist() == [x.split("\t") for x in tabs[1:]]
    assert run("repertoire", "r.fasta", "-o", "e.csv", "-q")[0] == 0
    tabs = run("repertoire", "r.fasta", "-q")[1].replace("\t", ",")
    assert (folder / "e.csv").read_text() == tabs
    np.savez("v.npz", x=np.ones((3, 2), "f4"))
    words = "align v.npz v.npz --embeddings --gap-open 1 --gap-extend 1 -q".split()
    assert run(*words, "-o", "v.csv")[0] == 0
    assert len((folder / "v.csv").read_text().splitlines()) == 2


def test_an_interruption_says_what_is_kept(run, folder, monkeypatch):
    from jaxalign.database import nearest
    from jaxalign.io import output, runs

    saved = runs.SavedRun("o.tsv", {"x": 1})
    monkeypatch.setattr(runs, "EVERY", -1.0)

    def interrupted(*_):
        output.SHARE["done"] = 0.14
        saved.save(lambda: {})
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxalign.cli.corpus.nearest_of", interrupted)
    code, _, err = run("nearest", "t.fa", "s.fa", "-o", "o.tsv")
    assert nearest and code == 130
    assert "interrupted: o.tsv.partial keeps 14 %, --resume continues" in err
    saved.remove()
    assert output.resumable() == ""


def test_a_repertoire_shows_progress(run, folder):
    words = ("repertoire", "r.fasta", "--part-rows", "1", "--progress", "json")
    err = run(*words)[2]
    assert '"cells_done": 4, "cells_total": 4' in err
