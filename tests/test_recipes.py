"""The recipes of docs/recipes say what the package says, and run where they can."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import jaxalign

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "docs" / "recipes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GLOBINS = ROOT / "jaxalign" / "data" / "globins.fasta"


@pytest.fixture
def folder(tmp_path):
    """A folder with sequences, and what it takes to find ``jaxalign`` there."""
    shutil.copy(GLOBINS, tmp_path)
    program = tmp_path / "bin" / "jaxalign"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m jaxalign "$@"\n')
    program.chmod(0o755)
    return tmp_path


def run(command: list[str], folder: Path) -> None:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def check_split(folder: Path) -> None:
    """The files of a split of the globins without a leak."""
    assert len((folder / "globins.split.tsv").read_text().splitlines()) == 17
    about = json.loads((folder / "globins.certificate.json").read_text())
    assert about["leaks"] == 0 and len(about["parts"]) == 2


def test_the_conda_recipe_has_the_packages_dependencies():
    text = (RECIPES / "conda" / "meta.yaml").read_text()
    needs = re.search(r"  run:\n((?:    - .+\n)+)", text)[1]
    needs = {line.strip("- ").replace(" ", "") for line in needs.splitlines()}
    assert needs == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    entry = "jaxalign = " + PROJECT["scripts"]["jaxalign"]
    assert entry in text and f'version = "{PROJECT["version"]}"' in text


def test_environments_have_this_version():
    files = [*RECIPES.rglob("environment.y*ml")]
    pinned = [re.search(r"jaxalign=(.+)", x.read_text())[1] for x in files]
    assert pinned == [PROJECT["version"]] * 2


def test_the_image_copies_what_the_wheel_is_made_of():
    text = (RECIPES / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {
        "benchmarks"
    }
    files = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]}
    assert names == packages | {x for x in files if x.split("/")[0] not in packages}
    extras = re.search(r"ARG EXTRAS=(\S+)", text)[1].split(",")
    assert {*extras} <= {*PROJECT["optional-dependencies"]}


def test_the_licences_are_those_of_code_and_data():
    """The expression of the wheel names what its data are under, too, and the files of
    licences that it ships say what each is."""
    text = "".join((ROOT / name).read_text() for name in PROJECT["license-files"])
    names = {
        "BSD 3-Clause License": "BSD-3-Clause",
        "https://creativecommons.org/licenses/by/4.0/": "CC-BY-4.0",
        "https://creativecommons.org/publicdomain/zero/1.0/": "CC0-1.0",
    }
    wanted = {names[name] for name in names if name in text}
    assert len(wanted) == 3 and {*PROJECT["license"].split(" AND ")} == wanted


@pytest.mark.slow
def test_the_script_of_the_nextflow_module(folder):
    """Without the engine: its variables are put in place as Groovy would."""
    text = (RECIPES / "nextflow/modules/jaxalign/split/main.nf").read_text()
    script = re.search(r'script:.*?"""\n(.*?)"""', text, re.DOTALL)[1]
    values = {
        "fasta": "globins.fasta",
        "min_identity": "0.4",
        "parts": "train=0.75,test=0.25",
        "task.cpus": "2",
        "task.process": "JAXALIGN_SPLIT",
        "prefix": "globins",
        "args": "--seed 1",
    }

    def value(found) -> str:
        return values[found[1] or found[2]]

    script = re.sub(r"(?<!\\)\$(?:\{([\w.]+)\}|([a-z][\w.]*))", value, script)
    script = re.sub(r"\\(.)", r"\1", script)
    lines = "\n".join(line.removeprefix("    ") for line in script.split("\n"))
    run(["bash", "-euo", "pipefail", "-c", lines], folder)
    check_split(folder)
    assert (folder / "globins.report.html").exists()
    shown = f'"JAXALIGN_SPLIT":\n    jaxalign: {jaxalign.__version__}\n'
    assert (folder / "versions.yml").read_text() == shown


@pytest.mark.slow
def test_the_snakemake_wrapper(folder):
    snakemake = shutil.which("snakemake")
    if snakemake is None:
        pytest.skip("Snakemake is not installed")
    recipes = RECIPES / "snakemake"
    test = recipes / "jaxalign" / "split" / "test" / "Snakefile"
    command = [snakemake, "-s", str(test), "--cores", "1", "-d", str(folder)]
    run([*command, "--wrapper-prefix", f"file://{recipes}/"], folder)
    check_split(folder)
    assert "no leak" in (folder / "globins.log").read_text()
