"""Who votes through a link: a number for others, a digest in the database, and a cookie that only the browser has."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from duels.errors import InvalidInput
from duels.server.http.limits import Limits, Rate
from duels.server.keys import make_key
from duels.study.create import create_study, load_study
from duels.votes.names import is_reserved

ARMS = ["ant", "bee", "cat"]


@pytest.fixture
def farm(storage, app):
    app.service.limits = Limits(voter=Rate(1e6, 10**6), address=Rate(1e6, 10**6))
    return create_study(ARMS, "farm", storage)


@pytest.fixture
def link(storage, farm):
    return make_key(storage, "vote", "Which?", study_id=farm._log.id, settings={"votes": 100})[1]


@pytest.fixture
def person(app):
    with ExitStack() as opened:
        yield lambda: opened.enter_context(TestClient(app, "http://localhost"))


def ask(client, link):
    sent = client.post(f"/api/vote/{link}/ask")
    assert sent.status_code == 200, sent.text
    return sent.json()


def tell(client, link, duel, winner="a"):
    sent = client.post(f"/api/vote/{link}/tell", json={"duel": duel, "winner": winner})
    assert sent.status_code == 200, sent.text
    return sent.json()


def vote(client, link, winner="a"):
    return tell(client, link, ask(client, link)["duel"], winner)


def names(study):
    return [event.voter for event in study.events() if event.kind == "ask"]


def test_voters_are_numbers(farm, link, person):
    ann, bob = person(), person()
    for client in (ann, bob, ann):
        vote(client, link)
    assert names(farm) == ["Voter 1", "Voter 2", "Voter 1"]
    assert [vote.voter for vote in farm.votes()] == ["Voter 1", "Voter 2", "Voter 1"]


def test_the_cookie_is_only_in_the_browser(serve, tmp_path):
    live = serve(None, "--log", "json")
    with live.client() as api, ExitStack() as opened:
        api.post("/api/studies", json={"name": "farm", "arms": ARMS})
        link = api.post("/api/studies/farm/links", json={}).json()["secret"]
        cookies, bodies = [], ""
        for _ in range(3):
            one = opened.enter_context(live.client())
            one.headers.pop("authorization", None)
            vote(one, link)
            ask(one, link)
            bodies += one.post(f"/api/vote/{link}/undo").text + one.get(f"/vote/{link}").text
            cookies.append(one.cookies["duels_ballot"])
        assert all(re.fullmatch(r"[\w-]{22}", cookie) for cookie in cookies)
        assert len(set(cookies)) == 3
        at = "/api/studies/farm"
        for path in ("details", "events", "export?format=csv", "export?format=jsonl", "links", "duels", "verdict"):
            sent = api.get(f"{at}/{path}")
            assert sent.status_code == 200
            bodies += sent.text
        api.post("/signin", data={"token": live.token})
        bodies += api.get("/studies/farm").text + api.get("/metrics").text
    assert "Voter 3" in bodies
    live.stop()
    stored = b"".join(path.read_bytes() for path in Path(tmp_path).iterdir() if path.is_file())
    told = (bodies + "".join(live.log) + "".join(live.out)).encode() + stored
    assert b"Voter 3" in stored
    assert [cookie for cookie in cookies if cookie.encode() in told] == []


def test_a_cookie_is_for_one_link(farm, link, person, storage):
    """A browser has another cookie at each link, and what a link gave opens nothing at another one."""
    _, other = make_key(storage, "vote", study_id=farm._log.id, settings={"votes": 100})
    ann = person()
    sent = ann.post(f"/api/vote/{link}/ask")
    flags = sent.headers["set-cookie"]
    assert f"Path=/api/vote/{link};" in flags
    assert "HttpOnly" in flags
    assert "SameSite=lax" in flags
    vote(ann, link)
    vote(ann, other)
    assert names(farm) == ["Voter 1", "Voter 2"]
    (first, second) = (cookie.value for cookie in ann.cookies.jar)
    assert first != second
    with storage.lock:
        digests = storage.connection().exec_driver_sql("SELECT digest FROM voters").scalars().all()
    assert len(set(digests)) == 2
    taken = {"Cookie": f"duels_ballot={first}"}
    stranger = person()
    assert stranger.post(f"/api/vote/{other}/undo", headers=taken).status_code == 400
    assert stranger.get(f"/api/vote/{other}", headers=taken).json()["answered"] == 0
    vote(ann, link)
    assert names(farm)[-1] == "Voter 1"  # the second link has not taken the place of the first


def test_nobody_chooses_a_cookie(farm, link, person):
    program = farm.ask(voter="a-program-of-22-letter")
    farm.tell(program, "left", voter="a-program-of-22-letter")
    for name in ("", "ann", "x" * 22, "\xff" * 22, "a-program-of-22-letter", "Voter 1", "=cmd|' /C calc'!A0"):
        client = person()
        sent = {"Cookie": f"duels_ballot={name}".encode("latin-1")}
        assert client.post(f"/api/vote/{link}/undo", headers=sent).status_code == 400
        assert client.post(f"/api/vote/{link}/tell", json={"duel": 0, "winner": "a"}, headers=sent).status_code == 404
        asked = client.post(f"/api/vote/{link}/ask", headers=sent)
        given = re.search(r"duels_ballot=([\w-]{22});", asked.headers["set-cookie"])[1]
        assert given != name
    assert set(names(farm)) == {"a-program-of-22-letter", *(f"Voter {number}" for number in range(1, 8))}
    assert len(farm.votes()) == 1
    client = person()
    assert "set-cookie" not in client.get(f"/api/vote/{link}").headers  # who only looks is nobody
    ask(client, link)
    assert "set-cookie" not in client.post(f"/api/vote/{link}/ask").headers


def test_two_tabs_are_one_voter(farm, link, person):
    ann = person()
    first = ask(ann, link)
    assert ask(ann, link) == first
    tell(ann, link, first["duel"])
    assert len(set(names(farm))) == 1


def test_many_come_at_once(serve):
    """Everybody gets a number of their own."""
    live = serve()
    with live.client() as api, ExitStack() as opened:
        api.post("/api/studies", json={"name": "farm", "arms": ARMS})
        link = api.post("/api/studies/farm/links", json={}).json()["secret"]
        clients = [opened.enter_context(httpx.Client(verify=False, base_url=live.url, timeout=60)) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(2):
                list(pool.map(lambda client: vote(client, link), clients))
    live.stop()
    found = names(load_study("farm", live.storage))
    assert set(found) == {f"Voter {number}" for number in range(1, 9)}
    assert all(found.count(name) == 2 for name in found)
    assert load_study("farm", live.storage).check() == 33


def test_a_forgotten_voter_is_a_new_one_with_a_new_number(farm, link, admin, person):
    ann, bob = person(), person()
    for client in (ann, bob, bob):
        vote(client, link)
    forgotten = admin.post("/api/studies/farm/forget", json={"voter": "Voter 2"})
    assert forgotten.json() == {"answers": 2}
    assert "Voter 2" not in names(farm)
    assert bob.post(f"/api/vote/{link}/undo").status_code == 400
    assert bob.get(f"/api/vote/{link}").json()["answered"] == 0
    vote(bob, link)
    vote(ann, link)
    assert names(farm)[-2:] == ["Voter 3", "Voter 1"]
    assert admin.post("/api/studies/farm/forget", json={"voter": "Voter 2"}).status_code == 400
    assert farm.forget("Voter 1") == 2
    assert farm.check() > 0


# With letters of other alphabets, with zeros before the number, and with letters that look like digits.
ALIKE = (
    "V\u043eter 1",
    "\u03bd\u03bf\u03c4\u03b5r 2",
    "VOT\u0395R 3",
    "V0ter 4",
    "Voter 01",
    "Voter 0",
    "Voter l",
    "Voter 1O",
)


def test_programs_and_files_cannot_be_voters_of_links(farm, link, admin, person):
    vote(person(), link)
    at = "/api/studies/farm"
    for name in ("Voter 1", "voter 1", "VOTER  1", " Voter 1 ", "Voter\u00a01", "Ｖoter １", "Voter 99", *ALIKE):
        for path, body in (("ask", {}), ("tell", {"duel": 0, "winner": "left"})):
            sent = admin.post(f"{at}/{path}", json={**body, "voter": name})
            assert sent.status_code == 400, name
            assert "vote through links" in sent.json()["error"]["message"]
        with pytest.raises(InvalidInput, match="vote through links"):
            farm.ask(voter=name)
    lists = {"rankings": {arm: [1, 2] for arm in ARMS}, "voter": "Voter 1"}
    assert admin.post(f"{at}/interleave", json=lists).status_code == 400
    votes = "left,right,winner,voter\nant,bee,left,Voter 1\nant,bee,right,ann\nbee,cat,tie,voter 7\n"
    assert admin.post(f"{at}/import", content=votes).json() == {"imported": 3, "note": None}
    assert [vote.voter for vote in farm.votes()] == ["Voter 1", "Voter 1 (imported)", "ann", "voter 7 (imported)"]
    assert farm.forget("Voter 1 (imported)") == 1
    assert len(farm.votes()) == 3


def test_what_was_exported_can_be_imported_elsewhere_and_again(farm, link, person, storage):
    vote(person(), link)
    copy = create_study(ARMS, "copy", storage)
    copy.import_votes(farm.votes())
    assert [vote.voter for vote in copy.votes()] == ["Voter 1 (imported)"]
    third = create_study(ARMS, "third", storage)
    third.import_votes(copy.votes())
    assert [vote.voter for vote in third.votes()] == ["Voter 1 (imported)"]


@pytest.mark.parametrize(
    "name",
    ["Voter", "Voter VII", "Voter one", "Waiter 2", "Voter Olli", "voter1", "demo voter 3", "Voter 7 (imported)", "7"],
)
def test_other_names_are_free(farm, name):
    assert not is_reserved(name)
    farm.tell(farm.ask(voter=name), "left", voter=name)
    assert names(farm) == [name]


def test_a_study_made_again_begins_with_the_first_voter(farm, link, admin, person, storage):
    vote(person(), link)
    admin.delete("/api/studies/farm")
    again = create_study(ARMS, "farm", storage)
    _, other = make_key(storage, "vote", study_id=again._log.id, settings={"votes": 100})
    vote(person(), other)
    assert names(load_study("farm", storage)) == ["Voter 1"]
