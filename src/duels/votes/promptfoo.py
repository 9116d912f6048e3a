"""Items and scores from the results that `promptfoo eval --output results.json` writes, version 3.

An arm is a provider with a prompt, an item is a test, and its prompt is what the test's variables say.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import shorten
from .item_tables import Fault, Row

LONGEST = 90  # characters of a provider's or a prompt's label in the name of an arm

Result = Mapping[str, Any]
Column = tuple[object, str, str]  # the column's number, the provider and the prompt


def results_of(value: object) -> list[object] | None:
    """Return the results in a parsed JSON file, or None if it is not a file of promptfoo.

    They are in the field `results`, or in the field `results` of that.
    """
    found = value.get("results") if isinstance(value, Mapping) and "outputs" not in value else None
    if isinstance(found, Mapping):
        found = found.get("results")
    return found if isinstance(found, list) else None


def rows_of(results: list[object], faults: list[Fault]) -> Iterator[Row]:
    """Yield one row per test.

    Args:
        results: What `results_of` returned.
        faults: Results that cannot be used are added here, by their places in the list, from 1.
    """
    usable = list(_usable(results, faults))
    names = _arm_names(list(dict.fromkeys(_column(result) for _, result in usable)))
    tests: dict[int, tuple[int, list[Result]]] = {}
    outputs: dict[int, dict[str, object]] = {}
    for place, result in usable:
        test, arm = result["testIdx"], names[_column(result)]
        tests.setdefault(test, (place, []))[1].append(result)
        given = outputs.setdefault(test, {})
        if arm in given:
            faults.append((place, f"test {test} has an output of {shorten(arm, 60)} already"))
        elif _output(result) is None:
            faults.append((place, f"test {test} has no output of {shorten(arm, 60)}: {_reason(result)}"))
        given[arm] = _text(_output(result))
    for test, (place, same) in sorted(tests.items()):
        yield Row(place, _prompt(test, same), outputs[test])


def scores_of(results: list[object], faults: list[Fault]) -> Iterator[tuple[int, dict[str, tuple[float, bool]]]]:
    """Yield for each test its place, and for each arm the score of its output and whether it passed.

    Args:
        results: What `results_of` returned.
        faults: Results without a score are added here, by their places in the list, from 1.
    """
    usable = list(_usable(results, faults))
    names = _arm_names(list(dict.fromkeys(_column(result) for _, result in usable)))
    tests: dict[int, tuple[int, dict[str, tuple[float, bool]]]] = {}
    for place, result in usable:
        score, passed = result.get("score"), result.get("success")
        if isinstance(score, bool) or not isinstance(score, int | float):
            faults.append((place, f"its score is {shorten(score, 20)}, expected a number"))
        else:
            tests.setdefault(result["testIdx"], (place, {}))[1][names[_column(result)]] = (float(score), bool(passed))
    yield from (found for _, found in sorted(tests.items()))


def _usable(results: list[object], faults: list[Fault]) -> Iterator[tuple[int, Result]]:
    for place, result in enumerate(results, 1):
        if not isinstance(result, Mapping):
            faults.append((place, f"found {shorten(result, 40)}, expected an object"))
        elif type(result.get("testIdx")) is not int or "provider" not in result:
            faults.append(
                (place, "expected testIdx, provider, prompt, vars and response, as in version 3 of promptfoo")
            )
        else:
            yield place, result


def _column(result: Result) -> Column:
    number, provider, prompt = result.get("promptIdx"), result["provider"], result.get("prompt")
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    label = prompt.get("label") if isinstance(prompt, Mapping) else prompt
    return shorten(number), _short(provider), _short(label)


def _short(label: object) -> str:
    """A label on one line; that of a prompt is often its text."""
    text = " ".join(label.split()) if isinstance(label, str) else ""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _arm_names(columns: list[Column]) -> dict[Column, str]:
    """The provider's label if that is enough, or the prompt's; else both, with a number where they are the same."""
    choices: tuple[Callable[[Column], str], ...] = (
        lambda column: column[1],
        lambda column: column[2],
        lambda column: ", ".join(filter(None, column[1:])),
    )
    for choice in choices:
        names = [choice(column) for column in columns]
        if len(set(names)) == len(names) and all(names):
            return dict(zip(columns, names))
    counts, used, found = Counter(names), Counter[str](), {}
    for column, name in zip(columns, names):
        used[name] += 1
        found[column] = f"{name or 'column'} #{used[name]}" if counts[name] > 1 or not name else name
    return found


def _output(result: Result) -> object:
    response = result.get("response")
    return response.get("output") if isinstance(response, Mapping) else None


def _reason(result: Result) -> str:
    response = result.get("response")
    error = (response.get("error") if isinstance(response, Mapping) else None) or result.get("error")
    return f"its error is {shorten(error)}" if error else "the response is missing"


def _prompt(test: int, results: list[Result]) -> str:
    variables = results[0].get("vars")
    if isinstance(variables, Mapping) and variables:
        values = list(variables.values())
        return _text(values[0] if len(values) == 1 else dict(variables))
    raw = {_text(result["prompt"].get("raw")) for result in results if isinstance(result.get("prompt"), Mapping)}
    return raw.pop() if len(raw) == 1 else f"test {test + 1}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
