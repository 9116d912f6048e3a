"""What version 0.1.0 has written still opens, says the same, and lets nobody in.

`data/duels-0.1.0.db` was made by 0.1.0's own code, with a clock that goes on by one second at each look. In short:

    make_key: an admin's token, a revoked one for the API, a session (secrets "an-admin-token-of-the-fixture", …)
    arena = create_study(["bm25", "dense", "hybrid", "old"]), three items with HTML, text, Markdown and code,
        two links ("a-link-of-the-fixture-1" and "-2"). Five browsers with the cookies below vote by POST
        /api/vote/LINK/ask and /tell: eight times each of the first four; then the first answers, undoes and answers
        again, and votes by the other link too; the second skips, and leaves a question open; the fifth votes three
        times and is forgotten. A program asks and tells six times as "robot", once as "Voter 2".
        retire_arm("old"), add_arm("new")
    program = create_study(["x", "y", "z"], policy="dts", seed=3): 20 answers of ann, bob and a name of 22 characters,
        two open duels, five imported votes (carol, dan, two of the cookies, nobody), undo(0), forget("dan")
    done = create_study(["p", "q"]): 30 imported votes for p, retired
    PRAGMA wal_checkpoint(TRUNCATE); VACUUM

`data/votes-0.1.0.csv` is `duels export arena` of it, and `data/experiment-0.1.0` is `duels run arithmetic-8 --policy
rucb --policy random --horizon 2000 --runs 5 --out …`.
"""

import json
import shutil
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

import duels
from duels.engine import loop
from duels.errors import Conflict
from duels.results import load_results
from duels.server.app import create_app
from duels.storage import tables
from duels.storage.database import HEAD, engine_for, upgrade
from duels.storage.storage import Storage
from duels.study.catalogue import create_study, list_studies, load_study
from duels.study.goal import Goal
from duels.study.items import add_items
from duels.study.standing import standing
from duels.study.tally import as_tally
from duels.votes.files import read_votes

DATA = Path(__file__).parent / "data"
COOKIES = [c * 5 + "-" + d * 15 + "w" for c, d in zip("kLmNo", "pQrSt")]
LINK = "a-link-of-the-fixture-1"
WINS = {  # as 0.1.0 counted them: arm → duels, wins, losses, ties
    "arena": {
        "bm25": (22, 9, 5, 8),
        "hybrid": (18, 7, 7, 4),
        "new": (0, 0, 0, 0),
        "dense": (19, 3, 8, 8),
        "old": (23, 9, 8, 6),
    },
    "program": {"z": (6, 3, 1, 2), "x": (10, 5, 2, 3), "y": (14, 2, 7, 5)},
    "done": {"p": (30, 30, 0, 0), "q": (30, 0, 30, 0)},
}
EVENTS = {"arena": 97, "program": 50, "done": 32}


@pytest.fixture
def old(tmp_path):
    """A copy of the database, that nobody has opened yet."""
    return shutil.copy(DATA / "duels-0.1.0.db", tmp_path / "duels.db")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, old):
    """The same database, also in PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{old}"
    url = request.getfixturevalue("postgres")
    engine = engine_for(url)
    upgrade(engine, "0003")
    schema = sa.MetaData()
    schema.reflect(engine)
    with closing(sqlite3.connect(old)) as source, engine.begin() as connection:
        source.row_factory = sqlite3.Row
        for name in ("studies", "keys", "events", "snapshots", "items", "outputs", "impressions"):
            rows = [dict(row) for row in source.execute(f"SELECT * FROM {name}")]
            if rows:
                connection.execute(sa.insert(schema.tables[name]), rows)
        for name in ("studies", "keys"):
            connection.exec_driver_sql(f"SELECT setval('{name}_id_seq', (SELECT max(id) FROM {name}))")
    engine.dispose()
    return url


def bytes_of(path):
    return b"".join(one.read_bytes() for one in Path(path).parent.glob(f"{Path(path).name}*"))


def voters_of(study):
    return {event.voter for event in study.events()} - {None}


def test_the_fixture_is_of_the_old_version(old):
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0003",)]
        named = connection.execute("SELECT DISTINCT voter FROM events WHERE study_id = 1").fetchall()
    assert {*COOKIES[:4], "robot", "Voter 2", None} == {voter for (voter,) in named}


def test_studies_say_the_same_after_the_upgrade(url):
    storage = Storage(url)
    assert [info.name for info in list_studies(storage)] == list(WINS)
    for name, wins in WINS.items():
        study = load_study(name, storage)
        changed = study.policy == "dts"  # it draws its samples in another order now
        with pytest.warns(UserWarning, match="asked by another version") if changed else nullcontext():
            assert study.check() == EVENTS[name]
        assert {row.arm: (row.duels, row.wins, row.losses, row.ties) for row in study.leaderboard()} == wins
    assert load_study("done", storage).verdict().winner == "p"
    assert load_study("arena", storage).verdict().kind == load_study("program", storage).verdict().kind == "not yet"
    arena, program = load_study("arena", storage), load_study("program", storage)
    assert voters_of(arena) == {"Voter 1", "Voter 2", "Voter 3", "Voter 4", "robot", "Voter 2 (imported)"}
    assert voters_of(program) == {"ann", "bob", "a-name-of-22-character", "carol", "Voter 1", "Voter 2"}
    by = [vote.voter for vote in arena.votes()]
    assert [by.count(f"Voter {number}") for number in (1, 2, 3, 4)] == [10, 8, 8, 8]
    assert by.count("Voter 2 (imported)") == 1
    assert arena.forget("Voter 2") == 8
    assert "Voter 2" not in voters_of(arena)
    assert arena.check() == EVENTS["arena"] + 1
    with storage.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == HEAD
        assert connection.execute(sa.select(tables.voters.c.digest)).scalars().all() == [None] * 6


def test_studies_keep_their_test_and_their_rules_of_asking(old):
    """With eight wins in a row, the new test of two arms says "not yet", and that of 0.1.0 names the winner."""
    storage = Storage(f"sqlite:///{old}")
    for name in WINS:
        study = load_study(name, storage)
        assert study.goal == Goal(0.95, 0.0, "stop", test="all pairs", ties="halves", redirects=False)
        assert create_study(study.events(limit=1)[0].note["arms"], name, storage, load_if_exists=True).name == name
    done = load_study("done", storage)
    with pytest.raises(Conflict, match=r"exists with margin 0\.0, not 0\.05"):
        create_study(["p", "q"], "done", storage, margin=0.05, load_if_exists=True)
    assert [tuple(row) for row in done.ranking()] == [(1, "p", True), (2, "q", True)]
    eight = as_tally(["p", "q"], [[0, 8], [0, 0]])
    assert done.goal.verdict(eight).winner == "p"
    assert create_study(["p", "q"], "new", storage).goal.verdict(eight).kind == "not yet"
    assert standing(eight, confidence=0.95, margin=0, test="all pairs").answers_median == 0
    assert standing(eight, confidence=0.95, margin=0).answers_median > 0


def test_old_studies_ask_as_before_after_the_upgrade(old):
    """No question of RUCB is replaced, and a tie is told to it as two halves."""
    storage = Storage(f"sqlite:///{old}")
    arena = load_study("arena", storage)
    for k in range(30):
        arena.tell(arena.ask(allow_self=k % 2 == 0), "tie" if k % 3 else "left")
    player, tally = arena.history().catch_up(), arena.tally()
    active = np.flatnonzero(tally.active)
    halves = (tally.wins + tally.ties / 2)[np.ix_(active, active)]
    wins = player.state.wins.copy()
    np.fill_diagonal(wins, 0)
    assert np.array_equal(wins, halves)
    assert arena.check() == EVENTS["arena"] + 60


def test_an_old_cookie_is_nobody(url):
    """With an export and a link of 0.1.0 one could take back the votes of others."""
    storage = Storage(url)
    app = create_app(storage)
    arena = load_study("arena", storage)
    add_items(arena, [{"prompt": "q", "outputs": dict.fromkeys(arena.arms, "words")}])
    for number, cookie in enumerate([*COOKIES, "Voter 1", "robot"], start=5):
        sent = {"Cookie": f"duels_voter={cookie}; duels_ballot={cookie}"}
        with TestClient(app, "http://localhost", headers=sent) as thief:
            assert thief.get(f"/api/vote/{LINK}").json()["answered"] == 0
            assert thief.post(f"/api/vote/{LINK}/undo").status_code == 400
            assert thief.post(f"/api/vote/{LINK}/tell", json={"duel": 34, "winner": "b"}).status_code == 404
            asked = thief.post(f"/api/vote/{LINK}/ask")
            assert asked.json()["answered"] == 0
            assert cookie not in asked.headers["set-cookie"]
        assert arena.events()[-1].voter == f"Voter {number}"
    assert len(arena.votes()) == 41


def test_no_cookie_is_left_in_the_file(old):
    """Unused space too: what was deleted or overwritten before is still in the file until it is written again."""
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite overwrite by default
        row = connection.execute("SELECT * FROM events WHERE seq = 2 AND study_id = 1").fetchone()
        marks = ", ".join("?" * len(row))
        for seq in range(1000, 1100):
            changed = [*row[:1], seq, row[2], seq, *row[4:9], COOKIES[4], *row[10:]]
            connection.execute(f"INSERT INTO events VALUES ({marks})", changed)
        connection.commit()
        connection.execute("DELETE FROM events WHERE seq >= 1000")
        connection.commit()
    before = bytes_of(old)
    assert all(cookie.encode() in before for cookie in COOKIES)
    storage = Storage(f"sqlite:///{old}")
    assert not any(cookie.encode() in bytes_of(old) for cookie in COOKIES)
    assert load_study("arena", storage).check() == EVENTS["arena"]
    storage.close()
    assert not any(cookie.encode() in bytes_of(old) for cookie in COOKIES)


def test_what_another_program_holds_up_is_erased_later(old, caplog):
    with closing(sqlite3.connect(old, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        storage = Storage(f"sqlite:///{old}")
        assert "unused space" in caplog.text
        assert load_study("arena", storage).check() == EVENTS["arena"]
        reader.execute("COMMIT")
        storage.close()
    Storage(f"sqlite:///{old}").close()
    assert not any(cookie.encode() in bytes_of(old) for cookie in COOKIES)
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_an_export_of_the_old_version_is_read_and_imported(old):
    votes = read_votes(DATA / "votes-0.1.0.csv")
    assert len(votes) == 41
    assert set(COOKIES[:4]) < set(votes.voters)
    storage = Storage(f"sqlite:///{old}")
    arena = load_study("arena", storage)
    assert arena.import_votes(votes) == 41
    assert "Voter 2 (imported)" in voters_of(arena)
    with TestClient(create_app(storage), "http://localhost", headers={"Cookie": f"duels_ballot={COOKIES[0]}"}) as thief:
        assert thief.post(f"/api/vote/{LINK}/undo").status_code == 400


def test_an_experiment_of_the_old_version_can_be_resumed_if_its_policy_has_not_changed():
    """A policy is recognised by a hash of its code, which must survive the renaming of modules."""
    known = json.loads((DATA / "experiment-0.1.0" / "experiment.json").read_text())["policies"]
    assert loop.code_of(duels.policy("random")) == known["random"]["code"]


def test_an_experiment_of_the_old_version_opens():
    results = load_results(DATA / "experiment-0.1.0")
    assert sorted({str(name) for name in results.frame["policy"]}) == ["random", "rucb"]
