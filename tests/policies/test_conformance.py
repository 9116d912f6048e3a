"""Every policy passes every conformance check, with the parameters that change what it does too."""

import pytest

import duels
from duels import testing
from duels.policies import BUILT_IN

VARIANTS = (
    *("rucb:variant=icml", "rcs:fallback=pool", "merge_dts:batch=2", "savage:sampling=least", "btm:gamma=0.3"),
    *("scb:factor=1,first=4,test=hoeffding", "winner_stays:variant=strong"),
)
DEEP = ("doubling:policy=btm", "doubling:policy=interleaved_filter")


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "spec", [*sorted((*BUILT_IN, *VARIANTS)), *(pytest.param(spec, marks=pytest.mark.deep) for spec in DEEP)]
)
def test_conformance(check, spec):
    check(duels.policies.load_policy(spec))
