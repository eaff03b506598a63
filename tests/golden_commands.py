"""Groups of ``golden_jobs`` that run the command line: a job is what a command writes.

Exit code, standard output and the files are hashed, without lines that name a version,
or spell out a scoring. Standard error is not: times and messages may change.
"""

import contextlib
import gzip
import io
import json
import re
from pathlib import Path

import jax  # noqa: F401  (before the first command, which else turns on a cache)
from golden_draw import AMBIGUOUS, PROTEIN, RNA, Draw
from golden_groups import ALL_PROTEIN, Group

import jaxalign
from jaxalign.cli.main import main

DATA = Path(jaxalign.__file__).parent / "data"
SPOKEN = re.compile(r"gap\(k\)|jaxalign [\d.]+|@PG")
OWN = "query,target,score,columns,identities,gaps,query_start,query_end,cigar"
BLAST = "qseqid,sseqid,pident,length,mismatch,gapopen,qstart,qend,sstart,send,qlen,slen"
MMSEQS = "query,target,fident,alnlen,qcov,tcov,nident,tstart,tend,raw"
IDENTITIES = ",".join(f"identity_{kind}" for kind in
    ("alignment", "full", "aligned", "shorter", "longer", "mean", "query", "target")
)  # fmt: skip

ALL = [
    "all globins.fa --output score",
    "all globins.fa",
    "all globins.fa --output identity --identity shorter",
    "all globins.fa --output identity --identity mean --threads 1",
    f"all globins.fa --mode local --include-self --columns {OWN} --output alignment",
    f"all globins.fa --mode semiglobal --columns {BLAST}",
    f"all globins.fa --free-ends q5,t3 --columns {MMSEQS}",
    f"all globins.fa --columns query,target,{IDENTITIES}",
    "all globins.fa --min-identity 0.4 --identity longer",
    "all globins.fa --mode local --min-score 200 --min-cov 0.9 --coverage target",
    "all repeats.fa --matrix PAM250 --gap-open 5 --gap-extend 0.25",
    "all domains.fa --memory-budget 4MiB --mode local",
    "all domains.fa --implementation wavefront --output identity --identity query",
]
FORMATS = [  # of one result, so that `make test` compiles one program
    f"all globins.fa --output alignment --columns {BLAST}",
    *(f"all globins.fa --output alignment -o all.{suffix}"
      for suffix in ("m8", "sam", "paf", "fasta", "pair")),
    f"all globins.fa --output alignment -o all.parquet --columns {OWN}",
    *(f"all globins.fa --output alignment --format {name} --identity aligned"
      for name in ("graphpart", "hestia", "datasail")),
]  # fmt: skip
MORE_FORMATS = [
    "all domains.fa --mode local -o all.m8",
    "all domains.fa --mode local -o all.sam",
    "all domains.fa --mode local -o all.fasta",
    "all domains.fa --mode local -o all.srspair",
    "all domains.fa --mode semiglobal -o all.pair",
    "all domains.fa --free-ends q3,t3 -o all.paf",
    "all globins.fa --format graphpart --output identity --identity shorter",
    "all globins.fa --format hestia --output identity --identity longer",
    "all globins.fa --format datasail --output identity --identity mean",
    "all globins.fa -o all.parquet --output identity --identity shorter",
    "all empty.fa -o all.sam",
    "all empty.fa -o all.pair",
    "all empty.fa -o all.fasta --include-self",
]
TOOLS = [
    "all globins.fa --preset blastp -o all.m8",
    "all globins.fa --preset ssearch -o all.m8",
    "all globins.fa --preset mmseqs --mode global -o all.m8",
    "all domains.fa --preset needle -o all.pair",
    "all domains.fa --preset parasail --gap-open 12 -o all.tsv",
    "all dna.fa --preset blastn -o all.m8",
    "all dna.fa --alphabet dna --columns query,target,score,cigar --output alignment",
    "all rna.fa --alphabet rna --match 5 --mismatch -4 --mode local -o all.sam",
    "all dna.fa --matrix EDNAFULL -gapopen 10 -gapextend 0.5 --mode global -o all.paf",
    "all globins.fa --gap-style blast --gap-open 11 --gap-extend 1 --output score",
    "matrices BLOSUM62",
    "matrices PAM30",
]
ALIGN = [
    "align globins.fa turned.fa",
    "align globins.fa turned.fa --mode local -o zip.pair",
    "align one.fa globins.fa --free-ends t5,t3 -o one.sam",
    "align globins.fa one.fa --free-ends q5,q3 --output identity --identity target",
    "align globins.fa.gz turned.fa --output score",
    "align odd.fa turned.fa --unknown X -o odd.fasta",
    "align odd.fa turned.fa --unknown mask -o odd.pair",
    "align one.fa one.fa --matrix skew.mat --mode local --output alignment",
]
SEARCH = [
    "search one.fa globins.fa",
    "search globins.fa globins.fa.gz --top 3 -o hits.m8",
    "search globins.fa globins.fa --max-evalue 1e-20 -o hits.paf",
    "search domains.fa globins.fa --output score --top 5 --implementation wavefront",
    "search domains.fa globins.fa --mode semiglobal --top 4 -o hits.sam",
    "search odd.fa globins.fa --unknown mask --preset blastp -o hits.pair --top 2",
    "index globins.fa -o globins.jaxdb",
    f"search one.fa globins.jaxdb --columns {OWN} --top 7",
    "all globins.jaxdb --output score",
    "index globins.jaxdb --verify",
]
PARTS = [
    "all globins.fa -o whole/ --part-rows 30",
    "all globins.fa -o shards/ --part-rows 30 --shard 2/2 --output alignment",
    "all globins.fa -o shards/ --part-rows 30 --shard 1/2 --output alignment --resume",
    "search globins.fa globins.fa -o hits/ --part-rows 40 --top 10",
    "all domains.fa -o few/ --part-rows 9 --min-identity 0.3 --identity shorter",
]
THREE = [
    "three actin.fa",
    *(f"three short.fa --format {name}" for name in ("fasta", "clustal", "pretty")),
    "three short.fa --format json --gap-open 9",
    "three short.fa --mode semiglobal --format clustal",
    "three short.fa --gap-model natural -o three.txt",
    "three short.fa --traceback none",
    "three short.fa --preset needle --mode global --schedule sloped",
]
REFUSALS = [
    "all",
    "all nothing.fa",
    "all globins.fa --mode sideways",
    "all globins.fa --free-ends q5 --mode local",
    "all globins.fa --gap-open 1 --gap-extend 2",
    "all globins.fa --matrix NOSUCH",
    "all globins.fa --min-identity 2",
    "all globins.fa -o all.docx",
    "all odd.fa",
    "all gapped.fa --unknown mask",
    "align globins.fa turned.fa --memory-budget 1kB",
    "search one.fa globins.fa --top 0",
    "three short.fa --gap-model linear",
]  # fmt: skip


def quick() -> list[Group]:
    return [_group("formats", FORMATS), _group("refusals", REFUSALS)]


def others() -> list[Group]:
    lists = {"all": ALL, "other tools": TOOLS, "align": ALIGN, "search": SEARCH}
    lists |= {"parts": PARTS, "three": THREE, "more formats": MORE_FORMATS}
    return [_group(name, some) for name, some in lists.items()]


def _group(name, some) -> Group:
    def run(folder):
        _write_inputs(folder)
        return [_command(line, folder) for line in some]

    return Group(f"commands: {name}", run)


def _command(line: str, folder: Path) -> str:
    """Run a command in a folder -> exit code, standard output, what it wrote."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            # The program itself may end the process without returning.
            code = main([*line.split(), *_quiet(line)])
    except SystemExit as end:
        code = end.code or 0
    new = (path for path in sorted(folder.rglob("*")) if path not in before)
    # Checksums of parts are of bytes, which depend on the version of pyarrow.
    new = (path for path in new if not path.name.startswith("_part-"))
    files = [_file(path, folder) for path in new if path.is_file()]
    return "\n".join(
        [f"$ jaxalign {line}", f"exit {code}", _kept(out.getvalue()), *files]
    )


def _quiet(line: str) -> list[str]:
    return [] if line.startswith("matrices") or line == "all" else ["-q"]


def _file(path: Path, folder: Path) -> str:
    """Name and content; the file is gone afterwards unless later commands read it."""
    name = path.relative_to(folder).as_posix()
    if path.suffix == ".parquet":
        text = _parquet(path)
    elif path.suffix == ".json":  # of a folder of parts: times, versions
        text = ""
    elif path.suffix == ".jaxdb":
        text = f"{path.stat().st_size} bytes"
    else:
        text = _kept(path.read_text())
    if path.parent == folder and path.suffix != ".jaxdb":
        path.unlink()
    return f"file {name}\n{text}"


def _parquet(path: Path) -> str:
    from pyarrow import parquet

    table = parquet.read_table(path)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    for name in {*columns} & {"bits", "evalue"}:  # powers and logarithms round as the
        columns[name] = [f"{x:.9g}" for x in columns[name]]  # host's vectors do
    rows = zip(*columns.values(), strict=True)
    return "\n".join(["\t".join(columns), *map(repr, rows)])


def _kept(text: str) -> str:
    """Lines without versions and scorings; JSON without them."""
    if text.startswith("{"):
        fields = json.loads(text)
        for name in ("program", "scoring", "seconds", "bytes", "implementation"):
            fields.pop(name, None)
        return json.dumps(fields, sort_keys=True)
    return "\n".join(line for line in text.splitlines() if not SPOKEN.search(line))


def _write_inputs(folder: Path) -> None:
    """The shipped sets under short names, and sets with what is rare in them."""
    globins = (DATA / "globins.fasta").read_text()
    records = [">" + part for part in globins.split(">")[1:]]
    domains = (DATA / "pfam" / "fn3.fasta").read_text()
    draw = Draw("commands")
    odd = [text[:9] + "UOJ" + text[12:] for text in
           (draw.text(80, PROTEIN) for _ in records)]  # fmt: skip
    short = [draw.text(40, PROTEIN)]
    short += [draw.relative(short[0], PROTEIN, 40) for _ in range(2)]
    skew = jaxalign.Scoring().scores + [range(24)]
    lines = [f"{x} {' '.join(map(str, row))}"
             for x, row in zip(ALL_PROTEIN, skew.tolist(), strict=True)]  # fmt: skip
    texts = {
        "globins.fa": globins,
        "turned.fa": "".join(reversed(records)),
        "one.fa": records[6],
        "domains.fa": _without_gaps(domains, 8),
        "actin.fa": (DATA / "triples" / "actin.fasta").read_text(),
        "repeats.fa": _fasta([draw.repeats(30 + k, PROTEIN) for k in range(6)]),
        "odd.fa": _fasta(odd),
        "short.fa": _fasta(short),
        "gapped.fa": _fasta(["MKT-AYI", "MKTAYI"]),
        "empty.fa": ">none\n>some\nMKV\n>X\nXXX\n>other\nmrv\n",
        "dna.fa": _fasta(draw.family(8, AMBIGUOUS, 120)),
        "rna.fa": _fasta(draw.family(8, RNA, 120)),
        "skew.mat": "\n".join(
            ["  A R N D C Q E G H I L K M F P S T W Y V B Z X *", *lines]
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "globins.fa.gz").write_bytes(gzip.compress(globins.encode()))


def _without_gaps(aligned: str, count: int) -> str:
    lines = aligned.splitlines()[: 2 * count]
    return "\n".join([x if x[0] == ">" else x.replace("-", "") for x in lines] + [""])


def _fasta(texts) -> str:
    return "".join(f">s{k} of a set\n{text}\n" for k, text in enumerate(texts))
