"""A language model as a judge, on any server that speaks the OpenAI protocol."""

import asyncio
import email.utils
import functools
import json
import os
import re
import ssl
import time
import weakref
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, shorten
from .arguments import check_timeout, is_number
from .questions import NOTE, Answer, JudgeError, clean
from .replies import Template, template_of, verdict_of

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 1_000_000  # of a reply, unpacked
UNPACKED = ("content-encoding", "content-length", "transfer-encoding")  # headers that are no longer true then
IDLE = 3.0  # seconds that an idle connection is kept: servers close theirs after 5 or more
MESSAGE = 300  # characters of a server's own message
SECRET = 8  # characters that a key has at least; local servers are given words such as EMPTY, which may occur anywhere
LATER = (408, 409, 425, 429)  # and those from 500: the same request may succeed later
QUESTION = (400, 403, 413, 422)  # it may be this text that is refused: too long, or against the server's rules
Json = Any  # what a server sends


def openai(
    base_url: str,
    model: str,
    *,
    api_key_env: str = "OPENAI_API_KEY",
    template: str | Sequence[Mapping[str, str]] | None = None,
    criteria: str | None = None,
    price: tuple[float, float] = (0.0, 0.0),
    timeout: float = 120.0,
    temperature: float | None = 0.0,
) -> "OpenAIJudge":
    """Make a judge of a language model: a vendor's, or one that vLLM, Ollama or llama.cpp serves.

    Args:
        base_url: The address before `/chat/completions`, such as `https://api.openai.com/v1` or
            `http://localhost:11434/v1`.
        model: The model's name.
        api_key_env: The environment variable that holds the key. It is read at each call, and never stored. If it is
            not set, no key is sent: local servers need none.
        template: What the model is told, instead of the default: the text of one message, or a list of messages such as
            `{"role": "user", "content": "…"}`. `{prompt}`, `{left}`, `{right}`, `{criteria}` and `{code}`, a code
            that the outputs do not contain, are filled in. It must ask for `[[A]]` (left), `[[B]]` (right), `[[C]]`
            (tie) or `[[D]]` (both bad), or for `[[A>B]]` and the like; the last one in the reply counts. An output
            that is an image is sent as one, between the texts around it; that needs a message of the role user.
        criteria: What makes an output better; by default, doing what the prompt asks.
        price: Dollars per million tokens, of input and of output.
        timeout: Seconds after which a call has failed.
        temperature: Of the model; None sends none, for models that refuse it.

    Returns:
        A function of `(prompt, left, right)` that returns an `Answer`: the model's reason is the note, and the cost
        comes from the tokens that the server counted.

    Raises:
        InvalidInput: If an argument cannot be used.

    Example:
        >>> judge = openai("http://localhost:11434/v1", "qwen3", criteria="The politer answer is better.")
        >>> judge
        openai('http://localhost:11434/v1', 'qwen3')
    """
    _check(base_url, model, api_key_env, price, timeout, temperature)
    prices = float(price[0]), float(price[1])
    settings: dict[str, Json] = {"model": model} | ({} if temperature is None else {"temperature": temperature})
    judge = OpenAIJudge(base_url.rstrip("/"), settings, api_key_env, template_of(template, criteria), prices, timeout)
    judge._key()
    return judge


class OpenAIJudge:
    """A judge made by `openai`. Calls of one event loop share their connections until `aclose`."""

    def __init__(
        self,
        url: str,
        settings: dict[str, Json],
        api_key_env: str,
        template: Template,
        price: tuple[float, float],
        timeout: float,
    ) -> None:
        self._url, self._settings, self._variable = url, settings, api_key_env
        self._template, self._price, self._timeout = template, price, timeout
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]
        self._clients = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"openai({self._url!r}, {self._settings['model']!r})"

    @property
    def takes_images(self) -> bool:
        """Whether outputs may be images: not if the template has them in a message that is not the user's."""
        return self._template.takes_images

    @property
    def identity(self) -> str:
        """What the answers depend on: not the key, nor the price."""
        return repr((self._url, sorted(self._settings.items()), self._template))

    async def __call__(self, prompt: str | None, left: str, right: str) -> Answer:
        """Ask the model."""
        body = self._settings | {"messages": self._template.fill(prompt, left, right)}
        response = await self._post(json.dumps(body).encode())
        if not response.is_success:
            raise self._refusal(response)
        reply = None
        try:
            reply = response.json()
            return self._answer(reply)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            text = shorten(self._clean(response.text, MESSAGE), MESSAGE)
            raise JudgeError(f"{self._url} sent {text}: expected a chat completion", cost=self._cost(reply)) from None

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _key(self) -> str | None:
        """Return the key, if there is one.

        Raises:
            InvalidInput: If it cannot be one.
        """
        key = os.environ.get(self._variable, "").strip()
        if key and not re.fullmatch(r"[!-~]+", key):
            raise InvalidInput(f"the key in ${self._variable} has characters that no key has: copy it again")
        return key or None

    async def _post(self, body: bytes) -> "httpx2.Response":
        import httpx2

        try:
            async with asyncio.timeout(self._timeout):
                url = f"{self._url}/chat/completions"
                async with self._client().stream("POST", url, content=body, headers=self._headers()) as response:
                    content = await self._read(response)
                    plain = {name: value for name, value in response.headers.items() if name not in UNPACKED}
                    return httpx2.Response(response.status_code, headers=plain, content=content)
        except TimeoutError:
            raise JudgeError(f"{self._url} did not answer within {self._timeout:g} seconds: see `timeout`") from None
        except httpx2.ConnectError as error:
            raise JudgeError(f"{self._url} cannot be reached ({self._clean(str(error), MESSAGE)})") from None
        except httpx2.InvalidURL as error:
            raise JudgeError(f"{self._url} is not an address: {error}", can_retry=False) from None
        except httpx2.RequestError as error:
            text = self._clean(str(error), MESSAGE)
            raise JudgeError(f"the connection to {self._url} broke ({text or type(error).__name__})") from None

    async def _read(self, response: "httpx2.Response") -> bytes:
        """Read a reply, unpacked, and refuse a long one: a server at fault must not take all memory.

        Raises:
            JudgeError: If it is too long, or packed in a way that was not asked for.
        """
        packing, content = response.headers.get("content-encoding", "").strip().lower(), bytearray()
        if packing not in ("", "identity", "gzip"):
            raise JudgeError(f"{self._url} sent a reply packed as {packing[:20]}: expected gzip, or not packed")
        unpacker = zlib.decompressobj(wbits=31) if packing == "gzip" else None  # 31: gzip
        async for piece in response.aiter_raw():
            room = MOST_BYTES + 1 - len(content)
            try:
                content += piece if unpacker is None else unpacker.decompress(piece, room)
            except zlib.error:
                raise JudgeError(f"the connection to {self._url} broke (its reply cannot be unpacked)") from None
            if len(content) > MOST_BYTES:
                raise JudgeError(f"{self._url} sent more than {MOST_BYTES:,} bytes: expected a chat completion")
        return bytes(content)

    def _client(self) -> "httpx2.AsyncClient":
        import httpx2  # takes a tenth of a second

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE)
            self._clients[loop] = httpx2.AsyncClient(timeout=None, limits=limits, verify=_certificates())
        return self._clients[loop]

    def _headers(self) -> dict[str, str]:
        key = self._key()
        plain = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
        return plain | ({"Authorization": f"Bearer {key}"} if key else {})

    def _answer(self, reply: Json) -> Answer:
        """The answer in a chat completion; errors mean that it is not one."""
        cost, choices = self._cost(reply), reply.get("choices")
        if not choices:  # some servers send an error with status 200
            raise JudgeError(f"{self._url} sent no answer: {self._message(reply)}", cost=cost)
        message, reason = choices[0]["message"], choices[0].get("finish_reason")
        text = _text(message.get("content")) or str(message.get("refusal") or "")
        word, why = verdict_of(text)
        if word is None:
            ended = "the server's limit on output tokens cut it off" if reason == "length" else "there is none in it"
            return Answer("skip", self._clean(f"no verdict in the reply ({ended}): {why}"), cost, bad=True)
        return Answer(word, self._clean(why) or None, cost)

    def _cost(self, reply: Json) -> float | None:
        """Dollars, from the tokens that the server counted; None if it did not."""
        if self._price == (0.0, 0.0):
            return 0.0
        usage = reply.get("usage") if isinstance(reply, dict) else None
        if not isinstance(usage, dict):
            return None
        given, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if not is_number(given) or not is_number(written):
            return None
        return float(given * self._price[0] + written * self._price[1]) / 1e6

    def _refusal(self, response: "httpx2.Response") -> JudgeError:
        status = response.status_code
        try:
            said = self._message(response.json())
        except (ValueError, RecursionError):
            said = self._clean(response.text, MESSAGE)
        words = f"{self._url} answered {status}: {said}"
        if response.is_redirect:
            target = self._clean(response.headers.get("location", ""), MESSAGE)
            return JudgeError(f"{self._url} redirects to {target}: use that as base_url", can_retry=False)
        if status in LATER or status >= 500:
            return JudgeError(words, retry_after=retry_after(response.headers))
        if status == 401 and self._key() is None:
            words += f". ${self._variable} is not set: put the key there, or name another variable with `api_key_env`"
        return JudgeError(words, can_retry=False, this_question=status in QUESTION)

    def _message(self, reply: Json) -> str:
        """What the server says in its error; servers differ in where they put it."""
        found = reply.get("error", reply) if isinstance(reply, dict) else reply
        if isinstance(found, dict):
            found = found.get("message") or found.get("detail") or found
        return self._clean(found if isinstance(found, str) else json.dumps(found), MESSAGE)

    def _clean(self, text: str, most: int = NOTE) -> str:
        """Text of a server for people: without the key, which some servers repeat."""
        key = os.environ.get(self._variable, "").strip()
        return clean(text.replace(key, "***") if len(key) >= SECRET else text, most)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than many a call."""
    import httpx2

    return httpx2.create_ssl_context()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: it sends a number, or a date by its own clock."""
    asked = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", asked, re.ASCII):
        return float(asked)
    try:
        until = email.utils.parsedate_to_datetime(asked).timestamp()
    except ValueError:
        return None
    try:
        now = email.utils.parsedate_to_datetime(headers.get("date", "")).timestamp()
    except ValueError:
        now = time.time()
    return max(0.0, until - now)


def _text(content: Json) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return str(content or "")


def _check(
    base_url: object, model: object, api_key_env: object, price: object, timeout: object, temperature: object
) -> None:
    if not isinstance(base_url, str) or not re.fullmatch(r"https?://[^\s/?#@\\]+(/[^\s?#@\\]*)?", base_url):
        # The address is not shown: it may contain a password.
        raise InvalidInput("base_url: expected such as https://api.openai.com/v1, without password, query or blanks")
    for name, value in (("model", model), ("api_key_env", api_key_env)):
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"{name} is {shorten(value)}: expected a name")
    prices = price if isinstance(price, tuple | list) else ()
    if len(prices) != 2 or not all(is_number(one) for one in prices):
        raise InvalidInput(f"price is {shorten(price)}: expected dollars per million tokens of input and of output")
    check_timeout(timeout)
    if temperature is not None and not is_number(temperature):
        raise InvalidInput(f"temperature is {shorten(temperature)}: expected a number from 0, or None to send none")
