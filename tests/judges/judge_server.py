"""A server that speaks the OpenAI protocol over a real socket, and judges by a table of strengths.

In a test:

    with serving(strengths={"terse": 1.0, "wordy": 0.0}, errors=0.1) as server:
        judge = duels.judges.openai(server.url, "fake")

As a program, which prints its address and serves until it is stopped:

    python judge_server.py --port 0 --strengths '{"terse": 1.0, "wordy": 0.0}' --errors 0.1 --latency 0.2

It finds out which arms are compared by their names: each output must contain the name of its arm, and the request must
be made from the default template. `GET /counters` says what was asked so far.
"""

import argparse
import contextlib
import json
import math
import random
import re
import socket
import sys
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field, fields
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

PART = r"^=== (\w+): {0} ===\n(.*?)\n^=== \1: END OF {0} ===$"
PROMPT, A, B = (re.compile(PART.format(part), re.DOTALL | re.MULTILINE) for part in ("PROMPT", "ANSWER A", "ANSWER B"))
WORDS = {"A": "Answer A is better.", "B": "Answer B is better.", "C": "Both are equally good.", "D": "Both are bad."}


@dataclass
class Behavior:
    """How the server judges and fails; all shares are probabilities per call."""

    strengths: dict = field(default_factory=dict)  # arm: strength; A wins with probability σ(strength(A) − strength(B))
    wins: dict = field(default_factory=dict)  # arm: {arm: probability to win}, which comes before the strengths
    noise: float = 0.0  # share of verdicts that are a fair coin
    first: float = 0.5  # how often A wins if both arms are equal: the position bias, added on the logit scale
    ties: float = 0.0  # share of verdicts that are ties
    latency: float = 0.0  # seconds per answer
    too_many: float = 0.0  # share of calls that are answered with 429
    retry_after: str | None = "0"  # what a 429 asks for: seconds, or "date" for an HTTP date in a second
    errors: float = 0.0  # share of 500
    malformed: float = 0.0  # share of bodies that are not JSON
    truncated: float = 0.0  # share of bodies that end early
    no_verdict: float = 0.0  # share of replies without a verdict
    key: str | None = None  # the key to ask for
    seed: int = 0


class Asked(NamedTuple):
    """A question as it arrived."""

    prompt: str | None
    left: str
    right: str


class Reply(NamedTuple):
    """A reply to send as it is."""

    status: int = 200
    body: bytes = b""
    headers: dict = {}  # noqa: RUF012  # never changed
    missing: int = 0  # bytes that the length promises beyond the body
    drop: bool = False  # close the connection without a word


def completion(text, given=100, written=20, finish="stop"):
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


class JudgeServer(ThreadingHTTPServer):
    """The server, with what it counted.

    Attributes:
        next: Replies for the next calls, instead of those that the behavior asks for.
        calls: How often each `Asked` arrived.
        verdicts: How often each verdict was sent, by letter.
        kinds: How often each kind of reply was sent.
        requests: Headers and body of every call.
        most_at_once: The largest number of calls that were in work at the same time.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port=0, **behavior):
        super().__init__(("127.0.0.1", port), Handler)
        self.behavior = Behavior(**behavior)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.next, self.requests = deque(), []
        self.calls, self.verdicts, self.kinds = Counter(), Counter(), Counter()
        self.at_once = self.most_at_once = 0
        self.lock, self.connections = threading.Lock(), set()

    def arrived(self, headers, body):
        """Note a call; return what is asked and the how many-th time it is."""
        text = "\n".join(str(one.get("content")) for one in body["messages"])
        prompt, a, b = PROMPT.search(text), A.search(text), B.search(text)
        asked = Asked(prompt and prompt[2], a[2], b[2]) if a and b else Asked(None, text, "")
        with self.lock:
            self.requests.append((headers, body))
            self.calls[asked] += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            return asked, self.calls[asked]

    def reply(self, asked, call, headers):
        """The kind of reply, and the reply."""
        how = self.behavior
        with self.lock:
            if self.next:
                return "next", self.next.popleft()
        if how.key is not None and headers.get("authorization") != f"Bearer {how.key}":
            wrong = f"Incorrect API key provided: {headers.get('authorization', 'none')}"
            return "401", Reply(401, json.dumps({"error": {"message": wrong}}).encode())
        kind = self.failure(random.Random(f"{how.seed}|{asked}|{call}").random())
        letter = self.verdict(asked)
        if kind == "429":
            wait = formatdate(time.time() + 1, usegmt=True) if how.retry_after == "date" else how.retry_after
            busy = json.dumps({"error": {"message": "Rate limit reached"}}).encode()
            return kind, Reply(429, busy, {} if wait is None else {"Retry-After": wait})
        if kind == "500":
            return kind, Reply(500, b"Internal Server Error", {"Content-Type": "text/plain"})
        if kind == "malformed":
            return kind, Reply(200, b"<html>one moment</html>")
        text = f"{WORDS[letter]} [[{letter}]]" if kind != "no verdict" else "They are hard to compare."
        body = completion(text, len(asked.left + asked.right) // 4 + 200, len(text) // 4)
        if kind == "truncated":
            return kind, Reply(200, body[: len(body) // 2], missing=len(body) - len(body) // 2)
        if kind == "answer":
            with self.lock:
                self.verdicts[letter] += 1
        return kind, Reply(200, body)

    def failure(self, luck):
        how = self.behavior
        shares = {"429": how.too_many, "500": how.errors, "malformed": how.malformed, "truncated": how.truncated}
        for kind, share in (shares | {"no verdict": how.no_verdict}).items():
            if luck < share:
                return kind
            luck -= share
        return "answer"

    def verdict(self, asked):
        """The same for the same question in the same order, however often it is asked."""
        how, rng = self.behavior, random.Random(f"{self.behavior.seed}|{asked}")
        if rng.random() < how.ties:
            return "C"
        noisy, bias = rng.random() < how.noise, math.log(how.first / (1 - how.first))
        logit = 0.0 if noisy else bias + self.advantage(self.arm(asked.left), self.arm(asked.right))
        return "A" if rng.random() < 1 / (1 + math.exp(-logit)) else "B"

    def advantage(self, a, b):
        how = self.behavior
        for first, second, sign in ((a, b, 1), (b, a, -1)):
            if (p := how.wins.get(first, {}).get(second)) is not None:
                return sign * math.log(p / (1 - p)) if 0 < p < 1 else sign * (50 if p else -50)
        return how.strengths.get(a, 0.0) - how.strengths.get(b, 0.0)

    def arm(self, output):
        """The arm whose name is in an output; the longest one, as `terse` is part of `very terse`."""
        names = {
            *self.behavior.strengths,
            *self.behavior.wins,
            *(b for one in self.behavior.wins.values() for b in one),
        }
        return max((name for name in names if name in output), key=len, default=None)

    def counters(self):
        with self.lock:
            questions = [[*asked, count] for asked, count in self.calls.items()]
            counts = {"calls": sum(self.calls.values()), "kinds": dict(self.kinds), "verdicts": dict(self.verdicts)}
            return counts | {"most_at_once": self.most_at_once, "questions": questions}

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # clients may hang up
            super().handle_error(request, client_address)

    def close(self):
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self):
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *words):
        pass

    def do_GET(self):
        if self.path == "/counters":
            self.send(Reply(200, json.dumps(self.server.counters()).encode()))
        else:
            self.send(Reply(404, b'{"error": {"message": "no such page"}}'))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/v1/chat/completions":
            self.send(Reply(404, b'{"error": {"message": "no such page"}}'))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked, call = self.server.arrived(headers, json.loads(body))
        kind, reply = self.server.reply(asked, call, headers)
        if kind in ("answer", "no verdict", "truncated", "next"):
            time.sleep(self.server.behavior.latency)
        with self.server.lock:
            self.server.kinds[kind] += 1
            self.server.at_once -= 1
        self.send(reply)

    def send(self, reply):
        self.close_connection = self.close_connection or reply.drop or reply.missing > 0
        if reply.drop:
            return
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(reply.body) + reply.missing)}
        for name, value in (headers | reply.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)


@contextlib.contextmanager
def serving(**behavior):
    """A server in a thread; its `url` is what `duels.judges.openai` takes."""
    server = JudgeServer(**behavior)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    for one in fields(Behavior):
        kind = {"strengths": json.loads, "wins": json.loads, "retry_after": str, "key": str, "seed": int}
        default = one.default if one.name not in ("strengths", "wins") else {}
        parser.add_argument(f"--{one.name.replace('_', '-')}", type=kind.get(one.name, float), default=default)
    server = JudgeServer(**vars(parser.parse_args()))
    print(server.url, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
