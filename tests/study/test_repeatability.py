"""Some questions are asked of the same judge twice, and the result says how often it gave the same answer."""

import functools
import itertools
import threading
from collections import Counter

import pytest
from synthetic_judges import clear, cyclic

import duels
from duels.judges import Answer
from duels.judges.questions import as_judge
from duels.judges.terminal import TerminalJudge
from duels.storage.storage import Storage, Write
from duels.study.answering import write_note
from duels.study.judging.ledger import Ledger, Limits, activity_of, follow
from duels.study.judging.run import Run
from duels.study.voters.voter_tests import Repeatability, is_drawn

SEED = 0  # of which 5, 10, 13, 17, 19, 35, 37, 44 and 46 are drawn of the first 50 duels
PROMPTS = [f"prompt {n}" for n in range(60)]
OUTPUTS = {arm: [f"{arm} {n:02}" for n in range(60)] for arm in ("a", "bb", "ccc")}


def best(judge, **options):
    given = {
        "prompts": PROMPTS,
        "about": "these-answers",
        "storage": Storage("sqlite://"),
        "study_name": "s",
        "concurrency": 1,
    }
    return duels.find_best(OUTPUTS, judge, **given | options)


def repeats_of(result):
    return [entry for entry in result.study.events() if entry.kind == "repeat" and "repeats" in entry.note]


class Unsteady:
    """Says left when it is asked a question for the first time, and something else the next time."""

    def __init__(self, again="right", cost=None):
        self.again, self.cost, self.asked, self.lock = again, cost, Counter(), threading.Lock()

    def __call__(self, prompt, left, right):
        with self.lock:
            self.asked[prompt, left, right] += 1
            first = self.asked[prompt, left, right] == 1
        return Answer("left" if first else self.again, cost=self.cost)


def test_one_in_ten_is_drawn():
    """Of 20,000, the standard deviation is 42.4; a false alarm at 5 of them has a probability below 1e-6."""
    drawn = sum(is_drawn(seed, duel) for seed, duel in itertools.product(range(20), range(1000)))
    assert abs(drawn - 2000) < 5 * 42.4
    assert [duel for duel in range(50) if is_drawn(SEED, duel)] == [5, 10, 13, 17, 19, 35, 37, 44, 46]


def test_what_is_drawn_is_asked_again_in_the_same_order_before_new_questions():
    judge = Unsteady(again="tie", cost=0.5)
    result = best(judge, max_calls=15, orders="one")
    kinds = [(entry.kind, entry.duel) for entry in result.study.events()[1:] if entry.kind != "tell"]
    repeated = {5, 10}
    expected = [[("ask", duel)] + [("again", duel), ("repeat", duel)] * (duel in repeated) for duel in range(13)]
    assert kinds == [*itertools.chain.from_iterable(expected)]
    assert set(judge.asked.values()) == {1, 2}
    for entry in repeats_of(result):
        assert entry.answer == "tie"
        assert entry.note | {"judge": ""} == {
            "calls": 1,
            "cost": 0.5,
            "repeats": "left",
            "contradicts": True,
            "judge": "",
        }
    assert (result.calls, result.cost, result.spent.repeats) == (15, 7.5, 2)
    assert result.repeatability == [Repeatability(None, 2, 0)]
    assert "\n15 calls, 2 of them repeats, $7.50." in str(result)
    assert str(result).endswith("\nThe judge gave the same answer in 0 of 2 repeated questions.")


def test_repeats_count_for_nothing_else():
    """The verdict, the sides, the agreement and the votes are those of the first replies."""
    judge = Unsteady()
    result = best(judge, max_calls=30, orders="one")
    first = [entry for entry in result.study.events() if entry.kind == "tell"]
    assert result.repeatability[0].repeats == 30 - len(first) > 2
    assert result.repeatability[0].same == 0
    assert result.verdict.duels == len(first) == len(result.study.votes())
    assert result.positions[0][:3] == (None, len(first), 0)
    assert result.agreements == []
    assert result.study.check() == len(result.study.events())


def test_contradictions_are_counted_and_marked_in_single_events():
    for judge, same in ((Unsteady(), False), (clear(3, 60), True)):
        outputs, prompts = (OUTPUTS, PROMPTS) if same is False else (judge.outputs, judge.prompts)
        result = duels.find_best(outputs, judge, prompts=prompts, storage=Storage("sqlite://"))
        ledger = follow(result.study, Ledger())
        marked = sum("contradicts" in entry.note for entry in result.study.events())
        assert marked == ledger.contradictions == (0 if same else len(repeats_of(result)))
        assert activity_of(ledger).repeatability == list(result.repeatability)
        assert len(repeats_of(result)) > 1


class Contradicting:
    """Prefers the shorter output, and the longer one when it is asked the same question again."""

    def __init__(self, again="longer"):
        self.again, self.asked, self.lock = again, Counter(), threading.Lock()

    def __call__(self, prompt, left, right):
        with self.lock:
            self.asked[prompt, frozenset((left, right))] += 1
            is_first = self.asked[prompt, frozenset((left, right))] == 1
        return "left" if (len(left) < len(right)) == (is_first or self.again == "shorter") else "right"


def few(judge, count, storage=None, **options):
    """Find the best on so many prompts."""
    outputs = {arm: texts[:count] for arm, texts in OUTPUTS.items()}
    given = {"prompts": PROMPTS[:count], "about": "these-answers", "storage": storage or Storage("sqlite://")}
    return duels.find_best(outputs, judge, **given | {"study_name": "s", "concurrency": 1} | options)


def test_answers_of_a_judge_that_contradicts_itself_are_not_final():
    """On these 13 prompts: a winner by the answers given, and none on prompts like these, which takes 14 wins."""
    steady, unsteady = (few(Contradicting(again), 13) for again in ("shorter", "longer"))
    assert (steady.ended, steady.winner, steady.verdict.about) == ("verdict", "a", "these-answers")
    assert (steady.verdict.strength, steady.verdict.contradictions) == ("answers given", 0)
    assert str(steady).startswith("By the answers given on these 13 prompts: a is the winner")
    assert "contradicted" not in str(steady)
    assert (unsteady.ended, unsteady.winner, unsteady.verdict.about) == ("exhausted", None, "new-items")
    assert (unsteady.verdict.strength, unsteady.verdict.contradictions) == ("independent answers", 1)
    assert unsteady.repeatability == [Repeatability(None, 1, 0)]
    assert str(unsteady).startswith("On prompts like these 13: no verdict yet")
    why = "The judge contradicted itself 1 time, so that its answers are not final: this is about new prompts."
    assert why in str(unsteady)
    assert unsteady.calls < steady.calls  # it ends at the repeat of duel 5, of seed 0


def test_after_a_contradiction_the_same_answers_are_evidence_about_new_items():
    """None of the 60 prompts is asked about again: 14 straight wins against each other arm are enough."""
    judge, storage = Contradicting(), Storage("sqlite://")
    for limit in (5, 7, 9, None):  # the seventh call repeats duel 5
        result = few(judge, 60, storage, max_calls=limit)
        expected = 0 if limit in (5,) else len(repeats_of(result))
        assert result.verdict.contradictions == expected
        assert result.verdict.about == ("new-items" if expected else "these-answers")
        assert (judge.asked.total(), result.verdict.duels) == (result.calls, result.calls - result.spent.repeats)
    assert (result.ended, result.winner) == ("verdict", "a")
    wins = result.study.tally().wins
    assert wins[0, 1:].tolist() == [14, 14]
    assert str(result).startswith("On prompts like these 60: a is the winner")
    times = f"{len(repeats_of(result))} times"
    assert f"The judge contradicted itself {times}, so that its answers are not final: this is about new" in str(result)
    repeated = {entry.duel for entry in repeats_of(result)}
    assert Counter(judge.asked.values()) == Counter({1: result.verdict.duels - len(repeated), 2: len(repeated)})
    again = few(judge, 60, storage)
    assert (again.calls, again.winner, judge.asked.total()) == (result.calls, "a", result.calls)
    loaded = duels.load_study("s", storage)
    assert (str(loaded.verdict()), loaded.check()) == (str(result.verdict), len(loaded.events()))


def test_a_contradiction_takes_a_verdict_back_that_was_named_by_final_answers():
    """A judge whose repeats were lost: the verdict stands until one of them comes, and then nothing else is asked."""
    storage = Storage("sqlite://")
    study = few(Contradicting("shorter"), 13, storage).study
    assert study.verdict().winner == "a"
    duel = next(entry.duel for entry in study.events() if entry.kind == "tell" and not is_drawn(SEED, entry.duel))
    note = {"calls": 1, "repeats": "left", "contradicts": True}
    noting = functools.partial(
        write_note, log=study._log, kind="repeat", duel=duel, voter=None, answer="right", note=note
    )
    study._log.storage.write(Write(noting, study._log.id))
    found = study.verdict()
    assert (found.kind, found.about, found.contradictions) == ("not yet", "new-items", 1)
    judge = Contradicting("shorter")
    result = few(judge, 13, storage)
    assert (result.ended, result.winner, judge.asked.total()) == ("exhausted", None, 0)


def test_a_repeat_without_an_answer_says_nothing_and_is_asked_again_by_the_next_run():
    first = best(Unsteady(again="no idea"), max_calls=9)
    study = first.study
    assert [(entry.duel, entry.answer) for entry in repeats_of(first)] == [(5, "skip")]
    assert (first.repeatability, first.unanswered, first.spent.bad, first.spent.repeats) == ([], 0, 3, 3)
    second = study.run(Unsteady(again="left"), concurrency=1, max_calls=10)
    assert [entry.answer for entry in repeats_of(second)] == ["skip", "left"]
    assert second.repeatability == [Repeatability(None, 1, 1)]
    third = study.run(Unsteady(again="left"), concurrency=1, max_calls=11)
    assert len(repeats_of(third)) == 2  # and not another time


def test_a_cache_is_bypassed():
    """A function from functools.cache, and such a method."""
    calls = Counter()

    class Model:
        @functools.cache  # noqa: B019
        def judge(self, prompt, left, right):
            calls[prompt, left, right] += 1
            return "left" if calls[prompt, left, right] == 1 else "right"

    model = Model()

    @functools.cache
    def judge(prompt, left, right):
        calls[prompt, left, right] += 1
        return "left" if calls[prompt, left, right] == 1 else "right"

    for one in (judge, model.judge):
        calls.clear()
        result = best(one, max_calls=15, orders="one")
        assert result.repeatability == [Repeatability(None, 2, 0)]
        assert calls.total() == result.calls == 15


def test_with_both_orders_the_first_one_is_repeated():
    judge = Unsteady()
    result = best(judge, max_calls=25, orders="both")
    assert [(entry.duel, entry.note["repeats"], entry.answer) for entry in repeats_of(result)] == [
        (5, "left", "right"),
        (10, "left", "right"),
    ]
    assert {entry.answer for entry in result.study.events() if entry.kind == "tell"} == {"tie"}
    assert (result.calls, result.repeatability) == (24, [Repeatability(None, 2, 0)])  # 2 · 11 + 2; no pair is left


def test_after_an_alarm_the_first_replies_count():
    """The answers in one order become ties, and the repeats are compared with what was said first."""
    judge = Unsteady(again="left")
    result = best(judge)
    assert result.positions[0].biased
    assert {entry.note["repeats"] for entry in repeats_of(result)} == {"left"}
    assert result.repeatability[0].same == result.repeatability[0].repeats == result.spent.repeats >= 5
    assert result.winner is None
    assert result.calls == judge.asked.total()


def test_the_limit_is_kept_and_what_is_missing_is_repeated_by_the_next_run():
    """At every limit as many calls as allowed, whichever of them are repeats."""
    judge, storage = Unsteady(), Storage("sqlite://")
    for limit in range(1, 40, 3):
        result = best(judge, max_calls=limit, orders="one", concurrency=3, storage=storage)
        assert (result.ended, result.calls) == ("max_calls", limit) == ("max_calls", judge.asked.total())
    drawn = [e.duel for e in result.study.events() if e.kind == "tell" and is_drawn(SEED, e.duel)]
    made = [entry.duel for entry in repeats_of(result)]
    assert made == drawn[: len(made)]
    assert len(made) >= len(drawn) - 3 > 0
    assert max(judge.asked.values()) == 2


def test_every_repeat_is_made_if_everything_is_asked(monkeypatch):
    """As in studies of many arms, where it is not looked for whether any question that is left can help."""
    monkeypatch.setattr("duels.study.state.look.FEW_ARMS", 2)
    judge = cyclic(3, 20, seed=1)
    result = duels.find_best(
        judge.outputs, lambda p, a, b: "tie", prompts=judge.prompts, storage=Storage("sqlite://"), about="new-items"
    )
    drawn = [duel for duel in range(60) if is_drawn(SEED, duel)]
    assert result.ended == "all asked"
    assert sorted(entry.duel for entry in repeats_of(result)) == drawn


def test_a_killed_run_makes_its_repeat_again():
    judge = Unsteady()
    study = best(judge, max_calls=6).study
    killed = Run(study, {None: as_judge(judge)}, Limits(None, None), "one", print, threading.Event())
    killed.start()
    (lost,) = killed.next([None])
    assert (lost.duel.id, lost.repeats) == (5, "left")
    result = study.run(judge, concurrency=1, max_calls=8)
    assert (result.spent.repeats, result.spent.unstored, result.repeatability) == (2, 1, [Repeatability(None, 1, 0)])


def test_each_judge_is_measured_by_itself():
    judges = {"steady": clear(3, 60, seed=1), "unsteady": Unsteady()}
    outputs, prompts = judges["steady"].outputs, judges["steady"].prompts
    options = {
        "prompts": prompts,
        "storage": Storage("sqlite://"),
        "orders": "one",
        "max_calls": 80,
    }
    result = duels.find_best(outputs, judges, concurrency=1, **options)
    found = {one.judge: one for one in result.repeatability}
    assert found["steady"].same == found["steady"].repeats > 0
    assert (found["unsteady"].same, found["unsteady"].repeats > 0) == (0, True)
    same = found["steady"].repeats
    assert f"\nsteady gave the same answer in {same} of {same} repeated question" in str(result)
    assert result.spent.repeats == sum(one.repeats for one in result.repeatability)
    assert result.spent.second_opinions > 0


def test_a_person_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(TerminalJudge, "__call__", lambda self, prompt, left, right: "left")
    result = best(TerminalJudge(None), max_calls=20, orders="one")
    assert (result.verdict.duels, result.spent.repeats, repeats_of(result)) == (20, 0, [])


def test_settings_are_not_asked_about_again():
    result = duels.tune({"x": (0.0, 1.0)}, lambda left, right: "left", max_duels=25, storage=Storage("sqlite://"))
    assert (result.spent.repeats, result.duels) == (0, 25)


@pytest.mark.parametrize("retired", [True, False])
def test_what_does_not_count_any_more_is_not_repeated(retired):
    study = best(Unsteady(), max_calls=6).study
    duel = study.duel(5)
    if retired:
        study.retire_arm(duel.left)
    else:
        study.undo(5)
        study.tell(5, "skip")
    result = study.run(Unsteady(), concurrency=1, max_calls=8, orders="one")
    assert 5 not in [entry.duel for entry in repeats_of(result)]
