"""Uploads of any bytes: never a failure of the server, and after a refusal nothing was taken."""

import asyncio
import io
import json
import os
import signal
import threading
import time
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from duels.server import child_process, writes
from duels.server.app import create_app
from duels.server.http.large_requests import LARGE_AT_ONCE
from duels.server.keys import make_key, revoke_key
from duels.study.items import count_items

ARMS = ["bm25", "dense", "hybrid"]
VOTES = "left,right,winner,voter\nbm25,dense,left,ann\nhybrid,bm25,tie,bob\ndense,hybrid,right,\n"
VOTE_LINES = "\n".join(
    json.dumps({"left": a, "right": b, "winner": c})
    for a, b, c in [("bm25", "dense", "left"), ("dense", "hybrid", "tie"), ("bm25", "hybrid", "bm25")]
)
ITEMS = 'prompt,bm25,dense\nq1,u,"v\nw"\nq2,x,y\n'
ITEM_LINES = "\n".join(
    json.dumps({"prompt": f"q{k}", "outputs": {"bm25": "x", "dense": {"kind": "markdown", "content": "*y*"}}})
    for k in range(3)
)
RIGHT = {"import": (VOTES, VOTE_LINES), "items": (ITEMS, ITEM_LINES)}
TYPES = ["text/csv", "application/x-ndjson", "application/json", "application/octet-stream", "multipart/form-data"]
TYPES += ["text/plain; charset=utf-16", "application/x-www-form-urlencoded", "*/*", "nonsense", ""]
HUGE = b"9" * 5000
STRANGE = [
    *(
        b"",
        b" ",
        b"\n",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1f\x8b\x08\x00",
        b"PK\x03\x04",
        b'"',
        b"{",
        b"[",
        b"\r",
    ),
    *(b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000),
    *(
        b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b', "outputs": {}}',
        b"NaN",
        b"Infinity",
        b"-0",
        b"null",
        HUGE,
    ),
    b'{"prompt": "q", "outputs": {"bm25": ' + HUGE + b', "dense": "x"}}',
    b'{"prompt": "q", "outputs": {"bm25": NaN, "dense": Infinity}}',
    b'{"prompt": "q", "prompt": "r", "outputs": {"bm25": "x", "dense": "y"}}',
    b'{"prompt": "q", "outputs": {"bm25": "x", "bm25": "y"}}',
    b'{"prompt": "\\ud800", "outputs": {"bm25": "x", "dense": "y"}}',
    b'{"prompt": "q", "outputs": {"\\udfff": "x", "dense": "y"}}',
    b'{"prompt": "q", "outputs": {"bm25": "\\ud83d", "dense": "y"}}',
    b'{"prompt": "q\\u0000", "outputs": {"bm25": "x", "dense": "y"}}',
    b'{"prompt": "q", "outputs": {"bm25": {"kind": {}, "content": []}, "dense": [1]}}',
    b'{"prompt": "q", "kind": ["text"], "outputs": {"bm25": "x", "dense": "y"}}',
    b'{"prompt": "q", "outputs": {"bm25": {"kind": "image", "content": "data:image/png;base64,===="}, "dense": "y"}}',
    b'{"prompt": "q", "outputs": {"bm25": {"kind": "image", "content": "/etc/passwd"}, "dense": "y"}}',
    b'{"left": "bm25", "right": "dense", "winner": ' + HUGE + b"}",
    b'{"left": "bm25", "right": "dense", "winner": NaN}',
    b'{"left": "bm25", "right": "dense", "winner": "left", "voter": "\\ud800"}',
    b'{"left": "bm25", "right": "dense", "winner": "left", "voter": "\\u0000"}',
    b'{"left": "bm25", "right": "dense", "winner": "left", "time": 1e400}',
    b'{"left": "bm25", "right": "dense", "winner": "left", "time": ' + HUGE + b"}",
    b'{"left": "bm25", "right": "dense", "winner": "left", "time": -99999999999999}',
    b'{"left": "bm25", "right": "dense", "winner": "left", "duel": 1e308}',
    b'{"\\ud800left": "bm25", "left": "bm25", "right": "dense", "winner": "left"}',
    b'{"\\ud800": "q", "prompt": "q"}',
    b'{"left": {"a": 1}, "right": ["dense"], "winner": {"x": 2}}',
    b'{"left": "bm25", "right": "\\ud800", "winner": "left"}',
    *(b"left,right,winner\nbm25,dense," + b"x" * 200_000, b"left,right,winner\n" + b"bm25,dense\n" * 10),
    *(b"left,left,winner\nbm25,dense,left\n", b"," * 10_000, b"a,b\n" * 3, b"left,right,winner\n\x00,\x00,\x00\n"),
    *(
        b"prompt,bm25,dense\n" + b"q," + b"x" * 2_000_000 + b",y\n",
        b"prompt,bm25,dense\nq,\x00,y\n",
        b"prompt,bm25\nq,x\n",
    ),
    *(b"prompt,arm,output\nq,bm25,x\n", b"prompt,arm,output\nq,bm25,x\nq,bm25,y\n", b"prompt,bm25,unknown\nq,x,y\n"),
    *(VOTES.encode("utf-16"), ITEMS.encode("utf-32"), b"\xef\xbb\xbf\xef\xbb\xbf" + VOTES.encode()),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An application with an admin's token and a study, for all examples of a test."""
    app = create_app(f"sqlite:///{tmp_path_factory.mktemp('uploads')}/duels.db")
    _, token = make_key(app.service.storage, "admin", "test")
    with TestClient(app, "http://localhost", headers={"Authorization": f"Bearer {token}"}) as client:
        assert client.post("/api/studies", json={"name": "s", "arms": ARMS}).status_code == 201
        client.study = app.service.study("s")
        yield client


def counts(study):
    """What a study has: events, answers and items."""
    return study._log.history().seq, len(study._log.history().answered), count_items(study)


def upload(client, where, content, kind=""):
    """Send it, and see that it was taken as a whole or not at all."""
    seq, told, items = counts(client.study)
    response = client.post(f"/api/studies/s/{where}", content=content, headers={"Content-Type": kind})
    after = counts(client.study)
    if response.is_success and where == "import":
        taken = response.json()["imported"]
        assert taken >= 0
        assert (after[1], after[2]) == (told + taken, items)
    elif response.is_success:
        taken = response.json()["items"]
        assert taken >= 0  # a prompt that is there is not added again, and gets the outputs that it lacks
        noted = (
            1 if client.study._log.history().left else 0
        )  # after the first question the log says which items there are
        assert after in {(seq + noted, told, items + taken)} | (set() if taken else {(seq, told, items)})
        assert response.json()["total"] == after[2]
    else:
        assert response.status_code in (400, 409, 413, 422), response.text
        error = response.json()["error"]
        assert set(error) == {"kind", "message"}
        assert len(error["message"]) <= 2001
        assert after == (seq, told, items)
    return response


@pytest.mark.parametrize("where", ["import", "items"])
def test_what_is_right_is_taken_whatever_it_is_called(server, where):
    for content in RIGHT[where]:
        server.delete("/api/studies/s/items")  # they have other outputs for the same prompts
        for kind in TYPES:
            assert upload(server, where, content.encode(), kind).is_success
        for mark in (b"\xef\xbb\xbf", b"\n\n"):
            assert upload(server, where, mark + content.encode()).is_success
        assert upload(server, where, content.replace("\n", "\r\n").encode()).is_success or where == "items"


@pytest.mark.parametrize("where", ["import", "items"])
def test_what_is_strange_is_refused_or_taken_whole(server, where):
    for content in STRANGE:
        kinds = ("text/csv", "application/json")
        for kind in kinds[:1] if child_process.is_large(content) else kinds:
            upload(server, where, content, kind)
    assert server.study.check() > 0


@pytest.mark.parametrize("where", ["import", "items"])
def test_one_wrong_row_of_many_takes_nothing(server, where):
    """The fault is in the last of the rows, after all others were read."""
    before = counts(server.study)
    faults = {"import": ("bm25,nobody,left", "bm25,bm25,left", "bm25,dense,maybe"), "items": ("q,x", ",x,y", "q,x,")}
    rows = {"import": VOTES, "items": ITEMS}[where]
    for fault in faults[where]:
        full = rows + (f"{fault},\n" if where == "import" else f"{fault}\n")
        assert upload(server, where, full.encode()).status_code in (400, 409)
    assert counts(server.study) == before


FUZZ = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PLACES = st.sampled_from(["import", "items"])
KINDS = st.sampled_from(TYPES)


@FUZZ
@given(where=PLACES, content=st.binary(max_size=300), kind=KINDS)
def test_any_bytes(server, where, content, kind):
    upload(server, where, content, kind)


@FUZZ
@given(where=PLACES, content=st.text(max_size=300), kind=KINDS)
@example("items", "{}\n[]\n1\n", "")
def test_any_text(server, where, content, kind):
    upload(server, where, content.encode("utf-8", "surrogatepass"), kind)


@st.composite
def mangled(draw):
    """A right file with pieces cut out, doubled or replaced."""
    where = draw(PLACES)
    content = draw(st.sampled_from(RIGHT[where])).encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 20)))
        pieces = [
            b"",
            b'"',
            b"\n",
            b",",
            b"\x00",
            b"\xff",
            b"\xef\xbb\xbf",
            b"{",
            b"}",
            b"\\ud800",
            HUGE,
            b"NaN",
            b"\t",
        ]
        piece = draw(st.sampled_from([*pieces, content[start:end] * 2]))
        content = content[:start] + piece + content[end:]
    return where, content[: draw(st.sampled_from([len(content), len(content) // 2]))]


@FUZZ
@given(sent=mangled(), kind=KINDS)
def test_mangled_files(server, sent, kind):
    upload(server, *sent, kind)


@pytest.mark.deep
@settings(FUZZ, max_examples=5_000, derandomize=False)
@given(sent=mangled(), kind=KINDS)
def test_mangled_files_at_length(server, sent, kind):
    upload(server, *sent, kind)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.sampled_from(ARMS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ARMS, "kind", "content", "x"]), inner)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["prompt", "query", "outputs", "kind", "left", "right", "winner", "loser", "voter", "time", "duel"]
)


@FUZZ
@given(where=PLACES, rows=st.lists(st.dictionaries(NAMES, VALUES) | VALUES, max_size=4), is_list=st.booleans())
@example("items", [{"prompt": "q", "outputs": dict.fromkeys(ARMS, "x")}, {"prompt": "q", "outputs": 1}], True)
def test_any_json(server, where, rows, is_list):
    content = json.dumps(rows) if is_list else "\n".join(map(json.dumps, rows))
    upload(server, where, content.encode())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/studies", b"[" * 100_000),
        ("/api/studies", b'{"name": "x", "arms": ["a", "b"], "horizon": ' + HUGE + b"}"),
        ("/api/studies", b'{"name": "x", "arms": ["a", "b"], "lease": NaN}'),
        ("/api/studies", b'{"name": "x", "arms": ["a", "b"], "seed": "1"}'),
        ("/api/studies", b'{"name": "\\ud800", "arms": ["a", "b"]}'),
        ("/api/studies", b'{"\\ud800": 1}'),
        ("/api/studies/s/ask", b"[" * 100_000),
        ("/api/studies/s/ask", b'{"\\ud800": 1}'),
        ("/api/studies/s/tell", b'{"duel": ' + HUGE + b', "winner": "left"}'),
        (
            "/api/studies/s/interleave",
            b'{"rankings": {"bm25": ["\\ud800"], "dense": ["\\ud800"], "hybrid": ["\\ud800"]}}',
        ),
        ("/api/studies/s/interleave", b'{"rankings": {"\\ud800": [1]}}'),
        ("/api/studies/s/interleave", b'{"rankings": {"bm25": [1.5], "dense": [true], "hybrid": [null]}}'),
        ("/api/studies/s/clicks", b'{"impression": 0, "clicks": ["\\ud800"]}'),
        ("/api/studies/s/forget", b'{"voter": "\\u0000"}'),
    ],
)
def test_bodies_that_are_barely_json(server, path, body):
    before = counts(server.study)
    response = server.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422), response.text
    assert response.json()["error"]["kind"] == "invalid"
    assert counts(server.study) == before


def test_a_token_revoked_while_its_votes_are_read_stores_nothing(admin, anybody, study, storage, monkeypatch):
    from duels.server.api import results

    key, token = make_key(storage, "api", "program")
    read = results.pack_votes

    def revoked(content):
        revoke_key(storage, key.id, ("api",))
        return read(content)

    monkeypatch.setattr(results, "pack_votes", revoked)
    before = admin.get(study).json()["answers"]
    arms = [arm["name"] for arm in admin.get(study).json()["arms"]]
    votes = f"left,right,winner\n{arms[0]},{arms[1]},left\n"
    sent = anybody.post(f"{study}/import", content=votes.encode(), headers={"Authorization": f"Bearer {token}"})
    assert sent.status_code == 401
    assert admin.get(study).json()["answers"] == before


@pytest.mark.deep
def test_counts_and_parquet_are_imported(server):
    """A table of counts, as CSV and as Parquet: one row, and a thousand votes."""
    csv = b"left,right,wins_left,wins_right,ties\nbm25,dense,600,390,10\n"
    file = io.BytesIO()
    pl.read_csv(csv).write_parquet(file)
    for content in (csv, file.getvalue()):
        before = server.study._log.history().total
        response = server.post("/api/studies/s/import", content=content)
        assert response.json() == {"imported": 1000, "note": None}, response.text
        assert server.study._log.history().total == before + 1000
    refused = server.post("/api/studies/s/import", content=b"PAR1" + bytes(100))
    assert refused.status_code == 400
    assert "cannot be read as Parquet" in refused.json()["error"]["message"]


def many_keys(rows):
    return "\n".join(json.dumps({"left": "bm25", "right": "dense", "winner": "left", f"k{k}": 1}) for k in range(rows))


def test_rows_with_keys_of_their_own_are_refused(server):
    """The work would be rows times keys: two minutes for 8 MB, and 40 s for 290 kB."""
    for rows in (1_001, 5_000, 20_000):
        said = upload(server, "import", many_keys(rows).encode()).json()["error"]["message"]
        assert f"{rows + 4 - 1:,} different keys" in said
        assert "expected at most 1,000" in said
    lines = [json.dumps({"left": "bm25", "right": "dense", "winner": "left", f"k{k % 900}": 1}) for k in range(2_000)]
    assert upload(server, "import", "\n".join(lines).encode()).is_success


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"p,\n" * 200_000, "the columns are p, ;"),
        (b"1\n" * 300_000, "the columns are 1"),
        (b"prompt,bm25,dense\n" + b"q\n" * 300_000, "at least 10,000 errors; the first 5"),
        (b"[" + b"[]," * 200_000 + b"[]]", "at least 10,000 errors; the first 5"),
        (b"{}\n" * 200_000, "at least 10,000 errors; the first 5"),
    ],
)
def test_reading_items_stops_at_the_first_faults(server, content, words):
    assert words in upload(server, "items", content).json()["error"]["message"]


def test_reading_votes_stops_at_the_first_faults(server):
    said = upload(server, "import", b"left,right,winner\n" + b"bm25,dense\n" * 100_000).json()["error"]["message"]
    assert "10,000 of the first 10,000 rows cannot be read" in said


def read_for_ever(content):
    while True:
        pass


def take_memory(content):
    return len([content * 100 for _ in range(10_000)])


def test_what_takes_too_much_is_given_up(monkeypatch):
    """By the processor's time and by memory, in whichever function; and the next one is run."""
    children = child_process.Children(1, 1)
    for function in (read_for_ever, take_memory):
        with pytest.raises(child_process.ChildFailed, match=function.__name__):
            children.run(function, b"x" * 10_000)
    assert children.run(len, b"abc") == 3


def test_a_child_that_is_kept_works_again():
    children = child_process.Children(1, 5, keeps=True)
    first = children.run(os.getpid)
    assert children.run(os.getpid) == first
    os.kill(first, signal.SIGKILL)
    children._idle[0].wait(10)
    assert children.run(os.getpid) != first
    children.end_idle()


def test_work_ends_when_its_client_is_gone(server, monkeypatch):
    """What it waits for, and what runs."""
    monkeypatch.setattr(child_process, "UPLOADS", child_process.Children(1, 60))
    running, waiting = (child_process.Work(child_process.UPLOADS, read_for_ever, b"") for _ in range(2))
    ended = []

    def run(work):
        with pytest.raises(child_process.ChildFailed):
            work.run()
        ended.append(work)

    threads = [threading.Thread(target=run, args=(one,)) for one in (running, waiting)]
    threads[0].start()
    while not child_process._running:
        time.sleep(0.01)
    threads[1].start()
    waiting.stop()
    running.stop()
    for one in threads:
        one.join(10)
    assert set(ended) == {running, waiting}
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]
    stopped = []

    async def receive():
        return messages.pop(0)

    request, work = SimpleNamespace(receive=receive), SimpleNamespace(stop=lambda: stopped.append(1))
    asyncio.run(writes._stop_when_gone(request, work))
    assert (messages, stopped) == ([], [1])


def test_a_token_has_few_large_requests_under_way(server):
    """A body takes memory however slowly it arrives."""
    app, bodies = server.app, asyncio.Event()
    headers = [(b"host", b"localhost"), (b"authorization", server.headers["authorization"].encode())]
    headers.append((b"content-length", b"1000000"))
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"}
    scope |= {"path": "/api/studies/s/items", "raw_path": b"", "query_string": b"", "root_path": "", "state": {}}

    async def upload_slowly(statuses):
        async def receive():
            await bodies.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            statuses.append(message.get("status"))

        await app({**scope, "headers": headers, "client": ("1.2.3.4", 5)}, receive, send)

    async def many():
        statuses = []
        under_way = [asyncio.create_task(upload_slowly(statuses)) for _ in range(LARGE_AT_ONCE + 3)]
        while len([one for one in statuses if one]) < 3:
            await asyncio.sleep(0.01)
        assert [one for one in statuses if one] == [429] * 3
        bodies.set()
        await asyncio.gather(*under_way)
        again = []
        await upload_slowly(again)
        assert again[0] != 429

    server.portal.call(many)
