"""The voters of a live study: against `duels.measure_agreement`, by brute force, and worked by hand."""

import itertools
import random
import re
import statistics
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

import duels
from duels.errors import InvalidInput
from duels.study import base
from duels.study.answers.table import AnswerLog
from duels.study.items import add_items
from duels.study.study import Study
from duels.study.voters.report import Voters, order_voters, remarks_of, rows_of, summary_of, voters_of
from duels.study.voters.voter_tests import LEVEL, SUSPECT, compare, is_biased_together, shares_of


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = [1_750_000_000.0]
    monkeypatch.setattr(base, "clock", lambda: now[0])
    return now


def found_of(study: Study) -> Voters:
    return voters_of(AnswerLog().follow(study))


def rows_by_name(found: Voters) -> dict[str, dict]:
    return {row["voter"]: row for row in rows_of(found, order_voters(found))}


def answer(study: Study, voter: str | None, choose) -> None:
    duel = study.ask(voter=voter, allow_self=False)
    study.tell(duel, choose(duel), voter=voter)


def test_a_study_worked_by_hand(clock):
    """Two arms, no items: one question. Ann, Bob and Cem choose a, dee chooses b, Eve ties."""
    study = duels.create_study(["a", "b"], "hand", "sqlite://")
    for voter, choice, seconds in (
        *(("ann", "a", 4), ("ann", "b", 6), ("ann", "a", 20)),
        *(("bob", "a", 3), ("cem", "a", 5), ("dee", "b", 7), ("eve", "tie", 1), ("eve", "skip", 1)),
    ):
        duel = study.ask(voter=voter, allow_self=False)
        clock[0] += seconds
        study.tell(duel, choice, voter=voter, note="why" if voter == "bob" else None)
        clock[0] += 1000 if voter == "cem" else 0
    study.import_votes([{"left": "a", "right": "b", "winner": "a", "voter": "old", "time": "2025-01-31T12:00:00Z"}] * 2)
    study.import_votes([{"left": "a", "right": "b", "winner": "b"}])
    rows = rows_by_name(found := found_of(study))
    assert [(name, row["answers"], row["skips"], row["comments"]) for name, row in rows.items()] == [
        *(("ann", 3, 0, 0), ("old", 2, 0, 0), ("bob", 1, 0, 1), ("cem", 1, 0, 0), ("dee", 1, 0, 0), ("eve", 1, 1, 0)),
    ]
    # Of the first answers a, a, a, b, a: each a has 3 of 4 others with it, b has none; eve did not choose.
    assert {name: row["share"] for name, row in rows.items()} == {
        **{"ann": 0.75, "old": 0.75, "bob": 0.75, "cem": 0.75, "dee": 0.0, "eve": None}
    }
    assert rows["ann"]["expected"] == pytest.approx((4 * 0.75 + 1 * 0) / 5)
    assert rows["ann"]["seconds"] == 6
    assert rows["ann"]["per_hour"] == pytest.approx(3600 * 2 / 26)  # 6 and 20 s after the one before
    assert (rows["old"]["seconds"], rows["old"]["per_hour"]) == (None, None)
    assert rows["old"]["left"] == rows["old"]["right"] == 0  # no coin
    assert rows["ann"]["left"] + rows["ann"]["right"] == 3
    assert rows["old"]["first"] == rows["old"]["last"] == "2025-01-31T12:00:00.000+00:00"
    # 4 a, 1 b and 1 tie, which is left out: 4 · 3 of 5 · 4 ordered pairs are alike. By chance half of them.
    assert (found.overall.raw, found.overall.base) == pytest.approx((12 / 20, 1 / 2))
    assert (found.questions, found.unnamed) == (1, 1)
    words = summary_of(found)["words"]
    assert words.startswith("6 voters. Two who chose an arm for the same question agree in 60 % of cases; a coin")
    assert words.endswith("Two voters or more chose an arm for 1 question.")
    assert remarks_of(found) == []


def literal(study: Study) -> dict[str, tuple]:
    """Votes and share of each voter, by looking at all pairs of answers."""
    items, first, votes = {}, {}, {}
    for entry in study.events():
        if entry.kind == "ask":
            items[entry.duel] = entry.note.get("item")
    counting = {int(vote.duel): vote for vote in study.votes()}
    for duel, vote in counting.items():
        if vote.voter is not None:
            votes[vote.voter] = votes.get(vote.voter, 0) + 1
            chosen = {"left": vote.left, "right": vote.right}.get(vote.winner, vote.winner)
            first.setdefault((frozenset((vote.left, vote.right)), items.get(duel), vote.voter), chosen)
    shares: dict[str, list[float]] = {}
    for (arms, item, voter), chosen in first.items():
        others = [one for (a, i, v), one in first.items() if (a, i) == (arms, item) and v != voter and one in arms]
        if chosen in arms and others and item is not None:
            shares.setdefault(voter, []).append(sum(one == chosen for one in others) / len(others))
    return {voter: (votes[voter], statistics.mean(shares[voter]) if voter in shares else None) for voter in votes}


def decided_questions(study: Study) -> int:
    """For how many questions two voters or more chose an arm at first, by the votes."""
    items = {entry.duel: entry.note.get("item") for entry in study.events() if entry.kind == "ask"}
    first: dict[tuple, str] = {}
    for vote in study.votes():
        item = items.get(int(vote.duel))
        if vote.voter is not None and item is not None and vote.left != vote.right:
            first.setdefault((frozenset((vote.left, vote.right)), item, vote.voter), vote.winner)
    chosen = Counter((arms, item) for (arms, item, _), winner in first.items() if winner in ("left", "right"))
    return sum(voters > 1 for voters in chosen.values())


def test_two_voters_agree_alike_in_the_text_and_in_the_table():
    """Of six questions that both answered, one was decided by both, alike, as a tie counts as no choice."""
    study = duels.create_study(["a", "b", "c", "d"], "pair", "sqlite://")
    for k, (left, right) in enumerate(itertools.combinations("abcd", 2)):
        for voter, winner in (("ann", left), ("bob", "tie" if k else left)):
            study.import_votes([{"left": left, "right": right, "winner": winner, "voter": voter}])
    found = found_of(study)
    assert {row["share"] for row in rows_by_name(found).values()} == {1.0}
    assert "agree in 100 % of cases" in summary_of(found)["words"]
    assert duels.measure_agreement(study).raw == pytest.approx(1 / 6)  # there a tie is an answer


def test_voters_without_answers_that_count_are_said():
    study = duels.create_study(["a", "b"], "few", "sqlite://")
    for voter, answer in (("ann", "a"), ("bob", "skip"), ("cem", "b")):
        study.tell(study.ask(voter=voter, allow_self=False), answer, voter=voter)
    study.withdraw("cem")
    found = summary_of(found_of(study))
    assert found["total"] == 3
    assert found["words"].startswith("3 voters, 1 of them with answers that count. No two of them have chosen an arm")


@pytest.mark.parametrize("seed", range(4))
def test_any_history_by_brute_force_and_against_agreement(seed):
    luck = random.Random(seed)
    study = duels.create_study(["a", "b", "c"], "random", "sqlite://", seed=seed)
    add_items(study, [{"prompt": str(k), "outputs": dict.fromkeys("abc", "x")} for k in range(3)])
    told = []
    for _ in range(150):
        voter = luck.choice([None, "ann", "bob", "cem", "dee", "eva"])
        duel = study.ask()  # of nobody who is known, so that voters answer about the same again
        study.tell(duel, luck.choice(["left", "right", "right", "tie", "both_bad", "skip"]), voter=voter)
        told.append(duel.id)
        if luck.random() < 0.1:
            study.undo(told.pop(luck.randrange(len(told))))
    study.import_votes([{"left": "a", "right": "b", "winner": "a", "voter": "old"}] * 3)
    study.withdraw("eva")
    found = found_of(study)
    rows = rows_by_name(found)
    expected = literal(study)
    assert {name: row["answers"] for name, row in rows.items() if row["answers"]} == {
        name: one[0] for name, one in expected.items()
    }
    for name, (_, share) in expected.items():
        assert rows[name]["share"] == (share if share is None else pytest.approx(share, abs=1 / 120))
    other = duels.measure_agreement(study)
    assert other.raw is not None
    compared = [row for row in rows.values() if row["compared"]]
    mean = sum(row["compared"] * row["share"] for row in compared) / sum(row["compared"] for row in compared)
    assert found.overall.raw == pytest.approx(mean)  # the text and the table say the same
    assert found.overall.base == 0.5
    decided = decided_questions(study)
    assert 0 < found.questions == decided < other.questions
    for row in other.voters:
        mine = rows[row.voter]
        assert (mine["compared"], mine["at_random"]) == (row.compared, row.at_random)
        assert mine["share"] == (None if row.share is None else pytest.approx(row.share))
        assert mine["expected"] == (None if row.expected is None else pytest.approx(row.expected))


def test_those_who_do_not_look_are_listed_as_in_agreement(clock):
    """Eight voters see the better arm in 95 % of cases; one tosses a coin, one says left, one is quick."""
    luck = random.Random(3)
    study = duels.create_study(["a", "b", "c", "d"], "crowd", "sqlite://")
    add_items(study, [{"prompt": str(k), "outputs": dict.fromkeys("abcd", "x")} for k in range(10)])
    for _ in range(60):
        for voter in ("ann", "bob", "cem", "dee", "eva", "fay", "coin", "lefty"):
            duel = study.ask(voter=voter, allow_self=False)
            clock[0] += 1 if voter == "fay" else luck.uniform(4, 12)
            skill = {"coin": 0.5}.get(voter, 0.95)
            better, worse = sorted((duel.left, duel.right))
            study.tell(duel, "left" if voter == "lefty" else better if luck.random() < skill else worse, voter=voter)
    found, other = found_of(study), duels.measure_agreement(study)
    names = np.array(found.names)
    assert sorted(names[found.at_random]) == sorted(one.voter for one in other.voters if one.at_random)
    assert "coin" in names[found.at_random]
    assert names[found.one_sided].tolist() == ["lefty"]
    assert names[found.fast].tolist() == ["fay"]
    remarks = {(one["voter"], one["kind"]): one["words"] for one in remarks_of(found)}
    assert remarks["lefty", "one_sided"] == "chose the left side in 60 of 60 answers, whatever was shown there."
    assert remarks["fay", "fast"].startswith("takes 1.0 seconds per answer.")
    assert "a coin with 50 %" in remarks["coin", "at_random"]


def test_those_who_favor_an_arm_are_listed_as_in_agreement():
    """As a voter of a ring that votes for its own model, and prefers no side."""
    luck, rows = random.Random(5), []
    for _ in range(40):
        for voter in (f"v{k}" for k in range(60)):
            left, right = luck.sample("abc", 2)
            winner = "b" if voter == "v0" and "b" in (left, right) else luck.choice((left, right))
            rows.append({"voter": voter, "left": left, "right": right, "winner": winner})
    study = duels.create_study(["a", "b", "c"], "ring", "sqlite://")
    study.import_votes(rows)
    same_favorites(study)
    (remark,) = remarks_of(found_of(study))
    assert (remark["voter"], remark["kind"]) == ("v0", "favors_arm")
    assert re.match(r"chose b in (\d+) of \1 answers that chose an arm where it was shown\.", remark["words"])


def test_favorites_of_a_study_on_items_are_those_of_agreement():
    luck = random.Random(5)
    study = duels.create_study(["a", "b"], "items", "sqlite://", about="these-items")
    add_items(study, [{"prompt": str(k), "outputs": dict.fromkeys("ab", "x")} for k in range(20)])
    for k in range(200):
        duel = study.ask(voter=f"v{k % 10}", allow_self=False)
        study.tell(duel, "b" if k % 10 == 0 else luck.choice(["a", "b", "tie"]), voter=f"v{k % 10}")
    same_favorites(study)


def same_favorites(study):
    mine = rows_by_name(found_of(study))
    for row in duels.measure_agreement(study).voters:
        one = mine[row.voter]
        assert (one["favorite"], one["favors_arm"]) == (row.favorite, row.favors_arm)
        assert (one["chosen"], one["of"]) == (row.chosen, row.of)
        assert one["by_others"] == pytest.approx(row.by_others)


def test_settings_of_a_tuning_study_are_nobodys_favorites(clock):
    """Each question has two new settings, so whoever prefers the first of them prefers no arm."""
    study = duels.create_study(space={"x": (0.0, 1.0)}, study_name="x", storage="sqlite://", policy="random")
    for k in range(200):
        duel = study.ask(voter=f"v{k % 5}")
        study.tell(duel, "right" if k % 5 or k % 4 == 0 else "left", voter=f"v{k % 5}")
    found = found_of(study)
    assert (found.favorite, found.favors_arm.any()) == ([None] * 5, False)


def test_small_preferences_of_many_are_found_together(clock):
    """Forty voters take the left side ten times each, 0.4 seconds after the question: none is certain alone."""
    study = duels.create_study(["a", "b"], "crowd", "sqlite://")
    for k in range(400):
        duel = study.ask(voter=f"v{k % 40}", allow_self=False)
        clock[0] += 0.4
        study.tell(duel, "left", voter=f"v{k % 40}")
        clock[0] += 5
    found = found_of(study)
    assert not found.one_sided.any()
    assert summary_of(found)["sides"].startswith("All voters together chose the left side in 400 of 400 answers.")
    assert found.fast.all()  # as all others, but nobody can read that fast
    words = {one["words"] for one in remarks_of(found)}
    assert words == {"takes 0.4 seconds per answer. Nobody reads and compares two outputs in less than 0.5 seconds."}
    study.withdraw("v0")
    assert summary_of(found_of(study))["left"] == 390


def test_voters_without_a_preference_are_rarely_said_to_have_one():
    """Exactly: the probability that the evidence of all together is ever enough, at any of 2,000 looks."""
    chance, said, few = np.ones(1), 0.0, 0  # of so many lefts; with fewer than `few` it was said
    for answers in range(1, 2_001):
        chance = (np.append(chance, 0) + np.append(0, chance)) / 2
        while is_biased_together(few, answers - few):
            few += 1
        for gone in (chance[:few], chance[answers + 1 - few :]):
            said += gone.sum()
            gone[:] = 0
    assert said + chance.sum() == pytest.approx(1)
    assert 0.005 < said < 0.01


@pytest.mark.deep
def test_nobody_is_left_out_of_the_exact_test_who_could_be_listed():
    """The normal approximation comes first. It must never say no where the exact test of Holm's method says yes."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(3000):
        size = rng.integers(1, 40)
        m = rng.integers(1, rng.integers(2, 30), size)
        same = rng.binomial(m, rng.choice([0.1, 0.3, 0.5]))
        shares = shares_of(np.zeros(size, np.int64), same, m - same, 1)
        exact = compare(same, m - same)
        assert (shares.share[0], shares.expected[0]) == pytest.approx((exact.share, exact.expected))
        if exact.p_low <= LEVEL:
            hits += 1
            assert shares.suspects[0], (same, m)
    assert hits > 300
    for n in range(1, 60):  # the lightest tail: of two who never agree, each question is a coin
        p = 0.5**n
        assert norm.cdf(-np.sqrt(n)) <= max(SUSPECT, 100 * p) if p <= LEVEL else True


def test_pages_search_and_order():
    study = duels.create_study(["a", "b"], "order", "sqlite://")
    for voter, times in (("Ann", 2), ("Voter two", 3), ("bob", 1), ("Zoë", 4)):
        for _ in range(times):
            answer(study, voter, lambda duel: "a" if voter != "bob" else "b")  # noqa: B023
    study.tell(study.ask(voter="shy", allow_self=False), "skip", voter="shy")
    found = found_of(study)

    def names(**how):
        return [found.names[k] for k in order_voters(found, **how)]

    assert names() == ["Zoë", "Voter two", "Ann", "bob", "shy"]
    assert names(reverse=True) == ["shy", "bob", "Ann", "Voter two", "Zoë"]
    assert names(sort="agreement")[0] == "bob"
    assert names(sort="agreement")[-1] == "shy"  # has none
    assert names(sort="agreement", reverse=True)[-2:] == ["bob", "shy"]
    assert names(sort="voter") == ["Ann", "bob", "shy", "Voter two", "Zoë"]
    assert names(search=" ZO") == ["Zoë"]
    assert names(search="nobody") == []
    found = found._replace(names=["Voter 12", "Voter 7", "Voter 100", "x", "y"])
    assert [found.names[k] for k in order_voters(found, sort="voter")] == ["Voter 7", "Voter 12", "Voter 100", "x", "y"]


def test_answers_are_withdrawn_and_the_name_is_kept():
    study = duels.create_study(["a", "b"], "withdraw", "sqlite://")
    follower = AnswerLog()
    for voter in ("ann", "bob", "ann"):
        answer(study, voter, lambda duel: "a")
    study.import_votes([{"left": "a", "right": "b", "winner": "a", "voter": "ann"}] * 2)
    assert rows_by_name(voters_of(follower.follow(study)))["ann"]["answers"] == 4
    with pytest.raises(InvalidInput, match="no voter named 'zoe'"):
        study.withdraw("zoe")
    assert study.withdraw("ann") == 4
    assert study.verdict().void == "4 answers were taken back"
    assert len(study.votes()) == 1
    rows = rows_by_name(voters_of(follower.follow(study)))
    assert (rows["ann"]["answers"], rows["ann"]["withdrawn"], rows["ann"]["skips"]) == (0, 4, 0)
    before = study._log.history().seq
    with pytest.raises(InvalidInput, match="nothing to withdraw"):
        study.withdraw("ann")
    assert study._log.history().seq == before
    answer(study, "ann", lambda duel: "b")  # counts
    rows = rows_by_name(voters_of(follower.follow(study)))
    assert (rows["ann"]["answers"], rows["ann"]["withdrawn"]) == (1, 4)
    assert "ann" in {entry.voter for entry in study.events()}
    assert study.check() == study._log.history().seq
    assert study.forget("ann") == 1
    assert "ann" not in rows_by_name(voters_of(follower.follow(study)))
    assert "ann" not in {entry.voter for entry in study.events()}


def test_nobody_at_all():
    study = duels.create_study(["a", "b"], "nobody", "sqlite://")
    found = found_of(study)
    assert (order_voters(found).tolist(), remarks_of(found)) == ([], [])
    assert summary_of(found)["words"] == "Nobody has voted yet."
    answer(study, None, lambda duel: "a")
    assert summary_of(found_of(study))["words"] == "Nobody has voted under a name yet."
