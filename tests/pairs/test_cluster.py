"""Parts of a job on a Ray cluster of several nodes, one of which dies."""

import io
from contextlib import redirect_stdout

import pytest
from cases import same_tables, some_texts

import jaxalign
from jaxalign import DeviceError
from jaxalign.cli.main import main
from jaxalign.io import formats
from jaxalign.model.table import join
from jaxalign.runtime import devices

TEXTS = some_texts(3, 90, 200)


def node(cpus, alive=True, **others):
    return {"Alive": alive, "Resources": {"CPU": cpus} | others}


def test_shares():
    share = devices.share_of([node(8), node(4), node(2, alive=False)])
    assert share == devices.Share(4, 0, 3, 2)
    share = devices.share_of([node(8, GPU=2), node(4), node(64, GPU=4)])
    assert share == devices.Share(1, 1, 6, 4)
    with pytest.raises(DeviceError, match="neither"):
        devices.share_of([node(0)])


def tsv(table):
    with redirect_stdout(io.StringIO()) as text:
        formats.write(table, "-", "tsv")
    return text.getvalue()


@pytest.fixture(scope="module")
def nodes():
    """A head that computes nothing beside three nodes of one CPU."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    found = [made.add_node(num_cpus=1) for _ in range(3)]
    made.wait_for_nodes()
    yield made, found
    import ray

    ray.shutdown()
    made.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_refusal_on_a_worker_is_one_here(nodes):
    with pytest.raises(jaxalign.MemoryPlanError):
        jaxalign.align_all(TEXTS, cluster=nodes[0].address, memory_budget=1000)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_command_line(nodes, tmp_path):
    """A table and a folder: the bytes and rows of a run without a cluster."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "some.fa"
    path.write_text("".join(f">s{k}\n{text}\n" for k, text in enumerate(TEXTS[:30])))
    words = ["all", str(path), "-q", "--output", "stats"]
    there = ["--cluster", nodes[0].address]
    assert main([*words, "-o", f"{tmp_path}/alone.tsv"]) == 0
    assert main([*words, "-o", f"{tmp_path}/there.tsv", *there]) == 0
    alone, on_cluster = (tmp_path / f"{name}.tsv" for name in ("alone", "there"))
    assert alone.read_bytes() == on_cluster.read_bytes()
    assert main([*words, "-o", f"{tmp_path}/out/", "--part-rows", "90", *there]) == 0
    scores = pq.read_table(tmp_path / "out")["score"].to_pylist()
    assert len(list((tmp_path / "out").glob("part-*"))) > 4
    lines = alone.read_text().splitlines()[1:]
    assert scores == [int(line.split("\t")[2]) for line in lines]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pairs_that_cannot_pass_are_excluded_on_workers_too(nodes):
    options = {"min_identity": 0.3, "identity": "longer", "output": "identity"}
    want = jaxalign.align_all(TEXTS, **options, filter=False)
    options |= {"implementation": "sweep", "part_rows": 200}
    found = list(jaxalign.stream_all(TEXTS, **options, cluster=nodes[0].address))
    here = list(jaxalign.stream_all(TEXTS, **options))
    assert len(found) == len(here) > 4
    for (part, table), (same, other) in zip(found, here, strict=True):
        assert part == same and table.info["excluded"] == other.info["excluded"]
        same_tables(table, other)
    same_tables(join((table for _, table in found), found[0][1].info), want)
    excluded = [sum(table.info["excluded"].values()) for _, table in found]
    assert sum(excluded) > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_node_is_lost(nodes):
    made, found = nodes
    heard, killed = [], []

    def progress(done, total):
        heard.append((done, total))
        if not killed and done > total / 5:
            killed.append(found[1])
            made.remove_node(found[1], allow_graceful=False)

    options = {"output": "alignment", "mode": "local"}
    table = jaxalign.align_all(
        TEXTS, cluster=made.address, part_rows=60, progress=progress, **options
    )
    alone = jaxalign.align_all(TEXTS, **options)
    assert killed and heard[-1][0] == heard[-1][1]
    assert len([one for one in heard if one[0] < one[1]]) > 10
    same_tables(table, alone)
    pytest.importorskip("pyarrow")
    assert table.to_arrow().equals(alone.to_arrow())
    assert tsv(table) == tsv(alone)
