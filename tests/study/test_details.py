"""What the page of results shows on request: numbers of one moment, worked by hand."""

import json
import math
from contextlib import contextmanager

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import optimize

from duels.errors import StorageError
from duels.server.pair_details import POINTS, list_details
from duels.server.results_tab import pair_history
from duels.storage.storage import Storage
from duels.study.create import create_study, delete_study
from duels.study.items import add_items


def votes(*pairs):
    """`("a", "b", "left", 3)` stands for three votes."""
    return [{"left": a, "right": b, "winner": winner} for a, b, winner, count in pairs for _ in range(count)]


@pytest.fixture
def small(url):
    """a beats b 3 : 1 and c 8 : 0; b beats c once and ties once; d never met anybody."""
    study = create_study([*"abcd"], "small", url, "rucb")
    study.import_votes(
        votes(("a", "b", "left", 3), ("b", "a", "left", 1), ("a", "c", "left", 8), ("b", "c", "left", 1))
        + votes(("c", "b", "tie", 1))
    )
    return study


def lived(url):
    """A study with everything that happens in one: ties, skips, undone answers, arms that come and go."""
    study = create_study([*"abcde"], "lived", url)
    for k in range(60):
        duel = study.ask(voter=f"v{k % 3}")
        study.tell(duel, ("left", "right", "tie", "skip")[k % 4] if k % 5 else "left", voter=f"v{k % 3}")
    study.undo(study._log.history().answered[5])
    study.retire_arm("e")
    study.ask(3)
    return study


def test_pairs_by_hand(small):
    found = list_details(small)
    assert (found["pairs_met"], found["pairs_total"], found["confidence"]) == (3, 6, 0.95)
    counts = [tuple(row[name] for name in ("first", "second", "wins", "losses", "ties")) for row in found["pairs"]]
    assert counts == [("a", "c", 8, 0, 0), ("a", "b", 3, 1, 0), ("b", "c", 1, 0, 1)]
    assert [row["estimate"] for row in found["pairs"]] == [1.0, 0.75, 0.75]
    assert found["pairs"][1] == next(row._asdict() for row in small.preferences() if row[:2] == ("a", "b"))


def test_the_interval_of_a_pair_by_hand(small):
    """M(p) = B(w + ½, l + ½) / (B(½, ½) p^w (1 − p)^l) reaches 1/δ′; each pair of four arms has δ′ = 2·0.05/4²."""
    shown = pair_history(small, "b", "a")
    beta = math.lgamma(1.5) + math.lgamma(3.5) - math.lgamma(5) - math.log(math.pi)
    mixed = lambda p: beta - math.log(p) - 3 * math.log1p(-p) - math.log(16 / 0.1)  # noqa: E731
    assert shown["lower"] == pytest.approx(optimize.brentq(mixed, 1e-9, 0.25))
    assert shown["upper"] == pytest.approx(optimize.brentq(mixed, 0.25, 1 - 1e-9))
    row = list_details(small)["pairs"][1]  # of a and b
    assert (row["lower"], row["upper"]) == pytest.approx((1 - shown["upper"], 1 - shown["lower"]))
    assert shown["confidence"] == 0.95


def test_open_questions_newest_first(url, now):
    study = create_study([*"ab"], "asks", url)
    assert (list_details(study)["open"], list_details(study)["over_time"]) == ([], [])
    first, second, third = study.ask(3)
    study.tell(second, "left")
    found = list_details(study)
    assert [(row["id"], row["left"], row["right"]) for row in found["open"]] == [
        (duel.id, duel.left, duel.right) for duel in (third, first)
    ]
    assert {(row["item"], row["time"], row["waiting"]) for row in found["open"]} == {(None, first.time, True)}
    now[0] += study._log.row.lease
    later = study.ask()
    assert [(row["id"], row["waiting"]) for row in list_details(study)["open"]] == [
        *((later.id, True), (third.id, False), (first.id, False))
    ]
    study.ask(120)
    found = list_details(study)
    assert (len(found["open"]), found["open_total"]) == (100, 123)


def test_open_questions_have_their_items(url):
    study = create_study([*"ab"], "items", url)
    add_items(study, [{"prompt": "q", "outputs": {"a": "1", "b": "2"}}])
    duel = study.ask()
    assert [row["item"] for row in list_details(study)["open"]] == [duel.item.number]


def test_past_votes_have_their_own_times(url):
    study = create_study(["a", "b"], "past", url)
    times = ["2024-03-01T00:00:00Z", "2023-03-01T00:00:00Z", "2025-03-01T00:00:00Z"]
    study.import_votes([{"left": "a", "right": "b", "winner": "a", "time": time} for time in times])
    shown = list_details(study)["over_time"]
    assert [(time[:10], answers) for time, answers in shown] == [
        *(("2023-03-01", 0), ("2023-03-01", 1), ("2024-03-01", 2), ("2025-03-01", 3))
    ]


def test_answers_over_time(url, now):
    study = create_study([*"ab"], "slow", url)
    duels = study.ask(3)
    now[0] += 10
    study.tell(duels[2], "left")
    now[0] += 20
    study.tell(duels[0], "left")
    now[0] += 30
    study.undo(duels[2])
    study.tell(duels[1], "skip")
    begun, later = "1970-01-12T13:46:40.000+00:00", "1970-01-12T13:47:10.000+00:00"
    assert list_details(study)["over_time"] == [(begun, 0), (later, 1)]
    study.tell(duels[2], "right")
    assert list_details(study)["over_time"] == [(begun, 0), (later, 1), ("1970-01-12T13:47:40.000+00:00", 2)]


def test_a_long_curve_is_thinned_evenly(url, now):
    study = create_study([*"ab"], "long", url)
    for _ in range(10):
        now[0] += 1
        study.import_votes(votes(("a", "b", "left", 50)))
    points = list_details(study)["over_time"]
    assert len(points) == POINTS
    answers = [answers for _, answers in points]
    assert (answers[0], answers[1], answers[-1]) == (0, 1, 500)
    steps = np.diff(answers[1:])
    assert steps.max() - steps.min() <= 1
    assert [float(time[17:23]) for time, _ in points] == [40 + math.ceil(one / 50) for one in answers]


@pytest.mark.parametrize("in_memory", [False, True])
def test_all_numbers_are_of_one_moment(url, monkeypatch, in_memory):
    """Answers that come or are undone between the look and the queries change nothing."""
    study = lived("sqlite://" if in_memory else url)
    before, reading, last = list_details(study), Storage.read_connection, study._log.history().answered[-1]

    @contextmanager
    def meanwhile(storage):
        monkeypatch.undo()  # it happens once, before the log is read
        study.undo(last)
        study.tell(last, "tie", voter="v1")
        for duel in study.ask(5):
            study.tell(duel, duel.left, voter="v1")
        study.add_arm("f")
        with reading(storage) as connection:
            yield connection

    monkeypatch.setattr(Storage, "read_connection", meanwhile)
    after = list_details(study)
    assert [part for part in before if after[part] != before[part]] == []
    assert list_details(study)["seq"] > before["seq"]


def test_a_study_deleted_meanwhile(url, monkeypatch):
    study, reading = lived(url), Storage.read_connection

    @contextmanager
    def meanwhile(storage):
        monkeypatch.undo()
        delete_study("lived", url)
        with reading(storage) as connection:
            yield connection

    monkeypatch.setattr(Storage, "read_connection", meanwhile)
    with pytest.raises(StorageError, match="study 'lived' was deleted"):
        list_details(study)


def test_a_database_in_trouble_is_explained(small, monkeypatch):
    def broken():
        raise sa.exc.OperationalError("SELECT", {}, Exception("database disk image is malformed"))

    monkeypatch.setattr(small._log.storage.engine, "connect", broken)
    with pytest.raises(StorageError, match="is damaged"):
        list_details(small)


def test_details_from_postgres(postgres, url):
    here, there = list_details(lived(url)), list_details(lived(postgres))
    assert {part for part in here if here[part] != there[part]} <= {"open", "over_time"}  # these have times
    assert [answers for _, answers in here["over_time"]] == [answers for _, answers in there["over_time"]]
    json.dumps(there, allow_nan=False)
