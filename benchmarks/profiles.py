"""Recall of profiles on the Pfam seeds beside other tools: a table of Markdown.

    python -m benchmarks.profiles [--decoys 20] [--families fn3,RRM_1]
    python -m benchmarks.profiles --speed [--copies 1,8] [--positions 300]

Of each seed every second row makes the profile, and the others are to be found among
shuffled copies of themselves. A tool ranks them; its recall is the part of the rows
above every decoy, and above all but one in a hundred. ``pyhmmer`` and ``mmseqs`` are
left out where they are not installed.

``--speed`` compares the scan of a profile, made of the rows of BLOSUM62, with that of
its sequence, which has the same hits, and of the profile with gap costs by position,
from 8 to 14 and 1 or 2: processor seconds of one thread.
"""

import dataclasses
import importlib.util
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import measure
import numpy as np
import problems

import jaxalign
from jaxalign import inputs
from jaxalign.io.fasta import pfam
from jaxalign.model.alphabet import PROTEIN, Reading

COSTS = {"gap_open": 11, "gap_extend": 1}


class Problem(NamedTuple):
    """Aligned rows of the profile; texts are ``count`` relatives, then decoys."""

    name: str
    rows: list[str]
    texts: list[str]
    count: int


def problem(family, decoys: int) -> Problem:
    letters = np.array([*PROTEIN, "-"])
    rows = ["".join(letters[row]) for row in family.codes]  # a gap is -1
    rng = np.random.default_rng(0)
    relatives = [row.replace("-", "") for row in rows[1::2]]
    shuffled = [
        "".join(rng.permutation(list(text)))
        for text in relatives
        for _ in range(decoys)
    ]
    return Problem(family.name, rows[::2], relatives + shuffled, len(relatives))


def by_rows(one: Problem, count: int | None = None) -> np.ndarray:
    """The best score of a few rows, each a query."""
    queries = [row.replace("-", "") for row in one.rows[:count]]
    scores = jaxalign.scores_matrix(queries, one.texts, mode="local")
    return np.asarray(scores).max(0)


def by_profile(one: Problem) -> np.ndarray:
    profile = jaxalign.Profile.from_alignment(one.rows)
    hits = jaxalign.align_profile(profile, one.texts, **COSTS)
    return np.array([hit.score for hit in hits])


def by_hmm(one: Problem, scoring: jaxalign.Scoring | None = None) -> np.ndarray:
    """The model that HMMER builds, as the query of a search: with its transitions as
    costs by position, rounded, or with the costs of a scoring."""
    profile = hmm_of(one)
    top, texts = len(one.texts), one.texts
    found = jaxalign.search(profile, texts, scoring, top=top, align_top=False)
    scores = np.zeros(top)
    scores[found["target"]] = found["score"]
    return scores


def by_hmm_positions(one: Problem) -> np.ndarray:
    """The same, with costs that are not rounded."""
    found = jaxalign.align_profile(hmm_of(one), one.texts, mode="local")
    return np.array([hit.score for hit in found])


def hmm_of(one: Problem) -> jaxalign.Profile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hmm"
        with path.open("wb") as file:
            built(one).write(file)
        return jaxalign.Profile.from_hmm(path)


def built(one: Problem):
    from pyhmmer import easel, plan7  # pyright: ignore[reportMissingImports]

    alphabet = easel.Alphabet.amino()
    rows = [
        easel.TextSequence(name=f"r{k}".encode(), sequence=row)
        for k, row in enumerate(one.rows)
    ]
    msa = easel.TextMSA(name=one.name.encode(), sequences=rows).digitize(alphabet)
    background = plan7.Background(alphabet)
    return plan7.Builder(alphabet).build_msa(msa, background)[0]


def by_hmmer(one: Problem, single: bool) -> np.ndarray:
    """Bits of ``phmmer`` with the first row, or of ``hmmsearch``, without filters."""
    from pyhmmer import easel, hmmer  # pyright: ignore[reportMissingImports]

    alphabet = easel.Alphabet.amino()

    def digital(text, k):
        text = easel.TextSequence(name=str(k).encode(), sequence=text)
        return text.digitize(alphabet)

    targets = [digital(text, k) for k, text in enumerate(one.texts)]
    targets = easel.DigitalSequenceBlock(alphabet, targets)
    options = {"cpus": 1, "E": 1e9, "F1": 1.0, "F2": 1.0, "F3": 1.0}
    options |= {"bias_filter": False, "domE": 1e9}
    if single:
        found = hmmer.phmmer(
            digital(one.rows[0].replace("-", ""), 0), targets, **options
        )
    else:
        found = hmmer.hmmsearch(built(one), targets, **options)
    scores = np.full(len(one.texts), -np.inf)
    for hit in next(iter(found)):
        name = hit.name.decode() if isinstance(hit.name, bytes) else hit.name
        scores[int(name)] = hit.score
    return scores


def by_mmseqs(one: Problem) -> np.ndarray:
    """Bits of a profile search, as sensitive as it gets."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = "".join(f"r{k} {row}\n" for k, row in enumerate(one.rows))
        text = f"# STOCKHOLM 1.0\n#=GF ID {one.name}\n{rows}//\n"
        (folder / "rows.sto").write_text(text)
        problems.write_fasta(folder / "targets.fasta", enumerate(one.texts))
        steps = (
            "convertmsa rows.sto msa",
            "msa2profile msa profile --match-mode 1",
            "createdb targets.fasta targets",
            "search profile targets hits tmp -s 7.5 -e 1e9 --max-seqs 100000 "
            "--threads 1 --comp-bias-corr 0 --mask 0",
            "convertalis profile targets hits hits.tsv --format-output target,bits",
        )
        for step in steps:
            command = ["mmseqs", *step.split(), "-v", "1"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        scores = np.full(len(one.texts), -np.inf)
        for line in (folder / "hits.tsv").read_text().splitlines():
            target, bits = line.split("\t")
            scores[int(target)] = max(scores[int(target)], float(bits))
    return scores


def recalls(one: Problem, scores: np.ndarray) -> tuple[int, int]:
    """Relatives above every decoy, and above all but one in a hundred."""
    relatives, decoys = scores[: one.count], np.sort(scores[one.count :])[::-1]
    return tuple(int((relatives > decoys[at]).sum()) for at in (0, len(decoys) // 100))  # pyright: ignore[reportReturnType]


def tools() -> dict:
    ours = {
        "jaxalign, first row": partial(by_rows, count=1),
        "jaxalign, best of all rows": by_rows,
        "jaxalign, profile, 11 and 1": by_profile,
    }
    if importlib.util.find_spec("pyhmmer"):
        ours |= {
            "jaxalign, HMMER's model, costs by position": by_hmm,
            "jaxalign, HMMER's model, not rounded": by_hmm_positions,
            "jaxalign, HMMER's model, 11 and 1": partial(
                by_hmm, scoring=jaxalign.Scoring(**COSTS)
            ),
            "pyhmmer phmmer, first row": partial(by_hmmer, single=True),
            "pyhmmer hmmsearch": partial(by_hmmer, single=False),
        }
    if shutil.which("mmseqs"):
        ours["MMseqs2 profile search"] = by_mmseqs
    return ours


def speed(copies: list[int], positions: int) -> None:
    """Print the time of both scans of so many copies of a database."""
    rng = np.random.default_rng(0)
    letters = rng.choice(list(PROTEIN[:20]), positions)
    profile = jaxalign.Profile.from_sequence("".join(letters))
    bounds = {"gap_open": (8, 15), "gap_extend": (1, 3)}
    costs = {name: (*rng.integers(*x, (2, positions)),) for name, x in bounds.items()}
    by_position = dataclasses.replace(profile, **costs)
    read = Reading("mask")
    (base,) = inputs.sets(jaxalign.Scoring(), problems.UNIPROT, reading=read)
    print("| residues | scores | sequence, s | profile, s | costs by position, s |")
    print("|---|---|---|---|---|")
    for count in copies:
        database = base.take([*range(len(base))] * count)
        options = {"align_top": False, "threads": 1, "implementation": "sweep"}
        queries = [profile.consensus], profile, by_position
        calls = [partial(jaxalign.search, x, database, **options) for x in queries]
        runs = [[measure.timed(call) for call in calls] for _ in range(5)]
        one, other, _ = (run.result for run in runs[-1])
        for name in ("target", "score"):
            np.testing.assert_array_equal(one[name], other[name])
        # Without the first, which compiles.
        seconds = [[run.cpu for run in each] for each in runs[1:]]
        a, b, c = np.median(seconds, axis=0)
        what = f"{database.lengths.sum():,} | {', '.join(other.info['dtypes'])}"
        print(f"| {what} | {a:.2f} | {b:.2f} | {c:.2f} |", flush=True)


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--decoys", type=int, default=20, help="of each relative")
    parser.add_argument("--families", type=measure.words, help="all by default")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--copies", type=measure.numbers, default=[1, 8])
    parser.add_argument("--positions", type=int, default=300)
    options = parser.parse_args()
    if options.speed:
        speed(options.copies, options.positions)
        return
    names, decoys = options.families, options.decoys
    families = [x for x in pfam().values() if names is None or x.name in names]
    searches = [problem(family, decoys) for family in families]
    total = sum(one.count for one in searches)
    print(f"{len(searches)} families, {total} relatives, {total * decoys} decoys")
    print("\n| tool | above every decoy | above all but 1 % | mean of families |")
    print("|---|---|---|---|")
    for name, score in tools().items():
        each = np.array([recalls(one, score(one)) for one in searches])
        first, hundredth = each.sum(0) / total
        mean = np.mean(each[:, 0] / [one.count for one in searches])
        print(f"| {name} | {first:.3f} | {hundredth:.3f} | {mean:.3f} |", flush=True)


if __name__ == "__main__":
    main()
