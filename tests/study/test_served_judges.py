"""Studies with a language model's server over a real socket: noise, bias, latency, and every way to fail."""

import asyncio
import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import duels

SERVER = Path(__file__).parents[1] / "judges" / "judge_server.py"
STRENGTHS = {"terse": 3.0, "plain": 0.0, "wordy": -1.0}
PROMPTS = [f"Question {n}?" for n in range(40)]
OUTPUTS = {arm: [f"{arm} answer to {prompt}" for prompt in PROMPTS] for arm in STRENGTHS}


@pytest.fixture(scope="module")
def serving():
    specification = importlib.util.spec_from_file_location("judge_server", SERVER)
    module = sys.modules["judge_server"] = importlib.util.module_from_spec(specification)  # for its dataclass
    specification.loader.exec_module(module)
    return module.serving


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("duels.judges.retries.FIRST", 0.01)


def best(server, url, **options):
    judge = duels.judges.openai(server.url, "fake", price=(1.0, 2.0))
    return duels.find_best(OUTPUTS, judge, prompts=PROMPTS, storage=url, study_name="s", **options)


WAYS = {
    "well": {},
    "noise": {"noise": 0.1},
    "ties": {"ties": 0.2},
    "latency": {"latency": 0.02},
    "429": {"too_many": 0.2, "retry_after": "0"},
    "500": {"errors": 0.2},
    "malformed": {"malformed": 0.2},
    "truncated": {"truncated": 0.2},
    "no verdict": {"no_verdict": 0.2},
    "everything": {
        "noise": 0.05,
        "too_many": 0.05,
        "errors": 0.05,
        "malformed": 0.05,
        "truncated": 0.05,
        "no_verdict": 0.05,
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_the_winner_is_found(serving, url, way):
    """Seeded: σ(3) = 95 % of the verdicts are for the best arm, whatever else goes wrong."""
    with serving(strengths=STRENGTHS, seed=3, **WAYS[way]) as server:
        result = best(server, url)
        assert (result.winner, result.ended) == ("terse", "verdict")
        assert result.calls == sum(server.calls.values())  # retries included
        assert result.spent.unstored == 0
        assert result.spent.bad == server.kinds["no verdict"]
        assert server.most_at_once <= 8
        assert result.cost > 0
        failures = sum(server.kinds[kind] for kind in ("429", "500", "malformed", "truncated"))
        told = [one.note for one in result.study.events() if one.kind in ("tell", "repeat")]
        replies = sum("failed" not in note for note in told)  # the others were left when the verdict was there
        again = sum(note.get("unusable", 0) - note.get("bad", False) for note in told)  # after no verdict
        assert sum(note["calls"] for note in told) == replies + failures + again
        wanted = {"429": "429", "500": "500", "malformed": "malformed", "truncated": "truncated"}.get(way)
        assert wanted is None or server.kinds[wanted] > 0
        if way in ("well", "noise", "ties", "latency"):
            asked_twice = sum(count == 2 for count in server.calls.values())
            assert result.spent.repeats == asked_twice == server.calls.total() - len(server.calls)


def test_a_retry_after_is_waited_for(serving, url):
    with serving(strengths=STRENGTHS, too_many=0.02, retry_after="1", seed=3) as server:
        started = time.monotonic()
        result = best(server, url, concurrency=1)
        assert server.kinds["429"] > 0
        assert time.monotonic() - started >= 1.0
        assert result.spent.failed == 0


def test_a_biased_server(serving, url):
    """It says A in 90 % of the answers about equal outputs: the alarm comes, and both orders are asked."""
    with serving(strengths={arm: 3 * strength for arm, strength in STRENGTHS.items()}, first=0.97, seed=1) as server:
        result = best(server, url)
        asked = Counter(frozenset((one.left, one.right)) for one in server.calls)
        assert result.winner == "terse"
        assert any(one.biased for one in result.positions) == (max(asked.values()) == 2)
        both = best(server, url + "2", orders="both")
        assert both.winner == "terse"
        told = [one for one in both.study.events() if one.kind == "tell"]
        assert {one.note["calls"] for one in told} == {2}
        assert "tie" in {one.answer for one in told}


def test_a_wrong_key_ends_it_at_once(serving, url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key-0123456789")
    with serving(strengths=STRENGTHS, key="sk-right-key-0123456789") as server:
        result = best(server, url, concurrency=1)
        assert (result.ended, result.calls) == ("failed", 1)
        assert "sk-wrong" not in str(result)
        assert "sk-wrong" not in str(result.study.events())
        monkeypatch.setenv("OPENAI_API_KEY", "sk-right-key-0123456789")
        assert best(server, url).winner == "terse"  # the question that failed is asked again
        assert max(server.calls.values()) == 2


def test_a_server_that_is_down_and_comes_back(serving, url):
    with serving(strengths=STRENGTHS, errors=1.0) as server:
        result = best(server, url, concurrency=2)
        assert result.ended == "failed"
        assert "500" in result.error
        assert result.calls == sum(server.calls.values())
        server.behavior.errors = 0.0
        again = best(server, url)
        assert (again.winner, again.spent.unstored) == ("terse", 0)
        assert again.calls == sum(server.calls.values())


def test_limits_hold_over_the_socket(serving, url):
    with serving(strengths=dict.fromkeys(STRENGTHS, 0.0), latency=0.005) as server:
        assert best(server, url, max_calls=20).calls == sum(server.calls.values()) == 20
        one = best(server, url, max_calls=21).cost / 21
        limited = best(server, url, max_cost=40 * one, concurrency=4)
        assert limited.ended == "max_cost"
        assert limited.cost <= 40 * one * 1.05
        assert limited.calls == sum(server.calls.values())


def test_several_servers_and_an_event_loop(serving, url):
    async def main(first, second):
        judges = {name: duels.judges.openai(one.url, "fake") for name, one in (("x", first), ("y", second))}
        return await duels.judges.find_best_async(OUTPUTS, judges, prompts=PROMPTS, storage=url, concurrency=4)

    sure = {"terse": 50.0, "plain": 0.0, "wordy": -50.0}  # a second judge may be asked in the other order
    with serving(strengths=sure, seed=1) as first, serving(strengths=sure, seed=2) as second:
        result = asyncio.run(main(first, second))
        assert result.winner == "terse"
        assert result.calls == sum(first.calls.values()) + sum(second.calls.values())
        assert {one.voter for one in result.study.events() if one.kind == "tell"} == {"x", "y"}
        assert all(one.raw == 1.0 for one in result.agreements)
