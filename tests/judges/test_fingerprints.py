"""Fingerprints: the same for the same program, another one for every change that may change an answer."""

import functools
import os
import subprocess
import sys
import types

import pytest

import duels
from duels.judges.fingerprints import fingerprint, fingerprints
from duels.judges.questions import as_judge
from duels.judges.terminal import TerminalJudge

PROGRAM = """
import functools
from duels.judges.fingerprints import fingerprint

FILLER = ("Sure", "Great")
WORDS = frozenset({"alpha", "beta", "gamma", "delta"})
asked = []

def score(text):
    return sum(text.count(word) for word in FILLER), len(text)

def judge(prompt, left, right, *, strict=True):
    asked.append(prompt)
    if left in {"one", "two", "three", "four"} or left in WORDS:
        return "tie"
    return "left" if score(left) < score(right) else "right"

print(fingerprint(judge))
print(fingerprint(functools.partial(judge, strict={"a", "b", "c"})))
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return done.stdout.split("\n")


def in_module(text, name="judge"):
    module = types.ModuleType("judging")
    exec(text, module.__dict__)
    return module.__dict__[name]


def test_it_is_the_same_in_every_process_and_wherever_the_code_stands():
    first = run(PROGRAM, PYTHONHASHSEED="1")
    assert first[0].startswith("judge ")
    assert len(first[0]) == len("judge ") + 16
    assert run(PROGRAM, PYTHONHASHSEED="2") == first
    moved = "\n\nx = 3  # another comment\n" + PROGRAM.replace("def judge", "\n# a judge\ndef judge")
    assert run(moved, PYTHONHASHSEED="3") == first


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<", ">"),
        ('"left" if', '"right" if'),
        ("def judge", "def other_judge"),
        ("strict=True", "strict=False"),
        ('"Great"', '"Hello"'),  # a constant that only the function it calls uses
        ("len(text)", "-len(text)"),  # in the function that it calls
        ('"four"', '"five"'),
        ('"delta"', '"epsilon"'),
        ("asked.append", "asked.remove"),
    ],
)
def test_a_change_of_the_code_changes_it(old, new):
    assert old in PROGRAM
    changed = PROGRAM.replace(old, new)
    if new == "def other_judge":
        changed = changed.replace("(judge", "(other_judge")
    program = PROGRAM.partition("\nprint(")[0]
    name = "other_judge" if "other_judge" in changed else "judge"
    assert fingerprint(in_module(changed.partition("\nprint(")[0], name)) != fingerprint(in_module(program))
    assert fingerprint(in_module(program)) == fingerprint(in_module(program))


def make(model, log):
    calls = 0

    def judge(prompt, left, right):
        nonlocal calls
        calls += 1
        log.append(model)
        return "left"

    return judge


def test_what_a_closure_holds():
    log = []
    judge = make("small", log)
    before = fingerprint(judge)
    judge("p", "a", "b")
    assert fingerprint(judge) == before, "what a judge counts or keeps is not what it is"
    assert fingerprint(make("small", [1, 2])) == before
    assert fingerprint(make("large", log)) != before


def shorter(prompt, left, right, factor=1):
    return "left" if len(left) < factor * len(right) else "right"


def is_even(n):
    return n == 0 or is_odd(n - 1)


def is_odd(n):
    return n != 0 and is_even(n - 1)


def test_functions_that_call_each_other():
    assert fingerprint(is_even) != fingerprint(is_odd)


class Settings:
    """An object whose default text has its address."""


def test_partials_and_other_wrappers():
    known = {
        fingerprint(one)
        for one in (
            shorter,
            functools.partial(shorter, factor=2),
            functools.partial(shorter, factor=3),
            functools.partial(shorter, factor=Settings()),
            functools.lru_cache(shorter),
            functools.lru_cache(is_even),
        )
    }
    assert len(known) == 6
    assert fingerprint(functools.partial(shorter, factor=2)) in known
    assert fingerprint(functools.partial(shorter, factor=Settings())) in known
    assert fingerprint(functools.lru_cache(shorter)) in known
    assert fingerprint(as_judge(shorter)) == fingerprint(shorter)
    assert fingerprint(functools.partial(shorter, factor=2)).startswith("shorter ")


class Model:
    def __init__(self, name):
        self.name, self.calls = name, 0

    def __call__(self, prompt, left, right):
        self.calls += 1
        return "left"

    def ask(self, prompt, left, right):
        return "right"


class Named(Model):
    @property
    def identity(self):
        return self.name


def test_objects_are_their_class_or_what_they_say():
    judge = Model("a")
    before = fingerprint(judge)
    judge("p", "x", "y")
    assert before == fingerprint(judge) == fingerprint(Model("b"))
    assert before.startswith("Model ")
    assert fingerprint(Named("a")) == fingerprint(Named("a")) != fingerprint(Named("b"))
    assert fingerprint(judge.ask) == fingerprint(Model("b").ask) != before
    assert fingerprint(len).startswith("len ")


def test_a_function_that_asks_another_judge():
    """Be it from outside, an argument or in a closure."""
    program = "import duels\nmodel = duels.judges.openai('http://localhost:1/v1', 'a')\n"
    program += "async def judge(prompt, left, right):\n    return await model(prompt, left, right)\n"
    assert fingerprint(in_module(program)) == fingerprint(in_module(program))
    assert fingerprint(in_module(program)) != fingerprint(in_module(program.replace("'a'", "'b'")))

    def asks(prompt, left, right, model=None):
        return model(prompt, left, right)

    def wrapped(model):
        return lambda prompt, left, right: model(prompt, left, right)

    for make in (lambda model: functools.partial(asks, model=model), wrapped):
        several = {fingerprint(make(model)) for model in (Named("a"), Named("b"), Named("a"), shorter, is_odd)}
        assert len(several) == 4


def test_a_function_may_say_what_it_is():
    one, two = (lambda left, right: "left"), (lambda left, right: "right")
    one.identity = two.identity = "version 1"
    assert fingerprint(one) == fingerprint(two)
    two.identity = "version 2"
    assert fingerprint(one) != fingerprint(two)


def test_the_judges_of_duels(monkeypatch):
    """The settings that answers depend on, and never the key."""
    openai, url = duels.judges.openai, "http://localhost:8000/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first-0123456789")
    first = openai(url, "qwen3")
    template = "{left} or {right}? {criteria}"
    others = [
        openai(url, "qwen4"),
        openai("http://localhost:8001/v1", "qwen3"),
        openai(url, "qwen3", criteria="Short."),
        openai(url, "qwen3", template=template),
        openai(url, "qwen3", temperature=0.5),
        openai(url, "qwen3", temperature=None),
        duels.judges.command("true"),
        duels.judges.command("true 1"),
        duels.judges.command("true", criteria="Short."),
        TerminalJudge(None),
        TerminalJudge("Short."),
    ]
    assert len({fingerprint(one) for one in [first, *others]}) == 12
    before = fingerprint(first)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-second-0123456789")
    monkeypatch.setenv("OTHER", "sk-third-0123456789")
    assert "sk-" not in first.identity
    assert fingerprint(openai(f"{url}/", "qwen3", price=(1, 2), timeout=5, api_key_env="OTHER")) == before
    assert fingerprint(duels.judges.command("true", timeout=5)) == fingerprint(duels.judges.command(" true "))


def test_by_name():
    assert fingerprints(shorter) == {None: fingerprint(shorter)}
    assert fingerprints({"a": shorter, "b": is_odd}) == {"a": fingerprint(shorter), "b": fingerprint(is_odd)}
