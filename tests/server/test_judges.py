"""A study that judges answer, on the server: what they cost, and which of them prefer a side."""

import pytest
from starlette.testclient import TestClient

import duels
from duels.judges import Answer
from duels.study.judging.ledger import Ledger, activity_of, follow
from duels.study.voters.voter_tests import is_drawn


@pytest.fixture
def people(app, admin):
    """A browser that has signed in."""
    with TestClient(app, "http://localhost") as client:
        client.post("/signin", data={"token": admin.token})
        yield client


@pytest.fixture
def judged(storage, study):
    """The study, and a function that lets a judge who always says left answer so many questions in all."""
    found = duels.load_study("search", storage)

    def run(calls, name="GPT <b>4</b>"):
        judge = {name: lambda left, right: Answer("left", cost=0.002)}
        found.run(judge, max_calls=calls, orders="one", concurrency=1)

    return found, run


def test_a_study_that_people_answer_says_nothing_of_judges(people, admin, study, storage):
    found = duels.load_study("search", storage)
    for duel in found.ask(30):
        found.tell(duel, "left", voter="ann")
    counts = ("calls", "unstored", "bad", "failed", "repeats", "second_opinions", "identical")
    nothing = dict.fromkeys(counts, 0) | {"cost": 0.0, "positions": [], "repeatability": [], "agreements": []}
    assert admin.get(f"{study}/judges").json() == nothing
    text = people.get("/studies/search").text
    assert "Judge calls" not in text
    assert "osition bias" not in text
    assert 'id="cost"' not in text


def test_calls_cost_and_position_bias(people, admin, study, judged):
    found, run = judged
    run(5)
    text = people.get("/studies/search").text
    assert '<dt>Judge calls</dt><dd id="calls">5</dd>' in text
    assert '<dt>Cost</dt><dd id="cost">$0.010</dd>' in text
    assert "osition bias" not in text
    run(25)  # the alarm comes with the 17th answer
    text = people.get("/studies/search").text
    assert '<dd id="calls">25</dd>' in text
    assert '<dd id="cost">$0.050</dd>' in text
    line = "Position bias: GPT &lt;b&gt;4&lt;/b&gt; prefers the left side in 100\u00a0% of its decisive answers."
    assert f'<p class="bias">{line}</p>' in text
    answer = admin.get(f"{study}/judges").json()
    assert (answer["calls"], answer["cost"], answer["agreements"]) == (25, pytest.approx(0.05), [])
    drawn = sum(is_drawn(found._log.row.seed, duel) for duel in range(20))
    (position,) = answer["positions"]
    assert position == {"judge": "GPT <b>4</b>", "left": 25 - drawn, "right": 0, "share": 1.0, "biased": True}
    assert answer["repeatability"] == [{"judge": "GPT <b>4</b>", "repeats": drawn, "same": drawn}]
    assert f"<dt>GPT &lt;b&gt;4&lt;/b&gt;, asked again</dt><dd>same answer in {drawn} of {drawn}</dd>" in text
    own = activity_of(follow(found, Ledger()))
    lists = {name: [one._asdict() for one in getattr(own, name)] for name in ("positions", "repeatability")}
    assert answer == own._asdict() | lists


def test_several_judges(admin, study, storage):
    found = duels.load_study("search", storage)
    found.run({"gpt": lambda left, right: min(left, right), "claude": lambda left, right: "tie"}, max_calls=30)
    answer = admin.get(f"{study}/judges").json()
    own = activity_of(follow(found, Ledger()))
    assert answer["agreements"] == [one._asdict() for one in own.agreements] != []
    assert answer["second_opinions"] == own.second_opinions > 0


def test_the_log_is_not_read_again(people, admin, study, judged, monkeypatch):
    _, run = judged
    run(5)
    admin.get(f"{study}/judges")
    read = []
    monkeypatch.setattr(Ledger, "take", lambda self, entry: read.append(entry.seq))
    admin.get(f"{study}/judges")
    people.get("/studies/search")
    assert read == []
    run_more = admin.post(f"{study}/ask", json={})
    assert run_more.status_code == 200
    admin.get(f"{study}/judges")
    assert read == [], "a question for a person is not a call"


def test_a_replaced_database_has_its_own_judges(admin, study, judged, app):
    _, run = judged
    run(5)
    assert admin.get(f"{study}/judges").json()["calls"] == 5
    admin.delete(study)
    admin.post("/api/studies", json={"name": "search", "arms": ["bm25", "dense"]})
    assert admin.get(f"{study}/judges").json()["calls"] == 0
