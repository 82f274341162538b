"""The estimator contract, the same for all probes."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from deixis.probes import DiscriminantProbe, LogisticProbe, MeanDifferenceProbe, RidgeProbe

PROBES = [RidgeProbe(), LogisticProbe(), MeanDifferenceProbe(), DiscriminantProbe()]


@parametrize_with_checks(PROBES)
def test_every_probe_keeps_the_estimator_contract(estimator, check):
    check(estimator)
