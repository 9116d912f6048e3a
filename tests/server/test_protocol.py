"""What comes over a socket: odd framing, large headers, slow senders and readers, addresses behind proxies."""

import asyncio
import contextlib
import json
import socket
import threading
import time

import pytest
from typer.testing import CliRunner

from duels import cli
from duels.errors import InvalidInput
from duels.server import serving
from duels.server.app import LOOPBACK, create_app
from duels.server.http.limits import Limits, Rate, group_of
from duels.server.http.protocol import WAITING
from duels.server.keys import make_key
from duels.server.serving import Server, configuration
from duels.study.create import create_study

HURRY = Limits(head_seconds=0.3, body_seconds=0.4, body_rate=1_000_000, linger_seconds=0.3, stuck_seconds=0.5)


class Running:
    """A server in a thread of this process, on a socket."""

    def __init__(self, app, trusted=None):
        self.app, self.server = app, Server(configuration(app, trusted))
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive(), "the server ended before it had started"
            time.sleep(0.005)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()
        assert not self.thread.is_alive(), "the server does not end"

    @contextlib.contextmanager
    def connected(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            yield connection

    def send(self, *parts, pause=0.0):
        """What the server says until it ends the connection, or to one request."""
        with self.connected() as connection:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            return answer(connection, not parts[0].startswith(b"HEAD"))


def answer(connection, has_body=True):
    """One response: its status, its headers and its body; None if the connection ended without any."""
    said = b""
    while b"\r\n\r\n" not in said:
        try:
            new = connection.recv(65536)
        except ConnectionResetError:
            new = b""
        if not new:
            assert not said
            return None
        said += new
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    while has_body and len(body) < int(headers.get("content-length", 0)):
        new = connection.recv(65536)
        assert new
        body += new
    return int(first.split()[1]), headers, body


def received(connection, is_enough):
    """All that comes until it is enough; a connection that ends before is an error."""
    said = b""
    while not is_enough(said):
        new = connection.recv(65536)
        assert new, said
        said += new
    return said


def has_ended(connection):
    """Whether the server has closed its side, seen within the socket's timeout."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.fixture
def run(storage):
    running = []

    def start(limits=None, trusted=None, **known):
        running.append(Running(create_app(storage, limits=limits, **known), trusted))
        return running[-1]

    yield start
    for one in running:
        one.stop()


def refused(said, status, kind):
    assert said is not None
    assert said[0] == status, said
    assert json.loads(said[2])["error"]["kind"] == kind
    return json.loads(said[2])["error"]["message"]


def request(method="GET", path="/healthz", *lines, body=b""):
    head = [f"{method} {path} HTTP/1.1", *(lines or ("Host: localhost",)), "", ""]
    return "\r\n".join(head).encode("latin-1") + body


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: " + "0" * 5000],
        ["Content-Length: " + "9" * 30],
        ["Content-Length: -1"],
        ["Content-Length: +5"],
        ["Content-Length: 5x"],
        ["Content-Length: 0x5"],
        ["Content-Length: "],
        ["Content-Length: 5, 5"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5", "Content-Length: 5"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Transfer-Encoding: chunked, identity"],
    ],
)
def test_odd_lengths_are_refused(run, lines, caplog):
    server = run()
    refused(server.send(request("POST", "/signin", "Host: localhost", *lines, body=b"a=1&b")), 400, "invalid")
    assert "Traceback" not in caplog.text


def test_odd_lengths_are_refused_whatever_serves_the_application(app):
    """The application's own check, without the parser of the server in front."""

    def ask(*headers):
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"},
            **{"path": "/healthz", "raw_path": b"/healthz", "query_string": b"", "root_path": "", "state": {}},
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        }
        asyncio.run(app(scope, receive, send))
        return sent[0]["status"]

    host = ("host", "localhost")
    assert ask(host) == 200
    assert ask() == 400
    assert ask(host, host) == 400
    for length in ("-1", "+5", "", " 5", "5_0", "0" * 5000, "\xb2"):
        assert ask(host, ("content-length", length)) == 400, length
    assert ask(host, ("content-length", "0"), ("content-length", "0")) == 400
    assert ask(host, ("content-length", "0"), ("transfer-encoding", "chunked")) == 400


def test_one_host(run):
    server = run(hosts=LOOPBACK)
    for hosts in (("evil.example", "localhost"), ("localhost", "evil.example"), ("localhost", "localhost")):
        said = server.send(request("GET", "/healthz", *(f"Host: {host}" for host in hosts)))
        assert "2 Host headers" in refused(said, 400, "invalid")
    refused(server.send(request("GET", "/healthz", "X-Nothing: 1")), 400, "invalid")
    assert server.send(request())[0] == 200


def test_trailers_are_not_headers(run, storage):
    """What comes behind a body in pieces must not say who is asking."""
    server = run()
    _, token = make_key(storage, "admin")
    body = b"2\r\n{}\r\n0\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"
    head = ("Host: localhost", "Content-Type: application/json", "Transfer-Encoding: chunked")
    refused(server.send(request("POST", "/api/tokens", *head, body=body)), 401, "unauthorized")


def test_headers_are_limited(run):
    server = run()
    line = "X-Padding: " + "a" * 900
    assert server.send(request("GET", "/healthz", "Host: localhost", *[line] * 20))[0] == 200
    refused(server.send(request("GET", "/healthz", "Host: localhost", *[line] * 40)), 431, "too_large")
    few = ["X-A: 1"] * 150
    refused(server.send(request("GET", "/healthz", "Host: localhost", *few)), 431, "too_large")
    refused(server.send(request("GET", "/healthz?" + "a" * 40_000)), 431, "too_large")
    refused(server.send(b"GET / HTTP/1.1\r\nX-Endless: " + b"a" * 40_000), 431, "too_large")
    refused(server.send(b"GET / HTTP/1.1\r\n", *[b"X-Endless: aaa\r\n" * 500] * 4, pause=0.02), 431, "too_large")
    refused(server.send(b"\r\n" * 20_000), 431, "too_large")


def test_what_comes_behind_a_body_is_limited(run, storage):
    server = run()
    _, token = make_key(storage, "admin")
    head = ("Host: localhost", f"Authorization: Bearer {token}", "Transfer-Encoding: chunked")
    start = request("POST", "/api/studies/none/items", *head, body=b"2\r\n{}\r\n0\r\n")
    with server.connected() as connection:
        connection.sendall(start)
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"X-Endless: " + b"a" * 10_000 + b"\r\n")
                time.sleep(0.002)
        with contextlib.suppress(ConnectionError):
            assert has_ended(connection)
    tiny = b"1\r\n \r\n" * 50_000 + b"0\r\n\r\n"  # six bytes for one are not too many
    said = server.send(request("POST", "/api/studies/none/ask", *head, body=tiny))
    assert "JSON" in refused(said, 422, "invalid")


def test_headers_that_come_slowly_end_the_connection(run):
    server = run(HURRY)
    with server.connected() as silent, server.connected() as slow, server.connected() as blank:
        slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        began, said = time.monotonic(), []
        slow.settimeout(0.05)
        while time.monotonic() - began < 3 and not said:  # a line now and then does not help
            with contextlib.suppress(TimeoutError):
                slow.sendall(b"X-A: 1\r\n")
                said.append(slow.recv(65536))
        assert b" 408 " in said[0]
        assert b'"timeout"' in said[0]
        assert time.monotonic() - began < 2
        assert answer(silent) is None
        blank.sendall(b"\r\n")
        assert answer(blank) is None
    with server.connected() as kept:
        kept.sendall(request())
        assert answer(kept)[0] == 200
        kept.sendall(b"\r\n")  # ends the time that an idle connection has, and begins that of headers
        assert has_ended(kept)


def test_bodies_that_come_slowly_end_the_connection(run, storage):
    server = run(HURRY)
    _, token = make_key(storage, "admin")
    keyed = ("Host: localhost", f"Authorization: Bearer {token}", "Content-Type: text/csv")
    began = time.monotonic()
    for path in ("/api/studies/none/import", "/api/studies/none/ask", "/api/studies", "/signin"):
        sent = request("POST", path, *keyed, "Content-Length: 1000", body=b"left")
        assert server.send(sent)[0] in (404, 408), path
    assert time.monotonic() - began < 15  # about 2 s; a busy machine takes longer, the usual limits 80 s
    with server.connected() as drip:
        drip.sendall(request("POST", "/signin", "Host: localhost", "Content-Length: 1000"))
        began, said = time.monotonic(), b""
        drip.settimeout(0.05)
        while time.monotonic() - began < 15 and not said:  # at 20 bytes a second the body would take 50 s
            with contextlib.suppress(TimeoutError):
                drip.sendall(b"a")
                said = drip.recv(65536)
        assert b" 408 " in said


def test_bodies_that_come_slowly_but_in_time_are_read(run):
    server = run(HURRY)
    for _ in range(20):  # on a busy machine the pauses may be too long
        with server.connected() as patient:
            began = time.monotonic()
            with contextlib.suppress(ConnectionError):
                patient.sendall(request("POST", "/signin", "Host: localhost", "Content-Length: 9"))
                for part in (b"token", b"=abc"):
                    time.sleep(0.16)  # twice: longer than headers may take
                    patient.sendall(part)
            took, said = time.monotonic() - began, answer(patient)
        if took < HURRY.body_seconds:
            break
    assert took < HURRY.body_seconds
    assert said is not None
    assert said[0] == 401


def test_a_server_that_is_busy_blames_nobody(run, storage, monkeypatch):
    """Time in which the server itself does not read, or does nothing at all, is not the sender's."""
    server = run(HURRY)
    _, token = make_key(storage, "admin")
    real = server.app.service.key
    monkeypatch.setattr(server.app.service, "key", lambda secret: time.sleep(1) or real(secret))
    keyed = ("Host: localhost", f"Authorization: Bearer {token}", "Content-Length: 3000000")
    body = b"left,right,winner\n" + b" " * 2_999_982
    said = server.send(request("POST", "/api/studies/none/import", *keyed, body=body))
    refused(said, 404, "not_found")
    monkeypatch.undo()
    with server.connected() as connection:
        connection.sendall(request()[:10])
        time.sleep(0.1)
        loop = next(iter(server.server.server_state.connections)).loop
        loop.call_soon_threadsafe(time.sleep, 1)  # as a long computation would
        time.sleep(0.1)
        connection.sendall(request()[10:])
        assert answer(connection)[0] == 200


def test_the_rest_of_a_refused_body_is_read_for_a_while_only(run):
    server = run(HURRY)
    with server.connected() as connection:
        connection.sendall(request("POST", "/signin", "Host: localhost", "Content-Length: 17000", body=b"a" * 100))
        refused(answer(connection), 413, "too_large")
        connection.sendall(b"a" * 16900 + request())
        assert answer(connection)[0] == 200  # the connection may be used again
    with server.connected() as connection:
        connection.sendall(request("POST", "/signin", "Host: localhost", "Content-Length: 1000000000"))
        refused(answer(connection), 413, "too_large")
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 3:
                connection.sendall(b"a" * 100)
                time.sleep(0.02)
        assert time.monotonic() - began < 2


def test_an_answer_that_nobody_reads_ends_the_connection(run, storage):
    server = run(HURRY)
    with server.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(request("GET", "/static/x/swagger-ui-bundle.js") * 20)
        began = time.monotonic()
        while not server.server.server_state.connections and time.monotonic() - began < 1:  # it may be over already
            time.sleep(0.01)
        began = time.monotonic()
        while server.server.server_state.connections and time.monotonic() - began < 5:
            time.sleep(0.02)
        assert time.monotonic() - began < 4


def test_pipelined_requests_are_answered_in_order(run):
    server = run()
    with server.connected() as connection:
        connection.sendall(request() + request("GET", "/nothing") + request())
        said = received(connection, lambda said: said.count(b"HTTP/1.1") == 3)
    assert [part.split()[0] for part in said.split(b"HTTP/1.1")[1:]] == [b"200", b"404", b"200"]


def test_requests_that_wait_for_a_response_are_few(run):
    """A client that sends requests and reads no response takes no memory; what it sent first is answered."""
    server = run(HURRY)
    waiting = []
    with server.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.05)
        began = time.monotonic()
        with contextlib.suppress(OSError):  # the socket is full, or ended by the server
            while time.monotonic() - began < 3:
                connection.sendall(request("GET", "/nothing") * 1000)
                waiting += [len(one.pipeline) for one in list(server.server.server_state.connections)]
        waiting += [len(one.pipeline) for one in list(server.server.server_state.connections)]
        connection.settimeout(5)
        with contextlib.suppress(ConnectionError):
            assert has_ended(connection)
    assert max(waiting, default=0) <= WAITING
    with server.connected() as connection:
        connection.sendall(request("GET", "/nothing") * 100)
        said = received(connection, lambda said: said.count(b"HTTP/1.1") == 1 + WAITING)
        assert said.count(b" 404 ") == 1 + WAITING
        with contextlib.suppress(ConnectionError):
            assert has_ended(connection)


def test_requests_in_pairs_keep_a_connection_open(run):
    server = run()
    with server.connected() as connection:
        for _ in range(20):
            connection.sendall(request("GET", "/nothing") * 2)
            received(connection, lambda said: said.count(b"not_found") == 2)


def test_head_is_get_without_a_body(run, storage):
    server = run()
    _, token = make_key(storage, "admin")
    keyed = ("Host: localhost", f"Authorization: Bearer {token}")
    paths = ("/healthz", "/api/studies", "/metrics", "/openapi.json", "/signin", "/docs", "/static/x/ui.js", "/nothing")
    for path in paths:
        get, head = (server.send(request(method, path, *keyed)) for method in ("GET", "HEAD"))
        changing = {"x-request-id", "date", "connection"}
        assert head[0] == get[0], path
        assert {key: value for key, value in head[1].items() if key not in changing | {"content-length"}} == {
            key: value for key, value in get[1].items() if key not in changing | {"content-length"}
        }
        assert path == "/metrics" or head[1].get("content-length") == get[1].get("content-length")
    with server.connected() as connection:
        connection.sendall(request("HEAD") + request("GET", "/nothing"))
        said = received(connection, lambda said: b"not_found" in said)
    assert b"\r\n\r\nHTTP/1.1 404" in said  # nothing in between


def test_head_of_a_stream_ends(run, storage):
    create_study(["a", "b"], "search", storage)
    server = run()
    _, token = make_key(storage, "admin")
    keyed = ("Host: localhost", f"Authorization: Bearer {token}")
    with server.connected() as connection:
        connection.sendall(request("HEAD", "/api/studies/search/stream", *keyed))
        time.sleep(0.2)
        connection.sendall(request())
        said = received(connection, lambda said: said.count(b"HTTP/1.1 200") == 2)
    assert b"event:" not in said


def test_ipv6_is_counted_by_network():
    assert group_of("2001:db8:1:2::1") == group_of("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert group_of("2001:db8:1:3::1") != group_of("2001:db8:1:2::1")
    assert group_of("203.0.113.7:5678") == group_of("[::ffff:203.0.113.7]:80") == "203.0.113.7"
    assert group_of("203.0.113.7") == group_of("::ffff:203.0.113.7") == "203.0.113.7"
    assert group_of("fe80::1%eth0") == "fe80::/64"
    assert group_of("unknown") == "unknown"


ONE = Limits(signin=Rate(0.001, 1))


def attempt(server, *forwarded):
    lines = ["Host: localhost", "Content-Length: 7", *(f"X-Forwarded-For: {one}" for one in forwarded)]
    return server.send(request("POST", "/signin", *lines, body=b"token=x"))[0]


def test_only_a_trusted_proxy_says_where_a_request_comes_from(run):
    near = run(ONE)  # by default a proxy on this machine is trusted
    assert [attempt(near, "203.0.113.1"), attempt(near, "203.0.113.1"), attempt(near, "203.0.113.2")] == [401, 429, 401]
    assert [attempt(near, "2001:db8::1"), attempt(near, "2001:db8::2"), attempt(near, "2001:db8:0:1::1")] == [
        *(401, 429, 401)
    ]
    assert attempt(near, "203.0.113.9, 203.0.113.1") == 429  # what the visitor made up stands before
    assert attempt(near, "203.0.113.9", "203.0.113.1") == 429
    far = run(ONE, trusted=["10.0.0.7"])
    assert [attempt(far, "203.0.113.1"), attempt(far, "203.0.113.2")] == [401, 429]


def test_trusted_proxies_of_the_command_line(monkeypatch, tmp_path):
    """By option or variable; what is neither an address nor a network is refused before anything is served."""
    storage, serve, given = f"sqlite:///{tmp_path}/duels.db", serving.serve, []
    monkeypatch.setattr(serving, "serve", lambda storage, **known: given.append(known["trusted_proxies"]))
    options = ["--trusted-proxy", "10.0.0.7", "--trusted-proxy", "10.1.0.9/24"]
    assert CliRunner().invoke(cli.app, ["serve", storage, *options]).exit_code == 0
    environment = {"DUELS_TRUSTED_PROXY": "10.0.0.7 10.1.0.9/24"}
    assert CliRunner().invoke(cli.app, ["serve", storage], env=environment).exit_code == 0
    assert given == [["10.0.0.7", "10.1.0.9/24"]] * 2
    for wrong in ("*", "proxy.example.org", "10.0.0.7,10.0.0.8"):
        with pytest.raises(InvalidInput, match="expected an address such as"):
            serve(storage, port=0, trusted_proxies=[wrong])


def test_a_proxys_network_is_trusted(run):
    server = run(ONE, trusted=serving.networks_of(["127.0.0.9/8"]))
    assert [attempt(server, "203.0.113.1"), attempt(server, "203.0.113.2")] == [401, 401]
