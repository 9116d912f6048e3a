"""Results at a glance: what the page of a study shows agrees with the study's own tables."""

import itertools
import json
from datetime import datetime

import pytest

import duels
from duels.errors import InvalidInput, UnknownName, percent
from duels.server.results_tab import MAPPED, MOST_ARMS, as_of, glance, pair_history
from duels.study.duels import iso_time
from duels.study.items import add_items
from duels.study.state.look import measure_pace
from duels.study.stats.forecast import TOO_EARLY

ARMS = ["ada", "bob", "cy", "dee"]


@pytest.fixture
def study():
    return duels.create_study(ARMS, "glance", "sqlite://")


def play(study, *votes):
    study.import_votes([vote for vote, times in votes for _ in range(times)])


VOTES = [
    (("ada", "bob", "left"), 9),
    (("bob", "ada", "left"), 4),
    (("bob", "cy", "tie"), 3),
    (("cy", "dee", "left"), 5),
]


def test_before_the_first_answer(study):
    found = glance(study)
    assert found["verdict"]["headline"] == "Not yet: no two arms have met"
    assert found["next"]["words"].startswith("Nobody has voted yet. Create a voting link under Share")
    assert found["verdict"]["facts"] == "0 answers"
    assert [(row["arm"], row["rank"], row["share"], row["rating"]) for row in found["arms"]] == [
        (arm, None, None, None) for arm in ARMS
    ]
    assert found["map"] == {"arms": ARMS, "cells": []}


def test_it_agrees_with_the_tables(study):
    play(study, *VOTES)
    found, rows = glance(study), {row.arm: row for row in study.leaderboard()}
    assert [row["arm"] for row in found["arms"]] == list(rows)
    for row in found["arms"]:
        other = rows[row["arm"]]
        certain = row.pop("certain")
        assert row == other._asdict()
        assert certain is False
    with pytest.warns(UserWarning, match="half a win and half a loss"):
        rated = dict(duels.rate(study)["arm", "rating"].iter_rows())
    for row in found["arms"]:
        assert row["rating"] == pytest.approx(rated[row["arm"]], abs=0.051)
    first = found["arms"][0]
    assert found["verdict"]["headline"] == (
        f"Not yet: {first['arm']} leads with {percent(first['share'])} % "
        f"({percent(first['lower'])} to {percent(first['upper'])} %)"
    )
    assert found["verdict"]["facts"] == "21 answers"
    (chance,) = (one.chance for one in study.forecast().chances if one.arm == first["arm"])
    assert f"{first['arm']} is the best with a chance of {percent(chance)} %" in found["verdict"]["words"]
    names = found["map"]["arms"]
    cells = {(names[i], names[j]): rest for i, j, *rest in found["map"]["cells"]}
    counted = {(pair.first, pair.second): pair for pair in study.preferences() if pair.duels}
    assert len(cells) == len(counted)
    for (first, second), (won, lost, tied, certain) in cells.items():
        pair = counted.get((first, second)) or counted[second, first]
        swapped = pair.first != first
        assert (won, lost, tied) == ((pair.losses, pair.wins) if swapped else (pair.wins, pair.losses)) + (pair.ties,)
        assert (certain != 0) == (pair.certain is not None)
    assert len(json.dumps(found)) < 5000


def test_what_to_do_next(study):
    play(study, *VOTES)
    found = glance(study)
    assert found["next"] == {
        **{"words": f"Go on. {TOO_EARLY}", "answers": None},
        **{"until": None, "last": None, "quiet": None},
    }
    assert found["verdict"]["headline"].startswith("Not yet: ada leads with ")
    play(study, *(((*pair, "left"), 8) for pair in itertools.combinations(ARMS, 2)))
    found, forecast = glance(study), study.forecast()
    assert found["next"]["answers"] == forecast.answers_median > 0
    assert found["next"]["words"].startswith("Go on: about ")
    assert "answers to go" in found["verdict"]["headline"]
    assert "is the best with a chance of" in found["verdict"]["words"]
    play(study, *(((arm, other, "left"), 60) for k, arm in enumerate(ARMS) for other in ARMS[k + 1 :]))
    found = glance(study)
    assert found["verdict"]["headline"].startswith("Winner: ada wins ")
    assert found["next"]["words"] == "You can stop: the winner is known."
    certain = {
        tuple(sorted((found["map"]["arms"][i], found["map"]["arms"][j]))): sure
        for i, j, _, _, _, sure in found["map"]["cells"]
    }
    assert certain["ada", "bob"] == 1
    study.retire()
    assert glance(study)["next"]["words"].startswith("The study is retired")
    cycle = duels.create_study(["x", "y", "z"], "cycle", "sqlite://")
    play(cycle, *((pair, 60) for pair in (("x", "y", "left"), ("y", "z", "left"), ("z", "x", "left"))))
    assert glance(cycle)["next"]["words"].startswith("You can stop: each arm is beaten by another one")
    tied = duels.create_study(["x", "y"], "tied", "sqlite://", margin=0.1)
    play(tied, (("x", "y", "tie"), 400))
    assert glance(tied)["next"]["words"] == "You can stop: closer than your margin is as good as equal."


def under_way(study):
    """Past votes after which it can be told how many more answers are needed."""
    play(study, *VOTES)
    play(study, *(((*pair, "left"), 8) for pair in itertools.combinations(ARMS, 2)))


def vote(study, now, count, pause):
    """People who are new answer, one after the other: of three answers two are for the arm first in the alphabet."""
    for _ in range(count):
        now[0] += pause
        number = study._log.history().total
        duel = study.ask(voter=f"person {number}", allow_self=False)
        is_left = (duel.left < duel.right) == (number % 3 != 0)
        study.tell(duel, "left" if is_left else "right", voter=f"person {number}")


def test_forecasts_end_when_nobody_answers_any_more(study, now):
    under_way(study)
    vote(study, now, 12, 60)
    found, pace = glance(study), study.forecast()
    assert pace.answers_an_hour == pytest.approx(60)
    assert "At the present rate that takes" in str(pace)
    last = now[0]
    assert found["next"]["last"] == iso_time(last)
    assert found["next"]["quiet"] == pytest.approx(10 * 60)  # ten of the usual pauses, and ten minutes at least
    hours = found["next"]["answers"] / 60
    assert found["next"]["until"] == iso_time(last + 3600 * study.forecast().hours_median)
    assert study.forecast().hours_median == pytest.approx(hours)
    assert as_of(found, last + 599) == found
    quiet = as_of(found, last + 600)
    assert quiet == found | {"next": found["next"] | {"until": None}}
    now[0] += 600
    later = glance(study)
    assert (later["next"]["until"], later["next"]["last"]) == (None, iso_time(last))
    assert study.forecast().answers_an_hour is None
    assert "present rate" not in str(study.forecast())


def test_no_forecast_is_in_the_past(study, now):
    under_way(study)
    vote(study, now, 12, 3600)  # one answer an hour: a silence of ten hours is usual
    found = glance(study)
    until = datetime.fromisoformat(found["next"]["until"]).timestamp()
    assert found["next"]["quiet"] == pytest.approx(36_000)
    assert as_of(found, until - 1)["next"]["until"] == (found["next"]["until"] if until - 1 < now[0] + 36_000 else None)
    soon = found | {"next": found["next"] | {"until": iso_time(now[0] + 100)}}
    assert as_of(soon, now[0] + 99) == soon
    assert as_of(soon, now[0] + 100)["next"]["until"] is None


def test_past_votes_are_no_pace(study, now):
    vote(study, now, 20, 60)
    play(study, *VOTES)
    vote(study, now, 20, 60)
    assert measure_pace(study._log.history(), now[0]).answers_an_hour == pytest.approx(60)
    assert measure_pace(study._log.history(), now[0]).last == now[0]
    skipped = study.ask(voter="late")
    now[0] += 100
    study.tell(skipped, "skip", voter="late")
    assert measure_pace(study._log.history(), now[0]).last == now[0] - 100  # a skip is no answer


def test_a_margin_is_suggested_where_arms_look_equal():
    study = duels.create_study(["x", "y"], "equal", "sqlite://")
    play(study, (("x", "y", "left"), 500), (("x", "y", "right"), 500))
    assert study.forecast().hint.endswith("look at the verdict with margin=0.02.")
    words = glance(study)["next"]["words"]
    assert "close to equal. A margin of 2 % would end it sooner: set it under Settings." in words
    assert "margin=" not in words


def test_ranks_are_marked_as_certain_as_in_the_ranking(study):
    assert glance(study)["ranks"] == ""
    play(study, *VOTES)
    found = glance(study)
    assert not any(row["certain"] for row in found["arms"])
    assert found["ranks"] == "No rank is certain yet."
    play(study, *((("ada", other, "left"), 60) for other in ARMS[1:]))
    found = glance(study)
    assert [row["certain"] for row in found["arms"]] == [True, False, False, False]
    assert found["ranks"] == "Only the first rank is certain."
    play(study, *(((other, "dee", "left"), 100) for other in ARMS[:3]))
    found = glance(study)
    assert [row["certain"] for row in found["arms"]] == [row.certain for row in study.ranking()]
    assert [row["certain"] for row in found["arms"]] == [True, False, False, True]
    assert found["ranks"] == "Only the ranks 1 and 4 are certain."
    study.retire_arm("bob")
    found = glance(study)
    assert [(row["arm"], row["certain"]) for row in found["arms"]] == [
        *(("ada", True), ("cy", True), ("dee", True), ("bob", False))
    ]
    assert found["ranks"] == "All ranks are certain."


def test_answers_that_were_taken_back_are_said_with_every_kind_of_verdict():
    cycle = [("x", "y", "left"), ("y", "z", "left"), ("z", "x", "left")]
    kinds = {
        "not yet": [(("x", "y", "left"), 3)],
        "winner": [(("x", "y", "left"), 80), (("x", "z", "left"), 80)],
        "no condorcet winner": [(vote, 80) for vote in cycle],
        "practically tied": [((a, b, "tie"), 600) for a, b, _ in cycle],
    }
    for kind, votes in kinds.items():
        study = duels.create_study(["x", "y", "z"], kind, "sqlite://", margin=0.1)
        duel = study.ask(allow_self=False)
        study.tell(duel, "left")
        play(study, *votes)
        assert "Nothing is promised" not in glance(study)["verdict"]["words"]
        study.undo(duel)
        found = glance(study)["verdict"]
        assert found["kind"] == kind
        assert "Nothing is promised about errors: 1 answer was taken back." in found["words"]


def test_no_verdict_is_said_to_hold_where_nothing_is_promised():
    study = duels.create_study(["x", "y"], storage="sqlite://")
    duel = study.ask(allow_self=False)
    study.tell(duel, "left")
    play(study, (("x", "y", "left"), 6))
    words = "is the best with a chance of", "it holds however often you look", "Nothing is promised"
    assert [one in glance(study)["verdict"]["words"] for one in words] == [True, True, False]
    study.undo(duel)
    assert [one in glance(study)["verdict"]["words"] for one in words] == [True, False, True]


def test_many_arms_are_cut(study):
    names = [f"arm {k}" for k in range(MOST_ARMS + 5)]
    many = duels.create_study(names, "many", "sqlite://")
    play(many, *(((one, names[0], "right"), 1) for one in names[1:]))
    found = glance(many)
    assert (len(found["arms"]), found["arms_total"]) == (MOST_ARMS, MOST_ARMS + 5)
    assert len(found["map"]["arms"]) == MAPPED
    assert len(found["map"]["cells"]) == MAPPED - 1
    assert found["arms"][0]["arm"] == "arm 0"
    assert found["verdict"]["words"] == "arm 0 ranks first so far, but that may still change."


def test_retired_arms_have_no_rank_and_no_cells(study):
    play(study, *VOTES)
    study.retire_arm("ada")
    found = glance(study)
    assert found["arms"][-1]["arm"] == "ada"
    assert (found["arms"][-1]["rank"], found["arms"][-1]["active"]) == (None, False)
    assert "ada" not in found["map"]["arms"]


def test_the_history_of_a_pair(study):
    play(
        study,
        (("ada", "bob", "left"), 1),
        (("bob", "ada", "left"), 1),
        (("ada", "bob", "tie"), 1),
        (("ada", "bob", "left"), 1),
        (("ada", "cy", "left"), 3),
    )
    found = pair_history(study, "bob", "ada")
    assert (found["wins"], found["losses"], found["ties"]) == (1, 2, 1)
    assert [point["answers"] for point in found["history"]] == [1, 2, 3, 4]
    assert [point["share"] for point in found["history"]] == [0.0, 0.5, 0.5, 0.375]
    assert pair_history(study, "bob", "cy")["history"] == []
    with pytest.raises(UnknownName, match="unknown arm 'eve'"):
        pair_history(study, "ada", "eve")
    with pytest.raises(InvalidInput, match="the pair is 'ada' and itself: expected two arms"):
        pair_history(study, "ada", "ada")


def test_a_long_history_is_thinned(study):
    play(study, (("ada", "bob", "left"), 5000))
    history = pair_history(study, "ada", "bob")["history"]
    assert len(history) == 200
    assert (history[0]["answers"], history[-1]["answers"]) == (1, 5000)


def test_a_study_that_is_exhausted_says_so(now):
    """Two prompts, each asked about once: whatever is answered, that is not enough for a winner."""
    study = duels.create_study(["x", "y"], "few", "sqlite://", about="new-items")
    add_items(study, [{"prompt": f"p{k}", "outputs": {"x": "yes", "y": "no"}} for k in range(2)])
    for k in range(2):
        duel = study.ask(voter=f"person {k}", allow_self=False)
        study.tell(duel, "left" if duel.left == "x" else "right", voter=f"person {k}")
    words = glance(study)["next"]["words"]
    assert words.startswith(
        "No question that is left can bring a verdict. x won 2 of 2 against y; a coin does that too."
    )
    assert "Go on" not in words
