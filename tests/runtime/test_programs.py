"""Programs outlive the process; what is stale, foreign or damaged is compiled again."""

import json
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache import compilation_cache

import jaxalign
from jaxalign import warmup
from jaxalign.cli.main import main
from jaxalign.runtime import (
    executable_parts,
    machine,
    program_folder,
    program_key,
    programs,
)
from jaxalign.runtime.pipeline import COUNTS, ProgramCounts

FOLDER = program_folder.FOLDER


CODE = """
import json
import numpy as np
from jaxalign.runtime.pipeline import COUNTS
from jaxalign.runtime.programs import program

@program(("times",))
def multiplied(x, *, times):
    return x * times

x = np.array([9, 10, 11], np.int32)
print(json.dumps([multiplied(x, times=5).tolist(), COUNTS.calls"""


class Pair(NamedTuple):
    one: jax.Array
    other: jax.Array


def tripled(pair: Pair, more=0, *, times: int = 3, name=None) -> Pair:
    """Something to compile."""
    return Pair((pair.one * times).astype(jnp.result_type(more)) + more, pair.other)


PAIR = Pair(np.arange(5, dtype=np.int32), np.ones((2, 2), np.float32))


def new_program(**options) -> programs.Program:
    """A program that this process has not compiled, whatever ran before."""
    copy = FunctionType(tripled.__code__, globals(), "tripled")
    copy.__kwdefaults__, copy.__defaults__ = tripled.__kwdefaults__, (0,)
    return programs.program(("times", "name"), **options)(copy)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder of programs, empty."""
    path = tmp_path / program_folder.SUBFOLDER
    monkeypatch.setenv(FOLDER, str(tmp_path))
    # What JAX has in a folder of its own is not stored again.
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield path
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


@pytest.fixture
def calls(monkeypatch):
    """How often programs were compiled, loaded and stored since the test began."""
    counts = ProgramCounts()
    monkeypatch.setattr(programs, "COUNTS", counts)
    return counts.calls


def check(program, times=3):
    found = program(PAIR, np.int32(1), times=times)
    assert isinstance(found, Pair)
    np.testing.assert_array_equal(found.one, np.arange(5) * times + 1)
    np.testing.assert_array_equal(found.other, 1)


def entries(folder) -> list[Path]:
    return sorted(folder.glob("*.program"))


# ----------------------------------------------------------------------------- loading


def test_a_program_is_compiled_once_for_all_processes(folder, calls):
    for _ in range(2):
        one = new_program()
        check(one)
        check(one)
    assert calls["compile"] == calls["store"] == calls["load"] == 1
    (entry,) = entries(folder)
    assert entry.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def to_the_host(x):
    return jax.device_put(x + 1, jax.memory.Space.Host), x + 2


def test_a_result_in_memory_of_the_host_is_written_there(folder, calls):
    for _ in range(2):
        copy = FunctionType(to_the_host.__code__, globals(), "to_the_host")
        first, second = programs.program()(copy)(np.arange(3, dtype=np.int32))
        assert first.tolist() == [1, 2, 3] and second.tolist() == [2, 3, 4]
        assert first.sharding.memory_kind == "pinned_host"
        assert second.sharding.memory_kind == "device"
    assert calls["compile"] == calls["store"] == calls["load"] == 1


def test_shapes_dtypes_and_static_arguments_have_programs_of_their_own(folder, calls):
    one = new_program()
    check(one)
    check(one, times=4)
    for first in (np.arange(6, dtype=np.int32), np.arange(5, dtype=np.uint32)):
        one(Pair(first, PAIR.other), np.int32(1))
    one(PAIR, 1)  # weakly typed
    one(PAIR)
    one(PAIR, np.int32(1), name=tripled)
    assert calls["compile"] == len(entries(folder)) == 7


def test_positional_arguments_may_be_static(folder, calls):
    power = programs.program(("exponent",))(lambda exponent, x: x**exponent)
    assert power(3, np.float32(2)) == 8 and power(2, np.float32(3)) == 9
    assert calls["compile"] == 2


def test_inside_other_transformations_it_is_the_jitted_function(folder, calls):
    one = new_program()
    found = jax.vmap(one)(jax.tree.map(lambda x: np.stack([x, x]), PAIR))
    np.testing.assert_array_equal(found.one[1], np.arange(5) * 3)
    jaxpr = jax.make_jaxpr(one)(PAIR)
    assert "tripled" in str(jaxpr) and not calls and not entries(folder)


def test_static_arguments_without_a_name_are_not_stored(folder, calls):
    check(new_program())
    for name in (lambda: 0, object()):
        one = new_program()
        one(PAIR, name=name)
    assert calls["compile"] == 3 and len(entries(folder)) == 1


def test_wider_integers_are_another_program(folder, calls):
    one = new_program()
    check(one)
    with jax.enable_x64(True):
        assert one(PAIR, np.int64(2**40)).one[0] == 2**40
        one(PAIR, 2**40)
    check(one)
    assert calls["compile"] == 3


def test_the_program_of_a_device_serves_the_others(folder, calls):
    one = new_program()
    for device in jax.devices()[:3]:
        with jax.default_device(device):
            check(one)
        found = one(jax.device_put(PAIR, device), np.int32(1), times=3)
        assert found.one.devices() == {device}
    assert calls["compile"] == len(entries(folder)) == 1 and calls["load"] == 2
    # Arrays of several devices are JAX's own affair.
    spread = jax.device_put(PAIR.one, jax.devices()[1])
    with pytest.raises(ValueError, match="devices"):
        one(Pair(spread, jax.device_put(PAIR.other, jax.devices()[2])))


def test_donated_arrays_are_used_up(folder, calls):
    for _ in range(2):
        one = programs.program(donate_argnames=("x",))(lambda x: x + 1)
        given = jnp.arange(1000)
        assert one(given)[-1] == 1000
        assert given.is_deleted()
    assert calls["compile"] == calls["load"] == 1


def test_threads_that_want_one_program_wait_for_one_compilation(calls):
    one, found = new_program(), []
    threads = [threading.Thread(target=lambda: found.append(check(one)))] * 1
    threads += [threading.Thread(target=check, args=(one,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls["compile"] == 1 and found == [None]


def test_a_failed_compilation_is_tried_again(calls, monkeypatch):
    one, compiled = new_program(), programs._compiled
    monkeypatch.setattr(programs, "_compiled", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        check(one)
    monkeypatch.setattr(programs, "_compiled", compiled)
    check(one)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="maps of Linux")
def test_programs_are_forgotten_where_memory_maps_run_short(calls, monkeypatch):
    one = new_program()
    check(one)
    check(one)
    monkeypatch.setattr(programs, "maps_run_short", lambda: True)
    check(one, times=4)
    check(one)
    assert calls["compile"] == 3


def test_who_listens_is_told_of_compilations():
    counts, told = ProgramCounts(), []
    with counts.listener(lambda *now: told.append(now)):
        with counts.compiling(), counts.compiling():
            pass
    with counts.compiling():
        pass
    assert told == [(0, 1), (0, 2), (1, 2), (2, 2)]


# ------------------------------------------------------------------ damaged and foreign


def header_of(path: Path) -> dict:
    return json.loads(path.read_bytes().split(b"\n")[2])


def rewritten(path: Path, **changes) -> None:
    """Another header, with the digest that belongs to it."""
    name = path.name.removesuffix(program_folder.SUFFIX)
    about, executable = program_folder.unpack(name, path.read_bytes())
    program_folder.write_program(str(path.parent), name, about | changes, executable)


def damaged(path: Path, how: str) -> None:
    body = path.read_bytes()
    name = path.name.removesuffix(program_folder.SUFFIX)
    changes = {
        "empty": b"",
        "cut": body[: len(body) // 2],
        "a bit": body[:-9] + bytes([body[-9] ^ 4]) + body[-8:],
        "another version": body.replace(b"program 2", b"program 1"),
        "another name": program_folder.pack("x", {}, b"1"),
        "no header": program_folder.MAGIC + 64 * b"0" + b"\n",
        "no program": program_folder.pack(name, header_of(path), b"not of XLA"),
        "no parts": program_folder.pack(name, {}, b""),
        "a pickle": pickle.dumps((b"", None, None)),
    }
    path.write_bytes(changes[how])


@pytest.mark.parametrize(
    "how",
    ["empty", "cut", "a bit", "another version", "another name", "no header"]
    + ["no program", "no parts", "a pickle"],
)
def test_a_damaged_entry_is_compiled_again(folder, calls, how):
    check(new_program())
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    damaged(entry, how)
    check(new_program())
    assert calls["compile"] == 2
    assert len(entry.read_bytes()) > len(whole) // 2  # it was replaced
    check(new_program())
    assert calls["compile"] == 2


def test_an_entry_that_xla_cannot_load_is_compiled_again(folder, calls, monkeypatch):
    """Whole, but XLA does not find its functions, as on another CPU."""
    check(new_program())
    (entry,) = entries(folder)
    stored, load = entry.stat().st_mtime_ns, programs.executable_parts.load

    def without_symbols(*_):
        raise programs.RuntimeFailure("INTERNAL: Symbols not found: [ fusion_3 ]")

    monkeypatch.setattr(programs.executable_parts, "load", without_symbols)
    check(new_program())
    assert calls["compile"] == 2 and entry.stat().st_mtime_ns > stored
    monkeypatch.setattr(programs.executable_parts, "load", load)
    check(new_program())
    assert calls["compile"] == 2


def test_a_damaged_entry_is_removed(folder):
    """Also where the program that replaces it cannot be stored."""
    folder.mkdir(0o700)
    (folder / "p.program").write_bytes(b"no program")
    (folder / "p.program").chmod(0o600)
    assert program_folder.read_program(str(folder), "p") is None
    assert not entries(folder)


def test_exchanged_entries_are_compiled_again(folder, calls):
    one = new_program()
    check(one)
    one(PAIR)
    first, second = entries(folder)
    first.rename(folder / "third")
    second.rename(first)
    (folder / "third").rename(second)
    two = new_program()
    check(two)
    np.testing.assert_array_equal(two(PAIR).one, np.arange(5) * 3)
    assert calls["compile"] == 4 and "load" not in calls


CLASSES = {
    "no class": ["named", "os", "system", ["leaf", "leaf"]],
    "a class with more to it": ["named", "subprocess", "Popen", ["leaf", "leaf"]],
    "not imported": ["named", "this", "c", ["leaf", "leaf"]],
    "no name": ["named", "os.path", "", ["leaf", "leaf"]],
}


@pytest.mark.parametrize("what", CLASSES)
def test_a_header_cannot_have_anything_called(folder, calls, what):
    check(new_program())
    (entry,) = entries(folder)
    rewritten(entry, output_tree=CLASSES[what])
    check(new_program())
    assert calls["compile"] == 2 and "this" not in sys.modules


def test_no_pickle_is_read(folder, calls, monkeypatch):
    """Neither by us nor by what JAX has for this."""
    check(new_program())

    def refuse(*_):
        raise AssertionError("a pickle")

    monkeypatch.setattr(serialize_executable, "_JaxPjrtUnpickler", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    check(new_program())
    assert calls["compile"] == 1 and calls["load"] == 1
    assert not {"pickle", "serialize_executable"} & {*vars(programs)}


def test_this_jax_has_the_private_parts_that_files_are_made_of():
    """Without them every process would compile its programs, and not say why."""
    compiled = jax.jit(lambda x: x + 1).lower(1).compile()
    unloaded = compiled._executable._unloaded_executable
    parts = executable_parts
    known = {*parts.EMPTY, *parts.LAYOUTS, *parts.OTHERS}
    assert {field.name for field in fields(unloaded)} == known
    assert isinstance(unloaded, parts.pxla.UnloadedMeshExecutable)
    assert callable(parts.compiler.get_compile_options)
    assert callable(parts.lib.xla_client.DeviceList)
    assert isinstance(compiled._no_kwargs, bool) and not compiled._params.const_args


def test_a_file_says_what_it_is_for(folder):
    check(new_program())
    about = header_of(entries(folder)[0])
    assert about["made_for"]["jax"] == jax.__version__
    assert about["made_for"]["platform"] == "cpu"
    assert about["outputs"] == [[[5], "int32", False], [[2, 2], "float32", False]]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a pipe"])
def test_what_is_no_file_is_not_waited_for(folder, calls, kind, tmp_path):
    check(new_program())
    (entry,) = entries(folder)
    entry.unlink()
    if kind == "pipe":
        os.mkfifo(entry, 0o600)
    elif kind == "link to a pipe":
        os.mkfifo(tmp_path / "pipe", 0o600)
        entry.symlink_to(tmp_path / "pipe")
    elif kind == "device":
        entry.symlink_to("/dev/zero")
    else:
        entry.mkdir(0o700)
    check(new_program())
    assert calls["compile"] == 2


@pytest.mark.parametrize("mode", [0o755, 0o2755, 0o1777, 0o700])
def test_a_folder_that_is_named_keeps_its_mode(folder, mode):
    """Whatever else is in it: a folder in it is ours."""
    place = folder.parent / "place"
    place.mkdir()
    place.chmod(mode)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(place))
        assert program_folder.program_folder() == str(place / "jaxalign")
    assert place.stat().st_mode & 0o7777 == mode
    assert (place / "jaxalign").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["others may write", "a link", "somebody else's"])
def test_an_entry_that_others_could_have_written_is_not_loaded(
    folder, calls, monkeypatch, tmp_path, how
):
    check(new_program())
    (entry,) = entries(folder)
    if how == "others may write":
        entry.chmod(0o666)
    elif how == "a link":
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
    else:
        state = entry.stat()
        other = os.stat_result((*state[:4], state.st_uid + 1, *state[5:10]))
        monkeypatch.setattr(program_folder.os, "fstat", lambda _: other)
    check(new_program())
    assert calls["compile"] == 2


def test_other_code_flags_or_versions_are_other_programs(folder, calls, monkeypatch):
    check(new_program())
    for name in ("code_digest", "processor"):
        monkeypatch.setattr(machine, name, lambda *_: "other")
        program_key.environment.cache_clear()
        check(new_program())
    monkeypatch.setenv("XLA_FLAGS", os.environ["XLA_FLAGS"] + " ")
    program_key.environment.cache_clear()
    check(new_program())
    with jax.default_matmul_precision("highest"):
        check(new_program())
    program_key.environment.cache_clear()
    assert calls["compile"] == len(entries(folder)) == 5


@pytest.mark.slow
def test_two_processes_may_write_at_once(tmp_path):
    """Both end well, and a third loads all that it needs."""
    words = [sys.executable, "-c", CODE + "['compile']]))"]
    own = os.environ | {FOLDER: str(tmp_path)}
    own.pop("JAX_COMPILATION_CACHE_DIR", None)
    start = partial(subprocess.Popen, words, env=own, stdout=subprocess.PIPE, text=True)
    told = [process.communicate()[0] for process in (start(), start())]
    assert all(out.startswith("[[45, 50, 55], ") for out in told)
    assert start().communicate()[0] == "[[45, 50, 55], 0]\n"
    assert not [*(tmp_path / program_folder.SUBFOLDER).glob(".*")]


# --------------------------------------------------------------------------- the folder


def test_the_oldest_entries_go_when_the_folder_is_full(folder, monkeypatch):
    folder.mkdir(0o700)
    for k in range(4):
        program_folder.write_program(str(folder), f"p{k}", {}, os.urandom(1000))
        os.utime(folder / f"p{k}.program", (k, k))
    assert (
        program_folder.read_program(str(folder), "p0") is not None
    )  # now it is the newest
    monkeypatch.setattr(program_folder, "MAX_BYTES", 3500)
    program_folder.write_program(str(folder), "p4", {}, os.urandom(1000))
    assert [path.stem for path in entries(folder)] == ["p0", "p3", "p4"]


def test_new_files_of_processes_that_have_ended_are_removed(folder):
    folder.mkdir(0o700)
    for name in (".old.new", ".fresh.new"):
        (folder / name).touch()
    os.utime(folder / ".old.new", (1, 1))
    program_folder.write_program(str(folder), "p", {}, b"1")
    names = {path.name for path in folder.iterdir()}
    assert names == {".fresh.new", "p.program"}


def test_a_folder_that_cannot_be_written_to_is_no_error(folder, calls, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(program_folder.tempfile, "mkstemp", refuse)
    check(new_program())
    check(new_program())
    assert calls["compile"] == 2 and not entries(folder)


@pytest.mark.parametrize("said", ["off", "", "OFF", "relative/folder"])
def test_the_folder_can_be_turned_off(monkeypatch, tmp_path, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FOLDER, said)
    assert program_folder.program_folder() is None
    assert not [*tmp_path.iterdir()]


@pytest.fixture
def default(monkeypatch, tmp_path):
    """Nobody has said where the folder is; caches are in ``tmp_path``."""
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "jaxalign"


def test_the_default_folder_is_made_and_closed(default, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "some" / "where"))
    folder = tmp_path / "some" / "where" / "jaxalign"
    assert program_folder.program_folder() == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "mode, used",
    [(0o755, True), (0o700, True), (0o750, True)]
    + [(0o777, False), (0o1777, False), (0o770, False)],
)
def test_a_folder_is_used_where_others_may_not_write(default, monkeypatch, mode, used):
    """It keeps its mode; one of somebody else is not used."""
    default.mkdir()
    default.chmod(mode)
    assert program_folder.program_folder() == (str(default) if used else None)
    assert default.stat().st_mode & 0o7777 == mode
    monkeypatch.setattr(program_folder.os, "getuid", lambda: 12345)
    assert program_folder.program_folder() is None


@pytest.mark.parametrize("kind", ["link", "file", "below a file"])
def test_what_is_no_folder_is_not_used(default, monkeypatch, tmp_path, kind):
    if kind == "link":
        (tmp_path / "other").mkdir(0o700)
        default.symlink_to(tmp_path / "other")
    else:
        default.touch()
    home = default if kind == "below a file" else tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert program_folder.program_folder() is None


@pytest.mark.parametrize("said", ["relative", ".", ""])
def test_a_relative_cache_home_is_ignored(default, monkeypatch, tmp_path, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", said)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    want = tmp_path / "home" / ".cache" / "jaxalign"
    assert program_folder.program_folder() == str(want)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_a_number_without_a_home_computes_without_a_folder(
    default, monkeypatch, capsys
):
    """As in a container that is run with ``--user 54321``."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert main(["--version"]) == 0
    assert capsys.readouterr().err == ""
    check(new_program())


def test_a_read_only_home_computes_without_a_folder(default, monkeypatch):
    default.mkdir(0o500)
    monkeypatch.setattr(program_folder.os, "access", lambda *_: False)
    check(new_program())
    assert not entries(default)


@pytest.mark.parametrize(
    "fill",
    ["wavefront", *(pytest.param(x, marks=pytest.mark.slow) for x in ("sweep", "3"))],
)
def test_results_are_the_same_from_the_folder(folder, fill):
    """Word for word, for the fills of pairs and of triples."""

    def rows():
        programs.clear()
        texts = ["MKTAYIAKQRQISFVK", "MKTAYIAKRQISFVKH", "MKAYIAKQRQISF"]
        if fill == "3":
            return jaxalign.align_three(*texts).rows()
        table = jaxalign.align_all(texts, implementation=fill, output="alignment")
        return table["score"].tolist(), [table.alignment(k).cigar() for k in range(3)]

    for one in programs._programs:  # as in a new process
        one._loaded_by_jax.clear()
    jax.clear_caches()
    before = COUNTS.calls["compile"]
    first = rows()
    compiled = COUNTS.calls["compile"]
    assert compiled > before and rows() == first
    assert COUNTS.calls["compile"] == compiled


@pytest.mark.slow
def test_what_jax_had_in_its_own_folder_is_not_stored(tmp_path):
    """XLA cannot serialise what it has loaded: such a copy would fail when run."""
    jax_folder = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

    def run(folder):
        own = os.environ | jax_folder | {FOLDER: str(folder)}
        words = [sys.executable, "-c", CODE + "]))"]
        scores, calls = json.loads(subprocess.check_output(words, env=own, text=True))
        assert scores == [45, 50, 55]
        return calls

    assert run(tmp_path / "first")["store"] > 0
    for _ in range(2):
        calls = run(tmp_path / "second")
        assert calls["compile"] > 0 and "store" not in calls
    assert "compile" not in run(tmp_path / "first")


# --------------------------------------------------------------- before they are needed


@pytest.mark.slow
def test_warm_up_leaves_the_programs_of_usual_jobs(folder, monkeypatch, capsys):
    """On the command line too; `info` says where they are."""
    monkeypatch.setattr(warmup, "MODES", ("local",))
    monkeypatch.setattr(warmup, "OUTPUTS", ("score",))
    lengths = warmup.proteins(12).lengths
    assert lengths.min() >= 20 and lengths.max() == warmup.LONGEST
    monkeypatch.setattr(warmup, "LONGEST", 60)
    few = warmup.proteins(12)
    monkeypatch.setattr(warmup, "proteins", lambda count: few)
    for one in programs._programs:  # as in a new process
        one.clear_cache()
        one._loaded_by_jax.clear()
    jax.clear_caches()
    assert main(["warmup"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "all pairs, local, score: " in lines[0]
    assert len(entries(folder)) >= 3
    assert warmup.program_files()["programs"] == len(entries(folder))
    programs.clear()
    before = COUNTS.calls["compile"]
    assert main(["warmup", "--device", "cpu"]) == 0
    assert COUNTS.calls["compile"] == before
    capsys.readouterr()
    assert main(["info"]) == 0
    assert str(folder) in capsys.readouterr().out
    monkeypatch.setenv(FOLDER, "off")
    assert main(["warmup"]) == 2
    assert "no folder" in capsys.readouterr().err


def test_an_option_of_the_command_line_turns_the_folder_off(folder, tmp_path):
    (tmp_path / "a.fa").write_text(">a\nMKTAYIA\n>b\nMKTAIA\n")
    words = ["all", str(tmp_path / "a.fa"), "--implementation", "wavefront"]
    words += ["--output", "score"]
    programs.clear()
    assert main([*words, "--no-cache"]) == 0
    assert not folder.exists()


@pytest.mark.slow
def test_mosaic_finds_its_library_before_a_kernel_is_loaded():
    """As in a process that traces nothing, since all its programs are stored."""
    code = """
import sys
from types import SimpleNamespace
from jaxalign.runtime import program_folder, programs
program_folder.read = lambda *_: ({}, b"")
programs.executable_parts.load = lambda *_: None
before = "jax.experimental.mosaic.gpu" in sys.modules
programs._loaded(("", b""), None, SimpleNamespace(platform="gpu", client=None))
print(before, "jax.experimental.mosaic.gpu" in sys.modules)
"""
    words = [sys.executable, "-c", code]
    assert subprocess.check_output(words, text=True).split() == ["False", "True"]
