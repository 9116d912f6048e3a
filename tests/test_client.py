"""The client against a real server: it says what a local study on the same storage says, whatever happens between."""

import doctest
import itertools
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from server.conftest import Live
from voter_paths import as_rows, voter_log

import duels
from duels.client import PAUSES, Again, Change, Client, RemoteStudy, RemoteTuningStudy, connect, connection
from duels.errors import Conflict, DuelsError, InvalidInput, NotFound, StorageError, UnknownName
from duels.server.keys import make_key
from duels.storage.storage import open_storage
from duels.study import Impression
from duels.study.items import list_items
from duels.study.judging.ledger import Ledger, activity_of, follow

TOKEN = "a-token-that-was-chosen-for-tests"
ARMS = ["bm25", "dense", "hybrid"]
PAGES = ("server/client.md", "continuous/tuning.md")
numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One `duels serve` for the tests that do not stop it."""
    live = Live(f"sqlite:///{tmp_path_factory.mktemp('client')}/duels.db", environment={"DUELS_TOKEN": TOKEN})
    yield live
    live.stop()


@pytest.fixture(scope="module")
def client(server):
    with connect(server.url, TOKEN) as made:
        yield made


@pytest.fixture
def pair(client, server):
    """A study of three arms, seen from afar and on its storage."""
    name = f"s{next(numbers)}"
    remote = client.create_study(ARMS, name, seed=5)
    return remote, duels.load_study(name, server.storage)


def same(remote, local):
    """Every answer of the two, compared."""
    assert (remote.name, remote.policy, remote.arms, remote.retired) == (
        *(local.name, local.policy, local.arms),
        local.retired,
    )
    for confidence in (0.5, 0.95, 0.999):
        assert remote.leaderboard(confidence) == local.leaderboard(confidence)
        assert remote.preferences(confidence) == local.preferences(confidence)
        assert remote.verdict(confidence, 0.1) == local.verdict(confidence, 0.1)
    assert remote.verdict() == local.verdict()
    assert str(remote.verdict()) == str(local.verdict())
    assert remote.events() == local.events()
    assert remote.events(3) == local.events(3)
    assert remote.open_duels() == local.open_duels()
    assert remote.ranking() == local.ranking()
    assert remote.forecast() == local.forecast()
    assert str(remote.forecast()) == str(local.forecast())
    assert remote.judges() == activity_of(follow(local, Ledger()))
    assert remote.votes() == local.votes()


def test_what_a_study_is_for_can_be_changed_from_afar(client, server, pair):
    remote, local = pair
    assert (remote.goal, remote.best_arm) == (local.goal, local.best_arm)
    remote.set_about("new-items")
    remote.set_after("rank")
    remote.set_margin(0.1)
    assert remote.goal == local.goal
    assert (local.goal.about, local.goal.after, local.goal.margin) == ("new-items", "rank", 0.1)
    remote.tell(remote.ask(voter="ann"), "left", voter="ann")
    assert remote.check() == local.check()
    assert remote.withdraw("ann") == 1
    assert remote.verdict().void == local.verdict().void
    for act in (lambda study: study.set_after("never"), lambda study: study.withdraw("nobody")):
        with pytest.raises(InvalidInput) as here:
            act(local)
        with pytest.raises(InvalidInput) as there:
            act(remote)
        assert str(there.value) == str(here.value)


def test_judges_from_afar(pair):
    remote, local = pair
    local.run({"gpt": lambda left, right: min(left, right), "claude": lambda left, right: "tie"}, max_calls=30)
    same(remote, local)
    found = remote.judges()
    assert found.calls == 30
    assert [one.judge for one in found.positions] == ["gpt"]
    assert found.agreements


def test_a_policy_that_may_never_end_is_named(client):
    with pytest.warns(UserWarning, match="study 'long' may never end with the policy scb") as caught:
        client.create_study(ARMS, "long", "scb")
    assert __file__ in [one.filename for one in caught]
    client.create_study(ARMS, "long", "scb", load_if_exists=True)  # a warning would be an error


def test_both_say_the_same(pair, client, server):
    remote, local = pair
    same(remote, local)
    for k in range(60):
        duel = remote.ask(voter=f"v{k % 3}", allow_self=False)
        assert type(duel) is duels.study.Duel
        assert local.duel(duel.id) == duel == remote.duel(duel.id)
        best = "hybrid" if "hybrid" in duel[1:3] else "left"
        (remote if k % 2 else local).tell(duel, best if k % 7 else "tie", voter=f"v{k % 3}")
    assert remote.verdict().winner == "hybrid"
    same(remote, local)
    three = remote.ask(3, allow_self=False)
    assert three == local.open_duels()
    remote.tell(three[0].id, "both_bad")
    remote.tell(three[1], "skip")
    remote.undo(three[0])
    assert remote.verdict().void == "1 answer was taken back"
    same(remote, local)
    assert remote.forget("v1") > 0
    remote.add_arm("reranked")
    remote.retire_arm("bm25")
    same(remote, local)
    remote.retire()
    assert remote.retired
    assert client.list_studies() == duels.study.list_studies(server.storage)
    remote.resume()
    same(remote, local)
    assert client.load_study(remote.name).arms == local.arms


def test_verdicts_of_every_kind_are_those_of_the_study(client, server):
    """Tuples in tuples: a cycle of three, and arms practically tied."""
    rows = [("a", "b", "left"), ("b", "c", "left"), ("c", "a", "left")]
    cycle = client.create_study(iter("abc"), "cycle")
    assert cycle.import_votes(rows * 40) == 120
    assert cycle.verdict() == duels.load_study("cycle", server.storage).verdict()
    assert cycle.verdict().kind == "no condorcet winner"
    assert len(cycle.verdict().losses) == 3
    tied = client.create_study(["a", "b"], "tied")
    tied.import_votes([("a", "b", "tie")] * 400)
    assert tied.verdict(margin=0.2).tied_with == ("b",)
    assert tied.verdict(margin=0.2) == duels.load_study("tied", server.storage).verdict(margin=0.2)
    assert hash(tied.verdict()) == hash(duels.load_study("tied", server.storage).verdict())


def test_an_import_warns_where_voters_go_on_by_their_own_answers(client):
    study = client.create_study(list("abcdef"), "sorted")
    with pytest.warns(UserWarning, match=r"seems to depend on that voter's last answer.* 60 voters") as warned:
        assert study.import_votes(as_rows(voter_log("bracket", 6, 60, 1))) == 300
    assert warned[0].filename == __file__
    assert study.import_votes(as_rows(voter_log("random", 6, 60, 1))) == 600


def test_votes_and_items_go_both_ways(pair, tmp_path):
    remote, local = pair
    assert len(remote.votes()) == 0
    assert remote.import_votes([]) == 0
    file = tmp_path / "votes.csv"
    file.write_text('left,right,winner,voter\nbm25,dense,right,"ann, or ""bob"""\nhybrid,dense,tie,ü\n')
    assert remote.import_votes(file) == 2
    assert remote.votes() == local.votes()
    assert [vote.voter for vote in remote.votes()] == ['ann, or "bob"', "ü"]
    counts = [{"left": "bm25", "right": "dense", "wins_left": 7 * 10**8, "wins_right": 3 * 10**8, "ties": 1}]
    assert remote.import_votes(counts) == 10**9 + 1
    assert remote.allocate(1000) == local.allocate(1000)
    assert remote.votes() == local.votes()
    assert [vote.count for vote in remote.votes()] == [1, 1, 7 * 10**8, 3 * 10**8, 1]
    items = [{"prompt": "2 + 2?\n", "outputs": {"bm25": "4", "dense": {"kind": "code", "content": "four\u2028"}}}]
    assert remote.add_items(items) == (1, 0)
    assert remote.add_items(items * 2) == (1, 0)  # a prompt that is there is not added again
    assert [number for number, _ in list_items(local)] == [1, 2]
    assert remote.add_items([{"prompt": "2 + 2?", "outputs": {"hybrid": "22"}}]) == (0, 1)
    assert list_items(local)[0][1].outputs["dense"] == ("code", "four\u2028")


def test_many_at_once_and_pages(pair):
    remote, local = pair
    duels_ = remote.ask(1_500)
    assert [duel.id for duel in duels_] == list(range(1_500))
    assert remote.open_duels() == local.open_duels() == duels_


def test_pages_of_the_log_are_put_together(client, pair, monkeypatch):
    remote, local = pair
    remote.ask(25)
    send, asked = client._send, []

    def in_tens(method, path, *rest, query):
        asked.append(query.get("after"))
        return send(method, path, *rest, query=query | ({"limit": 10} if "limit" in query else {}))

    monkeypatch.setattr(client, "_send", in_tens)
    assert remote.events() == local.events()
    assert asked == [0, 10, 20]


@pytest.mark.parametrize("name", ["a b", "ä?ö#ü", "100%", "%2e", "x&y=z", "…", "a\\b", "+"])
def test_names_of_all_kinds(client, server, name):
    study = client.create_study(["left one", "ri&ght", name], name)
    assert client.load_study(name).name == name
    study.retire_arm(name)
    assert study.arms == ["left one", "ri&ght"]
    assert duels.load_study(name, server.storage).arms == study.arms
    client.delete_study(name)
    with pytest.raises(UnknownName, match="unknown study"):
        client.load_study(name)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_would_lead_elsewhere(client, pair, name):
    """`arms/../retire` would retire the study."""
    remote, local = pair
    for act in (remote.retire_arm, client.load_study, client.delete_study):
        with pytest.raises(InvalidInput, match="cannot be used here"):
            act(name)
    assert not local.retired


def test_arms_may_have_slashes(client):
    study = client.create_study(["a/b", "c", "d"], "slashes")
    study.retire_arm("a/b")
    assert (study.arms, study.retired) == (["c", "d"], False)


def test_errors_are_those_of_a_study(client, server, pair):
    remote, local = pair
    duel = remote.ask()
    remote.tell(duel, "tie")
    cases = [
        (lambda study: study.tell(duel, "left" if not duel.is_self else "right"), Conflict),
        (lambda study: study.tell(999, "left"), InvalidInput),
        (lambda study: study.tell(duel, "nobody"), InvalidInput),
        (lambda study: study.tell(duel._replace(study="other"), "left"), InvalidInput),
        (lambda study: study.undo(999), InvalidInput),
        (lambda study: study.forget("nobody"), InvalidInput),
        (lambda study: study.add_arm("bm25"), Conflict),
        (lambda study: study.add_arm("tie"), InvalidInput),
        (lambda study: study.retire_arm("bm52"), UnknownName),
        (lambda study: study.duel(999), InvalidInput),
        (lambda study: study.ask(0), InvalidInput),
        (lambda study: study.ask(10_001), InvalidInput),
        (lambda study: study.import_votes([("x", "y", "left")]), InvalidInput),
        (lambda study: study.import_votes("nowhere.csv"), InvalidInput),
    ]
    for act, kind in cases:
        with pytest.raises(kind) as here:
            act(local)
        with pytest.raises(kind) as there:
            act(remote)
        assert str(there.value) == str(here.value)
    for confidence in (0, 1, "x"):
        with pytest.raises(InvalidInput):
            remote.verdict(confidence)
    with pytest.raises(UnknownName) as missing:
        client.load_study(remote.name + "x")
    assert type(missing.value) is UnknownName
    with pytest.raises(duels.errors.NotFound, match="unknown study"):
        client.load_study(remote.name + "x")
    with pytest.raises(UnknownName) as known:
        duels.load_study(remote.name + "x", server.storage)
    assert str(missing.value) == str(known.value)
    with pytest.raises(Conflict, match="already"):
        client.create_study(ARMS, remote.name)
    assert client.create_study(ARMS, remote.name, seed=5, load_if_exists=True).events() == local.events()
    with pytest.raises(Conflict, match=r"exists with confidence 0\.95, not 0\.9"):
        client.create_study(ARMS, remote.name, confidence=0.9, load_if_exists=True)
    assert client.create_study(ARMS, remote.name, margin=0.1, load_if_exists=True).verdict().margin == 0.1
    with pytest.raises(InvalidInput, match="unknown policy"):
        client.create_study(ARMS, "fresh", "mine.py")
    with pytest.raises(InvalidInput):
        client.create_study("x", "fresh")
    with pytest.raises(InvalidInput, match="cannot be sent"):
        remote.interleave({"bm25": [object()]})


def test_who_may(server, client):
    _, token = make_key(open_storage(server.storage), "api", "program")
    with connect(server.url) as nobody, pytest.raises(InvalidInput, match="duels token create"):
        nobody.list_studies()
    with connect(server.url, "wrong" * 8) as stranger, pytest.raises(InvalidInput, match="duels token create"):
        stranger.create_study(ARMS, "theirs")
    with connect(server.url, token) as program:
        program.create_study(ARMS, "program's")
        with pytest.raises(InvalidInput, match="--kind admin"):
            program.delete_study("program's")
    client.delete_study("program's")


@pytest.mark.parametrize(
    "url",
    [
        *("duels.example.org", "ftp://host", "http://", "http://host/path", "http://host?x", "http://u:secret@host"),
        *("http://host/signin#secret", None, 5, "http://ho st", ""),
    ],
)
def test_urls_that_are_none(url):
    with pytest.raises(InvalidInput, match=r"https://duels\.example\.org") as refused:
        connect(url)
    assert "secret" not in str(refused.value)


def test_tokens_are_not_shown(caplog):
    for token in ("with blank", "line\n", "ünicode", ""):
        with pytest.raises(InvalidInput) as refused:
            connect("http://localhost", token)
        assert not token or token not in str(refused.value)
    with connect("http://[::1]:1/", TOKEN) as made:
        assert repr(made) == "Client('http://[::1]:1')"
        assert TOKEN not in repr(RemoteStudy(made, "s", "rucb"))
    assert TOKEN not in caplog.text


def mocked(monkeypatch, *answers):
    """A client whose server gives these answers in turn, then ends; what was sent, and the pauses."""
    sent, pauses, left = [], [], list(answers)

    def handle(request):
        sent.append((request.method, request.url.path, request.content))
        answer = left.pop(0)
        if isinstance(answer, type):
            raise answer("told to fail", request=request)
        status, body = answer
        return httpx.Response(status, json=body, headers={"Retry-After": "2"} if status in (429, 503) else {})

    made = object.__new__(Client)  # a real one reads the certificates of the machine, which takes longer than the rest
    made.url, made._httpx = "http://localhost", httpx
    made._http = httpx.Client(transport=httpx.MockTransport(handle), base_url=made.url)
    monkeypatch.setattr(connection, "sleep", pauses.append)
    return made, RemoteStudy(made, "s", "rucb"), sent, pauses


def tuning(study):
    """A tuning study on the server of another study."""
    return RemoteTuningStudy(study._client, TUNING)


def failed(kind):
    return {"error": {"kind": kind, "message": "because"}}


DUEL = {"id": 0, "left": "a", "right": "b", "study": "s", "time": "t", "is_self": False}
ASKED, TOLD, ADDED = (200, {"duels": [DUEL]}), (200, {"duel": 0, "answer": "left"}), (201, {"items": 1, "outputs": 0})
IMPORTED = {"imported": 1, "note": None}
SHOWN = (200, {"impression": 0, "documents": [], "duel": 0, "left": "a", "right": "b", "is_self": False})
TUNING = {"name": "s", "policy": "eubo", "space": {"x": {"low": 0.0, "high": 1.0}}, "goal": {"confidence": 0.95}}
PAST = ({"x": 0.1}, {"x": 0.2}, "left")
REFUSED, BUSY, GATEWAY = (503, failed("storage")), (429, failed("too_many")), (502, {})
CALLS = {
    "ask": (lambda study: study.ask(), ASKED, Again.REFUSED),
    "interleave": (lambda study: study.interleave({"a": [1]}), SHOWN, Again.REFUSED),
    "interleave again": (lambda study: study.interleave({"a": [1]}, 0), SHOWN, Again.ALWAYS),
    "tell": (lambda study: study.tell(0, "left"), TOLD, Again.ALWAYS),
    "clicks": (lambda study: study.clicks(0, []), TOLD, Again.ALWAYS),
    "get": (lambda study: study.leaderboard(), (200, {"leaderboard": []}), Again.ALWAYS),
    "retire": (lambda study: study.retire(), (200, {}), Again.ALWAYS),
    "undo": (lambda study: study.undo(0), (200, {"duel": 0}), Again.UNSENT),
    "forget": (lambda study: study.forget("v"), (200, {"answers": 1}), Again.UNSENT),
    "add_arm": (lambda study: study.add_arm("c"), (201, {}), Again.UNSENT),
    "import": (
        lambda study: study.import_votes([("a", "b", "left")]),
        (200, {"imported": 1, "note": None}),
        Again.UNSENT,
    ),
    "ask tuning": (lambda study: tuning(study).ask(), ASKED, Again.REFUSED),
    "import duels": (
        lambda study: tuning(study).import_duels([PAST]),
        (200, {"imported": 1, "note": None}),
        Again.UNSENT,
    ),
    "template": (lambda study: tuning(study).set_template("{{ x }}"), (200, {"html": "{{ x }}"}), Again.ALWAYS),
    "items": (lambda study: study.add_items([{"prompt": "p", "outputs": {"a": "x", "b": "y"}}]), ADDED, Again.UNSENT),
}
# What goes wrong -> the least of `Again` that a request must have to be sent once more; None: never is.
WRONG = [
    (httpx.ConnectError, Again.UNSENT),
    (httpx.ConnectTimeout, Again.UNSENT),
    (BUSY, Again.UNSENT),
    (REFUSED, Again.REFUSED),
    (httpx.ReadError, Again.ALWAYS),
    (httpx.RemoteProtocolError, Again.ALWAYS),
    (GATEWAY, Again.ALWAYS),
    (httpx.ReadTimeout, None),
    ((500, None), None),
    ((302, None), None),
]


@pytest.mark.parametrize("call", CALLS)
def test_requests_are_repeated_only_where_that_is_safe(call, monkeypatch):
    act, good, again = CALLS[call]
    for wrong, least in WRONG:
        made, study, sent, pauses = mocked(monkeypatch, wrong, good)
        if least is not None and again >= least:
            act(study)
            assert len(sent) == 2
            assert sent[0] == sent[1]
            assert pauses == [2.0 if wrong in (REFUSED, BUSY) else PAUSES[0]]
        else:
            with pytest.raises(DuelsError):
                act(study)
            assert len(sent) == 1, wrong
            assert pauses == []
        made.close()


def test_it_gives_up_after_a_while(monkeypatch):
    made, study, sent, pauses = mocked(monkeypatch, *[httpx.ConnectError] * 20)
    with pytest.raises(StorageError, match="is it running"):
        study.ask()
    assert pauses == list(PAUSES)
    assert len(sent) == len(PAUSES) + 1
    made.close()


def test_what_is_no_server_of_ours_is_said(monkeypatch):
    made, study, _, _ = mocked(monkeypatch, (404, {"detail": "Not Found"}), (400, []))
    for _ in range(2):
        with pytest.raises(StorageError, match="is it a Duels server"):
            study.verdict()
    made.close()


def stream_of(monkeypatch, *streams):
    """A study whose server's streams are these texts, one after another; the pauses between."""
    pauses, left = [], list(streams)

    def handle(request):
        assert request.url.path == "/api/studies/s/stream"
        text = left.pop(0)
        if isinstance(text, type):
            raise text("told to fail", request=request)
        return httpx.Response(200, text=text) if isinstance(text, str) else httpx.Response(text[0], json=text[1])

    made, study, _, _ = mocked(monkeypatch)
    made._http.close()
    made._http = httpx.Client(transport=httpx.MockTransport(handle), base_url=made.url)
    monkeypatch.setattr(connection, "sleep", pauses.append)
    return study, pauses


def change(seq):
    said = {"seq": seq, "answers": 1, "open": 0, "retired": False}
    return f"event: change\nid: {seq}\ndata: {json.dumps(said)}\n\n"


def test_a_stream_that_broke_goes_on_without_saying_anything_twice(monkeypatch):
    bye, deleted, here = "event: bye\ndata: {}\n\n", "event: deleted\ndata: {}\n\n", ": still here\n\n"
    streams = (
        change(1) + here + bye,
        httpx.ConnectError,
        change(1) + change(2),
        REFUSED,
        change(4) + deleted + change(5),
    )
    study, pauses = stream_of(monkeypatch, *streams)
    assert [(one.seq, one.answers) for one in study.follow()] == [(1, 1), (2, 1), (4, 1)]
    assert pauses == [PAUSES[0], PAUSES[1], PAUSES[0], PAUSES[1]]  # from the first again, once there was a change


def test_a_stream_gives_up_where_there_is_nothing_to_follow(monkeypatch):
    study, pauses = stream_of(monkeypatch, *[httpx.ReadError] * 20)
    with pytest.raises(StorageError, match="the stream"):
        next(study.follow())
    assert pauses == list(PAUSES)
    study, pauses = stream_of(monkeypatch, (404, failed("not_found")))
    with pytest.raises(NotFound, match="because"):
        next(study.follow())
    assert pauses == []


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def test_a_server_that_is_started_anew_is_found_again(tmp_path, monkeypatch):
    """Stopped and started on the same port: calls wait for it, streams go on, and nothing counts twice."""
    monkeypatch.setattr(connection, "PAUSES", (0.2,) * 150)  # a busy machine takes long to start a server
    storage, port = f"sqlite:///{tmp_path}/duels.db", free_port()

    def start():
        return Live(storage, "--port", port, environment={"DUELS_TOKEN": TOKEN})

    first = start()
    with connect(first.url, TOKEN) as made:
        study = made.create_study(ARMS, "s")
        changes, gone = [], threading.Event()

        def follow():
            for change in study.follow():
                changes.append(change)
            gone.set()

        following = threading.Thread(target=follow, daemon=True)
        following.start()
        one, two = study.ask(2, allow_self=False)
        study.tell(one, "left")
        assert first.stop() == 0
        again = []
        starting = threading.Thread(target=lambda: again.append(start()))
        starting.start()
        study.tell(two, "right")  # while there is no server
        assert study.ask(allow_self=False).id == 2
        starting.join(60)
        study.tell(two, "right")
        wait_for(lambda: changes and changes[-1] == Change(study.events()[-1].seq, 2, 1, False))
        assert [change.seq for change in changes] == sorted({change.seq for change in changes})
        assert [entry.kind for entry in study.events()] == ["create", "ask", "ask", "tell", "tell", "ask"]
        made.delete_study("s")
        assert gone.wait(10)
        following.join(60)
        again[0].stop()
        monkeypatch.setattr(connection, "PAUSES", (0.01,))
        with pytest.raises(StorageError, match="is it running"):
            made.list_studies()


def wait_for(condition, patience=20):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_threads_share_a_client(pair):
    remote, local = pair

    def vote(voter):
        for _ in range(10):
            duel = remote.ask(voter=voter, allow_self=False)
            remote.tell(duel, "left", voter=voter)
        return remote.events()[-1].seq

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(vote, map(str, range(8))))
    assert local.verdict().duels == 80
    assert not local.open_duels()
    assert local.check() == 161
    same(remote, local)


def test_interleaving_and_clicks(pair):
    remote, local = pair
    documents = np.arange(20)
    rankings = {"bm25": documents, "dense": documents[::-1], "hybrid": list(map(int, documents))}
    shown = remote.interleave(rankings, method="team-draft", length=4)
    assert type(shown) is Impression
    assert (shown.left, shown.right) == local.duel(shown.id)[1:3]
    assert shown.is_self == local.duel(shown.id).is_self
    assert len(shown.documents) == 4
    answer = remote.clicks(shown, shown.documents[:1])
    assert answer in ("left", "right", "tie")
    assert remote.clicks(shown.id, set(shown.documents[:1])) == answer
    assert local.clicks(shown, shown.documents[:1]) == answer
    assert local.interleave(rankings, shown.duel) == shown
    asked = remote.ask(allow_self=False)
    two = {arm: rankings[arm] for arm in asked[1:3]}
    first = remote.interleave(two, asked)
    assert first.duel == asked.id
    assert remote.interleave(two, asked) == first
    assert remote.clicks(first, []) == "tie"
    assert local.events()[-1].answer == "tie"
    with pytest.raises(InvalidInput, match="not on the list"):
        remote.clicks(first, ["nowhere"])
    with pytest.raises(NotFound, match="interleave first"):
        remote.clicks(remote.ask().id, [])
    with pytest.raises(InvalidInput, match="no ranking"):
        remote.interleave({"bm25": [1]})


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_true(name, monkeypatch, tmp_path):
    """Their sessions with a server, against one of their own."""
    page = Path(__file__).parents[1] / "docs" / name
    kept, inside = [], False
    for line in page.read_text().splitlines():
        inside = line.strip() == "```pycon" if line.startswith("```") else inside
        kept.append("" if line.startswith("```") or not inside else line)
    session = doctest.DocTestParser().get_doctest("\n".join(kept) + "\n", {}, page.name, str(page), 0)
    assert len(session.examples) > 12
    monkeypatch.setenv("DUELS_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    live = Live(f"sqlite:///{tmp_path}/page.db", environment={"DUELS_TOKEN": TOKEN})
    complaints: list[str] = []
    try:
        monkeypatch.setenv("DUELS_URL", live.url)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=complaints.append)
    finally:
        live.stop()
    assert not complaints, "".join(complaints)
