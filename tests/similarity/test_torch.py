"""The functions of PyTorch's tensors: those of JAX, with gradients of every order."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import jax  # noqa: E402

import jaxalign  # noqa: E402
import jaxalign.torch as tensors  # noqa: E402
from jaxalign.errors import UsageError  # noqa: E402

LENGTHS = np.array([[3, 4], [2, 2]])
RULES = {"mode": "global", "free_ends": ("query_start", "target_end")}
SOFT = (
    "soft_score",
    "soft_posterior",
    "expected_gaps",
    "alignment_entropy",
    "alignment_log_prob",
    "kl_divergence",
)


def numbers(dtype=torch.float32):
    """Similarity (2, 3, 4), costs that differ by sequence, and temperatures."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.rand(shape, generator=generator, dtype=torch.float64).to(dtype)

    similarity = 4 * draw(2, 3, 4) - 2
    gap_open = (1 + draw(2, 3), 2 + draw())
    gap_extend = (draw(3), draw(4) / 2)
    return similarity, *gap_open, *gap_extend, 0.5 + draw(2)


def call(module, name, similarity, e_open, f_open, e_more, f_more, temperature):
    costs = {"gap_open": (e_open, f_open), "gap_extend": (e_more, f_more)}
    options = {**costs, "temperature": temperature}
    function = getattr(module, name)
    if name == "kl_divergence":
        p, q = (
            {"similarity": x, **options} for x in (similarity, similarity[..., ::1] / 2)
        )
        return function(p, q, LENGTHS, **RULES)
    more = (np.array([[0, 2, -1], [-1, 1, -1]]),) * (name == "alignment_log_prob")
    return function(*more, similarity, LENGTHS, **options, **RULES)


def leaves(values):
    return jax.tree.leaves(values)


QUICK = ("soft_score",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in SOFT],
)
def test_values_are_those_of_jax(name):
    values = numbers()
    shown = leaves(call(tensors, name, *values))
    want = leaves(call(jaxalign, name, *(x.numpy() for x in values)))
    assert len(shown) == len(want)
    for x, y in zip(shown, want, strict=True):
        assert x.dtype == torch.float32
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOFT)
def test_gradients_in_64_bits(name):
    assert not jax.config.jax_enable_x64

    def function(*values):
        found = leaves(call(tensors, name, *values))
        assert all(x.dtype == torch.float64 for x in found)
        return tuple(found)

    values = [x.requires_grad_() for x in numbers(torch.float64)]
    assert torch.autograd.gradcheck(function, values)
    assert not jax.config.jax_enable_x64


@pytest.mark.slow
@pytest.mark.parametrize("name", ["soft_score", "soft_posterior", "alignment_log_prob"])
def test_gradients_of_gradients(name):
    def function(*values):
        return call(tensors, name, *values)

    values = [x.requires_grad_() for x in numbers(torch.float64)]
    assert torch.autograd.gradgradcheck(function, values)


def score(similarity, **more):
    return tensors.soft_score(similarity, gap_open=2.0, gap_extend=0.5, **more)


def test_a_gradient_is_the_posterior():
    similarity = numbers()[0].requires_grad_()
    posterior = tensors.soft_posterior(similarity, gap_open=2.0, gap_extend=0.5)
    (gradient,) = torch.autograd.grad(score(similarity).sum(), similarity)
    np.testing.assert_allclose(gradient, posterior.detach(), atol=1e-6)
    (twice,) = torch.autograd.grad(  # of the sum of the cotangents it is 2
        score(similarity).sum() + score(similarity).sum(), similarity
    )
    np.testing.assert_allclose(twice, 2 * gradient, atol=1e-6)


def test_memory_is_shared():
    """An input that begins anywhere, in any order of strides."""
    similarity = numbers()[0]
    want = score(similarity)
    for x in (
        torch.cat([torch.zeros(3), similarity.flatten()])[3:].reshape(2, 3, 4),
        similarity.transpose(1, 2).contiguous().transpose(1, 2),
        torch.stack([similarity, similarity], -1)[..., 0],
        similarity.double().float().requires_grad_(),
    ):
        np.testing.assert_allclose(score(x).detach(), want, rtol=1e-6)
    kept = similarity.clone()
    posterior = tensors.soft_posterior(similarity, gap_open=2.0, gap_extend=0.5)
    posterior.mul_(0)
    assert torch.equal(similarity, kept)


def test_a_change_in_place():
    """Of a result: the gradient is as before. Of an input: PyTorch refuses."""
    similarity = numbers()[0].requires_grad_()
    weights = torch.arange(24.0).reshape(2, 3, 4)

    def posterior():
        return tensors.soft_posterior(similarity, gap_open=2.0, gap_extend=0.5)

    (want,) = torch.autograd.grad((posterior() * weights).sum(), similarity)
    changed = posterior()
    changed.detach().mul_(0)
    (gradient,) = torch.autograd.grad(changed, similarity, weights)
    assert torch.equal(gradient, want)
    value = score(similarity)
    with torch.no_grad():
        similarity += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.sum().backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats(dtype):
    embeddings = [x.to(dtype) for x in torch.randn(2, 2, 5, 8)]
    wide = [x.float().requires_grad_() for x in embeddings]
    embeddings = [x.requires_grad_() for x in embeddings]
    value, want = score(tuple(embeddings)), score(tuple(wide))
    assert value.dtype == torch.float32
    np.testing.assert_allclose(value.detach(), want.detach(), rtol=1e-5)
    value.sum().backward()
    want.sum().backward()
    for x, y in zip(embeddings, wide, strict=True):
        assert x.grad.dtype == dtype
        np.testing.assert_allclose(x.grad.float(), y.grad, rtol=0.02, atol=0.02)


def test_under_autocast():
    layer = torch.nn.Linear(8, 8)
    a, b = torch.randn(2, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        x, y = layer(a), layer(b)
        value = score((x, y))
    assert x.dtype == torch.bfloat16 and value.dtype == torch.float32
    assert value.item() == score((x.detach(), y.detach())).item()
    value.backward()
    assert layer.weight.grad.dtype == torch.float32
    assert layer.weight.grad.abs().sum() > 0


def test_samples_come_from_a_generator():
    similarity = torch.zeros(4, 5)

    def draw(**more):
        costs = {"gap_open": 1.0, "gap_extend": 0.5}
        return tensors.sample_alignments(20, similarity, **costs, **more)

    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert torch.equal(draw(), first) and not torch.equal(first, second)
    seeded = (draw(generator=torch.Generator().manual_seed(8)) for _ in range(2))
    assert torch.equal(*seeded)
    assert first.dtype == torch.int32 and first.shape == (20, 4)


@pytest.mark.slow
def test_paths():
    similarity = numbers()[0].requires_grad_()
    array, costs = similarity.detach().numpy(), {"gap_open": 1.0, "gap_extend": 0.5}
    best = tensors.hard_alignment(similarity, LENGTHS, **costs)
    want = jaxalign.hard_alignment(array, LENGTHS, **costs)
    several = tensors.k_best(3, similarity, LENGTHS, **costs)
    more = jaxalign.k_best(3, array, LENGTHS, **costs)
    posterior = tensors.soft_posterior(similarity, LENGTHS, **costs)
    mea = tensors.mea_alignment(posterior, lengths=LENGTHS)
    certain = jaxalign.mea_alignment(posterior.detach().numpy(), lengths=LENGTHS)
    for x, y in ((best, want), (several, more), (mea, certain)):
        assert not x.score.requires_grad
        np.testing.assert_allclose(x.score, y.score, rtol=1e-6)
        np.testing.assert_array_equal(x.partners, y.partners)
        np.testing.assert_array_equal(x.spans, y.spans)
    rows = [x.rows() for x in best.alignments(["MKV", "MK"], ["MRVA", "MR"])]
    assert rows == [x.rows() for x in want.alignments(["MKV", "MK"], ["MRVA", "MR"])]
    one = tensors.mea_alignment(posterior[0, :3], "MKV", "MRVA")
    assert one.rows()[0].replace("-", "") == "MKV"


def test_a_band_by_rows_is_a_rule():
    similarity = numbers()[0]
    first, last = np.array([0, 0, 1]), np.array([1, 2, 3])
    want = jaxalign.soft_score(
        similarity.numpy(), gap_open=2.0, gap_extend=0.5, band=(first, last)
    )
    for band in ((first, last), (torch.tensor(first), torch.tensor(last))):
        np.testing.assert_allclose(score(similarity, band=band), want, rtol=1e-6)


def test_letters_and_a_matrix():
    best = tensors.hard_alignment(
        ("MKTA", "MTA", jaxalign.Scoring()), gap_open=11, gap_extend=1
    )
    assert best.partners.tolist() == [0, -1, 1, 2]
    matrix = torch.randn(5, 5, requires_grad=True)
    codes = torch.tensor([[0, 1, 2], [3, 4, 4]])
    score((codes, codes, matrix)).sum().backward()
    assert matrix.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"gap_open": -1.0, "gap_extend": 0.5}, "a cost must be 0 or more"),
        ({"gap_open": 1.0, "gap_extend": 2.0}, "exceeds gap_open"),
        ({"gap_open": 1, "gap_extend": 1, "temperature": 0.0}, "above 0"),
        ({"gap_open": 1, "gap_extend": 1, "mode": "glocal"}, "glocal"),
        ({"gap_open": 1, "gap_extend": 1, "temperatur": 1}, "did you mean"),
    ],
)
def test_numbers_are_checked(options, text):
    with pytest.raises(UsageError, match=text):
        tensors.soft_score(torch.zeros(3, 4), **options)


def test_other_devices_are_refused():
    from jaxalign.errors import DeviceError

    with pytest.raises(DeviceError, match="meta"):
        score(torch.zeros(3, 4, device="meta"))


@pytest.mark.slow
def test_a_distribution():
    similarity, *costs, temperature = numbers()
    names = {"gap_open": (1.5, 2.0), "gap_extend": (0.5, 0.25)}
    options = {**names, "temperature": temperature, **RULES}
    similarity.requires_grad_()
    p = tensors.AlignmentDistribution(similarity, LENGTHS, **options)
    q = tensors.AlignmentDistribution(similarity / 2, LENGTHS, **options)
    drawn = p.sample(3)
    assert drawn.shape == (3, 2, 3)
    np.testing.assert_allclose(
        p.log_prob(drawn[0]).exp().sum() > 0, True, err_msg="drawn, so possible"
    )
    gap = q.cross_entropy(p) - p.entropy()
    np.testing.assert_allclose(gap.detach(), p.kl(q).detach(), atol=1e-5)
    (gradient,) = torch.autograd.grad(p.score().sum(), similarity)
    np.testing.assert_allclose(gradient, p.marginals().detach(), atol=1e-6)
    np.testing.assert_array_equal(p.top_k(2).partners[0], p.mode().partners)
    assert p.mea().partners.shape == (2, 3)
    total = (p.log_partition() * temperature).detach()
    np.testing.assert_allclose(total, p.score().detach(), rtol=1e-6)
    assert [len(x) for x in p.expected_gaps()] == [2, 2]
    other = tensors.AlignmentDistribution(similarity, **names)
    with pytest.raises(UsageError, match="different alignments"):
        p.kl(other)
