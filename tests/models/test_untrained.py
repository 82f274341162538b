"""An untrained model: the same architecture, other weights, nothing else touched."""

import torch

from deixis.models import untrained
from tests.models.tiny import tiny_vlm


def test_weights_are_random_seeded_and_not_the_model_s():
    vlm = tiny_vlm("Qwen3VLForConditionalGeneration")
    before = {name: parameter.clone() for name, parameter in vlm.model.named_parameters()}
    state = torch.random.get_rng_state()
    fresh, again, other = untrained(vlm), untrained(vlm), untrained(vlm, seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    weights = dict(fresh.model.named_parameters())
    assert weights.keys() == before.keys()
    name = next(name for name in weights if name.endswith("q_proj.weight"))
    assert weights[name].shape == before[name].shape
    assert not torch.equal(weights[name], before[name])
    assert torch.equal(weights[name], dict(again.model.named_parameters())[name])
    assert not torch.equal(weights[name], dict(other.model.named_parameters())[name])
    assert all(torch.equal(parameter, before[key]) for key, parameter in vlm.model.named_parameters())
    assert fresh.name == f"{vlm.name} (untrained)"
    assert not fresh.model.training
    assert (fresh.n_layers, fresh.d_model, fresh.family) == (vlm.n_layers, vlm.d_model, vlm.family)


def test_matrices_that_start_at_zero_are_filled_and_biases_are_not():
    from deixis.models.untrained import _fill_zeros

    module = torch.nn.Linear(4, 4)
    module.gate = torch.nn.Parameter(torch.zeros(1))
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    torch.manual_seed(0)
    _fill_zeros(module, 0.02)
    assert (module.weight != 0).all()
    assert (module.gate != 0).all()
    assert not module.bias.any()
    assert module.weight.std() < 0.05
