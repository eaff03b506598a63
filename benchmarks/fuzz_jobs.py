"""The jobs of the fuzz: what (seed, number) draws, and its sequences.

Ten jobs in a row have a theme: kind, output, local or not, about how many sequences of
what length. They run much the same programs, each of which takes seconds to compile;
lengths, letters, gap costs, free ends and filters, which are data, are each job's own.
"""

from dataclasses import dataclass, fields, replace
from itertools import combinations

import numpy as np
from fuzz_oracle import ENDS

import jaxalign

THEME = 10  # jobs
SETS = [frozenset(x) for k in range(5) for x in combinations(ENDS, k)]
EVEN = [x for x in SETS if all((ENDS[k] in x) == (ENDS[k + 2] in x) for k in (0, 1))]
KINDS = {"all": 7, "stream": 1, "zip": 5, "one": 2, "matrix": 3, "distance": 1,
         "search": 4}  # fmt: skip
OTHERS = {7: "three", 19: "soft"}  # of 25 jobs
OUTPUTS = {"score": 3, "identity": 2, "stats": 2, "alignment": 4}
# Where strips, tiles, arrays and ranges end; one less and one more are drawn, too.
BORDERS = (16, 32, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1152, 1536, 2304, 3072,
           4608, 8192, 9216, 18432)  # fmt: skip
COUNTS = (1, 2, 3, 4, 8, 16, 32, 63, 64, 65, 128, 129, 256, 512, 1000, 1024, 2048, 3000)
ROWS = {"score": 4_500_000, "identity": 2_000_000, "stats": 500_000,
        "alignment": 200_000}  # fmt: skip
LONGEST, MOST, CAP = 20_000, 3_000, 10**11
# How lengths are drawn, and their mean over the longest, about.
STYLES = {"log": 0.2, "equal": 1.0, "giant": 0.05, "borders": 0.4, "empties": 0.1,
          "near": 0.75, "few": 0.6}  # fmt: skip
GAPS = ((11, 1), (11, 1), (12, 2), (4, 4), (1, 1), (3, 0), (0, 0), (10, 0.5), (40, 3))
MATRICES = ("BLOSUM62", "BLOSUM62", "PAM250", "BLOSUM45", "BLOSUM90")


@dataclass(frozen=True)
class Job:
    """One call of the public API, its sequences by their numbers alone."""

    seed: int
    number: int
    kind: str
    output: str
    mode: str
    free_ends: tuple
    letters: str  # protein, dna, thirty, thirty-one, asymmetric, wide
    matrix: str
    gaps: tuple
    queries: int
    targets: int
    longest: int
    style: str
    related: str  # no, some, close, low
    threshold: str = ""  # min_score, min_identity, min_cov
    coverage: str = "both"
    identity: str | None = None
    include_self: bool = False
    window: int | None = None
    part_rows: int | None = None
    top: int = 10
    align_top: bool = True
    again: bool = False

    def __str__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return " ".join(
            f"{k}={v}" for k, v in values if not (v is None or v is False or v == "")
        )

    @property
    def free(self) -> frozenset:
        usual = {"semiglobal": SETS[-1], "local": SETS[0]}
        return usual.get(self.mode, frozenset(self.free_ends))


def draw(seed: int, number: int, cap: int = CAP) -> Job:
    """Job ``number`` of a seed, of about ``cap`` cells at most."""
    theme = np.random.default_rng((seed, number // THEME, cap, 1))
    rng = np.random.default_rng((seed, number, cap, 2))
    kind, output = _weighted(theme, KINDS), _weighted(theme, OUTPUTS)
    fixed = {"matrix": "score", "distance": "identity"}
    output = fixed.get(kind, output)
    local, even = theme.random() < 0.4, theme.random() < 0.8 or kind == "distance"
    if kind == "search":
        output, local = "alignment", theme.random() < 0.8
    letters = _letters(theme, output, even)
    if letters == "thirty-one" or (output == "identity" and theme.random() < 0.05):
        cap = min(cap, 10**8)  # all of it, or some, runs without kernels
    style = str(rng.choice([*STYLES, "log"]))
    # The longest sequence: of longer ones all pairs would run without kernels.
    few = letters == "wide" or (output == "identity" and cap > 10**8)
    limit = 3000 if few else LONGEST
    sizes = _sizes(theme, rng, kind, output, cap, limit, STYLES[style])
    job = Job(seed, number, kind, output, *_ends(rng, local, even), letters,
              str(rng.choice(MATRICES)), GAPS[rng.integers(len(GAPS))], *sizes,
              style, str(rng.choice(["no", "some", "close", "low"])),
              window=_window(theme), again=bool(rng.random() < 0.15))  # fmt: skip
    kind = OTHERS.get(number % 25, kind)
    return replace(_with_options(job, theme, rng), kind=kind)


def _letters(theme, output, even):
    names = {"protein": 13, "dna": 3, "wide": 2, "thirty": 1, "thirty-one": 0.3}
    name = _weighted(theme, names)
    if output == "identity" and name == "wide":
        name = "protein"  # matches cannot be counted below such scores
    return name if even or theme.random() < 0.5 else "asymmetric"


def _weighted(rng, weights: dict) -> str:
    share = np.array([*weights.values()], float)
    return str(rng.choice([*weights], p=share / share.sum()))


def _window(theme):
    return int(theme.choice([7, 64, 100])) if theme.random() < 0.08 else None


def _ends(rng, local, even):
    """(mode, free ends); ``even``: the same of query and target."""
    if local:
        return "local", ()
    if rng.random() < 0.3:
        return "semiglobal", ()
    sets = EVEN if even else SETS
    chosen = sets[rng.integers(len(sets))] if rng.random() < 0.7 else ()
    return "global", tuple(sorted(chosen))


def _sizes(theme, rng, kind, output, cap, limit, mean) -> tuple[int, int, int]:
    """(queries, targets, longest); ``mean`` of the lengths is over the longest."""
    cells = cap if theme.random() > 0.02 else 10 * cap
    cells = min(cells, 10 ** (np.log10(cells) * theme.uniform(0.45, 1.04)))
    longest = min(theme.choice(BORDERS) + theme.integers(-1, 2), limit)
    if theme.random() < 0.5:
        longest = int(np.exp(theme.uniform(0, np.log(limit))))
    sides = [_count(theme), _count(theme)]
    if kind in ("search", "matrix") and theme.random() < 0.5:
        sides[0] = int(theme.integers(1, 9))
    if kind == "one":
        sides[0] = 1
    many = max(sides) if kind == "zip" else sides[0] * sides[1]
    room = cells / (many if theme.random() < 0.6 else 1)  # of a pair
    longest = int(max(min(longest, 2 * np.sqrt(room)), 1))
    share = [x if theme.random() < 0.3 else int(rng.integers(max(1, x - 4), x + 1))
             for x in sides]  # fmt: skip
    rows = ROWS["identity" if kind == "search" else output]
    most = min(cells / (mean * longest) ** 2, rows)
    if theme.random() < 0.15:  # as many as the cells allow
        share = [MOST, MOST] if kind != "one" else [1, MOST]
    if kind in ("all", "stream", "distance"):
        share = [max(1, min(share[0], int(np.sqrt(2 * most)) + 1))] * 2
    elif kind == "zip":
        share = [max(1, min(share[0], int(most)))] * 2
    elif share[0] * share[1] > most:
        share[0] = max(1, min(share[0], int(most / share[1])))
        share[1] = max(1, min(share[1], int(most / share[0])))
    return *share, longest


def _count(rng) -> int:
    if rng.random() < 0.5:
        return int(rng.choice(COUNTS))
    return int(np.exp(rng.uniform(0, np.log(MOST))))


def _with_options(job: Job, theme, rng) -> Job:
    paths = job.output in ("stats", "alignment")
    possible = ["min_score"]
    possible += ["min_identity"] if job.output != "score" else []
    hang_over = job.mode == "local" or job.free
    possible += ["min_cov"] if paths and hang_over else []
    wanted = theme.random() < 0.25 and job.kind in ("all", "stream", "zip", "one")
    kinds = ["shorter", "longer", "mean", "query", "target"]
    kinds += ["alignment", "full", "aligned"] if paths else []
    return replace(
        job,
        threshold=str(rng.choice(possible)) if wanted else "",
        coverage=str(rng.choice(["both", "query", "target"])),
        identity=str(rng.choice(kinds if job.kind != "distance" else kinds[:3])),
        include_self=bool(theme.random() < 0.3),
        part_rows=int(job.queries**2 / 2 / rng.uniform(1, 12)) + 1,
        top=int(theme.choice([1, 2, 10, 300])),
        align_top=bool(theme.random() < 0.6),
    )


def scoring_of(job: Job) -> jaxalign.Scoring:
    """Of its letters; ``wide`` scores leave int16 soon."""
    gap_open, gap_extend = job.gaps
    if job.letters == "dna":
        match, mismatch = ((2, -3), (5, -4), (1, 0))[job.number % 3]
        return jaxalign.Scoring(match=match, mismatch=mismatch, gap_open=gap_open,
                                gap_extend=gap_extend)  # fmt: skip
    if job.letters == "protein":
        return jaxalign.Scoring(job.matrix, gap_open, gap_extend)
    rng = np.random.default_rng((job.seed, job.number // THEME, 3))
    size = {"thirty": 30, "thirty-one": 31}.get(job.letters, 24)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ12345"[:size]
    highest, times = 6, 400 if job.letters == "wide" else 1
    scores = rng.integers(-5, highest, (size, size))
    if job.letters != "asymmetric":
        scores = np.minimum(scores, scores.T)
    scores = times * (scores + (highest + 1) * np.eye(size, dtype=int))
    return jaxalign.Scoring((alphabet, scores), times * gap_open, times * gap_extend)


def sequences_of(job: Job, scoring, side: int):
    """Flat (codes, offsets) of one side."""
    rng = np.random.default_rng((job.seed, job.number, 4, side))
    lengths = _lengths(rng, job, job.targets if side else job.queries)
    letters = min(scoring.alphabet.size, 23 if job.letters == "protein" else 99)
    family = np.random.default_rng((job.seed, job.number, 5))
    ancestors = family.integers(0, letters, (3, LONGEST)).astype(np.uint8)
    if job.related == "low":  # one letter for long: ties, and scores beyond int16
        ancestors[:, :] = family.integers(0, letters, (3, 1))
        ancestors[1, 1::2] = family.integers(0, letters)
    rate = {"no": 1.0, "some": 0.4, "close": 0.03, "low": 0.002}[job.related]
    texts = [_relative(rng, ancestors, length, rate, letters) for length in lengths]
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    return np.concatenate([*texts, np.zeros(0, np.uint8)]), offsets


def _relative(rng, ancestors, length, rate, letters):
    """A piece of an ancestor, some of it dropped or twice there, with substitutions."""
    ancestor = ancestors[rng.integers(len(ancestors))]
    first = int(rng.integers(0, LONGEST - length + 1)) if rng.random() < 0.3 else 0
    at = int(rng.integers(0, length + 1))
    second = int(np.clip(first + at + rng.integers(-9, 10), 0, LONGEST - length + at))
    text = np.append(
        ancestor[first : first + at], ancestor[second : second + length - at]
    )
    changed = rng.random(length) < rate
    text[changed] = rng.integers(0, letters, int(changed.sum()))
    return text


def _lengths(rng, job: Job, count: int) -> np.ndarray:
    """Of so many sequences; the longest is among them."""
    longest = job.longest
    lengths = np.exp(rng.uniform(0, np.log(longest + 1), count)).astype(np.int64)
    near = np.array([0, 1, 2, *(b + d for b in BORDERS for d in (-1, 0, 1))])
    near = near[near <= longest]
    if job.style == "equal":
        some = rng.choice(np.append(near, longest), 2)
        lengths = np.where(rng.random(count) < 0.9, *some)
    elif job.style == "giant":
        lengths = rng.integers(0, min(longest, 30) + 1, count)
    elif job.style == "borders":
        lengths = rng.choice(near, count)
    elif job.style == "near":
        lengths = rng.normal(0.7 * longest, 0.12 * longest, count).astype(np.int64)
    elif job.style == "few":
        lengths = rng.choice(rng.integers(0, longest + 1, 3), count)
    elif job.style == "empties":
        lengths[rng.random(count) < rng.uniform(0.3, 1)] = 0
    lengths[rng.random(count) < 0.03] = 0
    if count > 1 or rng.random() < 0.9:
        lengths[rng.integers(count)] = longest
    return np.clip(lengths, 0, longest)
