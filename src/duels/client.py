"""Studies on a server, in the words of local ones.

What was asked twice must not count twice: a request is repeated by itself only where that is safe, see `Again`.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from .checks import check_int
from .errors import Conflict, DamagedStudy, DuelsError, InvalidInput, StorageError, UnknownName
from .study.catalogue import LEASE, StudyInfo
from .study.duels import Duel, LogEntry, duel_number
from .study.items import read_items
from .study.tally import LeaderboardRow, PairRow
from .study.verdict import Verdict
from .votes.files import Votes, read_votes, write_votes

PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0)  # seconds before a request is repeated; then it has failed
LONGEST = 10.0  # seconds that a server may ask to wait
IDLE = 3.0  # seconds that an idle connection is kept: less than the server does, which keeps it 5
SILENCE = 60.0  # seconds after which a stream is taken for dead; a server that lives says so every 15
ROOT = "/api/studies/"
AT_ONCE = 1000  # duels of one request
TAKEN = "it may have been taken, so look before you send it again"
Row = TypeVar("Row", bound=tuple)


class Again(IntEnum):
    """When a request may be repeated. Each allows what those before it do."""

    UNSENT = 0  # if it never reached a server, or was turned away as one too many
    REFUSED = 1  # and if the server says that its database failed: an `ask` at worst leaves a duel open, till its lease
    ALWAYS = 2  # and if the connection broke: reading, and telling what the server takes the second time as the first


class Impression(NamedTuple):
    """A list to show, made of the rankings of two arms; of one arm's own if the policy is content with it."""

    id: int
    documents: list[Any]
    duel: int
    left: str
    right: str

    @property
    def is_self(self) -> bool:
        return self.left == self.right


class Change(NamedTuple):
    """What a study has come to."""

    seq: int
    answers: int
    open: int
    retired: bool


class NotFound(UnknownName):
    """The server has no such study, arm, duel or list. A kind of `UnknownName`, as local studies raise it."""

    def __init__(self, message: str) -> None:
        super(UnknownName, self).__init__(message)
        self.kind = "name"


KINDS: dict[str, type[DuelsError]] = {"conflict": Conflict, "not_found": NotFound, "storage": StorageError}
KINDS |= {"too_many": DuelsError, "internal": DuelsError, "damaged": DamagedStudy}
ADVICE = {
    "unauthorized": ". In Python: duels.connect(url, token); make one with `duels token create NAME`",
    "forbidden": ". Make one with `duels token create NAME --kind admin`",
}


class Client:
    """A connection to a server, made by `connect`; threads may share it. Close it, or use it in a `with`."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        import httpx2  # takes a tenth of a second

        if not re.fullmatch(r"https?://[^\s/?#@\\]+/?", str(url)):  # not shown: it may hold a secret
            raise InvalidInput("url is no server's: expected something like https://duels.example.org, without a path")
        if token is not None and not re.fullmatch(r"[!-~]+", str(token)):
            raise InvalidInput("the token has characters that no token has: copy it again, without blanks")
        self.url, self._httpx = url.rstrip("/"), httpx2
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        limits = httpx2.Limits(max_connections=100, keepalive_expiry=IDLE)
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=timeout, limits=limits)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def create_study(
        self,
        arms: Iterable[str],
        study_name: str = "study",
        policy: str = "rucb",
        *,
        horizon: int | None = None,
        seed: int = 0,
        lease: float = LEASE,
        load_if_exists: bool = False,
    ) -> "RemoteStudy":
        """Begin a study of the given arms on the server; as `duels.create_study`, with policies that are built in."""
        said: dict[str, Any] = {"name": study_name, "arms": arms, "policy": str(policy), "horizon": horizon}
        said |= {"seed": seed, "lease": lease, "load_if_exists": load_if_exists}
        made = self._send("POST", ROOT[:-1], said, Again.ALWAYS if load_if_exists else Again.UNSENT).json()
        return RemoteStudy(self, made["name"], made["policy"])

    def load_study(self, study_name: str) -> "RemoteStudy":
        """A study that exists."""
        found = self._send("GET", ROOT + _quoted(study_name)).json()
        return RemoteStudy(self, found["name"], found["policy"])

    def list_studies(self) -> list[StudyInfo]:
        """All studies of the server, oldest first."""
        found = self._send("GET", ROOT[:-1]).json()["studies"]
        arms = [one["arms"] and sum(arm["active"] for arm in one["arms"]) for one in found]  # None if it is damaged
        return [_row(StudyInfo, {"damaged": None} | one | {"arms": count}) for one, count in zip(found, arms)]

    def delete_study(self, study_name: str) -> None:
        """Remove a study with all its answers; there is no way back. It takes an admin's token."""
        self._send("DELETE", ROOT + _quoted(study_name), again=Again.UNSENT)

    def _send(self, method: str, path: str, body: Any = None, again: Again = Again.ALWAYS, **query: Any) -> Any:
        """The server's response, if it is a good one. Bytes are sent as lines of JSON, all else as one JSON."""
        kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        content = body if body is None or isinstance(body, bytes) else _json(body)
        headers = {} if body is None else {"Content-Type": kind}
        request = self._http.build_request(method, path, content=content, params=query, headers=headers)
        for pause in (*PAUSES, None):
            response, error, wait = self._try(request, again)
            if error is None:
                return response
            if pause is None or wait is None:
                raise error
            sleep(max(pause, wait))

    def _try(self, request: Any, again: Again) -> tuple[Any, DuelsError | None, float | None]:
        """The response, what is wrong, and how long to wait at least before it is sent again; None if it must not."""
        httpx = self._httpx
        try:
            response = self._http.send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return None, StorageError(f"there is no server at {self.url} ({error}): is it running?"), 0.0
        except httpx.TimeoutException:  # not sent again: whoever waited this long should decide
            return None, StorageError(f"the server at {self.url} did not answer in time: see `timeout`; {TAKEN}"), None
        except httpx.TransportError as error:
            words = f"the connection to {self.url} broke ({error}): {TAKEN}"
            return None, StorageError(words), 0.0 if again == Again.ALWAYS else None
        if response.is_success:
            return response, None, None
        least = {429: Again.UNSENT, 503: Again.REFUSED, 502: Again.ALWAYS, 504: Again.ALWAYS}.get(response.status_code)
        asked = response.headers.get("retry-after", "")
        wait = min(float(asked), LONGEST) if asked.isdecimal() else 0.0
        return None, _error_of(response, self.url), None if least is None or again < least else wait


def connect(url: str, token: str | None = None, *, timeout: float = 30.0) -> Client:
    """A server's studies, in the words of local ones.

    url: where the server is, such as `https://duels.example.org`.
    token: one of the server's, see `duels token create`; None for a server that was started with `--open`.
    timeout: seconds after which a request that is not answered is an error.
    """
    return Client(url, token, timeout)


class RemoteStudy:
    """A study on a server: `ask` for a duel, `tell` who won, look at the `verdict`. As `Study`, from anywhere."""

    def __init__(self, client: Client, name: str, policy: str) -> None:
        self.name, self.policy = name, policy
        self._client, self._path = client, ROOT + _quoted(name)

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, {self.policy}, at {self._client.url})"

    def _get(self, what: str = "", **query: Any) -> Any:
        return self._client._send("GET", self._path + what, **query).json()

    def _pages(self, what: str, after: int | None = 0, **query: Any) -> Iterator[dict[str, Any]]:
        while after is not None:  # an older server gives all of them at once
            page = self._get(f"/{what}", after=after, limit=10_000, **query)
            yield from page[what]
            after = page.get("next")

    def _post(self, what: str, again: Again = Again.UNSENT, lines: bytes | None = None, **body: Any) -> Any:
        return self._client._send("POST", self._path + what, body if lines is None else lines, again).json()

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        return [arm["name"] for arm in self._get()["arms"] if arm["active"]]

    @property
    def retired(self) -> bool:
        """Whether the study asks nothing more."""
        return self._get()["retired"]

    def ask(self, n: int = 1, *, voter: str | None = None, allow_self: bool = True) -> Any:
        """The next duel, or a list of `n` if that is not 1, as `Study.ask`; more than 1,000 take several requests."""
        n, duels = check_int("n", n, 1, 10_000), list[Duel]()
        while len(duels) < n:
            said: dict[str, Any] = {"n": min(AT_ONCE, n - len(duels)), "voter": voter, "allow_self": allow_self}
            duels += [_row(Duel, one) for one in self._post("/ask", Again.REFUSED, **said)["duels"]]
        return duels[0] if n == 1 else duels

    def tell(self, duel: Duel | int, winner: str, *, voter: str | None = None) -> None:
        """The answer to a duel: `"left"`, `"right"`, `"tie"`, `"both_bad"`, `"skip"` or the name of one of its arms.

        It is on the server's disk when this returns. The same again is harmless, another answer is a `Conflict`.
        """
        self._post("/tell", Again.ALWAYS, duel=self._number(duel), winner=winner, voter=voter)

    def undo(self, duel: Duel | int) -> None:
        """Take back the answer to a duel, which is then open again. It voids the verdict's promise."""
        self._post("/undo", duel=self._number(duel))

    def forget(self, voter: str) -> int:
        """Take back all answers of a voter and erase their name from the log; how many answers there were."""
        return self._post("/forget", voter=voter)["answers"]

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs."""
        self._post("/arms", name=name)

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race; its answers are kept, and no longer count for the others' verdict."""
        self._post(f"/arms/{_quoted(name)}/retire")

    def retire(self) -> None:
        """Ask nothing more; late answers are still taken, and everything stays to be looked at."""
        self._post("/retire", Again.ALWAYS)

    def resume(self) -> None:
        """Go on asking after `retire`."""
        self._post("/resume", Again.ALWAYS)

    def import_votes(self, votes: Any) -> int:
        """Take in past votes, from anything that `read_votes` takes: all of them or, after an error, none."""
        past = read_votes(votes)
        if not len(past):
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "votes.jsonl"
            write_votes(past, path)
            return self._post("/import", lines=path.read_bytes())["imported"]

    def votes(self) -> Votes:
        """The answers as votes, for `write_votes`: without self-duels, skips and what was taken back."""
        content = self._client._send("GET", f"{self._path}/export", format="jsonl").content
        return read_votes(content, format="jsonl") if content.strip() else read_votes([])

    def add_items(self, items: Any) -> int:
        """Give the study items, from anything that `read_items` takes: all of them or, after an error, none."""
        rows = ({"prompt": p, "outputs": {arm: o._asdict() for arm, o in by.items()}} for p, by in read_items(items))
        return self._post("/items", lines=b"\n".join(map(_json, rows)))["items"]

    def leaderboard(self, confidence: float = 0.95) -> list[LeaderboardRow]:
        """The arms, best first."""
        return [_row(LeaderboardRow, one) for one in self._get("/leaderboard", confidence=confidence)["leaderboard"]]

    def preferences(self, confidence: float = 0.95) -> list[PairRow]:
        """Wins, counts, estimate and interval of every pair."""
        return [_row(PairRow, one) for one in self._pages("preferences", confidence=confidence)]

    def verdict(self, confidence: float = 0.95, margin: float = 0.0) -> Verdict:
        """Who is best, as far as that can be said for certain; valid however often it is looked at."""
        said = self._get("/verdict", confidence=confidence, margin=margin)
        return Verdict(**{key: _tuples(value) for key, value in said.items() if key in Verdict.__dataclass_fields__})

    def open_duels(self) -> list[Duel]:
        """The duels without an answer, oldest first; the first 10,000 of them."""
        return [_row(Duel, one) for one in self._get("/duels", limit=10_000)["duels"]]

    def duel(self, number: int) -> Duel:
        """A duel by its id."""
        return _row(Duel, self._get(f"/duels/{duel_number(number)}"))

    def events(self, after: int = 0) -> list[LogEntry]:
        """The log, from the event after that sequence number on."""
        return [_row(LogEntry, one) for one in self._pages("events", after)]

    def interleave(
        self,
        rankings: Mapping[str, Sequence[Any]],
        duel: Duel | int | None = None,
        *,
        method: str = "probabilistic",
        length: int = 10,
        missing: str = "refuse",
        voter: str | None = None,
    ) -> Impression:
        """The list to show, of the two arms that duel; for a self-duel the champion's own.

        rankings: for each active arm its documents, text or whole numbers, best first.
        duel: one that was asked before; then only its two rankings are needed, and the same list comes again.
        method, length, missing: as in `duels.ranking.interleave`.
        """
        body: dict[str, Any] = {"method": method, "length": length, "missing": missing, "voter": voter}
        body["duel"] = None if duel is None else self._number(duel)
        shown = self._post("/interleave", Again.REFUSED if duel is None else Again.ALWAYS, rankings=rankings, **body)
        return _row(Impression, shown | {"id": shown["impression"]})

    def clicks(self, impression: Impression | int, clicks: Iterable[Any], *, voter: str | None = None) -> str:
        """The documents of a list that were clicked, all at once; which side they prefer: left, right or tie."""
        number = impression.id if isinstance(impression, Impression) else duel_number(impression)
        return self._post("/clicks", Again.ALWAYS, impression=number, clicks=clicks, voter=voter)["answer"]

    def follow(self) -> Iterator[Change]:
        """What the study has come to now, and again whenever that has changed, at most twice a second.

        It ends when the study is deleted, and goes on where the server was only started anew.
        """
        seen, failed = -1, 0
        while True:
            try:
                for kind, data in self._messages():
                    if kind == "deleted":
                        return
                    if kind == "change" and (change := _row(Change, json.loads(data))).seq != seen:
                        seen, failed = change.seq, 0
                        yield change
            except StorageError:
                if failed >= len(PAUSES):
                    raise
            sleep(PAUSES[min(failed, len(PAUSES) - 1)])
            failed += 1

    def _messages(self) -> Iterator[tuple[str, str]]:
        """Kind and data of what the server says, until the connection ends."""
        http, url, kind = self._client._http, self._client.url, ""
        try:
            with http.stream("GET", f"{self._path}/stream", timeout=SILENCE) as response:
                if not response.is_success:
                    response.read()
                    raise _error_of(response, url)
                for line in response.iter_lines():
                    field, _, value = line.partition(": ")
                    if field == "data":
                        yield kind, value
                    kind = value if field == "event" else kind
        except self._client._httpx.TransportError as error:
            raise StorageError(f"the stream from {url} broke: {error}") from None

    def _number(self, duel: Duel | int) -> int:
        if isinstance(duel, Duel) and duel.study != self.name:
            raise InvalidInput(f"the duel is of study {duel.study!r}: expected one of study {self.name!r}")
        return duel_number(duel)


def _error_of(response: Any, url: str) -> DuelsError:
    """The error that a local study would raise."""
    try:
        error = response.json()["error"]
        kind, message = str(error["kind"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return StorageError(f"{url} answered {response.status_code} and nothing that Duels says: is it a Duels server?")
    return KINDS.get(kind, InvalidInput)(message + ADVICE.get(kind, ""))


def _quoted(name: Any) -> str:
    if name in ("", ".", ".."):  # it would lead to another address
        raise InvalidInput(f"{name!r} cannot be named here: expected another name, or see the server's own pages")
    return quote(str(name), safe="", errors="replace")


def _json(value: Any) -> bytes:
    """As JSON: arrays and numbers of numpy too, and any collection as a list."""
    try:
        return json.dumps(value, default=lambda one: one.tolist() if hasattr(one, "tolist") else list(one)).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be sent: {error}") from None


def _row(kind: type[Row], values: Mapping[str, Any]) -> Row:
    """The NamedTuple of that kind; what a later server says besides is left out."""
    return kind(**{name: values[name] for name in kind._fields})  # type: ignore[attr-defined]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
