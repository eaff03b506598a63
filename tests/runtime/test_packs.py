"""Packs of programs: read where they fit, and nothing else is believed of them."""

import ast
import hashlib
import json
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest
from draws import changed, damaged
from jax.experimental import topologies
from jax.experimental.compilation_cache import compilation_cache

from jaxalign import program_table, warmup
from jaxalign.errors import DeviceError, UsageError
from jaxalign.runtime import (
    executable_parts,
    machine,
    program_folder,
    program_key,
    programs,
)
from jaxalign.runtime.pipeline import ProgramCounts
from jaxalign.runtime.programs import ProgramCall, outline
from jaxalign.warmup import make_pack

ARCHITECTURE = "sm_90"
X = np.arange(5, dtype=np.int32)
ROOT = Path(__file__).parents[2]


class Card(NamedTuple):
    """A GPU, as far as a pack looks at it."""

    platform: str = "gpu"
    compute_capability: str = "9.0"


@programs.program(("times",))
def scaled(x, *, times):
    return x * times


@pytest.fixture
def calls(monkeypatch):
    """How often programs were compiled and loaded since the test began."""
    counts = ProgramCounts()
    monkeypatch.setattr(programs, "COUNTS", counts)
    scaled.clear_cache()
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield counts.calls
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


@pytest.fixture
def pack(calls, tmp_path, monkeypatch):
    """A pack with one program, of this CPU in place of a GPU."""
    call = ProgramCall(scaled, (X,), {"times": 3})
    _, arrays = programs._split(call)
    compiled = scaled.jitted.trace(X, times=3).lower().compile()
    parts = executable_parts.parts_of(compiled, arrays, jax.devices()[0])
    program_folder.begin_pack(tmp_path)
    name = programs.key_of_call(call, ARCHITECTURE)
    program_folder.write_packed(tmp_path, name, *parts)
    modules = programs.modules_of_call(call)
    program_folder.finish_pack(tmp_path, [ARCHITECTURE], {"scale": modules})
    monkeypatch.setenv(program_folder.VARIABLE, str(tmp_path))
    program_folder.pack_of.cache_clear()
    pack_of = program_folder.pack_of
    monkeypatch.setattr(program_folder, "pack_of", lambda _: pack_of(Card()))
    yield tmp_path
    pack_of.cache_clear()


def entry(pack):
    (one,) = pack.glob("*.program")
    return one


def check(times=3):
    np.testing.assert_array_equal(scaled(X, times=times), X * times)


def test_a_program_of_a_pack_is_not_compiled(pack, calls):
    check()
    assert calls == {"load": 1}
    check(times=4)  # which it has not
    assert calls["compile"] == 1


@pytest.mark.parametrize("how", ["a bit", "another name", "others may write", "gone"])
def test_an_entry_that_is_not_what_it_says_is_compiled(pack, calls, how):
    file = entry(pack)
    if how == "a bit":
        body = file.read_bytes()
        file.write_bytes(body[:-9] + bytes([body[-9] ^ 4]) + body[-8:])
    elif how == "another name":
        file.rename(file.with_name(file.name.replace("scaled-", "scaled-0")))
    elif how == "others may write":
        file.chmod(0o666)
    else:
        file.unlink()
    check()
    assert calls["compile"] == 1 and "load" not in calls


OTHERS = {
    "jax": {"makers": {"jax": "0.1"}},
    "sources": {"sources": {"scale": ["jaxalign.runtime.programs", "0"]}},
    "no sources": {"sources": {}},
    "card": {"architectures": ["sm_80", "sm_120"]},
    "format": {"format": 0},
    "nothing": None,
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_pack_that_does_not_fit_is_said_once_and_ignored(pack, calls, what):
    manifest, changes = pack / program_folder.MANIFEST, OTHERS[what]
    if changes is None:
        manifest.unlink()
    else:
        about = json.loads(manifest.read_text())
        makers = about["makers"] | changes.get("makers", {})
        manifest.write_text(json.dumps(about | changes | {"makers": makers}))
    with pytest.warns(UserWarning, match="are not used: "):
        check()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(times=2)
    assert calls["compile"] == 2


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_damaged_pack_is_not_used(pack, step):
    """Each entry of its manifest, changed or missing, and its bytes; and the bytes of
    a program."""
    manifest, whole = (
        pack / program_folder.MANIFEST,
        program_folder.Pack(str(pack), ARCHITECTURE),
    )
    data = manifest.read_bytes()
    about = json.loads(data)
    documents = ((what, json.dumps(x).encode()) for what, x in changed(about))
    odd = (("deep", b"[" * 100_000), ("no UTF-8", b"\xff"), ("nothing", b""))
    for what, content in [*damaged(data, step), *documents, *odd]:
        manifest.write_bytes(content)
        why_not = program_folder._why_not(whole)
        if why_not is not None:
            words = program_folder.MANIFEST, "they are for", "have changed"
            assert any(x in why_not for x in words), what
            continue
        read = json.loads(content)
        assert ARCHITECTURE in read["architectures"], what
        assert read["format"] == 2 and read["makers"].items() >= about["makers"].items()
        assert about["sources"]["scale"] in read["sources"].values(), what
    program = entry(pack)
    data = program.read_bytes()
    parts = program_folder.read_packed(whole, program.stem)
    for what, content in damaged(data, step * 20):
        program.write_bytes(content)
        assert program_folder.read_packed(whole, program.stem) is None, what
    program.write_bytes(data)
    assert program_folder.read_packed(whole, program.stem) == parts


@pytest.mark.parametrize("size", [-1, 0, 1.5, "9", None, [], 2**70, True])
def test_a_program_of_another_size_than_it_says(size):
    content = program_folder.pack("x", {}, b"executable")
    start = content.index(b"{")
    body = content[start:].replace(
        b'"bytes": 10', b'"bytes": ' + json.dumps(size).encode()
    )
    checksum = hashlib.sha256(body).hexdigest().encode() + b"\n"
    assert program_folder.unpack("x", program_folder.MAGIC + checksum + body) is None


def test_a_pack_that_was_interrupted_is_begun_anew(pack):
    """Whenever that was: nothing of the pack before it is taken for its own."""
    program_folder.begin_pack(pack)
    assert [*pack.iterdir()] == []
    (pack / "half.program").write_bytes(b"jaxalign")
    (pack / program_folder.MANIFEST).write_text("{")
    program_folder.begin_pack(pack)
    assert [*pack.iterdir()] == []


def test_a_pack_of_somebody_else_is_not_used(pack, calls, monkeypatch):
    monkeypatch.setattr(program_folder, "_owners", lambda: (os.getuid() + 1,))
    with pytest.warns(UserWarning, match="root, may write to"):
        check()


def test_a_pack_comes_before_the_folder(pack, calls, monkeypatch, tmp_path):
    monkeypatch.setenv(program_folder.FOLDER, str(tmp_path / "own"))
    check()
    assert not [*(tmp_path / "own").rglob("*.program")]


@pytest.mark.parametrize("value", ["", "off"])
def test_a_pack_can_be_switched_off(monkeypatch, value):
    monkeypatch.setenv(program_folder.VARIABLE, value)
    assert program_folder.pack_place() is None


def test_names_depend_on_the_call_and_the_card():
    calls = [ProgramCall(scaled, (x,), {"times": n}) for x, n in ((X, 3), (X[1:], 3))]
    calls.append(ProgramCall(scaled, (X,), {"times": 4}))
    names = {programs.key_of_call(x, a) for x in calls for a in ("sm_90", "sm_100")}
    assert len(names) == 6
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    same = ProgramCall(scaled, (shape,), {"times": 3})
    assert programs.key_of_call(same, ARCHITECTURE) in names


def test_an_outline_runs_and_compiles_nothing(calls):
    with outline() as seen:
        shape = scaled(X, times=3)
        scaled(shape, times=2)
    assert [x.name for x in seen] == ["scaled"] * 2 and not calls
    assert (shape.shape, shape.dtype) == (X.shape, X.dtype)
    check()
    assert len(seen) == 2


def test_what_cannot_become_a_pack_is_refused(tmp_path):
    with pytest.raises(UsageError, match="h1000: one of a100"):
        make_pack("h100,h1000", str(tmp_path))
    (tmp_path / "thesis.txt").write_text("words")
    with pytest.raises(UsageError, match="something else"):
        make_pack("h100", str(tmp_path))


def test_without_the_plugin_there_is_a_hint(calls, monkeypatch):
    def fail(**_):
        raise RuntimeError("unknown platform")

    monkeypatch.setattr(topologies, "get_topology_desc", fail)
    with pytest.raises(DeviceError, match=r"cuda13\]; no GPU is needed"):
        programs.topology_device("")


def test_processes_share_the_programs_of_a_pack(calls, tmp_path, monkeypatch):
    """Each job is one share's, and each program is made once."""
    monkeypatch.setattr(warmup, "target_device", lambda _: jax.devices()[0])
    monkeypatch.setattr(programs, "make_program", counted_program)
    jobs = {"all pairs": (3, 4), "three": (4,), "search": (5, 3), "family": ()}

    def listed(_kernels):
        for name, factors in jobs.items():
            yield name, lambda factors=factors: [scaled(X, times=k) for k in factors]

    monkeypatch.setattr(program_table, "jobs", listed)
    program_folder.begin_pack(tmp_path)
    shares = [list(warmup.make_share(["9.0"], str(tmp_path), k, 3)) for k in range(3)]
    made = [[x["job"] for x in share[:-1]] for share in shares]
    assert made == [["all pairs"] * 2, [], ["search"]]
    assert len(list(tmp_path.glob("*.program"))) == 3
    modules = [set(share[-1]["modules"]) for share in shares]
    assert modules == [{"all", "family"}, {"three"}, {"search"}]


def counted_program(_call, _device, architecture, _folder):
    assert architecture == "sm_90"
    return 1


def test_the_makers_of_a_pack_are_versions():
    assert {"jax", "jaxlib"} <= set(program_key.pack_makers())


def imports_of(file):
    """The modules of the project that a file imports, by Python's own parser."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (x.name for x in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, file
            yield from (f"{node.module}.{x.name}" for x in node.names)


def module_of(file):
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.slow
def test_every_import_counts_as_a_source():
    for file in sorted(x for p in machine.PACKAGES for x in (ROOT / p).rglob("*.py")):
        (home,) = machine.modules_of(module_of(file))
        imported = machine.modules_of(" ".join(imports_of(file)))
        assert {*imported} <= machine._source(home)[1] | {home}, file


MADE_OF = {
    "jaxalign.database.scan": "jaxalign/database/dp/[!_]*.py",
    "jaxalign.pairs.cpu.execute": "jaxalign/pairs/dp/sweep/[!_]*.py",
    "jaxalign.pairs.gpu.device_job": "kernels_pallas/pairs/[!_]*.py",
    "jaxalign.similarity.soft.engine": "jaxalign/similarity/soft/dp/[!_]*.py",
    "kernels_pallas.triples.api": "kernels_pallas/triples/[!_]*.py",
    "kernels_pallas.words.edits": "kernels_pallas/core/[!_]*.py",
}


@pytest.mark.parametrize("maker", MADE_OF)
def test_a_program_outlives_changes_of_what_it_is_not_made_of(maker, monkeypatch):
    """Edit one file after the other: keys change with those that a program is made of,
    and with no file of the command line, of readers, or of links."""

    def digest_with(file):
        (home,) = machine.modules_of(module_of(file))

        def edited(module):
            digest, imported = source(module)
            return ("edited" if module == home else digest), imported

        monkeypatch.setattr(machine, "_source", edited)
        machine._digest_of.cache_clear()
        return machine.code_digest(f"{program_key.MAKER} {maker}")

    source = machine._source
    before = machine.code_digest(f"{program_key.MAKER} {maker}")
    made_of = [
        *ROOT.glob(MADE_OF[maker]),
        ROOT / "jaxalign/runtime/executable_parts.py",
    ]
    elsewhere = [
        file
        for package in ("cli", "io", "homology", "family", "data", "torch")
        for file in (ROOT / "jaxalign" / package).rglob("*.py")
    ]
    assert len(made_of) > 1 and len(elsewhere) > 50
    changed = {file: digest_with(file) != before for file in [*made_of, *elsewhere]}
    machine._digest_of.cache_clear()
    assert [x for x, other in changed.items() if other] == made_of


def test_info_names_the_verbs_that_a_pack_serves(pack):
    facts = program_folder.pack_facts(Card())
    assert facts == {"pack": str(pack), "pack_serves": "scale"}
    manifest = json.loads((pack / program_folder.MANIFEST).read_text())
    manifest["sources"]["turn"] = [program_key.MAKER, "0"]
    (pack / program_folder.MANIFEST).write_text(json.dumps(manifest))
    facts = program_folder.pack_facts(Card())
    assert facts["pack_is_outdated_for"] == "turn" and facts["pack_serves"] == "scale"


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("jax_cuda13_plugin"), reason="JAX's plugin for CUDA")
def test_the_plugin_makes_programs_without_a_gpu(tmp_path):
    """Of a search: a kernel with what is around it; and of triples, whose result is
    written to the host."""
    words = [sys.executable, "-c", MAKE, str(tmp_path)]
    own = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
    subprocess.run(words, check=True, env=own)
    made = {}
    for file in tmp_path.glob("*.program"):
        about, executable = program_folder.unpack(file.stem, file.read_bytes())
        assert about["made_for"]["architecture"] == "sm_90" and len(executable) > 10**5
        made[about["function"]] = about["outputs"], about["memories"][1]
    assert made == {
        "jit(launched_scores)": ([[[64, 2**18], "int32", False]], [None]),
        "jit(solve_packed)": ([[[1, 4], "uint8", False]], ["pinned_host"]),
    }


MAKE = """
import sys
from pathlib import Path

import kernels_pallas
from jaxalign import program_table
from jaxalign.runtime import programs

card = kernels_pallas.HOPPER
search = f"search of {program_table.BLOCKS[0]:,}, {program_table.CUDASW}"
three = "three, 1 of 192, linear, global scores"
names = {search: "launched_scores", three: "solve_packed"}
with kernels_pallas.made_for(card):
    table = dict(program_table.calls_of(kernels_pallas, names))
    device = programs.topology_device(kernels_pallas.configuration(card))
    for job, name in names.items():
        (call,) = [x for x in table[job] if x.name == name]
        programs.make_program(call, device, "sm_90", Path(sys.argv[1]))
"""
