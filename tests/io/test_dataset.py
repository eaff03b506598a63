"""A folder of parts: what is not as it was written is computed again or refused."""

import json
import os
import shutil
from pathlib import Path

import pytest
from draws import changed, damaged

import jaxalign
from jaxalign.errors import InputError, JaxalignError, UsageError
from jaxalign.io import arrow, runs
from jaxalign.pairs.part_stream import Part

pq = pytest.importorskip("pyarrow.parquet")
RUN = {"parts": 2, "mode": "global"}
PARTS = [Part(0, 0, 1, 0, 2, 90), Part(1, 1, 3, 2, 3, 18)]


@pytest.fixture(scope="module")
def table():
    return jaxalign.align_all(["MKTAYIA", "MKTAIA", "MRV"])


@pytest.fixture
def folder(table, tmp_path):
    path = str(tmp_path / "out")
    fill(path, table)
    return path


def fill(path, table, run=RUN):
    runs.SavedRun(path, run).begin(False, False, False)
    write(path, table, 0, run)
    write(path, table, 1, run)


def write(path, table, index, run=RUN):
    rows = table[:2] if index == 0 else table[2:]
    runs.SavedRun(path, run).write_part(rows, PARTS[index], None, "alignment")


def files(path, index):
    return runs.part_path(path, index), runs.entry_path(path, index)


def flip(path, place, mask=1):
    with open(path, "r+b") as handle:
        handle.seek(place)
        (byte,) = handle.read(1)
        handle.seek(place)
        handle.write(bytes([byte ^ mask]))


def test_whole_parts_are_known(folder):
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([0, 1], [])
    os.remove(files(folder, 0)[0])
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([1], [])


def test_every_flipped_bit_is_seen(folder):
    part, _ = files(folder, 0)
    for place in range(0, os.path.getsize(part), 13):
        flip(part, place, 1 << place % 8)
        done, (line,) = runs.SavedRun(folder, RUN).finished(PARTS)
        assert done == [1] and "damaged" in line and "part-00000.parquet" in line
        flip(part, place, 1 << place % 8)
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([0, 1], [])


def zero_body(path):
    part, _ = files(path, 1)
    size = os.path.getsize(part)
    with open(part, "r+b") as handle:
        handle.write(bytes(size // 2))


def copy_part(path):
    shutil.copy(files(path, 0)[0], files(path, 1)[0])


def copy_part_and_entry(path):
    for source, copy in zip(files(path, 0), files(path, 1), strict=True):
        shutil.copy(source, copy)


def damage_entry(path):
    with open(files(path, 1)[1], "w") as handle:
        handle.write("[]")


def dangling_link(path):
    os.remove(files(path, 1)[0])
    os.symlink(os.path.join(path, "..", "elsewhere"), files(path, 1)[0])


@pytest.mark.parametrize(
    "damage",
    [zero_body, copy_part, copy_part_and_entry, damage_entry, dangling_link],
)
def test_a_bad_part_is_written_again(folder, table, damage, tmp_path):
    damage(folder)
    done, (line,) = runs.SavedRun(folder, RUN).finished(PARTS)
    assert done == [0] and "1 part is damaged and computed again" in line
    write(folder, table, 1)
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([0, 1], [])
    assert not os.path.islink(files(folder, 1)[0])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_parts_without_checksums_are_computed_again(folder):
    for index in (0, 1):
        os.remove(files(folder, index)[1])
    done, (line,) = runs.SavedRun(folder, RUN).finished(PARTS)
    assert done == [] and "2 parts are without a checksum" in line


def test_a_part_of_another_run_is_refused(folder, table, tmp_path):
    other = str(tmp_path / "other")
    fill(other, table, RUN | {"mode": "local"})
    for source, copy in zip(files(other, 1), files(folder, 1), strict=True):
        shutil.copy(source, copy)
    with pytest.raises(UsageError, match="of another run"):
        runs.SavedRun(folder, RUN).finished(PARTS)


@pytest.mark.parametrize("name", ["part-99999.parquet", "part-1.parquet", "x.parquet"])
def test_an_unknown_part_is_refused(folder, name):
    shutil.copy(files(folder, 0)[0], os.path.join(folder, name))
    with pytest.raises(UsageError, match=f"{name}: is not a part of this run"):
        runs.SavedRun(folder, RUN).begin(True, False, False)


def test_pages_have_checksums(folder):
    """A reader who asks for it sees damage too, without the entries."""
    part, _ = files(folder, 0)
    column = pq.read_metadata(part).row_group(0).column(2)
    read = {"page_checksum_verification": True}
    assert pq.read_table(part, **read).num_rows == 2
    flip(part, column.data_page_offset + column.total_compressed_size - 1)
    with pytest.raises(OSError, match="(?i)crc|checksum"):
        pq.read_table(part, **read)


def test_a_part_that_another_process_writes_is_left_alone(folder, table, monkeypatch):
    """Two runs without shards may meet at one part: both write it."""
    parquet = arrow.parquet

    def meet(*args):
        monkeypatch.setattr(arrow, "parquet", parquet)
        parquet(*args)
        write(folder, table, 0)  # the other one, meanwhile

    monkeypatch.setattr(arrow, "parquet", meet)
    write(folder, table, 0)
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([0, 1], [])
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_two_runs_begin_one_folder(folder, monkeypatch):
    """The first has written parts before the second writes the same manifest."""
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_names", lambda path: [])
        patch.setattr(runs, "is_dataset", lambda path: False)
        runs.SavedRun(folder, RUN).begin(True, False, False)
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([0, 1], [])


@pytest.mark.parametrize("text", ["[]", "null", "[" * 100_000, "{", "\ud800"])
def test_damaged_manifests(folder, text):
    with open(os.path.join(folder, runs.DATASET_MANIFEST), "wb") as handle:
        handle.write(text.encode(errors="surrogatepass"))
    with pytest.raises(InputError, match=runs.DATASET_MANIFEST):
        runs.SavedRun(folder, RUN).begin(True, False, False)
    runs.SavedRun(folder, RUN).begin(False, True, False)
    assert runs.SavedRun(folder, RUN).finished(PARTS) == ([], [])


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_no_file_of_a_folder_is_trusted(folder, step):
    """Each entry of a manifest, and of a part, changed or missing, and its bytes: parts
    that are taken for finished are, or the folder is refused by name."""
    names = [
        runs.DATASET_MANIFEST,
        *(os.path.basename(files(folder, k)[1]) for k in (0, 1)),
    ]
    for path in (Path(folder, name) for name in names):
        data = path.read_bytes()
        documents = ((what, json.dumps(x)) for what, x in changed(json.loads(data)))
        texts = ((what, text.encode()) for what, text in documents)
        for what, content in [*damaged(data, step), *texts]:
            path.write_bytes(content)
            run = runs.SavedRun(folder, RUN)
            try:
                run.begin(True, False, False)
                finished, lines = run.finished(PARTS)
            except JaxalignError as error:
                assert folder in str(error) and "--force" in str(error), what
                continue
            assert sorted(finished) in ([0], [1], [0, 1]), what
            assert len(finished) == 2 or "computed again" in lines[0], what
            if path.name == runs.DATASET_MANIFEST:
                about = json.loads(content)
                assert {name: about.get(name) for name in RUN} == RUN, what
        path.write_bytes(data)
    path = Path(folder, runs.DATASET_MANIFEST)
    for parts in (None, True, "2", 1, -1, 2.0):
        path.write_text(json.dumps(RUN | {"parts": parts}))
        with pytest.raises(InputError):
            runs.complete(folder)


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "there.parquet"
    path.write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError, match="is not a folder"):
            runs.SavedRun(str(path), RUN).begin(True, force, False)
    assert path.read_text() == "mine"
