"""Outputs that are images: sent as images, in both orders, or refused before the first call."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from judge_server import completion

import duels
from duels.errors import InvalidInput
from duels.judges import Image
from duels.judges.replies import template_of
from duels.judges.terminal import TerminalJudge

DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5"
    "ErkJggg=="
)
GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
ITEMS = [
    {"prompt": f"Draw {k}", "outputs": {"a": {"kind": "image", "content": DOT}, "b": {"kind": "image", "content": GIF}}}
    for k in range(30)
]


@pytest.fixture
def server():
    """A server that prefers the PNG, and keeps what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body["messages"])
            urls = [part["image_url"]["url"] for part in body["messages"][-1]["content"] if part["type"] == "image_url"]
            reply = completion("[[A]]" if urls[0] == DOT else "[[B]]")
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/v1", asked
        http.shutdown()


@pytest.mark.parametrize(
    "template", [None, [{"role": "user", "content": "{left} or {right} for {prompt}? [[A]], [[B]]"}]]
)
def test_a_model_gets_images_in_both_orders(server, template):
    url, asked = server
    judge = duels.judges.openai(url, "fake", template=template)
    result = duels.find_best(ITEMS, judge, storage="sqlite://", orders="both", progress=False)
    assert result.winner == "a"
    orders = set()
    for messages in asked:
        parts = messages[-1]["content"]
        shown = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        orders.add(tuple(shown))
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        assert "base64" not in text
        assert "Draw " in text
        assert all(isinstance(message["content"], str) for message in messages[:-1])
    assert orders == {(DOT, GIF), (GIF, DOT)}


def test_texts_are_around_the_images():
    messages = template_of("One: {left}, two: {right}. {prompt}", None).fill("Why {left}?", Image(DOT), Image(GIF))
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "One: "},
                {"type": "image_url", "image_url": {"url": DOT}},
                {"type": "text", "text": ", two: "},
                {"type": "image_url", "image_url": {"url": GIF}},
                {"type": "text", "text": ". Why {left}?"},
            ],
        }
    ]
    (mixed,) = template_of("{left}{right}", None).fill(None, "words", Image(GIF))
    assert mixed["content"] == [
        {"type": "text", "text": "words"},
        {"type": "image_url", "image_url": {"url": GIF}},
    ]
    (text,) = template_of("{left}{right}", None).fill(None, "data:image/png;base64,AAAA", "words")
    assert text["content"] == "data:image/png;base64,AAAAwords"  # it is not an image but text about one


def test_judges_that_see_no_images_are_refused_before_the_first_call(server, tmp_path):
    url, asked = server
    in_system = [{"role": "system", "content": "{left} or {right}?"}, {"role": "user", "content": "[[A]] or [[B]]?"}]
    (tmp_path / "judge.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w'); print('left')")
    blind = [
        duels.judges.command(f"python {tmp_path / 'judge.py'}"),
        TerminalJudge(None),
        duels.judges.openai(url, "fake", template=in_system),
    ]
    for judge in blind:
        with pytest.raises(InvalidInput, match=r"the output of 'a' for prompt 1 is an image, and .* cannot be asked"):
            duels.find_best(ITEMS, judge, storage="sqlite://", progress=False)
    assert not asked
    assert not (tmp_path / "ran").exists()
    texts = [{"prompt": "p", "outputs": {"a": "1", "b": "2"}}] * 3
    assert (
        duels.find_best(texts, blind[0], about="these-items", storage="sqlite://", progress=False, max_calls=2).calls
        == 2
    )


def test_a_function_can_tell_images_from_text():
    seen = []

    def judge(prompt, left, right):
        seen.append((type(left), type(right)))
        return "left"

    duels.find_best(ITEMS, judge, storage="sqlite://", progress=False, max_calls=3)
    assert set(seen) == {(Image, Image)}
    judge.takes_images = False
    with pytest.raises(InvalidInput, match="cannot be asked about images"):
        duels.find_best(ITEMS, judge, storage="sqlite://", progress=False, max_calls=3)
