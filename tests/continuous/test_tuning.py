"""Tuning studies: ask and tell, replay, open duels, tampering, the best setting, slices, past duels."""

import itertools
import json
import math
import sqlite3
import threading
import time
from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import duels
from duels.continuous import History, Memory, load_policy
from duels.continuous.policies import ASKING, Policy, generator
from duels.continuous.tuning import choose
from duels.continuous.tuning import log as live
from duels.continuous.tuning.choose import FIRST, MOST, NEAR, STEP, choose_modeled, code
from duels.continuous.tuning.create import load_tuning
from duels.continuous.tuning.result import HALF, distances, summarize_tuning
from duels.errors import Conflict, InvalidInput, StorageError, UnknownName
from duels.storage.storage import NotReady, Storage
from duels.study import create
from duels.study.create import delete_study, list_studies
from duels.study.state.counts import chain_digest

SPACE = duels.Space({"x": (0.0, 1.0), "k": (1, 100, "log int"), "style": ["terse", "warm"]})
LINE = duels.Space({"x": (0.0, 1.0)})
OUTCOME = {"left": 1.0, "right": 0.0, "tie": 0.5, "both_bad": 0.5}


def reopened(url, name="study"):
    """The study as another process finds it."""
    return duels.load_study(name, Storage(url))


def utility(setting):
    return -20 * (setting["x"] - 0.3) ** 2 + (setting.get("style") == "warm")


def answer(study, duel, luck):
    """As σ(f(left) − f(right)) says, with some ties and skips."""
    draw = luck.random()
    if draw < 0.1:
        study.tell(duel, "tie" if draw < 0.05 else "both_bad")
    elif draw < 0.15:
        study.tell(duel, "skip")
    else:
        study.tell(duel, "left" if luck.random() < expit(utility(duel.left) - utility(duel.right)) else "right")


def answer_many(study, count, seed=0):
    luck = np.random.default_rng(seed)
    for _ in range(count):
        answer(study, study.ask(), luck)


def question_by_hand(study, rows, number):
    """The policy's; of `eubo`, with 4, 8, 12, … duels and no preference found, a contrast.

    That is the best setting and the one of all candidates that it most likely beats.
    """
    chooser, history = load_policy(study.policy), History.of(study.space, rows)
    now = chooser.situation(study.space, history, generator(study._log.row.seed, ASKING, number), Memory())
    if chooser.name != "eubo" or len(rows) < study.initial or len(rows) % 4 or now.is_found:
        return chooser.ask(study.space, rows, seed=study._log.row.seed, number=number)
    best, rivals = now.best, now.candidates
    mean, spread = now.model.differences_to(rivals, best)
    lost = expit(mean / np.sqrt(1 + np.pi / 8 * spread**2))
    return study.space.decode(best), study.space.decode(rivals[lost.argmin()])


def asked_by_hand(study):
    """What each question should be, by a literal reading of the log: no code of studies is used.

    Answered duels count in the order of their answers; then as ties, within the lease, those that were skipped, in
    their order, and the open ones in the order in which they were opened. A duel that is opened again has a new lease.
    """
    expected, settings, times, opened, answered, skipped = [], {}, {}, {}, {}, set()
    for entry in study.events():
        time = np.datetime64(entry.time[:-6]).astype("datetime64[ms]").astype(float) / 1000
        if entry.kind == "ask":
            rows = [(*settings[duel], outcome) for duel, outcome in answered.items()]
            waiting = [*sorted(skipped), *opened]
            rows += [(*settings[duel], None) for duel in waiting if time - times[duel] < study._log.row.lease]
            first, second = question_by_hand(study, rows, entry.duel)
            swapped = generator(study._log.row.seed, 6, entry.duel).integers(2)
            expected.append((second, first) if swapped else (first, second))
            settings[entry.duel] = entry.note["left"], entry.note["right"]
            opened[entry.duel] = times[entry.duel] = time
        elif entry.kind == "tell":
            del opened[entry.duel]
            if entry.answer == "skip":
                skipped.add(entry.duel)
            else:
                answered[entry.duel] = OUTCOME[entry.answer]
        elif entry.kind == "undo":
            answered.pop(entry.duel, None)
            skipped.discard(entry.duel)
            opened[entry.duel] = times[entry.duel] = time
    return expected


def test_questions_are_the_policy_s_for_the_log_so_far(url, now):
    """With ties, skips, undone answers, open duels and expired ones."""
    study = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=4", seed=3, lease=50)
    luck = np.random.default_rng(1)
    for step in range(12):
        now[0] += 10
        duel = study.ask(voter="ann")
        if step % 4 != 3:  # else it stays open, and expires five steps later
            answer(study, duel, luck)
        if step == 6:
            study.undo(2)
    asked = [(entry.note["left"], entry.note["right"]) for entry in study.events() if entry.kind == "ask"]
    assert asked == asked_by_hand(study)
    assert study.check() == len(study.events())
    assert {duel.id for duel in study.open_duels()} >= {3, 7, 11}


def test_contrasts_are_asked_until_a_preference_is_found(url):
    """Each fourth question after the initial ones; never once it is found, and only by studies with `eubo`."""
    for name, kind in (("clear", "eubo:initial=4"), ("other", "gp_rucb:initial=4")):
        study = duels.create_study(space=LINE, study_name=name, storage=url, policy=kind, seed=1)
        rows, contrasts, found = [], [], None
        for number in range(25):
            duel = study.ask()
            alone = load_policy(kind).ask(LINE, rows, seed=1, number=number)
            if sorted((duel.left["x"], duel.right["x"])) != sorted(one["x"] for one in alone):
                contrasts.append(number)
            if found is None and study.best.sure is not None:
                found = number
            study.tell(duel, "left" if duel.left["x"] < duel.right["x"] else "right")
            rows.append((duel.left, duel.right, float(duel.left["x"] < duel.right["x"])))
        assert 8 < found < 20
        assert contrasts == (list(range(4, found, 4)) if kind.startswith("eubo") else [])


def test_a_study_that_is_reopened_at_every_step_asks_the_same(tmp_path, now):
    """And both are what many questions at once give, as far as they were asked before the first answer."""
    whole = duels.create_study(space=SPACE, storage=f"sqlite:///{tmp_path}/whole.db", policy="eubo:initial=4", seed=7)
    parts = f"sqlite:///{tmp_path}/parts.db"
    duels.create_study(space=SPACE, storage=parts, policy="eubo:initial=4", seed=7)
    first, second = np.random.default_rng(2), np.random.default_rng(2)
    for _ in range(9):
        duel, again = whole.ask(), reopened(parts).ask()
        assert duel == again
        answer(whole, duel, first)
        answer(reopened(parts), again, second)
    assert reopened(parts).best == whole.best
    assert reopened(parts).slices() == whole.slices()
    assert reopened(parts).events() == whole.events()
    assert reopened(parts)._log.history().notes == whole._log.history().notes


def test_sides_are_a_coin_s(url):
    """96 coins: more than 66 or fewer than 30 heads come with a probability of about 3 in 10,000."""
    study = duels.create_study(space=LINE, storage=url, policy="random")
    study.ask(96)
    assert 30 <= sum(study._log.history().swapped) <= 66


def test_answers_are_those_of_any_study(url):
    study = duels.create_study(space=LINE, storage=url, policy="random")
    for winner in ("left", "RIGHT", "tie", "both_bad", "skip"):
        study.tell(study.ask(), winner, voter="ann", note="because", cost=0.5)
    assert study.answers == 4
    study.tell(0, "left")  # again is harmless
    with pytest.raises(Conflict, match=r"duel 0 was answered 'left' already, not 'right': undo that first"):
        study.tell(0, "right")
    for wrong in ("middle", {"x": 0.5}, 7):
        with pytest.raises(InvalidInput, match="expected left, right, tie, both_bad or skip"):
            study.tell(1, wrong)
    with pytest.raises(InvalidInput, match="has no duel 5"):
        study.tell(5, "left")
    with pytest.raises(InvalidInput, match="belongs to study 'other'"):
        study.tell(study.duel(0)._replace(study="other"), "left")
    assert study.forget("ann") == 4
    assert study.answers == 0
    study.retire()
    with pytest.raises(Conflict, match="was retired"):
        study.ask()
    study.resume()
    assert study.ask().id == 5
    left = json.loads(study.events()[2].left)
    assert left == study.duel(0).left
    assert [entry.kind for entry in study.events()][-4:] == ["forget", "retire", "resume", "ask"]


@pytest.mark.parametrize("name", ["eubo", "gp_rucb"])
def test_eight_questions_at_once_are_spread(url, name):
    """Any two of them differ by 2 % of a range in some parameter, in either order; one tie each is too few for that."""
    study = duels.create_study(space=SPACE, storage=url, policy=f"{name}:initial=6", seed=1)
    answer_many(study, 20)
    pairs = [(SPACE.encode(duel.left), SPACE.encode(duel.right)) for duel in study.ask(8)]
    for one, other in itertools.combinations(pairs, 2):
        for turned in (other, other[::-1]):
            assert np.abs(np.concatenate(one) - np.concatenate(turned)).max() >= NEAR
    assert study.check() == len(study.events())


def test_of_many_open_duels_only_the_newest_are_known(url, monkeypatch):
    """A crowd must not slow down every choice; the log replays all the same, also where several are chosen at once."""
    seen = []
    ask = Policy.ask
    monkeypatch.setattr(
        Policy, "ask", lambda self, space, known, **how: seen.append(known) or ask(self, space, known, **how)
    )
    monkeypatch.setattr(choose, "MOST_OPEN", 5)
    study = duels.create_study(space=LINE, storage=url, policy="eubo:initial=2", seed=4)
    for duel in study.ask(4):
        study.tell(duel, "left" if duel.left["x"] > duel.right["x"] else "right")
    asked = study.ask(8)
    seen.clear()
    study._log.write(partial(study._log.ask, n=3), last=True)  # three in one write
    first = seen[0]
    assert np.isnan(first.outcome).sum() == 5
    newest = [LINE.encode(duel.left) for duel in asked[-5:]]
    assert np.array_equal(first.left[np.isnan(first.outcome)], newest)
    assert all(np.isnan(known.outcome).sum() % 5 == 0 for known in seen)  # open duels may count several times
    assert study.check() == 20  # no question looks as if the log had been changed


def test_choices_are_made_for_all_who_wait(url, monkeypatch):
    """Six people who wait cost one round of choosing, not six; somebody alone gets one that knows all answers."""
    study = duels.create_study(space=LINE, storage=url, policy="eubo:initial=2", seed=5)
    study.tell(study.ask(), "left")
    rounds, chosen = [], live.choices
    monkeypatch.setattr(live, "choices", lambda *known: rounds.append(1) or chosen(*known))
    write = study._log.make_write(study._log.ask, last=True)
    for _ in range(6):
        with pytest.raises(NotReady), study._log.storage.lock:
            write.operation(study._log.storage.connection())
    study._log._choose(1)
    asked = [study.ask() for _ in range(6)]
    assert (len(rounds), len(study._log._workspace.batch.choices)) == (1, 6)
    study.tell(asked[0], "right")
    monkeypatch.setattr(live, "FRESH", 0.0)
    study.ask()
    assert (len(rounds), len(study._log._workspace.batch.choices)) == (2, 1)
    assert study.check() == 11


def test_who_skips_a_question_is_asked_another_one(url, now):
    """A duel that was skipped counts as open until its lease ends, and a replay agrees."""
    study = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=4", seed=6, lease=100)
    for _ in range(6):
        duel = study.ask()
        study.tell(duel, "left" if utility(duel.left) > utility(duel.right) else "right")
        now[0] += 1
    asked = []
    for _ in range(4):
        duel = study.ask()
        study.tell(duel, "skip")
        now[0] += 1
        asked.append(np.concatenate(sorted(map(SPACE.encode, (duel.left, duel.right)), key=tuple)))
    for one, other in itertools.combinations(asked, 2):
        assert np.abs(one - other).max() >= NEAR
    assert study.answers == 6
    skipped = choose.find_skipped(study._log.history(), now[0])
    assert skipped == [6, 7, 8, 9]
    now[0] += 97.5
    assert choose.find_skipped(study._log.history(), now[0]) == [8, 9]  # the others' lease has ended
    study.ask()
    assert study.check() == 22


def test_a_space_with_two_settings_still_asks(url):
    study = duels.create_study(space={"style": ["terse", "warm"]}, storage=url, policy="eubo:initial=1")
    asked = study.ask(4)
    assert {frozenset((duel.left["style"], duel.right["style"])) for duel in asked} == {frozenset(("terse", "warm"))}
    for duel in asked:
        study.tell(duel, "left" if duel.left["style"] == "warm" else "right")
    assert study.best.setting == {"style": "warm"}
    assert study.best.runner_up == {"style": "terse"}


# The choice is made while nobody waits


def test_nobody_waits_while_a_question_is_chosen(url, monkeypatch):
    study = duels.create_study(space=LINE, storage=url, policy="random")
    duel = study.ask()
    choosing, go_on = threading.Event(), threading.Event()
    ask = live.choices

    def slow(*arguments):
        assert not study._log.storage.lock._is_owned()
        choosing.set()
        assert go_on.wait(20)
        return ask(*arguments)

    monkeypatch.setattr(live, "choices", slow)
    asking = threading.Thread(target=study.ask)
    asking.start()
    assert choosing.wait(20)
    study.tell(duel, "left")  # is written at once
    assert asking.is_alive()
    go_on.set()
    asking.join(20)
    entries = study.events()
    assert [entry.kind for entry in entries] == ["create", "ask", "tell", "ask"]
    assert entries[-1].note["after"] == 2  # the answer came too late for it …
    assert study.check() == 4  # … and so it is when it is replayed


def test_a_choice_is_made_again_if_somebody_else_has_asked(url, now):
    mine = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=4")
    answer_many(mine, 6)
    mine._log._choose(4)
    batch = mine._log._workspace.batch
    theirs = reopened(url).ask()
    assert (theirs.left, theirs.right) == batch.choices[0][1:3]  # the same log, the same choice
    assert mine.ask()[1:3] == batch.choices[1][1:3]  # it was made with the first one in mind
    other = reopened(url)
    other.tell(theirs, "tie")
    other.import_duels([({"x": 0.1, "k": 3, "style": "warm"}, {"x": 0.2, "k": 3, "style": "warm"}, "left")])
    duel = mine.ask()
    assert duel.id == batch.choices[3].number
    assert duel[1:3] != batch.choices[3][1:3]  # another duel than the one it had in mind was asked before
    assert mine.check() == len(mine.events())


def test_a_prepared_question_is_asked_at_once(url, monkeypatch):
    study = duels.create_study(space=SPACE, storage=url, policy="random")
    study._log.prepare()
    (ready,) = study._log._workspace.batch.choices
    monkeypatch.setattr(live, "choices", None)  # calling it would raise
    assert study.ask()[:3] == ready[:3]


def test_a_stale_choice_is_not_asked(url, monkeypatch):
    study = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=4")
    answer_many(study, 6)
    open_one = study.ask()
    study._log._choose(1)
    study.tell(open_one, "left")
    with study._log.storage.lock:
        study._log._ready(study._log.history(), 1)  # it is fresh
        monkeypatch.setattr(live, "FRESH", 0.0)
        with pytest.raises(NotReady):
            study._log._ready(study._log.history(), 1)
    assert study.ask().id == 7
    assert study.events()[-1].note["after"] == study.events()[-2].seq


# Tampering


def tamper(path, text, *values):
    """Change an event, and mend all digests."""
    with sqlite3.connect(path) as database:
        assert database.execute(text, values).rowcount > 0
        rows = database.execute(
            "SELECT seq, kind, duel, attempt, left_arm, right_arm, swapped, answer, voter, time, note, digest "
            "FROM events ORDER BY seq"
        ).fetchall()
        digest = ""
        for row in rows:
            digest = chain_digest(digest, row)
            database.execute("UPDATE events SET digest = ? WHERE seq = ?", (digest, row[0]))


@pytest.fixture
def some(url):
    study = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=3")
    answer_many(study, 6)
    return study


def test_a_note_that_was_changed_is_caught(some, url, tmp_path):
    with sqlite3.connect(tmp_path / "duels.db") as database:
        database.execute("UPDATE events SET note = replace(note, '0.', '0.1') WHERE seq = 2")
    with pytest.raises(StorageError, match="event 2 of study 'study' is not what was written: it was tampered with"):
        reopened(url).ask()


@pytest.mark.parametrize("change", [{"left": {"x": 0.9, "k": 7, "style": "warm"}}, {"after": 3}])
def test_a_question_that_the_policy_would_not_ask_is_found(some, url, tmp_path, change):
    (event,) = (entry for entry in some.events() if entry.kind == "ask" and entry.duel == 5)
    note = json.dumps(event.note | change)
    tamper(tmp_path / "duels.db", "UPDATE events SET note = ? WHERE seq = ?", note, event.seq)
    with pytest.raises(StorageError, match=f"event {event.seq} of study 'study' asks what policy eubo:initial=3 would"):
        reopened(url).check()


def test_an_answer_that_was_changed_shows_in_later_questions(some, url, tmp_path):
    turned = "UPDATE events SET answer = CASE answer WHEN 'left' THEN 'right' ELSE 'left' END WHERE kind = 'tell'"
    tamper(tmp_path / "duels.db", turned)
    with pytest.raises(StorageError, match="would not: the log was tampered with"):
        reopened(url).check()


def test_questions_from_elsewhere_that_differ_are_counted(some, url, tmp_path):
    """Within a thousandth of the range they do not differ, in the last digits; else a warning says how many do."""
    (event,) = (entry for entry in some.events() if entry.kind == "ask" and entry.duel == 5)
    note = event.note | {"by": "elsewhere"}
    note["left"] = note["left"] | {"x": min(note["left"]["x"] + 0.0005, 1.0)}
    tamper(tmp_path / "duels.db", "UPDATE events SET note = ? WHERE seq = ?", json.dumps(note), event.seq)
    assert reopened(url).check() == len(some.events())
    note["left"]["x"] = abs(note["left"]["x"] - 0.01)
    tamper(tmp_path / "duels.db", "UPDATE events SET note = ? WHERE seq = ?", json.dumps(note), event.seq)
    with pytest.warns(UserWarning, match="1 question of study 'study' differ"):
        assert reopened(url).check() == len(some.events())


@pytest.mark.parametrize(
    ("space", "words"), [({"x": {"low": 0, "high": 2}}, "the space of study"), (5, "unknown policy 'eubo'")]
)
def test_a_space_that_was_changed_is_caught(some, url, tmp_path, space, words):
    with sqlite3.connect(tmp_path / "duels.db") as database:
        settings = json.loads(database.execute("SELECT settings FROM studies").fetchone()[0])
        changed = json.dumps(settings | {"space": space})
        database.execute("UPDATE studies SET settings = ?", (changed,))
    with pytest.raises((StorageError, InvalidInput), match=words):
        reopened(url).check()


# Studies by name


def test_one_function_creates_and_one_loads_both_kinds_of_studies(url):
    duels.create_study(space=SPACE, study_name="voice", storage=url)
    duels.create_study(["a", "b"], "logo", url)
    with pytest.raises(InvalidInput, match=r"'voice' tunes 3 parameters .* load it with duels\.load_study"):
        create.load_study("voice", url)
    with pytest.raises(InvalidInput, match=r"'voice' tunes 3 parameters"):
        duels.create_study(["a", "b"], "voice", url, load_if_exists=True)
    with pytest.raises(InvalidInput, match=r"'logo' compares arms .* load it with duels\.load_study"):
        load_tuning("logo", url)
    with pytest.raises(InvalidInput, match="nothing to compare: expected arms, or a space"):
        duels.create_study(storage=url)
    with pytest.raises(InvalidInput, match="margin is for studies that compare arms"):
        duels.create_study(space=SPACE, margin=0.1, storage=url)
    with pytest.raises(InvalidInput, match="arms is for studies that compare arms"):
        duels.create_study(["a", "b"], space=SPACE, storage=url)
    with pytest.raises(InvalidInput, match=r"'logo' compares arms"):
        duels.create_study(space=SPACE, study_name="logo", storage=url, load_if_exists=True)
    with pytest.raises(UnknownName):
        duels.load_study("vioce", url)
    assert [type(duels.load_study(name, url)).__name__ for name in ("voice", "logo")] == ["TuningStudy", "Study"]
    voice, logo = list_studies(url)
    assert (voice.name, voice.policy, voice.arms, voice.parameters, voice.answers) == ("voice", "eubo", None, 3, 0)
    assert (logo.arms, logo.parameters) == (2, None)
    delete_study("voice", url)
    assert [one.name for one in list_studies(url)] == ["logo"]


@pytest.mark.parametrize("function", [duels.rate, duels.measure_agreement, duels.analyze, duels.read_votes])
def test_what_is_about_votes_on_arms_refuses_a_tuning_study(url, function):
    study = duels.create_study(space=LINE, storage=url, policy="random")
    study.tell(study.ask(), "left", voter="ann")
    with pytest.raises(InvalidInput, match="TuningStudy"):
        function(study)


def test_a_study_is_loaded_if_it_is_the_same(url):
    made = duels.create_study(space=SPACE, study_name="voice", storage=url, policy="gp_rucb:beta=3", confidence=0.9)
    again = duels.create_study(space=SPACE, study_name="voice", storage=url, load_if_exists=True)
    assert (again.policy, again.space, again.confidence, repr(again)) == (
        "gp_rucb:beta=3",
        SPACE,
        0.9,
        "TuningStudy('voice', gp_rucb:beta=3, x, k, style)",
    )
    with pytest.raises(Conflict, match="there is a study 'voice' already"):
        duels.create_study(space=SPACE, study_name="voice", storage=url)
    with pytest.raises(Conflict, match="'voice' exists with another space"):
        duels.create_study(space=LINE, study_name="voice", storage=url, load_if_exists=True)
    with pytest.raises(Conflict, match="'voice' exists with policy gp_rucb:beta=3, not eubo"):
        duels.create_study(space=SPACE, study_name="voice", storage=url, policy="eubo", load_if_exists=True)
    with pytest.raises(Conflict, match=r"'voice' exists with confidence 0.9, not 0.8"):
        duels.create_study(space=SPACE, study_name="voice", storage=url, confidence=0.8, load_if_exists=True)
    assert made.events() == again.events()
    assert len(made.events()) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"space": {}}, "is not a space"),
        ({"space": SPACE, "policy": "rucb"}, "unknown policy for continuous spaces 'rucb'"),
        ({"space": SPACE, "study_name": ""}, "name"),
        ({"space": SPACE, "seed": -1}, "seed"),
        ({"space": SPACE, "lease": 0}, "lease"),
        ({"space": SPACE, "confidence": 1.5}, "confidence"),
    ],
)
def test_wrong_arguments_create_nothing(url, wrong, words):
    with pytest.raises(InvalidInput, match=words):
        duels.create_study(**wrong, storage=url)
    assert list_studies(url) == []


# What was found


def situation_of(study):
    """What is known of the answers."""
    frame = study.votes()
    rows = []
    for row in frame.iter_rows(named=True):
        sides = ({name: row[f"{side}.{name}"] for name in study.space.names} for side in ("left", "right"))
        rows.append((*sides, OUTCOME[row["winner"]]))
    return load_policy(study.policy).situation(
        study.space, History.of(study.space, rows), np.random.default_rng(0), Memory()
    )


def draws_of(posterior, one, other, count=200_000):
    """Draws of f(one) − f(other), with moments from full covariances: another way than the code's."""
    rng, drawn = np.random.default_rng(0), []
    for model, weight in zip(posterior.models, posterior.weights):
        mean, covariance = model.mean_and_covariance(np.array([one, other]))
        spread = math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        drawn.append(rng.normal(mean[0] - mean[1], spread, round(weight * count)))
    return np.concatenate([*drawn, np.zeros(round(posterior.flat * count))])


def test_the_best_setting_and_the_runner_up_on_a_line(url):
    """Against a search of 10,001 points, and draws from all hypotheses."""
    study = duels.create_study(space=LINE, storage=url, policy="eubo:initial=6", seed=2, confidence=0.9)
    answer_many(study, 25)
    best, now, grid = study.best, situation_of(study), np.linspace(0, 1, 10_001)[:, None]
    known, x, other = now.posterior, best.setting["x"], best.runner_up["x"]
    mean = known.mean(grid)
    assert known.mean(np.array([[x]]))[0] >= mean.max() - 1e-3 * np.ptp(mean)
    least = min(HALF * now.model.hyperparameters.lengthscales[0], max(x, 1 - x) / 2)
    far = np.abs(grid[:, 0] - x) >= least
    assert abs(other - x) >= least - 1e-4
    assert known.mean(np.array([[other]]))[0] >= mean[far].max() - 1e-3 * np.ptp(mean)
    drawn = draws_of(known, np.array([x]), np.array([other]))
    lower, upper = np.quantile(drawn, [0.05, 0.95])
    assert (best.lower, best.upper) == pytest.approx((expit(lower), expit(upper)), abs=0.01)
    chance = study._log.advice().chance
    assert chance == pytest.approx((drawn > 0).mean(), abs=0.005)
    assert best.share == pytest.approx(expit(drawn).mean(), abs=0.02)  # MacKay's approximation is not exact
    assert (best.confidence, best.answers) == (0.9, len(study.votes()))
    assert best.sure == (chance if best.evidence >= 20 else None)


def test_sure_is_said_once_a_preference_is_found(url):
    """And on all surfaces: text, the page's words, plain data."""
    study = duels.create_study(space=LINE, storage=url, policy="eubo:initial=4", seed=1)
    found = []
    for _ in range(5):
        for duel in study.ask(5):
            study.tell(duel, "left" if duel.left["x"] < duel.right["x"] else "right")
        best, shown = study.best, summarize_tuning(study)
        found.append(best.sure is not None)
        assert found[-1] == (best.evidence >= 20)
        assert ("sure" in str(best), "sure" in shown["words"]) == (found[-1], found[-1])
        assert shown["headline"].startswith("Best so far" if found[-1] else "No preference found yet")
        assert shown["best"] == best.as_dict()
    assert found == sorted(found)  # what was found stays found
    assert (found[0], found[-1]) == (False, True)
    assert best.sure > 0.9


def test_the_correlation_at_the_runner_up_s_distance_is_one_half():
    root = math.sqrt(5) * HALF
    assert (1 + root + root**2 / 3) * math.exp(-root) == pytest.approx(0.5)


def test_distances_are_the_kernel_s(url):
    from duels.continuous.model.kernels import distance

    study = duels.create_study(space=SPACE, storage=url, policy="random")
    answer_many(study, 5)
    model, points = situation_of(study).model, SPACE.snap(np.random.default_rng(0).random((20, 3)))
    by_hand = [distance(point, points[0], model.inverse, model.category) for point in points]
    assert distances(points, points[0], model) == pytest.approx(by_hand)


def test_without_answers_there_is_nothing_to_say(url):
    study = duels.create_study(space=SPACE, storage=url)
    best = study.best
    assert (best.answers, best.sure, best.evidence) == (0, None, 1.0)
    assert best.share == pytest.approx(0.5)
    assert best.lower < 0.1
    assert best.upper > 0.9
    assert str(best) == "No answers yet."
    assert len(study.slices()["parameters"]) == 3


def test_slices_are_differences_from_the_best_setting(url):
    study = duels.create_study(space=SPACE, storage=url, policy="eubo:initial=6")
    answer_many(study, 12)
    slices, best, known = study.slices(), study.best, situation_of(study).posterior
    assert json.loads(json.dumps(slices)) == slices
    assert (slices["best"], slices["answers"], slices["confidence"]) == (best.setting, best.answers, 0.95)
    assert [one["name"] for one in slices["parameters"]] == ["x", "k", "style"]
    here = SPACE.encode(best.setting)
    for one in slices["parameters"]:
        assert one["values"] == (sorted(one["values"]) if one["kind"] == "number" else ["terse", "warm"])
        at = one["values"].index(best.setting[one["name"]])
        assert [one[key][at] for key in ("mean", "lower", "upper")] == pytest.approx([0, 0, 0], abs=1e-4)
        for place in (0, len(one["values"]) - 1):
            point = SPACE.encode(best.setting | {one["name"]: one["values"][place]})
            drawn = draws_of(known, point, here)
            found = [one[key][place] for key in ("share_lower", "half_lower", "half_upper", "share_upper")]
            assert found == pytest.approx(expit(np.quantile(drawn, [0.025, 0.25, 0.75, 0.975])), abs=0.01)
            assert one["mean"][place] == pytest.approx(drawn.mean(), abs=0.03)
            assert expit(one["lower"][place]) == pytest.approx(one["share_lower"][place])
            assert one["share_lower"][place] <= one["share"][place] <= one["share_upper"][place]
    assert slices["parameters"][1]["values"][:3] == [1, 2, 3]  # whole numbers, each once


def test_looking_again_computes_nothing(url, monkeypatch):
    study = duels.create_study(space=LINE, storage=url, policy="random")
    answer_many(study, 3)
    best = study.best
    monkeypatch.setattr(live, "advice", None)  # calling it would raise
    study.ask()
    assert study.best is reopened_here(study).best is best


def reopened_here(study):
    return duels.load_study(study.name, study._log.storage)


# Past duels


def test_votes_go_out_and_come_in_again(url):
    study = duels.create_study(space=SPACE, study_name="old", storage=url, policy="random")
    luck = np.random.default_rng(0)
    for _ in range(8):
        answer(study, study.ask(voter="ann"), luck)
    study.undo(0)
    study.tell(0, "left", voter="ann", note="brighter")
    frame = study.votes()
    assert len(frame) == study.answers
    assert frame["duel"].to_list()[-1] == 0  # in the order of the answers
    assert frame["comment"].to_list()[-1] == "brighter"
    assert frame.schema["left.k"] == pl.Int64
    other = duels.create_study(space=SPACE, study_name="new", storage=url, policy="eubo:initial=4")
    assert other.import_duels(frame) == len(frame)
    sides = [name for name in frame.columns if name.startswith(("left", "right"))]
    assert other.votes().select(*sides, "winner", "voter").equals(frame.select(*sides, "winner", "voter"))
    other.ask()  # the policy knows them
    assert other.check() == len(other.events())
    assert other.import_duels([]) == 0


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (({"x": 2.0}, {"x": 0.1}, "left"), "past duel 2: x is 2"),
        (({"x": 0.2}, {"x": 0.1}, "skip"), "past duel 2: winner is 'skip'"),
        (({"x": 0.2}, {"x": 0.1}), "past duel 2 is"),
    ],
)
def test_one_wrong_past_duel_and_none_is_imported(url, row, words):
    study = duels.create_study(space=LINE, storage=url)
    with pytest.raises(InvalidInput, match=words):
        study.import_duels([({"x": 0.2}, {"x": 0.1}, "left"), row])
    assert len(study.events()) == 1


# Many duels


def test_the_model_learns_from_the_first_and_the_newest_answers():
    assert choose_modeled(0).tolist() == []
    assert choose_modeled(MOST).tolist() == list(range(MOST))
    first = list(range(FIRST))
    assert choose_modeled(MOST + 1).tolist() == [*first, *range(FIRST + STEP, MOST + 1)]
    assert choose_modeled(MOST + STEP).tolist() == [*first, *range(FIRST + STEP, MOST + STEP)]
    assert choose_modeled(MOST + STEP + 1).tolist() == [*first, *range(FIRST + 2 * STEP, MOST + STEP + 1)]
    assert all(MOST - STEP < len(choose_modeled(count)) <= MOST for count in range(MOST, 5 * MOST))


def test_ten_thousand_duels_load_quickly(url):
    """In 0.3 seconds on a core of 2024; the limit leaves room for slow machines."""
    study = duels.create_study(space=SPACE, storage=url, policy="random")
    points = SPACE.snap(np.random.default_rng(0).random((200, 3)))
    settings = [SPACE.decode(point) for point in points]
    duel = [(settings[k % 200], settings[(7 * k + 1) % 200], "left") for k in range(10_000)]
    assert study.import_duels(duel) == 10_000
    begun = time.process_time()
    again = reopened(url)
    assert (again.answers, again.duel(9_999).left) == (10_000, settings[9_999 % 200])
    assert time.process_time() - begun < 5
    assert again.ask().id == 10_000


def test_a_snapshot_keeps_the_settings(url, monkeypatch):
    from duels.study import base

    monkeypatch.setattr(base, "SNAPSHOT_EVERY", 10)
    study = duels.create_study(space=LINE, storage=url, policy="random")
    answer_many(study, 10)
    study._log.storage.close()  # waits for it
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        assert database.execute("SELECT count(*) FROM snapshots").fetchone() == (1,)
    again = reopened(url)
    assert again.duel(3) == reopened(url).duel(3)
    assert len(again._log.history().notes) == 10
    assert again.check() == len(again.events())


def test_the_code_s_digest_is_short_and_stable():
    assert len(code()) == 8
    assert code() == code()
