"""The conformance checks go red on policies that break a promise, and pass the example."""

import runpy
import types
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from duels import testing
from duels.errors import ConformanceError
from duels.policies import btm, load_policy, random, rucb, savage

EXAMPLE = Path(__file__).parents[1] / "examples" / "my_policy.py"
rucb_update, rucb_first_time = rucb.update, rucb.first_time  # by global names, as the compiler finds them
CONTRACT = (
    "Params",
    "init",
    "select",
    "update",
    "recommend",
    "skip",
    "check",
    "bounds",
    "explored",
    "NEEDS_HORIZON",
)


def altered(module, **changes):
    """A policy like the module's but for some kernels."""
    kept = {name: getattr(module, name) for name in CONTRACT if hasattr(module, name)}
    return load_policy(SimpleNamespace(**(kept | changes), __name__=f"altered_{module.__name__.rpartition('.')[2]}"))


@pytest.fixture
def interpreted(monkeypatch):
    """A broken policy breaks in the interpreter too, without being compiled, and in shorter and fewer runs."""
    monkeypatch.setattr(testing.loop, "ready", lambda policy, *_: testing.loop.bind(policy, compiled=False))
    monkeypatch.setattr(testing, "HORIZON", 300)
    monkeypatch.setattr(testing, "RUNS", 1000)


def failing(chosen):
    failed = []
    for check in testing.CHECKS:
        try:
            check(chosen)
        except ConformanceError:
            failed.append(check.__name__)
    return failed


@pytest.mark.deep  # as the conformance tests of RUCB itself
def test_the_unaltered_policy_passes():
    assert failing(altered(rucb)) == []


def test_a_policy_that_ignores_outcomes_is_caught(interpreted):
    def deaf(state, params, t, i, j, outcome):
        rucb_update(state, params, t, i, j, 1.0)

    for update in (deaf, lambda state, params, t, i, j, outcome: None):
        with pytest.raises(ConformanceError, match=r"recommends the wrong arm in .* of 20 runs"):
            testing.check_outcomes_read(altered(rucb, update=update))


def test_a_policy_that_favors_low_indices_is_caught(interpreted):
    def choose(m, rng):
        return 0

    for module, kernel in ((savage, "select"), (rucb, "select")):
        biased = with_helper(module, kernel, choose=choose)
        with pytest.raises(ConformanceError, match="does not treat arms equally"):
            testing.check_relabeling(altered(module, **{kernel: biased}))
    first = with_helper(random, "recommend", choose_largest=lambda values, rng: 0)
    with pytest.raises(ConformanceError, match="arm 0 is recommended"):
        testing.check_relabeling(altered(random, recommend=first))


def test_a_slight_favor_is_caught_too(interpreted):
    """One choice in five goes to the first of the equals: the counts vary from run to run, and the bias shows."""

    def choose(m, rng):
        return 0 if rng.random() < 0.2 else int(rng.random() * m)

    biased = with_helper(savage, "select", choose=choose)
    with pytest.raises(ConformanceError, match="does not treat arms equally"):
        testing.check_relabeling(altered(savage, select=biased))


def with_helper(module, kernel, **helpers):
    """The kernel as it is, but with another function in place of a helper that it or its helpers call."""
    namespace = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            namespace[name] = types.FunctionType(value.__code__, namespace, name)
    namespace.update(helpers)
    return namespace[kernel]


def test_a_skip_that_is_late_by_one_is_caught(interpreted):
    def first_time(z, alpha):
        return rucb_first_time(z, alpha) + 1

    late = with_helper(rucb, "skip", first_time=first_time)
    with pytest.raises(ConformanceError, match="`skip` must not pass a change"):
        testing.check_skip(altered(rucb, skip=late))


def test_a_policy_that_breaks_on_an_eliminated_arm_is_caught():
    def remove(members, size, member):
        for k in range(size):
            if members[k] == member:
                members[k : size - 1] = members[k + 1 : size].copy()
                return size - 1
        raise IndexError("no such arm")

    def update(state, params, t, i, j, outcome):
        """Condorcet SAVAGE's, but sure that both arms remain."""
        savage.record(state.wins, i, j, outcome)
        lead = state.wins[i, j] - state.wins[j, i]
        if lead * lead > 2.0 * (state.wins[i, j] + state.wins[j, i]) * state.log_term[0]:
            loser = j if lead > 0.0 else i
            state.left[0] = remove(state.alive, state.left[0], loser)

    with pytest.raises(ConformanceError, match=r"fails on an answer about arms .* IndexError"):
        testing.check_late_answers(altered(savage, update=update))


def test_a_policy_that_counts_answers_about_arms_that_left_is_caught():
    """No exception, but arms given up come back to be played: the choices are no longer arms that exist."""

    def update(state, params, t, i, j, outcome):
        state.left[0] += 1

    with pytest.raises((ConformanceError, IndexError)):
        testing.check_late_answers(altered(savage, update=update))


def test_hidden_state_is_caught():
    calls = []

    def select(state, params, t, rng):
        calls.append(t)
        return rucb.select(state, params, t + len(calls) // 500 * 10**6, rng)

    with pytest.raises(ConformanceError, match=r"chooses a different pair|leads? to a different state"):
        testing.check_pure(altered(rucb, select=select))


def test_a_recommendation_that_changes_the_state_is_caught():
    def recommend(state, rng):
        state.wins[0, 1] += 1.0
        return 0

    with pytest.raises(ConformanceError, match="`recommend` or `bounds` changes the state"):
        testing.check_pure(altered(rucb, recommend=recommend))


def test_arms_that_do_not_exist_are_caught():
    with pytest.raises(ConformanceError, match="selects arms 0 and 2 of 2"):
        testing.check_choices(altered(rucb, select=lambda state, params, t, rng: (0, 2)))
    with pytest.raises(ConformanceError, match="recommends arm -1 of 2"):
        testing.check_choices(altered(rucb, recommend=lambda state, rng: -1))


def test_other_failures_are_named():
    def select(state, params, t, rng):
        return state.no_such_field[0], 1

    with pytest.raises(ConformanceError, match=r"fails in check_choices: AttributeError"):
        testing.check_policy(altered(rucb, select=select))
    with pytest.raises(ConformanceError, match=r"`skip` returns \d+ at step \d+, a time in the past"):
        testing.check_pure(altered(rucb, select=lambda *_: (0, 0), skip=lambda state, params, t: t - 1))


def test_unchecked_parameters_are_caught():
    with pytest.raises(ConformanceError, match="accepts gamma=nan"):
        testing.check_parameters(altered(btm, check=lambda params: None))


@pytest.mark.deep
def test_different_compiled_play_is_caught():
    def select(state, params, t, rng):
        return (0, 1) if t << 63 > 0 else (1, 0)  # numba's integers have 64 bits

    with pytest.raises(ConformanceError, match="compiled and interpreted play differ"):
        testing.check_compiled(altered(rucb, select=select))


@pytest.mark.deep
def test_the_example_passes_and_is_raced(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")  # prints what `check_policy` returns
    said = capsys.readouterr().out
    names = [check.__name__.removeprefix("check_") for check in testing.CHECKS]
    assert said.startswith(f"passes {', '.join(names)}\n")
    assert "my_policy" in said
    assert "rucb" in said


def test_checks_are_repeatable():
    """The same answer every time: all chance is seeded."""
    a, b = (testing._Game(load_policy("rucb"), testing._ladder(4), seed=3) for _ in range(2))
    for _ in range(50):
        a.step()
        b.step()
    assert a.history == b.history
    np.testing.assert_equal(a.state, b.state)
