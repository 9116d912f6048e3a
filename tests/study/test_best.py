"""find_best: candidates of every kind, what is produced once, and what is refused when it changes."""

import random
import threading
from collections import Counter

import pytest

import duels
from duels.errors import Conflict, InvalidInput
from duels.judges import JudgeError
from duels.study.best import assert_not_worse

PROMPTS = [f"prompt {n}" for n in range(12)]
OUTPUTS = {arm: [f"{arm} {n:02}" for n in range(12)] for arm in ("a", "bb", "ccc")}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("duels.judges.retries.FIRST", 0.001)


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
    return duels.find_best(outputs, judge, **{"prompts": PROMPTS, "storage": url, "study_name": "s"} | options)


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
        ({"confidence": 0.9}, "confidence 0.95, not 0.9"),
        ({"population": True}, "about|once"),
    ],
)
def test_changes_are_refused_by_name(url, change, words):
    best(OUTPUTS, url, max_calls=3)
    changed = {"outputs": OUTPUTS} | change
    with pytest.raises(Conflict, match=words):
        best(changed.pop("outputs"), url, **changed)
    assert best(OUTPUTS, url).winner == "a"  # nothing was written


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


def test_not_worse():
    new, old, longer = ["ab"] * 12, ["abc"] * 12, ["abcd"] * 12
    assert assert_not_worse(new, old, shorter, prompts=PROMPTS).winner == "new"
    assert assert_not_worse(new, longer, shorter, prompts=PROMPTS).winner == "new"  # nothing is left of the first
    with pytest.raises(AssertionError, match="is worse than the old one"):
        assert_not_worse(old, new, shorter, prompts=PROMPTS)
    with pytest.raises(AssertionError, match="is not known to be as good"):
        assert_not_worse(new, old, shorter, prompts=PROMPTS, max_calls=2)
    assert assert_not_worse(new, old, lambda prompt, left, right: "tie", prompts=PROMPTS).winner is None


@pytest.mark.parametrize("seed", range(6))
def test_a_worse_version_does_not_pass_because_the_old_one_is_good_enough(seed):
    """The new version wins 24 of 60 prompts: 40 %, which is 5 points too few. At most one in twenty may pass."""
    wins = set(random.Random(seed).sample(range(60), 24))

    def judge(prompt, left, right):
        return "new" if int(prompt) in wins else "old"

    prompts = [str(n) for n in range(60)]
    with pytest.raises(AssertionError, match="the new version is"):
        assert_not_worse(["x"] * 60, ["y"] * 60, judge, prompts=prompts)


def test_a_version_that_is_hardly_worse_passes():
    """It wins 29 of 60: within five points, which is known once all prompts were asked."""
    judge = lambda prompt, left, right: "new" if int(prompt) % 60 < 29 else "old"  # noqa: E731
    result = assert_not_worse(["x"] * 60, ["y"] * 60, judge, prompts=[str(n) for n in range(60)])
    assert result.calls <= 60
