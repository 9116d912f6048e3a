"""Judges answer tuning studies: limits, failures, resuming, and whether they find the optimum."""

import asyncio
import doctest
import json
import math
import sys
from functools import partial

import numpy as np
import pytest

import duels
from duels.continuous import find_function
from duels.continuous.tuning import judged
from duels.errors import Conflict, InvalidInput
from duels.judges import Answer, command
from duels.storage.storage import Storage
from duels.study.judging import run as running

LINE = {"x": (0.0, 1.0), "style": ["terse", "warm"]}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    async def at_once(self, seconds):
        return self.ended in running.OUT

    monkeypatch.setattr(running.Run, "pause", at_once)


def closer(left, right):
    return "left" if abs(left["x"] - 0.3) < abs(right["x"] - 0.3) else "right"


def test_a_judge_finds_the_optimum_of_branin():
    """Seed 0, 40 duels, answers without noise: simple regret at most 0.08 standard deviations of the function.

    Of seeds 0 to 9, the largest regret is 0.031.
    """
    branin = find_function("branin")
    names = branin.space.names

    def value(setting):
        return float(branin.values(np.array([[setting[name] for name in names]]))[0])

    def judge(left, right):
        return "left" if value(left) > value(right) else "right"

    result = duels.tune(branin.space, judge, max_duels=40, concurrency=1, storage="sqlite://")
    points = np.array(
        [[branin.space.decode(u)[name] for name in names] for u in np.random.default_rng(0).random((4000, 2))]
    )
    assert (branin.maximum - value(result.best.setting)) / branin.values(points).std() <= 0.08
    assert (result.ended, result.calls, result.best.answers) == ("max_duels", 40, 40)
    assert result.best.sure > 0.5


def test_the_examples_are_true():
    assert doctest.testmod(judged, extraglobs={"duels": duels}) == (0, 8)


def test_tune_async():
    """In an event loop that goes on meanwhile: it finds what `tune` finds, and goes on where that has stopped."""
    storage, ticks = Storage("sqlite://"), []

    async def judge(left, right):
        await asyncio.sleep(0)
        return closer(left, right)

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    async def main():
        clock = asyncio.create_task(tick())
        options = {"storage": storage, "study_name": "s", "concurrency": 1, "policy": "eubo:initial=4"}
        first = await duels.continuous.tune_async(LINE, judge, max_duels=10, **options)
        seen = len(ticks)
        second = await duels.continuous.tune_async(LINE, judge, max_duels=14, **options)
        clock.cancel()
        return first, second, seen

    first, second, seen = asyncio.run(main())
    assert seen > 2
    assert (first.ended, first.duels, second.duels, second.study.name) == ("max_duels", 10, 14, "s")
    same = duels.tune(LINE, closer, max_duels=14, storage="sqlite://", concurrency=1, policy="eubo:initial=4")
    assert second.best == same.best
    with pytest.raises(InvalidInput, match="max_duels is 0"):
        asyncio.run(duels.continuous.tune_async(LINE, judge, max_duels=0, storage=storage, study_name="s"))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_run_goes_on_where_it_stopped(is_async):
    asked = []

    def judge(left, right):
        assert set(left) == {"x", "style"}
        asked.append((left, right))
        return closer(left, right)

    async def later(left, right):
        return judge(left, right)

    storage, function = Storage("sqlite://"), later if is_async else judge
    first = duels.tune(LINE, function, max_duels=5, policy="random", concurrency=2, storage=storage)
    assert (first.ended, first.duels, first.calls) == ("max_duels", 5, 5)
    study = first.study
    study.ask()  # by somebody at the same time: it counts, and is not the judge's
    again = duels.tune(LINE, function, max_duels=9, policy="random", concurrency=3, storage=storage)
    assert again.study.name == study.name
    assert (again.duels, again.calls, len(asked)) == (9, 8, 8)
    assert [duel.id for duel in study.open_duels()] == [5]
    assert study.check() == len(study.events())
    same = duels.tune(LINE, function, max_duels=9, policy="random", storage=storage)
    assert (same.calls, len(asked)) == (8, 8)
    assert str(same).splitlines()[-2:] == [
        "9 duels asked, as many as wanted: raise max_duels (--max-duels) to continue.",
        "8 calls.",
    ]


def test_questions_of_a_killed_run_are_asked_first():
    storage = Storage("sqlite://")
    study = duels.create_study(space=LINE, storage=storage, policy="random")
    study._log.write(
        partial(study._log.ask, n=2, about=lambda *_: {"calls": 1}), last=True
    )  # what a run writes before it calls its judge
    result = study.run(closer, max_duels=4, concurrency=1)
    assert [entry.kind for entry in study.events()][3:5] == ["again", "tell"]
    assert (result.calls, result.spent.unstored, result.best.answers) == (6, 2, 4)


def test_a_judge_s_words_costs_and_skips():
    words = iter([Answer("tie", note="the same", cost=0.25), "both_bad", "skip", "left", "right"])
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    result = study.run(lambda prompt, left, right: next(words), max_duels=5, concurrency=1)
    assert (result.cost, result.best.answers, result.duels) == (0.25, 4, 5)
    assert study.votes()["comment"].to_list()[0] == "the same"


def test_a_judge_that_fails_ends_the_run():
    def broken(left, right):
        raise NameError("no such thing")

    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    result = study.run(broken, max_duels=20, concurrency=1)
    assert (result.ended, result.error) == ("failed", "NameError: no such thing")
    assert study.run(closer, max_duels=20).ended == "max_duels"  # nothing it said counts, so another may go on


def test_replies_without_an_answer_do_not_use_up_the_duels():
    """A judge that was mended goes on, as the message says."""
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    words = ["nonsense"]

    def judge(left, right):
        return words[0]

    first = study.run(judge, max_duels=5, concurrency=1)
    assert (first.ended, first.best.answers) == ("failed", 0)
    words[0] = "left"
    second = study.run(judge, max_duels=5, concurrency=1)
    assert (second.ended, second.best.answers) == ("max_duels", 5)


def test_another_judge_is_refused():
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    study.run(closer, max_duels=3)
    with pytest.raises(Conflict, match="was answered by another judge"):
        study.run(lambda left, right: "left", max_duels=4)


def test_several_judges_and_both_orders():
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")

    def always_left(left, right):
        return "left"

    result = study.run({"ann": closer, "bob": always_left}, max_duels=6, concurrency=2, orders="both")
    assert {entry.voter for entry in study.events() if entry.kind == "tell"} == {"ann", "bob"}
    assert {entry.answer for entry in study.events() if entry.voter == "bob" and entry.kind == "tell"} == {"tie"}
    assert result.calls >= 12
    assert study.check() == len(study.events())


@pytest.mark.parametrize(
    ("limits", "ended", "duels_asked"), [({"max_calls": 3}, "max_calls", 3), ({"max_cost": 1.0}, "max_cost", 4)]
)
def test_limits(limits, ended, duels_asked):
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    result = study.run(lambda left, right: Answer(closer(left, right), cost=0.25), concurrency=1, **limits)
    assert (result.ended, result.duels) == (ended, duels_asked)


def test_without_a_limit_there_are_fifty_duels():
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    assert study.run(closer).duels == 50


@pytest.mark.parametrize("wrong", [{"max_duels": 0}, {"max_calls": 0}, {"concurrency": 0}, {"orders": "three"}])
def test_wrong_arguments(wrong):
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        study.run(closer, **wrong)
    assert len(study.events()) == 1


def test_a_program_gets_both_settings_as_json(tmp_path):
    program = tmp_path / "judge.py"
    program.write_text(
        "import json, sys\n"
        "question = json.loads(sys.stdin.readline())\n"
        f"open({str(tmp_path / 'seen')!r}, 'a').write(json.dumps(question) + '\\n')\n"
        "print('left' if question['left']['x'] > question['right']['x'] else 'right')\n"
    )
    study = duels.create_study(space=LINE, storage="sqlite://", policy="random")
    study.run(command(f"{sys.executable} {program}", criteria="larger"), max_duels=2, concurrency=1)
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    asked = [study.duel(number) for number in range(2)]
    assert seen == [{"prompt": None, "left": one.left, "right": one.right, "criteria": "larger"} for one in asked]
    answers = [entry.answer for entry in study.events() if entry.kind == "tell"]
    assert answers == ["left" if one.left["x"] > one.right["x"] else "right" for one in asked]
    assert not math.isnan(study.best.share)
