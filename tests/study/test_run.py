"""Runs of judges: what is asked, when it ends, and what the next run does."""

import asyncio
import threading
import warnings
from collections import Counter

import pytest
from synthetic_judges import JUDGES, biased, clear, close

import duels
from duels.errors import Conflict, InvalidInput
from duels.judges import Answer, JudgeError, retries
from duels.judges.questions import Undo, as_judge
from duels.storage.storage import Storage
from duels.study import add_items
from duels.study.judging.ledger import Ledger, Limits
from duels.study.judging.run import Run, run_async
from duels.study.voters.voter_tests import is_drawn

ARMS = ("a", "bb", "ccc")
PROMPTS = [f"prompt {n}" for n in range(20)]
OUTPUTS = {arm: [f"{arm} {n:02}" for n in range(20)] for arm in ARMS}


pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture(params=["sqlite", "postgres"])
def either(request, tmp_path):
    return f"sqlite:///{tmp_path}/duels.db" if request.param == "sqlite" else request.getfixturevalue("postgres")


class Shorter:
    """Prefers the shorter output, and counts what it was asked."""

    def __init__(self, cost=None):
        self.asked, self.cost, self.lock = Counter(), cost, threading.Lock()

    def __call__(self, prompt, left, right):
        with self.lock:
            self.asked[prompt, left, right] += 1
        return Answer("left" if len(left) < len(right) else "right", cost=self.cost)

    @property
    def calls(self):
        return self.asked.total()

    @property
    def most(self):
        """How often the same question was asked, in either order."""
        return max(Counter((p, frozenset(pair)) for (p, *pair), n in self.asked.items() for _ in range(n)).values())


def best(judge, url, outputs=OUTPUTS, **options):
    return duels.find_best(
        outputs, judge, storage=url, study_name="s", **{"prompts": PROMPTS, "about": "these-answers", **options}
    )


def log_of(result):
    return [entry.kind for entry in result.study.events()]


def check_questions(result, judge, orders=1):
    """Each question of a single judge was asked once; those that were drawn, if they have an answer, once more."""
    expected = Counter()
    for entry in result.study.events():
        again = entry.kind == "again" and "repeats" in entry.note
        assert not again or is_drawn(result.study._log.row.seed, entry.duel)
        if entry.kind == "ask" or again:
            duel = result.study.duel(entry.duel)
            sides = duel.item.left.content, duel.item.right.content
            expected[duel.item.prompt, *sides] += 1
            if orders == 2 and not again:
                expected[duel.item.prompt, *reversed(sides)] += 1
    assert judge.asked == expected
    about = Counter((e.note["item"], frozenset((e.left, e.right))) for e in result.study.events() if e.kind == "ask")
    assert max(about.values()) == 1


# ends and limits


def test_it_ends_at_the_verdict(either):
    judge = Shorter()
    result = best(judge, either)
    assert (result.winner, result.ended, result.calls) == ("a", "verdict", judge.calls)
    assert result.spent.unstored == 0
    check_questions(result, judge)
    assert best(judge, either).calls == judge.calls == result.calls  # nothing more is asked
    assert result.study.check() == len(result.study.events())


def test_max_calls_is_a_total_over_runs(either):
    judge = Shorter()
    for limit in (3, 3, 7, 12):
        result = best(judge, either, max_calls=limit)
        assert (result.ended, result.calls, judge.calls) == ("max_calls", limit, limit)
    result = best(judge, either)
    assert result.winner == "a"
    check_questions(result, judge)


def test_with_both_orders_a_question_is_begun_only_if_both_calls_are_allowed(url):
    judge = Shorter()
    assert best(judge, url, max_calls=7, orders="both", concurrency=4).calls == judge.calls == 6


def test_max_cost_is_a_total_over_runs(url):
    judge = Shorter(cost=0.25)
    first = best(judge, url, max_cost=1.0, concurrency=2)
    assert (first.ended, first.cost) == ("max_cost", 1.0)
    second = best(judge, url, max_cost=2.6, concurrency=8)  # 10 calls cost 2.5
    assert (second.ended, second.cost, judge.calls) == ("max_cost", 2.5, 10)


def test_before_the_first_price_is_known_only_what_is_in_flight_may_cost_too_much(url):
    judge = Shorter(cost=1.0)
    result = best(judge, url, max_cost=1.5, concurrency=6)
    assert result.ended == "max_cost"
    assert result.calls == judge.calls <= 6


def test_a_judge_without_prices_cannot_keep_max_cost(url):
    with pytest.warns(UserWarning, match="does not say what a call costs"):
        assert best(Shorter(), url, max_cost=0.01).winner == "a"


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize(("about", "most"), [("these-answers", 20), ("new-items", 7)])
def test_no_question_is_asked_twice_of_a_judge_that_cannot_decide(url, about, most, concurrency):
    """By these answers, it ends when an arm is level with both others on all 20 prompts.

    A winner on prompts like these must win 14 of the 20 against each other arm, which it cannot after seven ties. Then
    it ends when there are so many in two pairs, so that each arm is in one of them.
    """
    judge = Shorter()
    judge_all = lambda p, a, b: (judge(p, a, b), "tie")[1]  # noqa: E731
    result = best(judge_all, url, about=about, concurrency=concurrency)
    check_questions(result, judge)
    asked = Counter(frozenset((one.left, one.right)) for one in result.study.events() if one.kind == "ask")
    drawn = sum(is_drawn(0, duel) for duel in range(asked.total()))
    assert result.calls == judge.calls == asked.total() + result.spent.repeats
    assert drawn - concurrency <= result.spent.repeats <= drawn
    assert asked.most_common()[1][1] >= most
    assert asked.total() <= 3 * most + concurrency
    if about == "these-answers":
        assert (result.ended, result.verdict.kind) == ("verdict", "practically tied")
    else:
        assert (result.ended, result.verdict.kind) == ("exhausted", "not yet")
        if concurrency == 1:
            assert asked.most_common()[1][1] == most


@pytest.mark.parametrize("about", ["these-answers", "new-items"])
def test_with_many_arms_every_question_is_asked_once(url, about, monkeypatch):
    """Then it is not looked for whether any question that is left can help."""
    monkeypatch.setattr("duels.study.state.look.FEW_ARMS", 2)
    judge = Shorter()
    answers = lambda p, a, b: (judge(p, a, b), "skip" if p == PROMPTS[0] else "tie")[1]  # noqa: E731
    result = best(answers, url, about=about, prompts=PROMPTS, concurrency=5)
    assert result.ended == "all asked"
    assert "\nEvery question there is has been asked.\n" in str(result)
    asked = [entry.duel for entry in result.study.events() if entry.kind == "ask"]
    answered = [entry.duel for entry in result.study.events() if entry.kind == "tell" and entry.answer != "skip"]
    drawn = [duel for duel in answered if is_drawn(0, duel)]
    assert (len(asked), len(answered)) == (60, 57)
    assert result.calls == judge.calls == 60 + len(drawn)
    check_questions(result, judge)


def with_items(url, **options):
    """A study of three arms with items."""
    study = duels.create_study(ARMS, "s", url, **options)
    add_items(study, [{"prompt": p, "outputs": {arm: OUTPUTS[arm][n] for arm in ARMS}} for n, p in enumerate(PROMPTS)])
    return study


def test_a_study_with_items_that_exists_asks_each_judge_once(url, no_repeats):
    study = with_items(url, about="these-answers")
    judges = {"x": Shorter(), "y": Shorter()}
    ties = {name: (lambda p, a, b, judge=judge: (judge(p, a, b), "tie")[1]) for name, judge in judges.items()}
    result = study.run(ties, concurrency=4)
    assert (result.ended, result.verdict.kind) == ("verdict", "practically tied")
    assert {judge.most for judge in judges.values()} == {1}
    assert sum(judge.calls for judge in judges.values()) == result.calls >= 2 * 20


@pytest.mark.parametrize(("orders", "calls"), [("one", 60), ("both", 120)])
def test_about_these_items_it_ends_after_as_many_calls_as_there_are_questions(url, orders, calls):
    """There is always a further question. Items are drawn with replacement, so that some are asked about again."""
    study, judge = with_items(url), Shorter()
    ties = lambda p, a, b: (judge(p, a, b), "tie")[1]  # noqa: E731
    for _ in range(2):
        result = study.run(ties, concurrency=1, orders=orders)
        assert (result.ended, result.calls, judge.calls) == ("max_calls", calls, calls)
    assert judge.most > 2
    with_limit = study.run(ties, concurrency=1, orders=orders, max_calls=calls + 6)
    assert (with_limit.ended, with_limit.calls) == ("max_calls", calls + 6)


def test_without_items_there_is_no_end_but_a_verdict(url):
    """Also about these answers: items were not added, and each answer is one of a new question."""
    result = duels.create_study(ARMS, "s", url, about="these-answers").run(lambda a, b: min(a, b, key=len))
    assert (result.ended, result.winner, result.items) == ("verdict", "a", 0)


def test_names_only(url):
    result = duels.find_best(["long name", "short", "middling"], lambda a, b: min(a, b, key=len), storage=url)
    assert (result.winner, result.ended, result.all_pairs) == ("short", "verdict", 0)


def test_a_retired_study_asks_nothing(url):
    judge = Shorter()
    study = best(judge, url, max_calls=4).study
    study.retire()
    assert best(judge, url).ended == "retired"
    assert judge.calls == 4
    study.resume()
    assert best(judge, url).winner == "a"


def test_a_study_that_is_retired_meanwhile(url):
    study = duels.create_study(["a", "b"], "s", url)

    def judge(left, right):
        study.retire()
        return "tie"

    result = study.run(judge, concurrency=1)
    assert (result.ended, result.calls) == ("retired", 1)


def test_what_is_refused_before_the_first_call(url):
    study = duels.create_study(["a", "b"], "s", url)
    for options, words in [
        ({"max_calls": 0}, "max_calls"),
        ({"max_cost": -1}, "max_cost is -1"),
        ({"max_cost": True}, "max_cost is True"),
        ({"concurrency": 0}, "concurrency"),
        ({"orders": "two"}, "orders is 'two'"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            study.run(Shorter(), **options)
    for judge in (lambda a: "left", {}, {"": Shorter()}, 3):
        with pytest.raises(InvalidInput):
            study.run(judge)
    assert len(study.events()) == 1


# kinds of judges


class AsyncObject:
    async def __call__(self, prompt, left, right):
        await asyncio.sleep(0)
        return "left" if len(left) < len(right) else "right"


@pytest.mark.parametrize("judge", [Shorter(), Shorter().__call__, AsyncObject(), AsyncObject().__call__])
def test_sync_and_async_judges(url, judge):
    assert best(judge, url, concurrency=3).winner == "a"


def test_threads_run_at_once_up_to_the_concurrency(url):
    together = threading.Barrier(5, timeout=20)

    def judge(prompt, left, right):
        together.wait()  # nobody goes on before five are here
        return "left" if len(left) < len(right) else "right"

    assert best(judge, url, concurrency=5, max_calls=15).calls == 15


@pytest.mark.parametrize("orders", ["one", "both"])
def test_never_more_calls_at_once_than_the_concurrency(url, orders):
    now = most = 0

    async def judge(prompt, left, right):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.1)
        now -= 1
        return "left" if len(left) < len(right) else "right"

    best(judge, url, concurrency=4, orders=orders, max_calls=16)
    assert most == 4


def test_a_judge_that_answers_one_at_a_time(url):
    class One(Shorter):
        most_at_once, busy = 1, 0

        def __call__(self, prompt, left, right):
            assert self.busy == 0
            self.busy = 1
            reply = super().__call__(prompt, left, right)
            self.busy = 0
            return reply

    assert best(One(), url, concurrency=8, orders="both").winner == "a"


def test_inside_a_running_event_loop(url):
    async def main():
        return best(AsyncObject(), url)

    assert asyncio.run(main()).winner == "a"


def test_find_best_async(url):
    async def main():
        result = await duels.judges.find_best_async(
            OUTPUTS, AsyncObject(), prompts=PROMPTS, storage=url, study_name="s"
        )
        return result, await run_async(result.study, AsyncObject())

    first, second = asyncio.run(main())
    assert first.winner == second.winner == "a"
    assert first.calls == second.calls


# several judges


def test_several_judges_share_the_questions_and_repeat_a_tenth(url):
    x, y = close(prompts=100, seed=1), Counter()

    def agrees(prompt, left, right):
        y[prompt] += 1
        return x(prompt, left, right)

    result = duels.find_best(
        x.outputs,
        {"x": x, "y": agrees},
        prompts=x.prompts,
        about="these-answers",
        storage=url,
        max_calls=220,
        concurrency=4,
    )
    asked = Counter(entry.voter for entry in result.study.events() if entry.kind == "ask")
    assert abs(asked["x"] - asked["y"]) <= 1
    assert result.spent.repeats == pytest.approx(220 / 11, abs=4)  # those in flight at the end are left out
    (agreement,) = result.agreements
    assert (agreement.raw, agreement.kappa) == (1.0, 1.0)
    votes = result.study.votes()
    assert len(votes) == sum(asked.values())  # repeats do not count


def test_judges_that_disagree(url):
    x = close(prompts=100, seed=1)
    other = {"left": "right", "right": "left", "tie": "tie"}
    judges = {"x": x, "y": lambda p, a, b: other[x(p, a, b)]}
    result = duels.find_best(
        x.outputs, judges, prompts=x.prompts, about="these-answers", storage=url, max_calls=220, orders="one"
    )
    (agreement,) = result.agreements
    assert agreement.raw < 0.5
    assert agreement.kappa < 0


# orders and position bias


def test_disagreement_between_the_orders_is_a_tie(url):
    always_left = Shorter()
    result = best(lambda p, a, b: (always_left(p, a, b), "left")[1], url, orders="both", concurrency=3)
    told = [entry for entry in result.study.events() if entry.kind == "tell"]
    assert {entry.answer for entry in told} == {"tie"}
    assert {entry.note["calls"] for entry in told} == {2}
    assert result.calls == always_left.calls == 2 * len(told) + result.spent.repeats
    check_questions(result, always_left, orders=2)
    assert best(Shorter(), url + "2", orders="both").winner == "a"


def test_auto_turns_to_both_orders_and_the_log_says_when(url):
    judge = biased(seed=2)
    result = duels.find_best(
        judge.outputs, judge, prompts=judge.prompts, about="these-answers", storage=url, concurrency=1
    )
    events = result.study.events()
    alarms = [place for place, entry in enumerate(events) if "position_bias" in entry.note]
    assert len(alarms) == 1
    before, after = events[: alarms[0]], events[alarms[0] + 1 :]
    assert {entry.note["calls"] for entry in before if entry.kind == "ask"} == {1}
    assert {entry.note["calls"] for entry in after if entry.kind == "ask"} == {2}
    note = events[alarms[0]].note["position_bias"]
    assert note["judge"] is None
    assert note["share"] > 0.6
    assert "osition bias: the judge prefers the left side" in str(result)
    assert result.winner == judge.winner


def test_the_log_has_one_alarm_however_many_answers_come_at_once(url):
    """Also if the answer that raises it shares its transaction with others."""
    judge = Shorter()
    result = best(lambda p, a, b: (judge(p, a, b), "left")[1], url, concurrency=16)
    ledger, alarms = Ledger(), []
    for entry in result.study.events():
        ledger.take(entry)
        if "position_bias" in entry.note:
            alarms.append(ledger.positions()[0])
    assert [(one.left, one.biased) for one in alarms] == [(17, True)]


@pytest.mark.parametrize("name", ["clear", "close", "cyclic"])
def test_fair_judges_are_asked_in_one_order(url, name):
    judge = JUDGES[name](seed=1)
    result = duels.find_best(judge.outputs, judge, prompts=judge.prompts, about="these-answers", storage=url)
    assert not any(one.biased for one in result.positions)
    assert all(entry.note["calls"] == 1 for entry in result.study.events() if entry.kind == "ask")


# failures


def test_ten_failures_in_a_row_end_it_and_the_next_run_asks_them_again(url, no_repeats):
    def broken(prompt, left, right):
        raise RuntimeError("out of order")

    result = best(broken, url, concurrency=1)
    assert (result.ended, result.error) == ("failed", "RuntimeError: out of order")
    assert result.calls == 50  # ten questions, five attempts at each
    assert result.spent.failed == 10
    assert "out of order" in str(result)
    judge = Shorter()
    again = best(judge, url, concurrency=1, max_calls=61)
    asked = [entry.duel for entry in again.study.events() if entry.kind == "again"]
    assert asked == list(range(10))  # those first, then a new one
    assert judge.calls == 11
    assert judge.most == 1


def test_failures_that_are_not_in_a_row_do_not_end_it(url):
    """Nine questions of ten fail, whatever is tried, and still the run goes on to its limit."""
    asked = dict[str, int]()

    def judge(prompt, left, right):
        number = asked.setdefault(prompt + left + right, len(asked))
        if number % 10 < 9:
            raise RuntimeError("busy")
        return "tie"

    result = best(judge, url, concurrency=1, max_calls=140)
    assert (result.ended, result.calls) == ("max_calls", 140)
    assert result.spent.failed >= 27


def test_a_failed_call_is_not_tried_again_beyond_the_limit(url):
    def broken(prompt, left, right):
        raise RuntimeError("out of order")

    result = best(broken, url, concurrency=1, max_calls=3)
    assert (result.ended, result.calls, result.error) == ("failed", 3, "RuntimeError: out of order")


def test_a_final_error_ends_it_at_once(url):
    def no_key(prompt, left, right):
        raise JudgeError("wrong key", can_retry=False)

    result = best(no_key, url, concurrency=1)
    assert (result.ended, result.calls, result.error) == ("failed", 1, "wrong key")


def test_a_question_that_cannot_be_answered_is_skipped_and_not_asked_again(url, no_repeats):
    """With 18 ties and the other question to come, an arm can no more win; it may with 17. It ends when none can.

    The next run asks again.
    """
    asked = Counter()

    def judge(prompt, left, right):
        asked[prompt, frozenset(text.split()[0] for text in (left, right))] += 1
        if prompt == PROMPTS[3]:
            raise JudgeError("too long", can_retry=False, this_question=True)
        return "tie"

    result = best(judge, url, concurrency=1)
    assert (result.ended, result.verdict.kind) == ("exhausted", "not yet")
    assert set(asked.values()) == {1}
    assert sorted(Counter(pair for _, pair in asked).values())[1:] == [19, 19]
    left = [question for question in asked if question[0] == PROMPTS[3]]
    assert result.spent.failed == result.unanswered == len(left) >= 2
    again = best(judge, url, concurrency=1)
    assert (again.calls, again.unanswered) == (result.calls + len(left), len(left))
    assert {question for question, times in asked.items() if times == 2} == set(left)


@pytest.mark.parametrize(("about", "wins"), [("these-answers", 8), ("new-items", 14)])
def test_skips_are_not_asked_again(url, about, wins):
    """It takes that many straight wins of 20. Without so many questions left, the run is over."""
    asked = Counter()

    def judge(prompt, left, right):
        asked[prompt, frozenset(text.split()[0] for text in (left, right))] += 1
        return "skip"

    for _ in range(2):
        result = best(judge, url, about=about, concurrency=1)
        assert (result.ended, result.error, result.calls) == ("exhausted", None, len(asked))
        assert "\nNo question that is left can bring a verdict.\n" in str(result)
        assert set(asked.values()) == {1}
        pairs = Counter(pair for _, pair in asked)
        assert [20 - count for count in pairs.values()] == [wins - 1, wins - 1]


@pytest.mark.parametrize(("concurrency", "calls"), [(1, 10 + 6), (8, 17 + 6)])
def test_a_judge_that_never_gives_a_usable_answer_stops_after_few_calls(url, concurrency, calls):
    """Ten questions in a row, and those in flight then; after six further calls in vain none is made at once.

    The next run asks the same questions first.
    """
    asked = Counter()

    async def judge(prompt, left, right):
        asked[prompt, frozenset((left, right))] += 1
        await asyncio.sleep(0.001)
        return "no idea"

    for run in (1, 2):
        result = best(judge, url, concurrency=concurrency)
        assert result.ended == "failed"
        assert result.calls == result.spent.bad == asked.total() <= run * calls
        assert 10 <= len(asked) == result.unanswered <= 9 + concurrency
        assert "no usable answer" in str(result)
        assert "'no idea'" in str(result)
    assert best(Shorter(), url).winner == "a"


def test_the_last_questions_are_tried_again_too(url):
    """Each fails once, and there are fewer than the workers: nothing is left to ask when they fail."""
    seen = Counter()

    def judge(prompt, left, right):
        seen[prompt, left, right] += 1
        if seen[prompt, left, right] == 1:
            raise JudgeError("busy", retry_after=0.01)
        return "tie"

    few = {arm: OUTPUTS[arm][:2] for arm in ("a", "bb")}
    result = best(judge, url, few, prompts=PROMPTS[:2], concurrency=8)
    assert (result.ended, result.calls, result.spent.failed, result.error) == ("verdict", 4, 0, None)
    assert result.verdict.kind == "practically tied"


@pytest.mark.parametrize("final", [True, False])
def test_errors_at_the_last_questions_are_said(url, final):
    def broken(prompt, left, right):
        raise JudgeError("wrong key", can_retry=not final)

    few = {arm: OUTPUTS[arm][:2] for arm in ("a", "bb")}
    result = best(broken, url, few, prompts=PROMPTS[:2], concurrency=8)
    assert (result.ended, result.error) == ("failed", "wrong key")
    assert "the judge failed: wrong key. Run it again" in str(result)


def test_an_error_is_said_where_there_are_answers_too(url):
    def judge(prompt, left, right):
        if prompt == PROMPTS[0]:
            raise ValueError("too odd.")
        return "tie"

    few = {arm: OUTPUTS[arm][:3] for arm in ("a", "bb")}
    result = best(judge, url, few, prompts=PROMPTS[:3], concurrency=1)
    assert (result.ended, result.calls) == ("exhausted", 2 + 2 * 5)
    assert "The judge failed last with: ValueError: too odd.\n" in str(result)


def test_a_run_that_ends_does_not_wait_for_pauses(url, monkeypatch):
    monkeypatch.setattr("duels.judges.retries.FIRST", 60.0)

    def judge(prompt, left, right):
        if prompt in PROMPTS[:5]:
            raise RuntimeError("busy")
        return "left" if len(left) < len(right) else "right"

    result = best(judge, url, concurrency=16)  # would take minutes
    assert result.winner == "a"
    assert 0 < result.spent.failed <= 15
    assert result.spent.unstored == 0


# undo


def test_a_person_takes_back_an_answer(url):
    """Answers a, b; takes back b; answers it c; goes on."""
    seen, script = [], iter(["left", "right", Undo, "tie", "left"])

    async def person(prompt, left, right):
        seen.append((prompt, left, right))
        word = next(script, KeyboardInterrupt)
        if not isinstance(word, str):
            raise word
        return word

    person.most_at_once = 1
    result = best(person, url)
    assert seen[3] == seen[1]  # the question of the answer that was taken back …
    assert seen[4] == seen[2]  # … and then the one at which that happened
    told = [(entry.duel, entry.answer) for entry in result.study.events() if entry.kind == "tell"]
    assert told == [(0, "left"), (1, "right"), (1, "tie"), (2, "left")]
    assert (result.ended, result.verdict.kind) == ("interrupted", "not yet")
    assert result.study.verdict().void is None
    assert result.calls == 5  # duels 0, 1, 2, 1 again, and 3, which is open
    assert [duel.id for duel in result.study.open_duels()] == [3]


def test_nothing_to_take_back(url):
    script = iter([Undo, Undo, "left"])

    async def person(prompt, left, right):
        word = next(script, KeyboardInterrupt)
        if not isinstance(word, str):
            raise word
        return word

    result = best(person, url, concurrency=1)
    assert "undo" not in log_of(result)
    assert [entry.answer for entry in result.study.events() if entry.kind == "tell"] == ["left"]


@pytest.mark.parametrize("orders", ["one", "both"])
def test_a_judge_that_raises_keyboard_interrupt(url, orders):
    judge, most = Shorter(), [6]

    def stops(prompt, left, right):
        if judge.calls >= most[0]:
            raise KeyboardInterrupt
        return judge(prompt, left, right)

    result = best(stops, url, orders=orders, concurrency=3)
    assert result.ended == "interrupted"
    assert len(result.study.open_duels()) >= 1
    most[0] = 1000
    again = best(stops, url, orders=orders)
    assert again.winner == "a"
    opened = [duel.id for duel in result.study.open_duels()]
    assert opened == []


def test_no_warnings_from_threads_that_were_left(url):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert best(clear(arms=3, prompts=20), url, clear(arms=3, prompts=20).outputs, prompts=clear(3, 20).prompts)


def test_on_an_existing_study_every_question_is_asked_before_it_ends(no_repeats, monkeypatch):
    """Where the policy wants a pair that the judge was asked everything about, another one is asked.

    As in studies of many arms, it goes on though the answer that is skipped leaves no verdict in reach.
    """
    monkeypatch.setattr("duels.study.state.look.FEW_ARMS", 2)
    study = duels.create_study(["a", "b", "c"], storage="sqlite://", about="these-answers")
    add_items(study, [{"prompt": f"p{k}", "outputs": {arm: f"{arm}{k}" for arm in "abc"}} for k in range(4)])
    seen = Counter()

    def judge(prompt, left, right):
        seen[prompt, frozenset((left[0], right[0]))] += 1
        return "skip" if prompt == "p0" else "tie"

    result = study.run(judge, concurrency=2)
    assert (result.ended, len(seen), set(seen.values())) == ("all asked", 12, {1})
    study.check()


def lacking_outputs(having, about):
    """A study of which each item has outputs of these arms."""
    study = duels.create_study(["a", "b", "c"], storage="sqlite://", about=about)
    outputs = [{arm: f"{arm}{k}" for arm in arms} for k, arms in enumerate(having)]
    add_items(study, [{"prompt": f"p{k}", "outputs": one} for k, one in enumerate(outputs)])
    return study


@pytest.mark.parametrize("about", ["these-answers", "new-items", "these-items"])
def test_without_two_arms_with_all_outputs_nothing_is_asked(about):
    asked, study = [], lacking_outputs(["ab", "bc", "abc", "ab", "ca", "ab"] * 3, about)
    words = (
        r"item 2 of study 'study' has no output of arm 'a': arms are compared on the same items; .*\(3 are missing\)"
    )
    with pytest.raises(Conflict, match=words):
        study.run(lambda prompt, left, right: asked.append(prompt))
    assert asked == []
    assert len(study.events()) == 1


def test_where_the_items_are_fixed_every_arm_must_have_all_outputs():
    study = lacking_outputs(["abc"] * 21 + ["ab"], "these-answers")
    with pytest.raises(Conflict, match="item 22 of study 'study' has no output of arm 'c'"):
        study.run(Shorter())
    study.retire_arm("c")
    assert study.run(lambda left, right: "left" if left < right else "right").winner == "a"


@pytest.mark.parametrize(("prompts", "end"), [(21, ("exhausted", 0, None)), (22, ("verdict", 22, "a"))])
def test_a_retired_arm_that_cannot_be_beaten_any_more_takes_more_prompts(prompts, end, no_repeats):
    """The winner needs the evidence of all pairs, 22 straight wins: see `Certainty`."""
    study = lacking_outputs(["abc"] * prompts, "new-items")
    study.retire_arm("c")
    result = study.run(lambda left, right: "left" if left < right else "right", concurrency=1)
    assert (result.ended, result.calls, result.winner) == end
    assert ("With 21 prompts no winner can be shown: 22 at least." in str(result)) == (prompts == 21)


def test_about_these_items_arms_without_all_outputs_are_left_out():
    """Until they have them. So there is no winner yet, and it ends after as many calls as there will be questions."""
    study = lacking_outputs(["abc"] * 5 + ["ab"], "these-items")
    result = study.run(lambda left, right: "left" if left < right else "right", concurrency=1)
    asked = Counter(frozenset((one.left, one.right)) for one in study.events() if one.kind == "ask")
    assert (result.ended, result.calls, result.winner, set(asked)) == ("max_calls", 18, None, {frozenset("ab")})


@pytest.mark.parametrize("orders", ["one", "both"])
def test_retries_keep_the_limit(monkeypatch, orders):
    monkeypatch.setattr(retries, "FIRST", 0.001)
    calls = []

    def judge(left, right):
        calls.append((left, right))
        if len(calls) % 3:
            raise ValueError("busy")
        return "tie"

    study = duels.create_study(["a", "b"], storage="sqlite://")
    result = study.run(judge, max_calls=25, concurrency=4, orders=orders)
    assert result.calls == len(calls) <= 25
    result = study.run(judge, max_calls=40, concurrency=4, orders=orders)
    assert 30 < result.calls == len(calls) <= 40


def test_retries_and_questions_share_the_limit():
    """A call is claimed by a retry or reserved for a question, never both, whichever thread comes first."""
    study = duels.create_study(["a", "b"], storage="sqlite://")
    run = Run(study, {None: as_judge(Shorter())}, Limits(3, None), "one", print, threading.Event())
    run.start()
    assert run.budget.reserve(5, orders=1) == 3
    assert not asyncio.run(run.pause(0))
    assert not run.allow_reply()
    run.budget.settle()  # they were not asked after all
    assert asyncio.run(run.pause(0))
    assert run.budget.reserve(5, orders=1) == 2
    assert not asyncio.run(run.pause(0))
    assert run.budget.reserve(5, orders=2) == 1
    assert not asyncio.run(run.pause(0))  # three of three
    run.budget.settle()
    assert run.allow_reply()
    assert run.budget.limit_of(1) is None
    assert run.budget.limit_of(2) == "max_calls"


# leases


@pytest.fixture
def hours(now, monkeypatch):
    """Let so many hours pass, for runs too."""
    monkeypatch.setattr("duels.study.judging.run.clock", lambda: now[0])

    def later(count):
        now[0] += 3600 * count

    return later


def ties_of_two(judge, storage, **options):
    """Two arms on three prompts, by answers that are ties: every question must be asked."""
    few = {arm: OUTPUTS[arm][:3] for arm in ("a", "bb")}
    return best(judge, storage, few, prompts=PROMPTS[:3], concurrency=1, **options)


def test_an_answer_after_its_lease_does_not_count_and_its_question_is_asked_again(hours, no_repeats):
    asked = []

    def judge(prompt, left, right):
        asked.append(prompt)
        hours(1 if len(asked) == 2 else 0)
        return "tie"

    result = ties_of_two(judge, Storage("sqlite://"))
    assert (result.ended, result.verdict.kind, result.verdict.duels) == ("verdict", "practically tied", 3)
    assert result.calls == len(asked) == 4
    assert asked[3] == asked[1]  # after everything else
    assert sorted(asked[0:1] + asked[2:]) == PROMPTS[:3]
    assert [entry.duel for entry in result.study.events() if entry.kind == "tell"] == [0, 1, 2, 3]
    result.study.check()


def test_late_answers_of_a_winner_are_said(hours, no_repeats):
    shorter, late = Shorter(), []

    def judge(prompt, left, right):
        late.append(prompt)
        hours(1 if len(late) == 1 else 0)
        return shorter(prompt, left, right)

    few = {arm: OUTPUTS[arm] for arm in ("a", "bb")}
    result = best(judge, Storage("sqlite://"), few, about="new-items", concurrency=1)
    assert (result.winner, result.verdict.duels, result.calls) == ("a", result.calls - 1, len(late))
    assert (result.verdict.missing.skipped, result.verdict.missing.expired) == (0, 1)
    assert "1 question has no answer that counts: the verdict would" in str(result)


def test_a_judge_that_is_asked_again_has_a_lease_of_its_own(hours, no_repeats):
    """A run was killed, and the next one comes after the lease of its questions: their answers count."""
    storage, asked = Storage("sqlite://"), []

    def judge(prompt, left, right):
        asked.append(prompt)
        hours(0.9)
        return "tie"

    study = ties_of_two(judge, storage, max_calls=1).study
    killed = Run(study, {None: as_judge(judge)}, Limits(None, None), "one", print, threading.Event())
    killed.start()
    (lost,) = killed.next([None])
    hours(2)
    result = ties_of_two(judge, storage)
    assert [entry.duel for entry in result.study.events() if entry.kind == "again"] == [lost.duel.id]
    assert (result.verdict.kind, result.verdict.duels, len(asked)) == ("practically tied", 3, 3)
    assert (result.calls, result.spent.unstored, result.study.open_duels()) == (4, 1, [])
    assert sorted(asked) == PROMPTS[:3]
    result.study.check()
