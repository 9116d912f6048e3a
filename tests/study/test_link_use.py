"""The use of links, against counting answer by answer."""

import numpy as np

from duels.study.answers.table import NOBODY, AnswerTable, SecondAnswers
from duels.study.voters.link_use import LinkUse, link_use


def table_of(rng, answers, voters):
    numbers = np.arange(answers)
    return AnswerTable(
        answers,
        ["a", "b"],
        np.ones(2, bool),
        voters,
        numbers,
        np.zeros(answers, np.int32),
        np.ones(answers, np.int32),
        np.zeros(answers, np.int8),
        np.ones(answers, np.int64),
        np.full(answers, -1, np.int32),
        rng.integers(NOBODY, len(voters), answers).astype(np.int32),
        np.zeros(answers),
        rng.uniform(1e9, 2e9, answers),
        rng.random(answers) < 0.2,
        {},
        np.ones(answers, bool),
        np.zeros(len(voters), np.int64),
        np.zeros(len(voters), np.int64),
        SecondAnswers(*(np.zeros(0, np.int64) for _ in SecondAnswers._fields)),
    )


def counted(table, links):
    """One answer after the other."""
    people, votes, last = {}, {}, {}
    for voter, time, imported in zip(table.voter, table.time, table.imported):
        key = None if voter == NOBODY or imported else links.get(table.voters[voter])
        if key is not None:
            people.setdefault(key, set()).add(voter)
            votes[key] = votes.get(key, 0) + 1
            last[key] = max(last.get(key, 0.0), time)
    return {key: LinkUse(votes[key], len(people[key]), last[key]) for key in votes}


def test_link_use_is_what_counting_gives():
    rng = np.random.default_rng(1)
    for answers in (0, 1, 5, 400):
        voters = [f"Voter {k}" for k in range(1, 9)] + ["Ann", "program"]
        links = {name: int(rng.integers(1, 4)) for name in voters[:-1]} | {"Voter 99": 7}
        table = table_of(rng, answers, voters)
        assert link_use(table, links) == counted(table, links)
    assert link_use(table_of(rng, 0, []), {}) == {}
