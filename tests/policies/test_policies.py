"""Policies by name: parameters, files and modules of your own, and what the contract demands."""

import math
import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest

import duels
from duels.engine import loop
from duels.errors import InvalidInput, PolicyError, UnknownName
from duels.policies import BUILT_IN, display_name, policy, rucb, savage


def test_names_carry_parameters():
    assert str(duels.policy("rucb")) == "rucb"
    assert str(duels.policy("rucb:alpha=0.51")) == "rucb"
    assert str(duels.policy("rucb", alpha=0.6)) == "rucb:alpha=0.6"
    assert str(duels.policy("savage:sampling=least,delta=0.05")) == "savage:delta=0.05,sampling=least"
    assert duels.policy(duels.policy("btm", gamma=3), gamma=2).params.gamma == 2
    assert policy("rucb").needs_horizon is False
    assert all(policy(name).needs_horizon for name in ("savage", "btm", "interleaved_filter"))


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
        before = loop.code_of(policy(name))
        monkeypatch.setattr(policy(name).module, "NAME", "Other")
        assert loop.code_of(policy(name)) == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rucd", "unknown policy 'rucd'. Did you mean 'rucb'? See: duels policies"),
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
        policy(spec)
    assert message in str(caught.value)


def test_policies_can_be_pickled(tmp_path):
    (tmp_path / "mine.py").write_text(
        Path(policy("random").module.__file__).read_text().replace(".kernels", "duels.policies.kernels")
    )
    for chosen in (policy("rucb:alpha=0.7"), policy(str(tmp_path / "mine.py")), policy(savage, delta=0.2)):
        back = pickle.loads(pickle.dumps(chosen))
        assert str(back) == str(chosen)
        assert back.params == tuple(chosen.params)


def test_a_file_called_like_a_built_in_policy_keeps_its_own_name(tmp_path):
    (tmp_path / "rucb.py").write_text(
        Path(policy("random").module.__file__).read_text().replace(".kernels", "duels.policies.kernels")
    )
    assert str(policy(str(tmp_path / "rucb.py"))) == "rucb.py"


def test_kernels_must_take_the_contracts_arguments():
    parts = {name: getattr(rucb, name) for name in ("Params", "init", "select", "update", "recommend")}
    with pytest.raises(
        InvalidInput, match=r"select of policy .* takes \(state, t\), expected \(state, params, t, rng\)"
    ):
        policy(SimpleNamespace(**parts | {"select": lambda state, t: (0, 1)}))
    with pytest.raises(InvalidInput, match="is not a NamedTuple"):
        policy(SimpleNamespace(**parts | {"Params": object}))
    broken = policy(SimpleNamespace(**parts | {"init": lambda arms, horizon, params: rucb.State(wrok=1)}))
    with pytest.raises(PolicyError, match=r"init of policy .* failed: TypeError"):
        broken.start(3)


def test_a_horizon_is_demanded():
    with pytest.raises(InvalidInput, match="policy savage needs a horizon"):
        policy("savage").start(4)
    policy("rucb").start(4)


def test_a_module_must_obey_the_contract():
    with pytest.raises(InvalidInput, match="has no Params, init, select, update, recommend"):
        policy(math)
    with pytest.raises(UnknownName, match="Known: verdict, rucb"):
        policy("zzz")


def test_every_module_has_a_file_of_tests():
    modules = {path.stem for path in Path(rucb.__file__).parent.glob("*.py")} - {"__init__"}
    assert modules <= {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
