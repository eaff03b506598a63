"""The benchmark of receptor graphs runs, and draws what it says."""

import jaxalign
from benchmarks import repertoire


def test_every_job_has_a_row(capsys):
    repertoire.main(["--jobs", "tcrdist,hamming", "--counts", "40", "--repeats", "2"])
    rows = [x for x in capsys.readouterr().out.splitlines() if x.startswith("| ")]
    jobs = [row.split(" | ")[0] for row in rows[1:]]
    assert jobs == ["| tcrdist"] * 2 + ["| hamming"] * 2
    assert len({row.split(" | ")[-1] for row in rows[1:3]}) == 1


def test_drawn_sequences_are_receptors():
    texts = repertoire.drawn(300)
    assert len({*texts}) == 300 == len(jaxalign.repertoire_graph(texts))
    assert texts[:100] == repertoire.drawn(100)
