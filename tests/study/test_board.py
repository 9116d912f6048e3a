"""What a study's live page shows: numbers of one moment, worked by hand and by brute force, and charts of them."""

import csv
import io
import json
import math
import random
import re
import shutil
import types
from contextlib import contextmanager

import numpy as np
import pytest
import sqlalchemy as sa
import vl_convert
from scipy import optimize

from duels.errors import InvalidInput, PolicyError, StorageError
from duels.policies import random as random_policy
from duels.storage.storage import Storage
from duels.study.board import board
from duels.study.board_charts import (
    charts_of,
    plot_beats,
    plot_champions,
    plot_duels,
    plot_leaderboard,
    plot_progress,
    plot_regret_so_far,
)
from duels.study.catalogue import create_study, delete_study

PLOTS = {
    "leaderboard": plot_leaderboard,
    "beats": plot_beats,
    "duels": plot_duels,
    "champions": plot_champions,
    "progress": plot_progress,
    "regret": plot_regret_so_far,
}


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """A file with all tables, to copy: making them takes as long as many a test."""
    path = tmp_path_factory.mktemp("empty") / "duels.db"
    Storage(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def url(tmp_path, empty_database):
    shutil.copy(empty_database, tmp_path / "duels.db")
    return f"sqlite:///{tmp_path}/duels.db"


def votes(*pairs):
    """`("a", "b", "left", 3)` stands for three votes."""
    return [{"left": a, "right": b, "winner": winner} for a, b, winner, count in pairs for _ in range(count)]


def row_of(rows, arm):
    (row,) = [row for row in rows if row["arm"] == arm]
    return row


@pytest.fixture
def small(url):
    """a beats b 3 : 1 and c 8 : 0; b beats c once and ties once."""
    study = create_study([*"abc"], "small", url, "rucb")
    study.import_votes(
        votes(("a", "b", "left", 3), ("b", "a", "left", 1), ("a", "c", "left", 8), ("b", "c", "left", 1))
        + votes(("c", "b", "tie", 1))
    )
    return study


def test_the_numbers_of_a_small_study_by_hand(small):
    shown = board(small)
    assert shown["study"]["answers"] == 14
    assert shown["order"] == ["a", "b", "c"]
    assert shown["leader"] == "a"
    a = row_of(shown["leaderboard"], "a")
    assert (a["answers"], a["wins"], a["losses"], a["ties"]) == (12, 11, 1, 0)
    # About the mean of the shares 3/4 and 1, which the model draws together a bit.
    assert a["share"] == pytest.approx(0.875, abs=0.03)
    assert 0 < a["lower"] < a["share"] < a["upper"] <= 1
    assert [(pair["first"], pair["second"], pair["estimate"]) for pair in shown["pairs"]] == [
        ("a", "b", 0.75),
        ("a", "c", 1.0),
        ("b", "c", 0.75),
    ]
    # Δ is 0, 1/4 and 1/2: four duels cost 1/8 each, eight cost 1/4 each, and two (1/4 + 1/2)/2 each.
    cost = [0.125] * 4 + [0.25] * 8 + [0.375] * 2
    assert [point["answers"] for point in shown["regret"]] == list(range(15))
    assert [point["estimate"] for point in shown["regret"]] == [sum(cost[:n]) for n in range(15)]
    assert shown["regret"][-1]["estimate"] == 3.25


def test_the_upper_limit_of_the_regret_by_hand(small):
    """Each of three pairs has δ′ = 2·0.05/3²; the end of an interval is where M(p) = 1/δ′."""

    def end(w, n):
        def excess(p):
            beta = math.lgamma(w + 0.5) + math.lgamma(n - w + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
            return beta - w * math.log(p) - (n - w) * math.log(1 - p) - math.log(9 / 0.1)

        return optimize.brentq(excess, w / n, 1 - 1e-12)

    b, c = end(3, 4) - 0.5, 0.5  # against c, a has won every duel
    assert board(small)["regret"][-1]["upper"] == pytest.approx(4 * b / 2 + 8 * c / 2 + 2 * (b + c) / 2, rel=1e-9)


def test_the_potential_champions_of_a_small_study_by_hand(small):
    """At t = 14, α ln t = 1.34592: u_ab = 3/4 + √(1.34592/4), u_ba = 1/4 + √(1.34592/4), u_ca = √(1.34592/8) < 1/2."""
    rows = {row["arm"]: row for row in board(small)["champions"]}
    assert {arm: (row["champion"], row["against"], row["duels"]) for arm, row in rows.items()} == {
        "a": (True, "b", 12),
        "b": (True, "a", 6),
        "c": (False, "a", 10),
    }
    assert [rows[arm]["upper"] for arm in "abc"] == pytest.approx([1.330069, 0.830069, 0.410171], abs=1e-6)
    assert board(small)["champions_note"].startswith("2 of 3 active arms")


def lived(url, policy="rucb", answers=150, seed=1, **created):
    """A study in which everything happens: ties, skips, self-duels, answers taken back, arms that come and go."""
    study = create_study([*"abcd"], "lived", url, policy, seed=seed, **created)
    chance = random.Random(seed)
    for k in range(answers):
        voter = None if k % 7 == 0 else f"v{k % 5}"
        duel = study.ask(voter=voter)  # a person who comes back is never asked about an arm and itself
        better, worse = sorted([duel.left, duel.right])
        winner = "tie" if duel.is_self else chance.choices([better, worse, "tie", "skip"], [12, 2, 1, 1])[0]
        study.tell(duel, winner, voter=voter)
        if k % 40 == 20:
            study.undo(duel)
        if k % 80 == 20:
            study.tell(duel, "left", voter="late")
        if k == answers // 3:
            study.retire_arm("c")
        if k == answers // 2:
            study.add_arm("e")
        if k == 2 * answers // 3:
            study.forget("v3")
    return study


def replayed(study):
    """The answers that count, in their order, as (left, right, voter), from the log alone."""
    told, asked = {}, {}
    for entry in study.events():
        if entry.kind in ("ask", "vote"):
            asked[entry.duel] = (entry.left, entry.right)
        if entry.kind in ("tell", "vote") and entry.answer != "skip":
            told[entry.duel] = (*asked[entry.duel], entry.voter)
        for duel in [entry.duel] if entry.kind == "undo" else entry.note.get("duels", ()):
            told.pop(duel, None)
    return list(told.values())


@pytest.mark.parametrize("answers", [40, pytest.param(150, marks=pytest.mark.deep), 400])
def test_the_regret_is_what_counting_every_pair_gives(url, answers):
    study = lived(url, answers=answers)
    shown, told = board(study), replayed(study)
    leader, arms = study.verdict().leader, [row.arm for row in study.leaderboard()]
    chances = {leader: (0.5, 0.5)}
    for pair in study.preferences():
        middle = 0.5 if pair.estimate is None else pair.estimate
        if pair.first == leader:
            chances[pair.second] = (middle, pair.upper)
        elif pair.second == leader:
            chances[pair.first] = (1 - middle, 1 - pair.lower)
    assert shown["study"]["answers"] == len(told)
    assert answers < 400 or any(left == right for left, right, _ in told)
    points = shown["regret"]
    assert len(points) == min(60, len(told) + 1)
    assert (points[0]["answers"], points[-1]["answers"]) == (0, len(told))
    for point in points:
        first = told[: point["answers"]]
        for k, field in enumerate(("estimate", "upper")):
            gap = {arm: max(0.0, chances[arm][k] - 0.5) for arm in arms}
            counts = {(i, j): sum({i, j} == {left, right} for left, right, _ in first) for i in arms for j in arms}
            total = sum(n * (gap[i] + gap[j]) / 2 for (i, j), n in counts.items() if i <= j)
            assert point[field] == pytest.approx(total, abs=1e-9)


def test_the_upper_limit_holds(url):
    """With p known, the cost of the answers relative to the leader is within its limit, but for 5 % of studies."""
    p = np.array([[0.5, 0.6, 0.8], [0.4, 0.5, 0.7], [0.2, 0.3, 0.5]])
    missed = 0
    for seed in range(10):
        study = create_study([*"abc"], f"study {seed}", url, seed=seed)
        chance = random.Random(seed)
        for duel in (study.ask() for _ in range(150)):
            won = chance.random() < p["abc".index(duel.left), "abc".index(duel.right)]
            study.tell(duel, "tie" if duel.is_self else "left" if won else "right")
        shown = board(study)
        gaps = np.maximum(p["abc".index(shown["leader"])] - 0.5, 0)
        cost = sum((gaps["abc".index(left)] + gaps["abc".index(right)]) / 2 for left, right, _ in replayed(study))
        missed += cost > shown["regret"][-1]["upper"]
    assert missed <= 3  # of Binomial(10, 0.05) it is more with probability 0.001


@pytest.mark.parametrize("policy", ["rucb", "rucb:alpha=0.8", "rucb:variant=icml"])
def test_champions_are_those_of_the_definition(url, policy):
    study = lived(url, policy, answers=400)
    shown, tally, active = board(study), study.tally(), study.arms
    alpha = 0.8 if "alpha" in policy else 0.51
    ties = tally.ties[np.ix_(tally.active, tally.active)].sum() // 2  # which RUCB is not told in a live study
    t = 1 + sum(left in active and right in active for left, right, _ in replayed(study)) - ties
    index = tally.names.index
    assert [row["arm"] for row in shown["champions"]] == shown["order"][: len(active)]
    assert {"c"} == set(tally.names) - set(active)
    for row in shown["champions"]:
        bounds = {}
        for other in active:
            i, j = index(row["arm"]), index(other)
            n = tally.wins[i, j] + tally.wins[j, i]
            if i != j:
                w = tally.wins[i, j]
                bounds[other] = w / n + math.sqrt(alpha * math.log(t) / n) if n else 2.0
        assert row["upper"] == pytest.approx(min(bounds.values()))
        assert bounds[row["against"]] == pytest.approx(row["upper"])
        assert row["champion"] == all(bound >= 0.5 for bound in bounds.values())
    assert 0 < sum(row["champion"] for row in shown["champions"]) < len(active)


def test_champions_are_the_pool_from_which_rucb_chooses(url):
    study = lived(url)
    for duel in study.open_duels():
        study.tell(duel, "skip")  # else RUCB takes them into account, and the board does not
    shown, duel = board(study), study.ask().id
    history = study.history()
    first = history.right[duel] if history.swapped[duel] else history.left[duel]
    assert row_of(shown["champions"], history.names[first])["champion"]


def test_savage_has_bounds_of_its_own(url):
    shown = board(lived(url, "savage", horizon=1000))
    assert len(shown["champions"]) == 4
    assert all(row["champion"] == (row["upper"] >= 0.5) for row in shown["champions"])


@pytest.mark.parametrize("policy", ["random", pytest.param("btm", marks=pytest.mark.deep), "interleaved_filter"])
def test_a_policy_without_bounds_has_no_champions(url, policy):
    shown = board(lived(url, policy, horizon=1000))
    assert shown["champions"] is None
    assert f"{policy} keeps no bounds" in shown["champions_note"]
    assert set(charts_of(shown)) == set(PLOTS) - {"champions"}
    with pytest.raises(InvalidInput, match="nothing to show in its chart 'champions'"):
        plot_champions(shown)


def policy_with(bounds, champions=None):
    module = types.ModuleType("mine")
    module.__dict__.update({name: getattr(random_policy, name) for name in ("Params", "init", "select", "update")})
    module.recommend, module.bounds = random_policy.recommend, bounds
    if champions is not None:
        module.champions = champions
    return module


def test_bounds_that_fail_are_the_policys_fault(url):
    def bounds(state, params, t):
        return np.zeros(3), np.zeros(3)

    with pytest.raises(PolicyError, match="bounds of policy mine failed: ValueError"):
        board(lived(url, policy_with(bounds)))


def test_a_policy_says_which_arms_are_champions(url):
    def bounds(state, params, t):
        return np.zeros((4, 4)), np.full((4, 4), 0.4)

    shown = board(lived(url, policy_with(bounds, lambda state, params, t: np.arange(4) == 2)))
    names = [arm["name"] for arm in shown["study"]["arms"] if arm["active"]]
    assert [row["arm"] for row in shown["champions"] if row["champion"]] == [names[2]]


def test_champions_that_fail_are_the_policys_fault(url):
    def bounds(state, params, t):
        return np.zeros((4, 4)), np.ones((4, 4))

    with pytest.raises(PolicyError, match="champions of policy mine failed: ValueError"):
        board(lived(url, policy_with(bounds, lambda state, params, t: np.ones(3, bool))))


def test_bounds_without_end_are_null(url):
    def bounds(state, params, t):
        return np.full((4, 4), -np.inf), np.full((4, 4), np.inf)

    shown = board(lived(url, policy_with(bounds)))
    assert {(row["champion"], row["upper"]) for row in shown["champions"]} == {(True, None)}
    json.dumps(shown, allow_nan=False)
    assert "champions" not in charts_of(shown)


def test_what_a_board_says_of_its_study(url, now):
    study = lived(url)
    now[0] += 60
    study.retire()
    shown = board(study, confidence=0.9)
    assert shown["study"] == {
        "name": "lived",
        "policy": "rucb",
        "arms": [{"name": name, "active": name != "c"} for name in "abcde"],
        "answers": len(replayed(study)),
        "open": len(study.open_duels()),
        "retired": True,
        "created": "1970-01-12T13:46:40.000+00:00",
        "seq": study.events()[-1].seq,
        "confidence": 0.9,
    }
    assert shown["verdict"] == study.verdict().as_dict()  # another confidence is of the tables alone
    assert shown["verdict"]["void"].endswith("answers were taken back")
    assert study.verdict(0.9).void.endswith("and a confidence of 0.9 was chosen afterwards, the study's own is 0.95")
    assert shown["words"] == str(study.verdict())
    assert shown["leaderboard"] == [row._asdict() for row in study.leaderboard(0.9)]
    assert shown["order"][-1] == "c"
    assert shown["pairs"] == [row._asdict() for row in study.preferences(0.9)]
    alone = {row["arm"]: row["duels"] for row in shown["self_duels"]}
    told = replayed(study)
    assert alone == {arm: n for arm in "abcde" if (n := sum(left == right == arm for left, right, _ in told))}
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_a_confidence_that_is_none_is_refused(small):
    for wrong in (0, 1, "much", float("nan")):
        with pytest.raises(InvalidInput, match="confidence is"):
            board(small, wrong)


def test_voters_are_counted_by_the_answers_that_count(url, now):
    study = lived(url)
    shown, told = board(study), replayed(study)
    names = {voter for *_, voter in told} - {None}
    expected = {name: sum(voter == name for *_, voter in told) for name in names}
    assert {row["voter"]: row["answers"] for row in shown["voters"]} == expected
    assert [row["answers"] for row in shown["voters"]] == sorted(expected.values(), reverse=True)
    assert shown["voters_total"] == len(expected)
    assert shown["unnamed"] == sum(voter is None for *_, voter in told) > 0
    assert "late" in expected
    assert {row["last"] for row in shown["voters"]} == {"1970-01-12T13:46:40.000+00:00"}


def test_only_the_most_eager_voters_are_listed(url, now):
    study = create_study([*"ab"], "crowd", url)
    for k in range(70):
        for _ in range(1 + (k < 3)):
            now[0] += 1
            study.tell(study.ask(), "left", voter=f"person {k:02}")
    study.undo(0)
    study.tell(study.ask(), "skip", voter="nobody")
    shown = board(study)
    assert [(row["voter"], row["answers"]) for row in shown["voters"][:4]] == [
        ("person 01", 2),
        ("person 02", 2),
        ("person 00", 1),  # of two answers one was taken back
        ("person 03", 1),
    ]
    assert len(shown["voters"]) == 50
    assert (shown["voters_total"], shown["unnamed"]) == (70, 0)
    assert shown["voters"][0]["last"] == "1970-01-12T13:46:44.000+00:00"


def test_past_votes_have_their_own_times(url):
    study = create_study(["a", "b"], "past", url)
    times = ["2024-03-01T00:00:00Z", "2023-03-01T00:00:00Z", "2025-03-01T00:00:00Z"]
    study.import_votes([{"left": "a", "right": "b", "winner": "a", "time": time} for time in times])
    shown = board(study)["progress"]
    assert [point["time"][:10] for point in shown] == ["2023-03-01", "2023-03-01", "2024-03-01", "2025-03-01"]
    assert [point["answers"] for point in shown] == [0, 1, 2, 3]
    assert [point["seconds"] for point in shown] == [0, 0, 366 * 86_400, (366 + 365) * 86_400]  # 2024 had a leap day


def test_progress_has_the_times_of_the_answers(url, now):
    study = create_study([*"ab"], "slow", url)
    assert board(study)["progress"] == []
    duels = study.ask(3)
    now[0] += 10
    study.tell(duels[2], "left")
    now[0] += 20
    study.tell(duels[0], "left")
    now[0] += 30
    study.undo(duels[2])
    study.tell(duels[1], "skip")
    assert board(study)["progress"] == [
        {"answers": 0, "time": "1970-01-12T13:46:40.000+00:00", "seconds": 0.0},
        {"answers": 1, "time": "1970-01-12T13:47:10.000+00:00", "seconds": 30.0},
    ]
    study.tell(duels[2], "right")
    assert [point["seconds"] for point in board(study)["progress"]] == [0.0, 30.0, 60.0]


def test_long_curves_are_thinned_evenly(url, now):
    study = create_study([*"ab"], "long", url)
    for _ in range(10):
        now[0] += 1
        study.import_votes(votes(("a", "b", "left", 50)))
    shown = board(study)
    assert (len(shown["progress"]), len(shown["regret"])) == (120, 60)
    for points in (shown["progress"], shown["regret"]):
        steps = np.diff([point["answers"] for point in points])
        assert (points[0]["answers"], points[-1]["answers"]) == (0, 500)
        assert steps.max() - steps.min() <= 1
    for point in shown["progress"]:
        assert point["seconds"] == math.ceil(point["answers"] / 50)  # the time of that very answer


@pytest.mark.parametrize("in_memory", [False, True])
def test_all_numbers_are_of_one_moment(url, monkeypatch, in_memory):
    """Answers that come or are undone between the look and the queries change nothing."""
    study = lived("sqlite://" if in_memory else url)
    before, reading, last = board(study), Storage.reading, study.history().answered[-1]

    @contextmanager
    def meanwhile(storage):
        monkeypatch.undo()  # it happens once, before the log is read
        study.undo(last)
        study.tell(last, "tie", voter="v1")
        for duel in study.ask(5):
            study.tell(duel, duel.left, voter="v1")
        study.undo(study.events()[-1].duel)
        study.undo(next(entry.duel for entry in study.events() if entry.kind == "tell" and entry.voter == "v2"))
        study.add_arm("f")
        with reading(storage) as connection:
            yield connection

    monkeypatch.setattr(Storage, "reading", meanwhile)
    after = board(study)
    assert [part for part in before if after[part] != before[part]] == []
    assert board(study)["study"]["seq"] > before["study"]["seq"]


def test_a_study_deleted_meanwhile(url, monkeypatch):
    study, reading = lived(url), Storage.reading

    @contextmanager
    def meanwhile(storage):
        monkeypatch.undo()
        delete_study("lived", url)
        with reading(storage) as connection:
            yield connection

    monkeypatch.setattr(Storage, "reading", meanwhile)
    with pytest.raises(StorageError, match="study 'lived' was deleted"):
        board(study)


def test_a_database_in_trouble_is_explained(small, monkeypatch):
    def broken():
        raise sa.exc.OperationalError("SELECT", {}, Exception("database disk image is malformed"))

    monkeypatch.setattr(small.storage.engine, "connect", broken)
    with pytest.raises(StorageError, match="is damaged"):
        board(small)


def test_a_board_from_postgres(postgres, url):
    here, there = board(lived(url)), board(lived(postgres))
    assert {part for part in here if here[part] != there[part]} <= {"study", "progress", "voters"}  # these have times
    assert [(row["voter"], row["answers"]) for row in here["voters"]] == [
        (row["voter"], row["answers"]) for row in there["voters"]
    ]
    json.dumps(there, allow_nan=False)


def test_before_the_first_answer_there_is_nothing_to_draw(url):
    study = create_study([*"abc"], "fresh", url)
    study.ask()
    shown = board(study)
    assert (shown["study"]["answers"], shown["study"]["open"]) == (0, 1)
    assert shown["leader"] is None
    assert (shown["regret"], shown["progress"], shown["voters"], shown["self_duels"]) == ([], [], [], [])
    assert (shown["voters_total"], shown["unnamed"]) == (0, 0)
    assert [row["champion"] for row in shown["champions"]] == [True] * 3
    json.dumps(shown, allow_nan=False)
    assert charts_of(shown) == {}
    for name, plot in PLOTS.items():
        with pytest.raises(InvalidInput, match=f"'fresh' has nothing to show in its chart '{name}' yet"):
            plot(shown)


def test_without_a_condorcet_winner_the_regret_is_relative_to_the_first(url):
    study = create_study([*"abc"], "cycle", url)
    study.import_votes(votes(("a", "b", "left", 60), ("b", "c", "left", 60), ("c", "a", "left", 60)))
    shown = board(study)
    assert shown["verdict"]["kind"] == "no condorcet winner"
    assert shown["leader"] == shown["order"][0] == "a"
    # Δ is 1/2 for b and 0 for c, which beats a: the first 120 duels cost 1/4 each.
    assert shown["regret"][-1]["estimate"] == 30
    assert "relative to a" in plot_regret_so_far(shown).to_dict()["description"]


def rows_in(spec):
    """All rows of data in a specification, by their fields."""
    found = list(spec.get("datasets", {}).values())
    for part in [spec, *spec.get("layer", ())]:
        found.append(part.get("data", {}).get("values", ""))
    return json.dumps(found)


def test_the_map_of_pairs_does_not_exaggerate(url):
    """Colours go from 0 to 1 whatever the votes are, cells that are not certain are pale, and numbers are half up."""
    study = create_study([*"abc"], "map", url)
    study.import_votes(votes(("a", "b", "left", 90), ("a", "b", "right", 10), ("a", "c", "left", 5)))
    study.import_votes(votes(("a", "c", "right", 3)))
    (cells, text, *_) = charts_of(board(study), "beats")["beats"]["layer"]
    assert cells["encoding"]["color"]["scale"]["domain"] == [0, 0.5, 1]
    assert cells["encoding"]["opacity"]["condition"] == {
        "test": "datum.unsure == 1 && !(datum.answers < 5)",
        "value": 0.35,
    }
    rows = csv.DictReader(io.StringIO(cells["data"]["values"]))
    assert text["data"] == cells["data"]
    found = {(row["row"], row["column"]): (row["text"], row["unsure"], row["ink"]) for row in rows}
    assert found == {
        ("a", "b"): ("90", "0", "white"),
        ("b", "a"): ("10", "0", "white"),
        ("a", "c"): ("63", "1", "black"),
        ("c", "a"): ("37", "1", "black"),
    }


def test_every_chart_has_a_title_and_a_description(url):
    specs = charts_of(board(lived(url)))
    assert list(specs) == list(PLOTS)
    for spec in specs.values():
        assert spec["description"].startswith(spec["title"]["text"])
        assert "lived" in spec["description"]
    assert "retired" in rows_in(specs["leaderboard"])
    assert "retired" not in rows_in(specs["champions"])
    assert "Nothing" not in specs["regret"]["description"]
    assert "nothing is promised: " in specs["regret"]["description"]


@pytest.mark.parametrize("count", [1, 30])
def test_names_of_any_kind_are_drawn_as_text(url, count):
    names = ['<script>alert("1")</script>', 'it\'s "so", 50 %', "🍰 cake", "x" * 200, "007", "datum.x", "a\\b</svg>"]
    study = create_study(names, "<script>\"'", url)
    for duel in (study.ask() for _ in range(count)):
        study.tell(duel, "left", voter="<b>")
    drawn = {}
    for name, spec in charts_of(board(study)).items():
        drawn[name] = svg = vl_convert.vegalite_to_svg(json.loads(json.dumps(spec)))
        assert "<script" not in svg
        assert svg.count("</svg>") == 1
    assert all(text in drawn["leaderboard"] for text in (">007<", "🍰 cake", "datum.x", "&lt;script&gt;"))


def test_two_arms_and_one_answer(url):
    study = create_study(["this", "that"], "two", url)
    study.tell(study.ask(), "left")
    specs = charts_of(board(study))
    assert set(specs) == set(PLOTS)
    for spec in specs.values():
        vl_convert.vegalite_to_svg(spec)


def test_many_arms_keep_their_names(url):
    names = [f"arm {k}" for k in range(64)]
    study = create_study(names, "many", url)
    study.import_votes(votes(*((names[k], names[k + 1], "left", 1 + k) for k in range(63))))
    svg = vl_convert.vegalite_to_svg(plot_leaderboard(board(study)).to_dict())
    assert all(f">{name}<" in svg for name in names)


@pytest.mark.parametrize(("arms", "counted"), [(12, True), (20, True), (30, False)])
def test_a_heat_map_says_what_is_in_its_cells(url, arms, counted):
    names = [f"arm {k}" for k in range(arms)]
    study = create_study(names, "many", url)
    study.import_votes(votes(*((names[k], names[k + 1], "left", 17) for k in range(arms - 1))))
    svg = vl_convert.vegalite_to_svg(plot_beats(board(study)).to_dict())
    assert svg.count(">100<") == svg.count(">0<") == arms - 1
    assert svg.count(">17<") == 2 * (arms - 1) * counted
    assert ("below: how many" in svg) == counted


def test_only_self_duels_are_duels_to_draw(url):
    """Nobody has met anybody else: there is no leader, and only the diagonal has something to show."""
    study = create_study([*"ab"], "alone", url)
    study.import_votes(votes(("a", "b", "left", 40)))
    duel = study.ask()
    assert duel.is_self
    study.tell(duel, "tie")
    for number in range(40):
        study.undo(number)
    shown = board(study)
    assert shown["leader"] is None
    assert set(charts_of(shown)) == {"duels", "champions", "progress"}
    assert shown["self_duels"] == [{"arm": "a", "duels": 1}]


def test_charts_of_a_storage_in_memory(small):
    study = create_study([*"ab"], "brief", Storage("sqlite://"))
    study.tell(study.ask(), "right", voter="v")
    assert board(study)["voters"][0]["voter"] == "v"


@pytest.mark.parametrize("chart", ["progress", "regret"])
def test_lines_go_from_left_to_right_and_up(url, now, chart):
    study = create_study([*"ab"], "line", url)
    for _ in range(130):
        now[0] += 1
        study.import_votes(votes(("a", "b", "left", 1)))
    svg = vl_convert.vegalite_to_svg(PLOTS[chart](board(study)).to_dict())
    paths = [path for path in re.findall(r' d="(M[-0-9.,ML]*)"', svg) if path.count("L") > 40]
    assert len(paths) == {"progress": 1, "regret": 2}[chart]
    for path in paths:
        points = np.array([pair.split(",") for pair in re.split("[ML]", path)[1:]], float)
        assert (np.diff(points[:, 0]) > 0).all()
        assert (np.diff(points[:, 1]) <= 0).all()
