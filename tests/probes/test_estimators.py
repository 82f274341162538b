"""The estimator contract, the same for all probes."""

import numpy as np
import pytest
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

from deixis.probes import AngleProbe, DiscriminantProbe, LogisticProbe, MeanDifferenceProbe, OrdinalProbe, RidgeProbe

PROBES = [RidgeProbe(), LogisticProbe(), MeanDifferenceProbe(), DiscriminantProbe(), OrdinalProbe(), AngleProbe()]


@parametrize_with_checks(PROBES)
def test_every_probe_keeps_the_estimator_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_tensors_give_what_the_same_numbers_in_arrays_give(probe, dtype):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(30, 4))).to(dtype).requires_grad_()
    y = torch.as_tensor(np.arange(30) % 3)
    plain = X.detach().double().numpy()
    np.testing.assert_array_equal(probe.fit(X, y).predict(X), probe.fit(plain, y.numpy()).predict(plain))
