"""One number for how many answers a verdict needs: in Python, the commands, the API and on the pages."""

import html
import json
import re

import pytest
from commands import duels_command
from starlette.testclient import TestClient

from duels.study.create import create_study

PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def everywhere(admin, app, storage, tmp_path):
    """How many answers each place says are needed, rounded as it rounds; None where it says nothing."""

    def output(*arguments):
        return duels_command(*arguments, "--storage", f"sqlite:///{tmp_path}/duels.db", cwd=tmp_path).stdout

    def api(what):
        return admin.get(f"/api/studies/one{what}").json()

    found = {
        "forecast in the API": api("/forecast")["answers_median"],
        "verdict in the API": api("/verdict")["answers_to_go"],
        "verdict of the results": api("/results")["next"]["answers"],
        "duels study forecast, JSON": json.loads(output("study", "forecast", "one", "-f", "json"))["answers_median"],
        "duels study verdict, JSON": json.loads(output("study", "verdict", "one", "-f", "json"))["answers_to_go"],
    }
    texts = {
        "words of the forecast": api("/forecast")["words"],
        "words of the verdict": api("/verdict")["words"],
        "headline": api("/results")["verdict"]["headline"],
        "duels study forecast": output("study", "forecast", "one"),
        "duels study verdict": output("study", "verdict", "one"),
    }
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        client.post("/signin", data={"token": admin.token})
        for page in ("/studies/one", "/"):
            texts[page] = html.unescape(re.sub(r"<[^>]*>", "", client.get(page).text))
    for place, text in texts.items():
        said = set(re.findall(r"about ([\d,]+) (?:more )?answers? (?:to go|(?:is|are)\s+likely)", text, re.IGNORECASE))
        assert len(said) < 2, place
        found[place] = said.pop() if said else None
    return found


def rounded(number):
    return f"{float(f'{number:.2g}'):,.0f}"


@pytest.mark.parametrize("more", [{}, {"margin": 0.1}])
def test_every_place_says_the_same_number(admin, app, storage, tmp_path, more):
    study = create_study([*"abc"], "one", storage, **more)
    study.import_votes([(*pair, "left") for pair in PAIRS] * 2)
    early = everywhere(admin, app, storage, tmp_path)
    assert set(early.values()) == {None}  # fewer than ten answers for each arm
    study.import_votes([(*pair, side) for pair in PAIRS for side in ["left"] * 8 + ["right"] * 4])
    said, answers = everywhere(admin, app, storage, tmp_path), study.forecast().answers_median
    assert answers > 0
    assert study.verdict().answers_to_go == answers
    assert {value for value in said.values() if isinstance(value, int)} == {answers}
    assert {place: value for place, value in said.items() if isinstance(value, str)} == {
        place: rounded(answers) for place, value in said.items() if not isinstance(value, int)
    }
    study.retire()
    retired = everywhere(admin, app, storage, tmp_path)
    assert set(retired.values()) == {None}  # nothing is asked
