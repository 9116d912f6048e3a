"""find_best: candidates of every kind, what is produced once, and what is refused when it changes."""

import random
import threading
from collections import Counter

import pytest

import duels
from duels.errors import Conflict, InvalidInput
from duels.judges import JudgeError
from duels.study.judging.find_best import assert_not_worse

PROMPTS = [f"prompt {n}" for n in range(12)]
OUTPUTS = {arm: [f"{arm} {n:02}" for n in range(12)] for arm in ("a", "bb", "ccc")}


pytestmark = pytest.mark.usefixtures("short_pauses")


def shorter(prompt, left, right):
    return "left" if len(left) < len(right) else "right"


class Counting:
    """A candidate that counts its calls."""

    def __init__(self, text, fails=()):
        self.text, self.calls, self.fails, self.lock = text, Counter(), set(fails), threading.Lock()

    def __call__(self, prompt):
        with self.lock:
            self.calls[prompt] += 1
        if prompt in self.fails:
            raise RuntimeError("no luck")
        return f"{self.text} to {prompt}"


class AsyncCounting(Counting):
    async def __call__(self, prompt):
        return super().__call__(prompt)


def best(outputs, url, judge=shorter, **options):
    return duels.find_best(
        outputs, judge, **{"prompts": PROMPTS, "about": "these-answers", "storage": url, "study_name": "s"} | options
    )


@pytest.mark.parametrize("kind", [Counting, AsyncCounting])
def test_functions_are_called_once_per_prompt_over_all_runs(url, kind):
    first, second = kind("short"), kind("much longer")
    for limit in (2, 4, None):
        result = best({"x": first, "y": second, "list": OUTPUTS["ccc"]}, url, max_calls=limit, orders="one")
        assert first.calls == second.calls == Counter(PROMPTS)
    assert result.winner == "list"
    assert result.study.events()[0].note["arms"] == ["x", "y", "list"]


def test_a_function_that_fails_is_called_again_for_what_is_missing(url):
    broken = Counting("short", fails=PROMPTS[5:6])
    with pytest.raises(JudgeError, match="'x' has no output for prompt 6, 'prompt 5': RuntimeError: no luck"):
        best({"x": broken, "y": OUTPUTS["ccc"]}, url, concurrency=1)
    assert broken.calls[PROMPTS[5]] == 5
    done = set(broken.calls) - {PROMPTS[5]}
    broken.fails.clear()
    assert best({"x": broken, "y": OUTPUTS["ccc"]}, url).ended == "verdict"
    assert all(broken.calls[prompt] == 1 for prompt in done)
    assert broken.calls[PROMPTS[5]] == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prompts": [*PROMPTS[:4], "another", *PROMPTS[5:]]}, "prompt 5 has changed"),
        ({"outputs": OUTPUTS | {"bb": [*OUTPUTS["bb"][:2], "new", *OUTPUTS["bb"][3:]]}}, "output of 'bb' for prompt 3"),
        ({"outputs": {"a": OUTPUTS["a"], "bb": OUTPUTS["bb"]}}, r"other arms \(a, bb, ccc\)"),
        ({"outputs": OUTPUTS | {"d": OUTPUTS["a"]}}, r"other arms \(a, bb, ccc\)"),
        ({"outputs": {arm: texts[:7] for arm, texts in OUTPUTS.items()}, "prompts": PROMPTS[:7]}, "it has 12 prompts"),
        ({"outputs": {k: [*v, "x"] for k, v in OUTPUTS.items()}, "prompts": [*PROMPTS, "x"]}, "13 were given"),
        ({"about": "new-items"}, "exists with about these-answers, not new-items"),
    ],
)
def test_changes_are_refused_by_name(url, change, words):
    best(OUTPUTS, url, max_calls=3)
    changed = {"outputs": OUTPUTS} | change
    with pytest.raises(Conflict, match=words):
        best(changed.pop("outputs"), url, **changed)
    assert best(OUTPUTS, url).winner == "a"  # nothing was written


def test_a_confidence_chosen_afterwards_is_not_taken(url):
    best(OUTPUTS, url, max_calls=3)
    with pytest.warns(UserWarning, match="has the confidence 0.95, which was chosen before its first answer and stays"):
        result = best(OUTPUTS, url, confidence=0.5)
    assert (result.winner, result.verdict.confidence) == ("a", 0.95)


def test_a_margin_chosen_afterwards_needs_no_new_calls(url):
    """Equal candidates: without a margin nothing can be shown, with one of 20 % they are practically tied."""
    prompts = [f"prompt {n}" for n in range(150)]
    outputs = {arm: [f"{arm} {n}" for n in range(150)] for arm in ("x", "y")}
    more = {"about": "new-items", "prompts": prompts, "study_name": None}
    asked = Counter()

    def judge(prompt, left, right):
        asked[prompt] += 1
        return "tie"

    first = best(outputs, url, judge, **more)
    assert (first.ended, first.winner, first.verdict.answers_to_go) == ("exhausted", None, None)
    assert first.verdict.exhausted.margin == 0.04
    calls = asked.total()
    second = best(outputs, url, judge, **more, margin=0.2)
    assert (second.verdict.kind, second.ended, second.study.name) == ("practically tied", "verdict", first.study.name)
    assert asked.total() == calls


def test_new_items_may_be_added_and_what_was_asked_is_not_asked_again(url):
    asked = Counter()

    def judge(prompt, left, right):
        asked[prompt, frozenset((left, right))] += 1
        return shorter(prompt, left, right)

    def given(count):
        return {arm: [f"{arm} {n:02}" for n in range(count)] for arm in ("a", "bb", "ccc")}

    few = best(given(13), url, judge, prompts=[f"prompt {n}" for n in range(13)], about="new-items")
    assert (few.ended, few.calls) == ("exhausted", 0)
    assert "With 13 prompts no winner can be shown: 14 at least." in str(few)
    more = best(given(30), url, judge, prompts=[f"prompt {n}" for n in range(30)], about="new-items")
    assert (more.ended, more.winner) == ("verdict", "a")
    assert sum(asked.values()) == more.calls
    assert sum(times - 1 for times in asked.values()) == more.spent.repeats


def test_without_a_name_other_prompts_are_another_study(url):
    first = best(OUTPUTS, url, study_name=None, max_calls=3)
    assert best(OUTPUTS, url, study_name=None, max_calls=3).study.name == first.study.name
    other = best(OUTPUTS, url, study_name=None, max_calls=3, prompts=[*PROMPTS[:11], "another"])
    assert other.study.name != first.study.name


def test_files_of_items(url, tmp_path):
    file = tmp_path / "outputs.csv"
    rows = [f"{prompt},{arm},{texts[n]}" for n, prompt in enumerate(PROMPTS) for arm, texts in OUTPUTS.items()]
    file.write_text("\n".join(["prompt,arm,output", *rows]) + "\n")
    assert best(str(file), url, prompts=None).winner == "a"


def test_what_is_refused(url):
    for outputs, options in [(OUTPUTS, {"prompts": None}), (["a", "b"], {}), ({"a": ["x"]}, {"prompts": ["p", "q"]})]:
        with pytest.raises(InvalidInput):
            best(outputs, url, **options)


def test_on_new_items_not_known_fails_and_says_what_would_show_it():
    """A coin on identical quality: neither better nor worse is known after 30 prompts, and it says so."""
    coin, prompts = random.Random(5), [f"prompt {n}" for n in range(30)]
    with pytest.raises(AssertionError, match="is not known to be as good as the old one") as failed:
        assert_not_worse(["x"] * 30, ["y"] * 30, lambda a, b: coin.choice(["left", "right"]), prompts=prompts)
    assert "30 prompts can show it from 22 wins on: more prompts tell more." in str(failed.value)
    with pytest.raises(AssertionError, match="5 prompts cannot show it: add prompts, or choose a larger margin"):
        assert_not_worse(["x"] * 5, ["y"] * 5, shorter, prompts=prompts[:5])


def test_on_new_items_what_is_shown_passes_or_fails():
    prompts = [f"prompt {n}" for n in range(60)]
    new, old = [f"{n}" for n in range(60)], [f"It is {n}." for n in range(60)]
    assert assert_not_worse(new, old, shorter, prompts=prompts).spent.calls < 30
    with pytest.raises(AssertionError, match=r"is worse than the old one, with a margin of 0\.05: it scores 0 on"):
        assert_not_worse(old, new, shorter, prompts=prompts)


def test_the_same_outputs_pass_without_a_call():
    result = assert_not_worse(["x"] * 5, ["x"] * 5, shorter, prompts=[str(n) for n in range(5)])
    assert result.spent.calls == 0


def test_not_worse():
    new, old, longer = ["ab"] * 12, ["abc"] * 12, ["abcd"] * 12
    assert assert_not_worse(new, old, shorter, prompts=PROMPTS, about="these-answers").winner == "new"
    assert (
        assert_not_worse(new, longer, shorter, prompts=PROMPTS, about="these-answers").winner == "new"
    )  # nothing is left of the first
    with pytest.raises(AssertionError, match="is worse than the old one"):
        assert_not_worse(old, new, shorter, prompts=PROMPTS, about="these-answers")
    with pytest.raises(AssertionError, match="is not known to be as good"):
        assert_not_worse(new, old, shorter, prompts=PROMPTS, max_calls=2, about="these-answers")
    assert (
        assert_not_worse(new, old, lambda prompt, left, right: "tie", prompts=PROMPTS, about="these-answers").winner
        is None
    )


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 6))])
def test_a_worse_version_does_not_pass_because_the_old_one_is_good_enough(seed):
    """The new version wins 24 of 60 prompts: 40 %, which is 5 points too few. At most one in twenty may pass."""
    wins = set(random.Random(seed).sample(range(60), 24))

    def judge(prompt, left, right):
        return "new" if int(prompt) in wins else "old"

    prompts = [str(n) for n in range(60)]
    with pytest.raises(AssertionError, match="the new version is"):
        assert_not_worse(["x"] * 60, ["y"] * 60, judge, prompts=prompts, about="these-answers")


def test_a_version_that_is_hardly_worse_passes():
    """It wins 29 of 60: within five points, which is known once all prompts were asked."""
    judge = lambda prompt, left, right: "new" if int(prompt) % 60 < 29 else "old"  # noqa: E731
    result = assert_not_worse(["x"] * 60, ["y"] * 60, judge, prompts=[str(n) for n in range(60)], about="these-answers")
    assert result.calls - result.spent.repeats <= 60


def longer(prompt, left, right):
    return "left" if len(left) > len(right) else "right"


def test_another_judge_is_another_study(url):
    first, second = (best(OUTPUTS, url, judge, study_name=None) for judge in (shorter, longer))
    assert (first.winner, second.winner) == ("a", "ccc")
    again = best(OUTPUTS, url, shorter, study_name=None)
    assert (again.study.name, again.calls) == (first.study.name, first.calls)
    named = [best(OUTPUTS, url, judge, study_name=None) for judge in ({"x": shorter}, {"x": longer}, {"y": shorter})]
    assert len({one.study.name for one in (first, second, *named)}) == 5


@pytest.mark.parametrize("limit", [3, None])
def test_another_judge_is_refused_before_its_first_call(url, limit):
    """Whether or not there is a verdict already; the study stays as it was."""
    first = best(OUTPUTS, url, max_calls=limit)
    events, called = len(first.study.events()), []

    def other(prompt, left, right):
        called.append(prompt)
        return "tie"

    for run in (lambda: best(OUTPUTS, url, other), lambda: first.study.run(other)):
        with pytest.raises(
            Conflict, match=r"study 's' was answered by another judge, shorter \w{16}, and this one is "
        ):
            run()
    assert (called, len(first.study.events())) == ([], events)
    assert first.study.events()[-1].note["judge"].startswith("shorter ")
    assert best(OUTPUTS, url).winner == "a"


def test_judges_may_join_by_name_but_not_change(url):
    best(OUTPUTS, url, max_calls=2)
    joined = best(OUTPUTS, url, {"new": longer}, max_calls=4)
    assert {entry.voter for entry in joined.study.events() if entry.kind == "tell"} == {None, "new"}
    with pytest.raises(Conflict, match=r"the judge 'new' was longer \w+ when it answered, and is shorter \w+ now"):
        best(OUTPUTS, url, {"new": shorter}, max_calls=6)
    best(OUTPUTS, url, {"new": longer, "third": shorter}, max_calls=6)
    best(OUTPUTS, url, shorter, max_calls=8)


def test_a_judge_alone_must_be_one_of_those_with_names(url):
    best(OUTPUTS, url, {"x": shorter, "y": longer}, max_calls=6)
    best(OUTPUTS, url, shorter, max_calls=8)
    with pytest.raises(Conflict, match="was answered by another judge, shorter"):
        best(OUTPUTS, url, lambda left, right: "tie", max_calls=10)


def test_a_judge_that_never_answered_may_be_repaired(url):
    def judge(prompt, left, right):
        raise NameError("no such name")

    assert best(OUTPUTS, url, judge).ended == "failed"
    assert best(OUTPUTS, url, lambda left, right: "nonsense", max_calls=9).spent.bad > 0
    assert best(OUTPUTS, url, shorter).winner == "a"


def test_studies_without_fingerprints_go_on(url, monkeypatch):
    """As older versions have left them."""
    monkeypatch.setattr("duels.study.judging.ask_judge.Reply.note", lambda reply: NoJudge(calls=reply.calls))
    before = best(OUTPUTS, url, max_calls=3)
    assert all("judge" not in entry.note for entry in before.study.events())
    monkeypatch.undo()
    assert best(OUTPUTS, url, longer, max_calls=5).calls == 5
    with pytest.raises(Conflict):
        best(OUTPUTS, url, shorter)


class NoJudge(dict):
    """A note that does not keep the fingerprint."""

    def __setitem__(self, key, value):
        if key != "judge":
            super().__setitem__(key, value)


def polite(prompt):
    return f"Well, {prompt}"


def curt(prompt):
    return prompt[:3]


def test_another_function_is_another_study_or_refused(url):
    names = {best({"x": one, "y": OUTPUTS["a"]}, url, study_name=None).study.name for one in (polite, curt, polite)}
    assert len(names) == 2
    best({"x": polite, "y": OUTPUTS["a"]}, url, max_calls=2)
    words = r"study 's' exists, but the function of 'x' has changed: its outputs are from polite \w+, and this is curt"
    with pytest.raises(Conflict, match=words):
        best({"x": curt, "y": OUTPUTS["a"]}, url)
    assert best({"x": polite, "y": OUTPUTS["a"]}, url).winner == "y"


def test_a_function_that_gave_nothing_may_be_repaired(url):
    def broken(prompt):
        raise RuntimeError("no luck")

    with pytest.raises(JudgeError):
        best({"x": broken, "y": OUTPUTS["ccc"]}, url)
    assert best({"x": curt, "y": OUTPUTS["ccc"]}, url).winner == "x"


HUNDRED = [str(n) for n in range(100)]


def decided(wins, losses, seed, skips=0):
    """A judge by which the new version wins and loses so many of 100 prompts; the others are ties, or are skipped."""
    ties = 100 - wins - losses - skips
    answers = ["new"] * wins + ["old"] * losses + ["tie"] * ties + ["skip"] * skips
    random.Random(seed).shuffle(answers)
    return lambda prompt, left, right: answers[int(prompt)]


def compared(judge, **options):
    return assert_not_worse(["x"] * 100, ["y"] * 100, judge, prompts=HUNDRED, **options, about="these-answers")


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("wins", "losses"), [(46, 54), (47, 53), (45, 55), (40, 50), (0, 10), (0, 0)])
def test_at_least_a_half_less_the_margin_passes(wins, losses, seed):
    """In any order. Of 100 prompts, the new version may lose ten more than it wins: 0.45 is enough.

    Each of these errs with a chance of at most 5 %, if the order is random; these orders are fixed.
    """
    result = compared(decided(wins, losses, seed))
    assert result.calls - result.spent.repeats <= 100
    assert result.winner != "new"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("wins", "losses"), [(44, 56), (40, 51), (0, 11), (20, 80)])
def test_less_than_that_fails(wins, losses, seed):
    with pytest.raises(AssertionError, match=r"is worse than the old one, with a margin of 0.05: it scores 0\.\d+ on "):
        compared(decided(wins, losses, seed))


def test_clear_cases_need_few_calls():
    assert compared(decided(100, 0, 0)).calls <= 30
    with pytest.raises(AssertionError, match=r"it scores 0 on [123]\d of 100 prompts"):
        compared(decided(0, 100, 0))


def test_prompts_without_an_answer_do_not_decide():
    """On 80 prompts the new version may lose eight more than it wins. Six more among the 20 others could tell."""
    compared(decided(36, 44, 0, skips=20))
    with pytest.raises(
        AssertionError, match=r"is worse .* it scores 0.444 on 80 of 100 prompts \(35 wins, 44 losses, 1 tie"
    ):
        compared(decided(35, 44, 0, skips=20))
    with pytest.raises(AssertionError, match=r"is not known .* it has answers for 0 of 100 prompts"):
        compared(decided(0, 0, 0, skips=100))


def test_at_the_limit_it_says_what_is_known():
    """Of seed 0, duels 5, 10, 13, 17 and 19 are repeated: 35 questions and 5 repeats."""
    words = r"is not known to be as good as the old one, with a margin of 0.05: it scores 0.\d+ on 35 of 100 prompts"
    with pytest.raises(AssertionError, match=words):
        compared(decided(48, 52, 0), max_calls=40)


def raises(prompt, left, right):
    raise RuntimeError("the model is gone")


def returns_nonsense(prompt, left, right):
    return "A is better"


@pytest.mark.parametrize(("judge", "why"), [(raises, "the model is gone"), (returns_nonsense, "'A is better'")])
@pytest.mark.parametrize("limit", [4, 200])
def test_a_broken_judge_is_not_a_worse_version(judge, why, limit):
    with pytest.raises(JudgeError, match=f"the judge failed, so that the new version was not compared: .*{why}"):
        compared(judge, max_calls=limit)


def test_a_kept_test_goes_on_and_another_one_starts_again(url):
    """With a storage, a test that has passed asks nothing again; other outputs, or another judge, are other studies."""
    asked = []

    def judge(prompt, left, right):
        asked.append(prompt)
        return "tie"

    for _ in range(2):
        result = compared(judge, storage=url)
        before = len(asked)
    compared(judge, storage=url)
    assert len(asked) == before <= 100 + result.spent.repeats
    assert_not_worse(["z"] * 100, ["y"] * 100, judge, prompts=HUNDRED, storage=url, about="these-answers")
    assert len(asked) == 2 * before
    compared(decided(50, 50, 0), storage=url)


@pytest.mark.parametrize("judge", [lambda prompt, left, right: "old", raises])
def test_pytest_shows_the_line_of_the_test(judge):
    """It leaves out the functions that say `__tracebackhide__`, up to the last one that does not."""
    with pytest.raises((AssertionError, JudgeError)) as found:
        compared(judge)
    shown = found.traceback.filter(found)
    assert shown[-1].name == "compared"
    assert str(shown[-1].path) == __file__
