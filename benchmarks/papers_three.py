"""Tables 1 and 2 of Li, Ranka and Sahni, and their sweep over s and h, on this machine.

    python benchmarks/papers_three.py X2.1 --quick
    python benchmarks/papers_three.py X2.1 X2.2 X2.3 --json three.json

X2.1   seconds and cells per second of the score: sloped, layered, five sizes; beside
       them a plain triple loop compiled by numba on one core, if that is installed
X2.2   seconds of phase 1, phase 3 and in all, and bytes: bt1, bt2, bt3 under both
       schedules, beside store and split
X2.3   bt3 against s and h

Linear gaps of 4 with BLOSUM62, related sequences drawn at random; the time of a fill
does not depend on the letters. Cells are (n0 + 1)(n1 + 1)(n2 + 1). Times are medians of
calls in turns after one that is not counted (it compiles). The paper's figures are of
a Tesla C2050, its scoring and traceback of one core of an i7-x980.
"""

import argparse

import measure
import numpy as np

SIZES = (
    (113, 166, 364),
    (347, 349, 365),
    (267, 439, 452),
    (764, 771, 773),
    (1399, 1404, 1406),
)
LARGEST_PLAIN = 10**9  # cells; the largest size would take a minute a call
# Seconds in the paper: layered, sloped, one core scoring; the largest has no last.
TABLE_1 = {
    (113, 166, 364): (0.034, 0.044, 0.570),
    (347, 349, 365): (0.165, 0.087, 3.610),
    (267, 439, 452): (0.162, 0.090, 4.270),
    (764, 771, 773): (1.250, 0.416, 37.500),
    (1399, 1404, 1406): (6.643, 1.921, None),
}
# Seconds of phase 1, phase 3 and in all.
TABLE_2 = {
    ("layered", "bt1"): ((0.062, 0.012, 0.076), (0.298, 0.042, 0.342),
                         (0.348, 0.035, 0.386), (2.814, 0.121, 2.941),
                         (14.994, 0.277, 15.300)),
    ("layered", "bt2"): ((0.062, 0.005, 0.069), (0.298, 0.010, 0.310),
                         (0.347, 0.010, 0.359), (2.813, 0.014, 2.834),
                         (14.982, 0.021, 15.036)),
    ("layered", "bt3"): ((0.062, 0.005, 0.069), (0.298, 0.010, 0.310),
                         (0.347, 0.009, 0.360), (2.812, 0.016, 2.836),
                         (14.977, 0.023, 15.040)),
    ("sloped", "bt1"): ((0.013, 0.002, 0.030), (0.064, 0.005, 0.111),
                        (0.077, 0.006, 0.125), (0.583, 0.021, 0.736),
                        (3.513, 0.058, 3.850)),
    ("sloped", "bt2"): ((0.014, 0.002, 0.032), (0.067, 0.002, 0.114),
                        (0.080, 0.002, 0.127), (0.606, 0.003, 0.748),
                        (3.648, 0.005, 3.946)),
    ("sloped", "bt3"): ((0.014, 0.002, 0.032), (0.067, 0.002, 0.114),
                        (0.080, 0.002, 0.127), (0.604, 0.004, 0.747),
                        (3.636, 0.006, 3.939)),
}  # fmt: skip


def triple(lengths, seed: int = 0) -> list[str]:
    """Three related texts of these lengths: one base, a third of it changed."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ARNDCQEGHILKMFPSTWYV"))
    base = rng.choice(letters, max(lengths))
    texts = []
    for length in lengths:
        changed = rng.random(length) < 0.33
        text = np.where(changed, rng.choice(letters, length), base[:length])
        texts.append("".join(text))
    return texts


def text_of(lengths) -> str:
    return " x ".join(map(str, lengths))


def cells_of(lengths) -> int:
    return int(np.prod([n + 1 for n in lengths], dtype=object))


def call(lengths, **options):
    """A call of ``align_three`` on a problem of these lengths."""
    from jaxalign import Scoring, align_three

    texts, scoring = triple(lengths), Scoring(gap_open=4, gap_extend=4)
    return lambda: align_three(*texts, scoring, gap_model="linear", **options)


def plain_loop():
    """The paper's recurrence as three loops, compiled by numba; None without it."""
    try:
        from numba import njit
    except ImportError as missing:
        print(f"# numba left out: {missing}")
        return None

    @njit
    def score(a, b, c, scores, gap):
        minus = -(2**30)
        before = np.full((len(b) + 1, len(c) + 1), minus, np.int32)
        here = before.copy()
        for i in range(len(a) + 1):
            for j in range(len(b) + 1):
                for k in range(len(c) + 1):
                    h = 0 if i == j == k == 0 else minus
                    ab = scores[a[i - 1], b[j - 1]] if i and j else 0
                    ac = scores[a[i - 1], c[k - 1]] if i and k else 0
                    bc = scores[b[j - 1], c[k - 1]] if j and k else 0
                    if i and j and k:
                        h = max(h, before[j - 1, k - 1] + ab + ac + bc)
                    if i and j:
                        h = max(h, before[j - 1, k] + ab - 2 * gap)
                    if i and k:
                        h = max(h, before[j, k - 1] + ac - 2 * gap)
                    if j and k:
                        h = max(h, here[j - 1, k - 1] + bc - 2 * gap)
                    if i:
                        h = max(h, before[j, k] - 2 * gap)
                    if j:
                        h = max(h, here[j - 1, k] - 2 * gap)
                    if k:
                        h = max(h, here[j, k - 1] - 2 * gap)
                    here[j, k] = h
            before, here = here, before
        return before[len(b), len(c)]

    return score


def plain_call(lengths, loop):
    """The call of the plain loop on the same problem as ``call``."""
    from jaxalign import Scoring

    scoring = Scoring(gap_open=4, gap_extend=4)
    codes = [scoring.alphabet.encode(text) for text in triple(lengths)]
    return lambda: loop(*codes, scoring.scores, 4)


def table_1(sizes, repeats):
    """X2.1: a row a size and schedule."""
    rows, loop = [], plain_loop()
    for lengths in sizes:
        calls = {
            schedule: call(lengths, schedule=schedule, traceback=None)
            for schedule in ("layered", "sloped")
        }
        if loop and cells_of(lengths) < LARGEST_PLAIN:
            calls["numba, 1 core"] = plain_call(lengths, loop)
        found = measure.in_turns(calls, repeats)
        plain = found.get("numba, 1 core", {}).get("seconds")
        papers = dict(zip(("layered", "sloped"), TABLE_1[lengths], strict=False))
        for name, one in found.items():
            rows.append(
                {
                    "lengths": text_of(lengths),
                    "schedule": name,
                    "score": getattr(one["result"], "score", one["result"]),
                    "seconds": one["seconds"],
                    "Gcells/s": measure.gcups(cells_of(lengths), one["seconds"]),
                    "x numba": plain / one["seconds"] if plain else None,
                    "C2050 s": papers.get(name),
                    "1 core s (paper)": TABLE_1[lengths][2],
                }
            )
    return rows


def table_2(sizes, repeats, ways=("bt1", "bt2", "bt3")):
    """X2.2: a row a size, schedule and traceback."""
    rows = []
    for lengths in sizes:
        keys = [("sloped", "store"), ("sloped", "split")]
        keys += [(s, way) for s in ("layered", "sloped") for way in ways]
        calls = {k: call(lengths, schedule=k[0], traceback=k[1]) for k in keys}
        for key, one in measure.in_turns(calls, repeats).items():
            rows.append(_row(lengths, key, one))
    return rows


def _row(lengths, key, one):
    """A measured traceback beside the paper's: phases of the last call."""
    result, paper = one["result"], (None,) * 3
    if key in TABLE_2:
        paper = TABLE_2[key][SIZES.index(lengths)]
    return {
        "lengths": text_of(lengths),
        "schedule": key[0],
        "traceback": key[1],
        "phase 1": result.seconds.get("phase 1", result.seconds.get("fill")),
        "phase 3": result.seconds.get("phase 3", result.seconds.get("walk")),
        "seconds": one["seconds"],
        "MB": sum(result.bytes.values()) / 1e6 if "faces" in result.bytes
        else result.bytes["planned"] / 1e6,
        "C2050 phase 1": paper[0],
        "C2050 phase 3": paper[1],
        "C2050 s": paper[2],
    }  # fmt: skip


def sweep(lengths, repeats, sides=(16, 31, 47, 67), heights=(20, 40, 100)):
    """X2.3: a row a schedule, s and h."""
    keys = [(o, s, h) for o in ("layered", "sloped") for s in sides for h in heights]
    calls = {
        (o, s, h): call(lengths, schedule=o, traceback="bt3", chunk=s, height=h)
        for o, s, h in keys
    }
    return [
        {
            "lengths": text_of(lengths),
            "schedule": o,
            "s": s,
            "h": h,
            "phase 1": one["result"].seconds["phase 1"],
            "phase 3": one["result"].seconds["phase 3"],
            "seconds": one["seconds"],
        }
        for (o, s, h), one in measure.in_turns(calls, repeats).items()
    ]


def main(argv=None) -> None:
    """Print the tables asked for, and keep them with the machine's description."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="*", default=["X2.1"])
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    parser.add_argument("--largest", type=int, default=5, help="sizes, from small")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", help="write the rows to this file")
    asked = parser.parse_args(argv)
    sizes = SIZES[: 1 if asked.quick else asked.largest]
    makers = {
        "X2.1": lambda: table_1(sizes, asked.repeats),
        "X2.2": lambda: table_2(sizes, asked.repeats),
        "X2.3": lambda: sweep(sizes[-1], asked.repeats),
    }
    report = {"machine": measure.machine()}
    measure.show_machine(report["machine"])
    for name in asked.experiments:
        print(f"\n{name}")
        report[name] = makers[name]()
        measure.show(report[name])
    measure.save(asked.json, report)


if __name__ == "__main__":
    main()
