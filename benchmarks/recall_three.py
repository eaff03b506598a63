"""Do three sequences at once pair residues better than two? References decide.

    python benchmarks/recall_three.py --quick
    python benchmarks/recall_three.py --natural --json recall.json

Triples of a seed alignment are drawn at random and aligned; recall is the share of the
reference's residue pairs (all three pairs of sequences of all triples) that are found,
precision the share of the found ones that are in the reference.

pairwise   affine, 11/1, each pair alone
linear     three at once, linear gaps of 4 (the objective of Li, Ranka and Sahni)
quasi      three at once, quasi-natural affine, 11/1
natural    three at once, natural affine, 11/1 (--natural: slower)

BLOSUM62 throughout, global. The standard error of a difference is that of the mean of
the triples' differences from pairwise.
"""

import measure
import numpy as np
import problems

from jaxalign import Scoring, align_pairs, align_triples
from jaxalign.io import fasta
from jaxalign.model.alignment import partners_of
from jaxalign.model.profile import identity, partners, sequence

# Triples of each family; fewer where it has few sequences or long ones.
TRIPLES = {
    "fn3": 120, "RRM_1": 120, "Cyclin_N": 60, "COX2_TM": 40, "Caudal_act": 20,
    "Pkinase": 14, "globins4": 4, "LuxC": 6, "3Beta_HSD": 8, "ArsP_1": 8,
}  # fmt: skip
QUICK = {"RRM_1": 3}
PAIRS = ((0, 1), (0, 2), (1, 2))


def drawn(family, count: int, seed: int = 0) -> list[tuple]:
    """Distinct triples of rows of a family."""
    rng, chosen = np.random.default_rng(seed), {}
    while len(chosen) < count:
        chosen[tuple(sorted(rng.choice(len(family), 3, replace=False).tolist()))] = None
    return list(chosen)


def partners_of_rows(x: str, y: str) -> np.ndarray:
    """Partners of the first of two gapped rows."""
    a, b = (np.array(list(row)) != "-" for row in (x, y))
    places = np.where(b, np.cumsum(b) - 1, -1)
    return places[a]


def pairwise(triples, scoring):
    """For each triple the partners of its three pairs, aligned alone."""
    left, right = ([t[pair[k]] for t in triples for pair in PAIRS] for k in (0, 1))
    table = align_pairs(left, right, scoring, output="alignment")
    flat = [partners_of(table.alignment(k)) for k in range(len(table))]
    return [flat[k : k + 3] for k in range(0, len(flat), 3)]


def together(triples, scoring, gap_model):
    """For each triple the partners of its three pairs, aligned at once."""
    alignments = align_triples(triples, scoring, gap_model=gap_model)
    return [
        [partners_of_rows(one.rows()[x], one.rows()[y]) for x, y in PAIRS]
        for one in alignments
    ]


def counts(columns, truth) -> np.ndarray:
    """(triples, 3): right pairs, pairs of the reference, pairs of the alignments."""
    return np.array([
        [
            sum(int(((f == t) & (t >= 0)).sum()) for f, t in zip(fs, ts, strict=True)),
            sum(int((t >= 0).sum()) for t in ts),
            sum(int((f >= 0).sum()) for f in fs),
        ]
        for fs, ts in zip(columns, truth, strict=True)
    ])  # fmt: skip


def row_of(name, family, count: int, natural: bool) -> dict:
    """A family: recall of every way, and what three at once gain."""
    affine, linear = Scoring(), Scoring(gap_open=4, gap_extend=4)
    at = drawn(family, count)
    decode = affine.alphabet.decode
    texts = [tuple(decode(sequence(family, k)) for k in triple) for triple in at]
    truth = [[partners(family, t[x], t[y]) for x, y in PAIRS] for t in at]
    ways = {
        "pairwise": pairwise(texts, affine),
        "linear": together(texts, linear, "linear"),
        "quasi": together(texts, affine, "quasi-natural"),
    }
    if natural:
        ways["natural"] = together(texts, affine, "natural")
    totals = {way: counts(columns, truth) for way, columns in ways.items()}
    same = np.mean([identity(family, t[x], t[y]) for t in at for x, y in PAIRS])
    row = {"family": name, "triples": count, "identity": round(float(same), 2)}
    for way, each in totals.items():
        row[f"{way} recall"] = float(each[:, 0].sum() / each[:, 1].sum())
    gain = [each[:, 0] / each[:, 1] for each in (totals["quasi"], totals["pairwise"])]
    gain = gain[0] - gain[1]
    row["gain"] = float(gain.mean())
    row["error"] = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    for way in ("pairwise", "quasi"):
        each = totals[way]
        row[f"{way} precision"] = float(each[:, 0].sum() / each[:, 2].sum())
    return row


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "json")
    parser.add_argument("--natural", action="store_true")
    parser.add_argument("--families", nargs="*", choices=list(TRIPLES))
    options = parser.parse_args(argv)
    report: dict = {"machine": measure.machine()}
    globins = fasta.read_family(problems.ROOT / "jaxalign/data/globins4.fasta")
    families = fasta.pfam() | {"globins4": globins}
    wanted = QUICK if options.quick else TRIPLES
    names = options.families or wanted
    report["rows"] = [
        row_of(name, families[name], wanted[name], options.natural) for name in names
    ]
    measure.show(report["rows"])
    measure.save(options.json, report)


if __name__ == "__main__":
    main()
