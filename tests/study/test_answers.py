"""All answers of a study by columns, against what an export says of the same study."""

import random
from functools import partial

import numpy as np
import pytest

import duels
from duels.study.answering import write_answer
from duels.study.answers.table import AnswerLog, AnswerTable
from duels.study.items import add_items
from duels.study.study import Study

SIDES = ("left", "right", "tie", "both_bad")


def rows_of(table: AnswerTable) -> list[tuple[object, ...]]:
    names = [*table.voters, None]  # NOBODY is −1
    return [
        (
            table.duel[k],
            table.names[table.left[k]],
            table.names[table.right[k]],
            SIDES[table.answer[k]],
            names[table.voter[k]],
            None if table.item[k] < 0 else table.item[k],
            table.comments.get(table.duel[k]),
            table.votes[k],
        )
        for k in range(len(table.duel))
        if table.left[k] != table.right[k]
    ]


def exported(study: Study) -> list[tuple[object, ...]]:
    votes = study.votes()
    items, comments = (
        votes.extra[name].to_list() if name in votes.extra else [None] * len(votes) for name in ("item", "comment")
    )
    return [
        (
            int(vote.duel),
            vote.left,
            vote.right,
            vote.winner,
            vote.voter,
            item,
            comment,
            1 if votes.count is None else votes.count[k],
        )
        for k, (vote, item, comment) in enumerate(zip(votes, items, comments))
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_columns_say_what_an_export_says_after_any_history(seed: int) -> None:
    luck = random.Random(seed)
    study = duels.create_study(["a", "b", "c"], "columns", "sqlite://", seed=seed)
    add_items(study, [{"prompt": str(k), "outputs": dict.fromkeys("abc", "x")} for k in range(40)])
    follower = AnswerLog()
    told: list[int] = []
    for step in range(120):
        what = luck.random()
        if what < 0.7:
            voter = luck.choice([None, "ann", "bob", "cem"])
            duel = study.ask(voter=voter, allow_self=luck.random() < 0.3)
            if luck.random() < 0.9:
                note = luck.choice([None, "because"])
                study.tell(duel, luck.choice([*SIDES, "skip"]), voter=voter, note=note)
                told.append(duel.id)
        elif what < 0.8 and told:
            duel = told.pop(luck.randrange(len(told)))
            study.undo(duel)
            if luck.random() < 0.5:
                study.tell(duel, luck.choice(SIDES), voter="dan")
                told.append(duel)
        elif what < 0.85:
            study.import_votes([{"left": "a", "right": "b", "winner": "a", "voter": luck.choice(["old", None])}] * 3)
        elif what < 0.88:
            study.import_votes([{"left": "b", "right": "c", "wins_left": 5, "wins_right": 2, "ties": 1}])
        elif what < 0.9 and "bob" in {voter for *_, voter, _, _, _ in rows_of(follower.follow(study))}:
            study.forget("bob")
            told = []
        if step % 10 == 0:
            assert sorted(rows_of(follower.follow(study)), key=str) == sorted(exported(study), key=str)
    table = follower.follow(study)
    assert sorted(rows_of(table), key=str) == sorted(exported(study), key=str)
    assert rows_of(table) == rows_of(AnswerLog().follow(study))  # followed or read at once: the same
    assert table.votes.sum() == study._log.history().total
    assert set(table.comments) <= set(table.duel.tolist())


def test_a_forgotten_name_is_not_kept() -> None:
    study = duels.create_study(["a", "b"], "forgotten", "sqlite://")
    for voter in ("ann", "bob"):
        study.tell(study.ask(voter=voter, allow_self=False), "left", voter=voter)
    follower = AnswerLog()
    assert follower.follow(study).voters == ["ann", "bob"]
    study.forget("bob")
    assert follower.follow(study).voters == ["ann"]


def test_times_are_those_of_the_votes() -> None:
    study = duels.create_study(["a", "b"], "times", "sqlite://")
    study.import_votes([{"left": "a", "right": "b", "winner": "a", "time": "2025-01-31T12:00:00Z"}])
    duel = study.ask(allow_self=False)
    study.tell(duel, "left")
    table = AnswerLog().follow(study)
    assert table.time[0] == 1738324800.0  # 20,119 days of 86,400 s, and half a day
    assert table.asked[1] <= table.time[1]
    np.testing.assert_array_equal(table.imported, [True, False])


def test_only_answers_in_one_order_have_a_coin() -> None:
    study = duels.create_study(["a", "b"], "coins", "sqlite://")
    study.import_votes([{"left": "a", "right": "b", "winner": "a"}])
    one, both = study.ask(2, allow_self=False)
    study.tell(one, "left")
    more = {"calls": 2, "first": "left"}
    study._log.write(
        partial(write_answer, log=study._log, duel=both.id, winner="left", more=more)
    )  # as judges asked twice do
    np.testing.assert_array_equal(AnswerLog().follow(study).coin, [False, True, False])
