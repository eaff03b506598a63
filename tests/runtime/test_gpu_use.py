"""What ``jaxalign info`` says of a GPU: used, or why not, and what to do."""

from types import SimpleNamespace

import pytest

from jaxalign.runtime import backend, machine

NEW = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue\n"
OLD = NEW.replace("580.159.04", "535.54.03")


def said(monkeypatch, tmp_path, driver=None, plugin=None, platform="cpu", kernels=None):
    file = tmp_path / "version"
    if driver is not None:
        file.write_text(driver)
    monkeypatch.setattr(machine, "DRIVER", file)
    monkeypatch.setattr(machine, "find_spec", lambda name: name == plugin)
    monkeypatch.setattr(backend, "kernels", lambda: (kernels, "compute capability 8.0"))
    device = SimpleNamespace(platform=platform)
    monkeypatch.setattr(machine, "first_device", lambda: device)
    return machine.gpu_use()


@pytest.mark.parametrize(
    "given, used, why, hint",
    [
        ({"kernels": object(), "platform": "gpu"}, "yes", "its kernels run", None),
        ({"platform": "gpu"}, "yes", "through XLA, without kernels", None),
        ({}, "no", "no NVIDIA driver", None),
        ({"driver": NEW}, "no", "CUDA is not", 'pip install "jax[cuda13]=='),
        ({"driver": OLD}, "no", "(535)", 'pip install "jax[cuda12]=='),
        ({"driver": "?"}, "no", "(0)", 'pip install "jax[cuda12]=='),
        ({"driver": NEW, "plugin": "jax_cuda12_plugin"}, "no", "finds no GPU", "smi"),
    ],
)
def test_a_gpu_that_is_not_used_is_explained(
    given, used, why, hint, monkeypatch, tmp_path
):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    found = said(monkeypatch, tmp_path, **given)
    assert found["used"] == used and why in found["why"]
    assert ("hint" in found) == (hint is not None)
    assert hint is None or hint in found["hint"]


def test_a_variable_that_hides_the_gpu_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    found = said(monkeypatch, tmp_path, driver=NEW, plugin="jax_cuda13_plugin")
    assert "JAX_PLATFORMS is cpu" in found["why"]
