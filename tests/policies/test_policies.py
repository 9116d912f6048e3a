"""Policies by name: parameters, files and modules of your own, and what the contract demands."""

import math
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import duels
from duels.engine import loop
from duels.errors import InvalidInput, PolicyError, UnknownName
from duels.policies import BUILT_IN, display_name, load_policy, rucb, savage


def test_names_carry_parameters():
    assert str(duels.policies.load_policy("rucb")) == "rucb"
    assert str(duels.policies.load_policy("rucb:alpha=0.51")) == "rucb"
    assert str(duels.policies.load_policy("rucb", alpha=0.6)) == "rucb:alpha=0.6"
    assert str(duels.policies.load_policy("savage:sampling=least,delta=0.05")) == "savage:delta=0.05,sampling=least"
    assert duels.policies.load_policy(duels.policies.load_policy("btm", gamma=3), gamma=2).params.gamma == 2
    assert load_policy("rucb").needs_horizon is False
    assert all(load_policy(name).needs_horizon for name in ("savage", "btm", "interleaved_filter"))


def test_names_as_papers_print_them():
    shown = {name: display_name(name) for name in BUILT_IN}
    assert len(set(shown.values())) == len(BUILT_IN)
    assert all(text[0].isupper() and "_" not in text for text in shown.values())
    assert (shown["rucb"], shown["dts_plus"], shown["savage"]) == ("RUCB", "D-TS⁺", "Condorcet SAVAGE")
    assert display_name("rucb:alpha=0.6,variant=icml") == "RUCB (α = 0.6, variant = icml)"
    assert display_name("btm:gamma=own") == "Beat the Mean (γ = own)"
    assert display_name("doubling:policy=btm,gamma=2") == "Doubling (Beat the Mean, γ = 2)"
    # Results have only the names of a user's policies.
    assert [display_name(name) for name in ("mine", "mine:c=1", "rucb.py", "a:b")] == [
        "mine",
        "mine (c = 1)",
        "rucb.py",
        "a:b",
    ]


def test_a_display_name_is_not_part_of_the_code(monkeypatch):
    """Studies and experiments store the hash of their policy's code: a new name must not change it."""
    for name in ("rucb", "doubling"):
        before = loop.code_of(load_policy(name))
        monkeypatch.setattr(load_policy(name).module, "NAME", "Other")
        assert loop.code_of(load_policy(name)) == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rucd", "unknown policy 'rucd'. Did you mean 'rucb'? See: duels experiment policies"),
        ("rucb:alfa=1", "unknown parameter of rucb 'alfa'. Did you mean 'alpha'?"),
        ("rucb:alpha", "'alpha' in policy 'rucb:alpha' is not a parameter: expected name=value"),
        ("rucb:alpha=1,alpha=2", "sets alpha twice"),
        ("rucb:alpha=much", "alpha of rucb is 'much': expected a number"),
        ("rucb:alpha=0", "alpha of rucb is 0.0: expected a positive number"),
        ("rucb:alpha=-1", "expected a positive number"),
        ("rucb:alpha=nan", "expected a positive number"),
        ("rucb:alpha=inf", "expected a positive number"),
        ("rucb:unplayed=0.5", "unplayed of rucb is 0.5: expected a number above 0.5"),
        ("rucb:variant=best", "variant of rucb is 'best': expected 'seed' (Algorithm 1) or 'icml'"),
        ("savage:delta=1", "delta of savage is 1.0: expected a chance below 1"),
        ("savage:sampling=most", "expected 'uniform' or 'least'"),
        ("btm:gamma=0", "gamma of btm is 0.0: expected a positive number"),
        ("./nowhere.py", "policy file './nowhere.py' does not exist"),
    ],
)
def test_bad_names_and_parameters(spec, message):
    with pytest.raises(InvalidInput) as caught:
        load_policy(spec)
    assert message in str(caught.value)


NOT_POSITIVE = (0.0, -1.0, math.nan, math.inf)
BAD = [
    *(
        (policy, name, value, f"{name} of {policy} is {value}: expected a positive ")
        for policy, name in (
            *(("ccb", "alpha"), ("borda_ucb", "alpha"), ("multisbm", "alpha"), ("sparring", "alpha")),
            *(("rcs", "alpha"), ("dts", "alpha"), ("dts_plus", "alpha"), ("self_sparring", "eta")),
            ("versatile_db", "rate"),
        )
        for value in NOT_POSITIVE
    ),
    *(
        ("rex3", "gamma", value, f"gamma of rex3 is {value}: expected at most 1/2")
        for value in (-0.1, 0.6, *NOT_POSITIVE[2:])
    ),
    ("kl_rucb", "alpha", 0, "expected a positive number"),
    *((policy, "alpha", 0, f"alpha of {policy} is 0.0: expected a positive number") for policy in ("rmed2", "rmed2fh")),
    ("rmed2", "alpha", -1, "positive number"),
    *(
        (policy, "scale", -1, f"scale of {policy} is -1.0: expected 0 or a positive number")
        for policy in ("rmed1", "rmed2", "rmed2fh")
    ),
    ("rmed1", "power", -0.1, "expected 0 or a positive number"),
    *(("ecw_rmed", name, -1, "expected 0 or a positive number") for name in ("alpha", "beta")),
    ("rcs", "fallback", "all", "expected 'crowned'"),
    ("rcs", "unplayed", 0.5, "above 0.5"),
    ("scb", "factor", 0, "positive number"),
    ("scb", "first", 1, "2 steps"),
    ("scb", "test", "x", "'hoeffding'"),
    ("merge_rucb", "alpha", 0.5, "above 0.5"),
    ("merge_rucb", "delta", 0, "between 0 and 1"),
    ("merge_rucb", "batch", 1, "2 arms or more"),
    *(("merge_dts", "alpha", value, "alpha of merge_dts is") for value in (0.0, math.nan)),
    *(("merge_dts", "c", value, "c of merge_dts is") for value in (0.0, math.inf)),
    ("merge_dts", "delta", 1.0, "delta of merge_dts is 1.0"),
    ("merge_dts", "delta", 0.1, "alpha of merge_dts is 0.262144: delta needs alpha > 0.5"),
    ("merge_dts", "batch", 1, "batch of merge_dts is"),
    ("winner_stays", "variant", "mild", "'weak'"),
    *(("winner_stays", "beta", value, "above 1") for value in (1.0, -2)),
    *(("verdict", "confidence", value, f"confidence of verdict is {value}") for value in (0.0, 1.0, math.nan)),
    *(("verdict", "margin", value, f"margin of verdict is {value}") for value in (-0.1, 0.5)),
]


@pytest.mark.parametrize(("name", "parameter", "value", "message"), BAD)
def test_bad_parameters(name, parameter, value, message):
    with pytest.raises(InvalidInput) as caught:
        load_policy(name, **{parameter: value})
    assert message in str(caught.value)


@pytest.mark.parametrize("name", BUILT_IN)
def test_recommendation_before_the_first_step_favors_nobody(name):
    chosen = load_policy(name)
    state = chosen.start(4, 1000)
    assert {int(chosen.module.recommend(state, np.random.default_rng(s))) for s in range(100)} == {0, 1, 2, 3}


def test_policies_can_be_pickled(tmp_path):
    (tmp_path / "mine.py").write_text(
        Path(load_policy("random").module.__file__).read_text().replace(".kernels", "duels.policies.kernels")
    )
    for chosen in (
        load_policy("rucb:alpha=0.7"),
        load_policy(str(tmp_path / "mine.py")),
        load_policy(savage, delta=0.2),
    ):
        back = pickle.loads(pickle.dumps(chosen))
        assert str(back) == str(chosen)
        assert back.params == tuple(chosen.params)


def test_a_file_called_like_a_built_in_policy_keeps_its_own_name(tmp_path):
    (tmp_path / "rucb.py").write_text(
        Path(load_policy("random").module.__file__).read_text().replace(".kernels", "duels.policies.kernels")
    )
    assert str(load_policy(str(tmp_path / "rucb.py"))) == "rucb.py"


def test_kernels_must_take_the_contracts_arguments():
    parts = {name: getattr(rucb, name) for name in ("Params", "init", "select", "update", "recommend")}
    with pytest.raises(
        InvalidInput, match=r"select of policy .* takes \(state, t\), expected \(state, params, t, rng\)"
    ):
        load_policy(SimpleNamespace(**parts | {"select": lambda state, t: (0, 1)}))
    with pytest.raises(InvalidInput, match="is not a NamedTuple"):
        load_policy(SimpleNamespace(**parts | {"Params": object}))
    broken = load_policy(SimpleNamespace(**parts | {"init": lambda arms, horizon, params: rucb.State(wrok=1)}))
    with pytest.raises(PolicyError, match=r"init of policy .* failed: TypeError"):
        broken.start(3)


def test_a_horizon_is_demanded():
    with pytest.raises(InvalidInput, match="policy savage needs a horizon"):
        load_policy("savage").start(4)
    load_policy("rucb").start(4)


def test_a_module_must_obey_the_contract():
    with pytest.raises(InvalidInput, match="has no Params, init, select, update, recommend"):
        load_policy(math)
    with pytest.raises(UnknownName, match="Known: verdict, rucb"):
        load_policy("zzz")


def test_every_module_has_a_file_of_tests():
    """Of `random` all is in the tables."""
    modules = {path.stem for path in Path(rucb.__file__).parent.glob("*.py")} - {"__init__", "random"}
    assert modules <= {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
