"""Show which chains structure links, and sequence does not.

    python -m benchmarks.structures
    python -m benchmarks.structures --plot docs/images/structures.png

All pairs of the 19 chains of jaxalign/data/structures by the preset foldseek and by
BLOSUM62, 11 and 1: score over the smaller self score, and identical residues over the
columns of the path. Families are those that the headings name. Needs matplotlib for
--plot.
"""

from pathlib import Path

import measure
import numpy as np
import problems

import jaxalign

CHAINS = Path(problems.ROOT) / "jaxalign/data/structures/chains.fasta"
CUT, IDENTITY = 0.25, 0.3  # of relative scores, and the usual one of a split
FAMILIES = {
    "serine proteases": {"1GBT_A", "4ZHL_U"},
    "hinges of SMC1 and SMC3": {"6WG6_A", "6WG6_B"},
    "receptors of G proteins": {"6WQA_A", "7CFN_R"},
}


def pairs_of(scoring: jaxalign.Scoring) -> tuple[jaxalign.Table, np.ndarray]:
    """The local alignments of all pairs, and their relative scores."""
    table = jaxalign.align_all(CHAINS, scoring, mode="local")
    of_self = scoring.self_scores(table.queries)
    smaller = np.minimum(of_self[table["query"]], of_self[table["target"]])
    return table, table["score"] / smaller


def main(argv=None) -> None:
    chosen = measure.arguments(__doc__, "plot").parse_args(argv)
    table, relative = pairs_of(jaxalign.Scoring.preset("foldseek"))
    _, of_sequence = pairs_of(jaxalign.Scoring())
    identity = table.identity("alignment")
    clusters = [
        jaxalign.cluster(CHAINS, min_identity=IDENTITY),
        jaxalign.cluster(
            CHAINS,
            jaxalign.Scoring.preset("foldseek"),
            min_relative_score=CUT,
            mode="local",
            identity="shorter",
        ),
    ]
    print(
        "| family | identity | relative score | of sequence | by sequence | by both |"
    )
    print("|---|---|---|---|---|---|")
    family_of = {}
    for k in range(len(table)):
        names = {table.row(k)["query"], table.row(k)["target"]}
        for family, members in FAMILIES.items():
            if names == members:
                family_of[k] = family
                i, j = table["query"][k], table["target"][k]
                joined = [str(x.labels[i] == x.labels[j]) for x in clusters]
                figures = f"{identity[k]:.3f} | {relative[k]:.3f}"
                figures += f" | {of_sequence[k]:.3f} | {' | '.join(joined)}"
                print(f"| {family} | {figures} |")
    others = np.setdiff1d(np.arange(len(table)), [*family_of])
    print(f"of {len(others)} other pairs the highest: {relative[others].max():.3f}")
    if chosen.plot:
        draw(chosen.plot, identity, relative, others, family_of)


def draw(
    path: str,
    identity: np.ndarray,
    relative: np.ndarray,
    others: np.ndarray,
    family_of: dict[int, str],
) -> None:
    """Draw relative scores against identities; the families have their names."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(6.5, 4))
    panel.axvspan(0, 0.2, color="0.95", zorder=0)
    panel.axhline(CUT, color="0.6", lw=0.8)
    panel.scatter(identity[others], relative[others], s=14, color="0.6")
    for k, family in family_of.items():
        panel.scatter(identity[k], relative[k], s=40, color="C3")
        panel.annotate(family, (identity[k], relative[k]), (6, 5),
                       textcoords="offset points", fontsize=9)  # fmt: skip
    panel.set_xlim(0, max(0.55, identity.max() * 1.1))
    panel.set_ylim(0, 0.55)
    panel.set_xlabel("identical residues, of the columns of the alignment")
    panel.set_ylabel("score / smaller self score (3Di and residues)")
    figure.tight_layout()
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
