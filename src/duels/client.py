"""Studies on a server, with the same methods as local ones.

Nothing must count twice, so a failed request is repeated only if that is safe, see `Again`.
"""

import json
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload
from urllib.parse import quote

from .checks import check_int
from .errors import Conflict, DamagedStudy, DuelsError, InvalidInput, StorageError, UnknownName
from .study.agreement import Agreement
from .study.allocation import MOST, Allocation
from .study.catalogue import LEASE, StudyInfo
from .study.duels import Duel, DuelItem, LogEntry, checked_note, duel_number
from .study.judge_log import Judges
from .study.leaderboard import RankRow
from .study.positions import Position
from .study.standing import Chance, Standing
from .study.tally import LeaderboardRow, PairRow
from .study.verdict import Verdict
from .votes.files import VoteSource, read_votes
from .votes.item_files import ItemSource, Output, read_items
from .votes.votes import Votes
from .votes.written import write_votes

if TYPE_CHECKING:
    import httpx2

PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0)  # seconds before each repetition of a request; then it has failed
LONGEST = 10.0  # seconds that a server may ask to wait
IDLE = 3.0  # seconds that an idle connection is kept: less than the server's 5
SILENCE = 60.0  # seconds of silence after which a stream is considered broken; a server sends something every 15
ROOT = "/api/studies/"
AT_ONCE = 1000  # duels of one request
TAKEN = "it may have arrived, so look before you send it again"
Row = TypeVar("Row", bound=tuple[Any, ...])
Json = Any  # what a response says
Document = str | int


class Again(IntEnum):
    """When a request may be repeated. Each includes those before it."""

    UNSENT = 0  # if it did not reach a server, or was refused by a rate limit
    REFUSED = 1  # and if the server's database failed: at worst, an `ask` leaves a duel open until its lease ends
    ALWAYS = 2  # and if the connection broke: for reads, and for writes that have no further effect the second time


class Impression(NamedTuple):
    """A list to show, interleaved from the rankings of two arms; for a self-duel, one arm's own ranking.

    Attributes:
        id: The impression's id.
        documents: The list to show.
        duel: The duel's id.
        left: The duel's arm on the left.
        right: The duel's arm on the right.
    """

    id: int
    documents: list[Document]
    duel: int
    left: str
    right: str

    @property
    def is_self(self) -> bool:
        """Whether the arm duels itself."""
        return self.left == self.right


class Change(NamedTuple):
    """The state of a study after a change.

    Attributes:
        seq: The number of its last event.
        answers: How many answers count.
        open: How many duels have no answer.
        retired: Whether it was retired.
    """

    seq: int
    answers: int
    open: int
    retired: bool


class NotFound(UnknownName):
    """The server has no such study, arm, duel or list. Local studies raise `UnknownName`, of which this is a kind."""

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
    """A connection to a server, created by `connect`; threads may share it. Close it, or use it in a `with` block."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        import httpx2  # takes a tenth of a second

        if not re.fullmatch(r"https?://[^\s/?#@\\]+/?", str(url)):  # not shown: it may contain a secret
            raise InvalidInput("url is not a server's: expected such as https://duels.example.org, without a path")
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def create_study(
        self,
        arms: Iterable[str],
        study_name: str = "study",
        policy: str | None = None,
        *,
        confidence: float | None = None,
        margin: float | None = None,
        after: Literal["stop", "rank"] | None = None,
        about: Literal["items like these", "these items"] | None = None,
        horizon: int | None = None,
        seed: int = 0,
        lease: float = LEASE,
        load_if_exists: bool = False,
    ) -> "RemoteStudy":
        """Create a study on the server, as `duels.create_study`; only built-in policies can be used.

        Args:
            arms: The names of the arms, at least two.
            study_name: The study's name, unique on the server.
            policy: What chooses the duels, such as `"rucb:alpha=0.6"`; by default `verdict`, which needs the fewest
                answers.
            confidence: The probability that no verdict of the study is ever wrong; by default 0.95.
            margin: If above 0, an arm may be declared practically tied with the best, see `Study.verdict`. By default
                0, where arms that are equally good never get a verdict.
            after: What to do when the winner is known: `"stop"` (the default), or `"rank"` the others too.
            about: What the verdict is about, see `duels.create_study`.
            horizon: How many duels there will be, for policies that need to know.
            seed: Of the policy's random choices.
            lease: Seconds after which a duel without an answer no longer counts as open.
            load_if_exists: Load the study of that name if there is one; it must have these arms, and this policy and
                goal if they are given.

        Returns:
            The study.

        Raises:
            Conflict: If there is a study of that name already.
        """
        body: dict[str, object] = {"name": study_name, "arms": arms, "horizon": horizon}
        body |= {"policy": None if policy is None else str(policy), "confidence": confidence, "margin": margin}
        body |= {"after": after, "about": about, "seed": seed, "lease": lease, "load_if_exists": load_if_exists}
        created = self._send("POST", ROOT[:-1], body, Again.ALWAYS if load_if_exists else Again.UNSENT).json()
        if "policy" in created.get("notices", {}):
            warnings.warn(created["notices"]["policy"], stacklevel=2)
        return RemoteStudy(self, created["name"], created["policy"])

    def load_study(self, study_name: str) -> "RemoteStudy":
        """Load a study.

        Raises:
            UnknownName: If there is no such study.
        """
        found = self._send("GET", ROOT + _quoted(study_name)).json()
        return RemoteStudy(self, found["name"], found["policy"])

    def list_studies(self) -> list[StudyInfo]:
        """List all studies of the server, oldest first."""
        found = self._send("GET", ROOT[:-1]).json()["studies"]
        arms = [one["arms"] and sum(arm["active"] for arm in one["arms"]) for one in found]  # None if it is damaged
        return [_row(StudyInfo, {"damaged": None} | one | {"arms": count}) for one, count in zip(found, arms)]

    def delete_study(self, study_name: str) -> None:
        """Delete a study with all its answers. This cannot be undone, and needs an admin's token.

        Raises:
            UnknownName: If there is no such study.
        """
        self._send("DELETE", ROOT + _quoted(study_name), again=Again.UNSENT)

    def _send(
        self,
        method: str,
        path: str,
        body: object = None,
        again: Again = Again.ALWAYS,
        *,
        query: Mapping[str, str | float] | None = None,
    ) -> "httpx2.Response":
        """The server's response, if it is successful. Bytes are sent as JSON Lines, everything else as JSON."""
        kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        content = body if body is None or isinstance(body, bytes) else _json(body)
        headers = {} if body is None else {"Content-Type": kind}
        request = self._http.build_request(method, path, content=content, params=dict(query or {}), headers=headers)
        pauses = iter(PAUSES)
        while True:
            result = self._try(request, again)
            if not isinstance(result, _Failure):
                return result
            pause = next(pauses, None)
            if pause is None or result.wait is None:
                raise result.error
            sleep(max(pause, result.wait))

    def _try(self, request: "httpx2.Request", again: Again) -> "httpx2.Response | _Failure":
        httpx = self._httpx
        try:
            response = self._http.send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return _Failure(StorageError(f"there is no server at {self.url} ({error}): is it running?"), 0.0)
        except httpx.TimeoutException:  # not repeated: the caller has waited long enough to decide
            words = f"the server at {self.url} did not answer in time: see `timeout`; {TAKEN}"
            return _Failure(StorageError(words), None)
        except httpx.TransportError as error:
            words = f"the connection to {self.url} broke ({error}): {TAKEN}"
            return _Failure(StorageError(words), 0.0 if again == Again.ALWAYS else None)
        if response.is_success:
            return response
        least = {429: Again.UNSENT, 503: Again.REFUSED, 502: Again.ALWAYS, 504: Again.ALWAYS}.get(response.status_code)
        asked = response.headers.get("retry-after", "")
        wait = min(float(asked), LONGEST) if asked.isdecimal() else 0.0
        return _Failure(_error_of(response, self.url), None if least is None or again < least else wait)


class _Failure(NamedTuple):
    """Why a request failed, and how many seconds to wait before it is repeated; None if it must not be."""

    error: DuelsError
    wait: float | None


def connect(url: str, token: str | None = None, *, timeout: float = 30.0) -> Client:
    """Connect to a server.

    Args:
        url: The server's address, such as `https://duels.example.org`.
        token: From `duels token create`; None for a server that was started with `--open`.
        timeout: Seconds after which an unanswered request is an error.

    Returns:
        A client, whose studies have the methods of local ones.

    Raises:
        InvalidInput: If the address or the token cannot be one.

    Example:
        >>> client = duels.connect("https://duels.example.org", token)  # doctest: +SKIP
        >>> study = client.load_study("prompts")  # doctest: +SKIP
    """
    return Client(url, token, timeout)


class RemoteStudy:
    """A study on a server: `ask` for a duel, `tell` who won, look at the `verdict`. It works like `Study`."""

    def __init__(self, client: Client, name: str, policy: str) -> None:
        self.name, self.policy = name, policy
        self._client, self._path = client, ROOT + _quoted(name)

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, {self.policy}, at {self._client.url})"

    def _get(self, what: str = "", **query: float | None) -> Json:
        given = {name: value for name, value in query.items() if value is not None}
        return self._client._send("GET", self._path + what, query=given).json()

    def _pages(self, what: str, after: int | None = 0, **query: float | None) -> Iterator[dict[str, Json]]:
        while after is not None:  # an older server returns all of them at once
            page = self._get(f"/{what}", after=after, limit=10_000, **query)
            yield from page[what]
            after = page.get("next")

    def _post(self, what: str, again: Again = Again.UNSENT, lines: bytes | None = None, **body: object) -> Json:
        return self._client._send("POST", self._path + what, body if lines is None else lines, again).json()

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        return [arm["name"] for arm in self._get()["arms"] if arm["active"]]

    @property
    def retired(self) -> bool:
        """Whether the study was retired, and asks no more questions."""
        return bool(self._get()["retired"])

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, n: Literal[1] = 1, *, voter: str | None = None, allow_self: bool = True
    ) -> Duel: ...

    @overload
    def ask(self, n: int, *, voter: str | None = None, allow_self: bool = True) -> list[Duel]: ...

    def ask(self, n: int = 1, *, voter: str | None = None, allow_self: bool = True) -> Duel | list[Duel]:
        """Ask for the next duel, as `Study.ask`; more than 1,000 duels take several requests.

        Args:
            n: How many duels to ask for, up to 10,000.
            voter: Who is asked; stored with the question.
            allow_self: False where people vote, so that an arm never meets itself.

        Returns:
            The duel, or a list of `n` duels if that is not 1.

        Raises:
            Conflict: If the study was retired.
        """
        n, duels = check_int("n", n, 1, 10_000), list[Duel]()
        while len(duels) < n:
            count = min(AT_ONCE, n - len(duels))
            answer = self._post("/ask", Again.REFUSED, n=count, voter=voter, allow_self=allow_self)
            duels += [_duel(one) for one in answer["duels"]]
        return duels[0] if n == 1 else duels

    def allocate(self, n: int) -> list[Allocation]:
        """Return how often to ask each pair, for systems that decide by the batch, as `Study.allocate`."""
        return [_row(Allocation, one) for one in self._get("/allocation", n=check_int("n", n, 1, MOST))["allocation"]]

    def tell(
        self,
        duel: Duel | int,
        winner: str,
        *,
        voter: str | None = None,
        note: str | None = None,
        cost: float | None = None,
    ) -> None:
        """Answer a duel. The answer is on the server's disk when this returns; the same answer again is harmless.

        Args:
            duel: The duel, or its id.
            winner: `"left"`, `"right"`, `"tie"`, `"both_bad"`, `"skip"`, or the name of one of its arms.
            voter: Who answered.
            note: Why, kept in the log.
            cost: What the answer cost, kept in the log.

        Raises:
            Conflict: If the duel already has another answer.
        """
        more: dict[str, Any] = checked_note(note, cost)  # an older server knows neither
        self._post("/tell", Again.ALWAYS, duel=self._number(duel), winner=winner, voter=voter, **more)

    def undo(self, duel: Duel | int) -> None:
        """Take back the answer to a duel, which is then open again. This voids the verdict's promise."""
        self._post("/undo", duel=self._number(duel))

    def forget(self, voter: str) -> int:
        """Take back all answers of a voter and erase their name from the log; return how many answers there were."""
        return int(self._post("/forget", voter=voter)["answers"])

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs."""
        self._post("/arms", name=name)

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race. Its answers are kept, and no longer count for the verdict on the others."""
        self._post(f"/arms/{_quoted(name)}/retire")

    def retire(self) -> None:
        """Stop asking. Late answers are still accepted, and all results remain available."""
        self._post("/retire", Again.ALWAYS)

    def resume(self) -> None:
        """Ask again after `retire`."""
        self._post("/resume", Again.ALWAYS)

    def import_votes(self, votes: VoteSource) -> int:
        """Add past votes, from anything that `read_votes` reads: all of them or, after an error, none.

        Returns:
            How many votes were added.
        """
        if not len(past := read_votes(votes)):
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "votes.jsonl"
            write_votes(past, path)
            return int(self._post("/import", lines=path.read_bytes())["imported"])

    def votes(self) -> Votes:
        """Return the answers that count as votes, for `write_votes`; self-duels are left out."""
        content = self._client._send("GET", f"{self._path}/export", query={"format": "jsonl"}).content
        return read_votes(content, format="jsonl") if content.strip() else read_votes([])

    def add_items(self, items: ItemSource) -> int:
        """Add items, from anything that `read_items` reads: all of them or, after an error, none.

        Returns:
            How many items were added.
        """
        rows = (one._asdict() | {"outputs": {a: o._asdict() for a, o in one[1].items()}} for one in read_items(items))
        return int(self._post("/items", lines=b"\n".join(map(_json, rows)))["items"])

    def leaderboard(self, confidence: float | None = None) -> list[LeaderboardRow]:
        """Return one row per arm, best first."""
        return [_row(LeaderboardRow, one) for one in self._get("/leaderboard", confidence=confidence)["leaderboard"]]

    def preferences(self, confidence: float | None = None) -> list[PairRow]:
        """Return one row per pair of arms: wins, counts, estimate and interval."""
        return [_row(PairRow, one) for one in self._pages("preferences", confidence=confidence)]

    def verdict(self, confidence: float | None = None, margin: float | None = None) -> Verdict:
        """Return who is best, as far as that is certain. It stays valid however often you look."""
        found = self._get("/verdict", confidence=confidence, margin=margin)
        return Verdict(**{key: _tuples(value) for key, value in found.items() if key in Verdict.__dataclass_fields__})

    def standing(self) -> Standing:
        """Estimate, before the verdict, how likely each arm is the best and how many more answers are needed."""
        found = self._get("/standing")
        return _row(Standing, found | {"chances": tuple(_row(Chance, one) for one in found["chances"])})

    def judges(self) -> Judges:
        """Return the calls of the study's judges: number and cost, which sides they chose, how often they agree."""
        found = self._get("/judges")
        positions = [_row(Position, one) for one in found["positions"]]
        agreements = [_row(Agreement, one) for one in found["agreements"]]
        return _row(Judges, found | {"positions": positions, "agreements": agreements})

    def ranking(self) -> list[RankRow]:
        """Return the active arms in order, and which ranks are certain, as `Study.ranking`."""
        return [_row(RankRow, one) for one in self._get("/ranking")["ranking"]]

    def open_duels(self) -> list[Duel]:
        """Return the duels without an answer, oldest first; the first 10,000 of them."""
        return [_duel(one) for one in self._get("/duels", limit=10_000)["duels"]]

    def duel(self, number: int) -> Duel:
        """Return a duel by its id."""
        return _duel(self._get(f"/duels/{duel_number(number)}"))

    def events(self, after: int = 0) -> list[LogEntry]:
        """Return the log, starting with the event after this sequence number."""
        return [_row(LogEntry, one) for one in self._pages("events", after)]

    def interleave(
        self,
        rankings: Mapping[str, Sequence[Document]],
        duel: Duel | int | None = None,
        *,
        method: str = "probabilistic",
        length: int = 10,
        missing: str = "refuse",
        voter: str | None = None,
    ) -> Impression:
        """Ask for a duel, and return the list to show: the interleaved rankings of its two arms.

        Args:
            rankings: For each active arm its documents, text or whole numbers, best first.
            duel: A duel that was asked before. Then only the rankings of its two arms are needed, and the same list is
                returned every time.
            method: As in `duels.ranking.interleave`.
            length: As in `duels.ranking.interleave`.
            missing: As in `duels.ranking.interleave`.
            voter: Who sees the list.

        Returns:
            The list; for a self-duel, the ranking of its one arm.
        """
        shown = self._post(
            "/interleave",
            Again.REFUSED if duel is None else Again.ALWAYS,
            rankings=rankings,
            duel=None if duel is None else self._number(duel),
            method=method,
            length=length,
            missing=missing,
            voter=voter,
        )
        return _row(Impression, shown | {"id": shown["impression"]})

    def clicks(self, impression: Impression | int, clicks: Iterable[Document], *, voter: str | None = None) -> str:
        """Answer a duel by the clicks on its list.

        Args:
            impression: The list, or its id.
            clicks: All documents that were clicked.
            voter: Who clicked.

        Returns:
            Which side the clicks prefer: left, right or tie.
        """
        number = impression.id if isinstance(impression, Impression) else duel_number(impression)
        return str(self._post("/clicks", Again.ALWAYS, impression=number, clicks=clicks, voter=voter)["answer"])

    def follow(self) -> Iterator[Change]:
        """Yield the study's state now, and again after every change, at most twice a second.

        It ends when the study is deleted, and goes on after the server was restarted.

        Raises:
            StorageError: If the server cannot be reached for long.
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
        """Kind and data of each message from the server, until the connection ends."""
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
            raise InvalidInput(f"the duel belongs to study {duel.study!r}: expected one of study {self.name!r}")
        return duel_number(duel)


def _error_of(response: "httpx2.Response", url: str) -> DuelsError:
    """The error that a local study would raise."""
    try:
        error = response.json()["error"]
        kind, message = str(error["kind"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return StorageError(f"{url} answered {response.status_code}, but not as Duels does: is it a Duels server?")
    return KINDS.get(kind, InvalidInput)(message + ADVICE.get(kind, ""))


def _quoted(name: str) -> str:
    if name in ("", ".", ".."):  # it would be part of another address
        raise InvalidInput(f"{name!r} cannot be used here: expected another name, or see the server's own pages")
    return quote(str(name), safe="", errors="replace")


def _json(value: object) -> bytes:
    """As JSON, including numpy's arrays and numbers; any collection becomes a list."""
    try:
        return json.dumps(value, default=lambda one: one.tolist() if hasattr(one, "tolist") else list(one)).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be sent: {error}") from None


def _row(kind: type[Row], values: Mapping[str, Json]) -> Row:
    """The NamedTuple of that kind; fields that only a newer server has are left out."""
    return kind(**{name: values[name] for name in kind._fields if name in values})  # type: ignore[attr-defined]


def _duel(values: Mapping[str, Json]) -> Duel:
    duel, item = _row(Duel, values), values.get("item")
    if item is None:
        return duel
    sides = {side: None if item[side] is None else _row(Output, item[side]) for side in ("left", "right")}
    return duel._replace(item=DuelItem(item["number"], item["prompt"], **sides))


def _tuples(value: Json) -> Json:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
