"""What studies of all kinds share, if they are on a server."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from ..errors import InvalidInput
from ..study.agreement import Agreement
from ..study.duels import Asked, LogEntry, check_note, duel_number
from ..study.judge_log import Judges
from ..study.positions import Position
from ..study.repeatability import Repeatability
from .connection import Again, Change, Connection, Json, quote_path, row_of

ROOT = "/api/studies/"
AnyDuel = TypeVar("AnyDuel")


class Remote(Generic[AnyDuel]):
    """A study of any kind on a server."""

    def __init__(self, client: Connection, name: str, policy: str) -> None:
        self.name, self.policy = name, policy
        self._client, self._path = client, ROOT + quote_path(name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.policy}, at {self._client.url})"

    def _get(self, what: str = "", **query: float | None) -> Json:
        given = {name: value for name, value in query.items() if value is not None}
        return self._client._send("GET", self._path + what, query=given).json()

    def _pages(self, what: str, after: int | None = 0, **query: float | None) -> Iterator[dict[str, Json]]:
        while after is not None:
            page = self._get(f"/{what}", after=after, limit=10_000, **query)
            yield from page[what]
            after = page["next"]

    def _post(self, what: str, again: Again = Again.UNSENT, content: bytes | None = None, **body: object) -> Json:
        return self._client._send("POST", self._path + what, body if content is None else content, again).json()

    def _ask(self, n: int, at_once: int, **body: Any) -> list[AnyDuel]:
        duels = list[AnyDuel]()
        while len(duels) < n:
            answer = self._post("/ask", Again.REFUSED, n=min(at_once, n - len(duels)), **body)
            duels += [self._duel(one) for one in answer["duels"]]
        return duels

    def _duel(self, values: Mapping[str, Json]) -> AnyDuel:
        """The duel that a response has."""
        raise NotImplementedError

    @property
    def retired(self) -> bool:
        """Whether the study was retired, and asks no more questions."""
        return bool(self._get()["retired"])

    def tell(
        self,
        duel: Asked | int,
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
        noted: dict[str, Any] = check_note(note, cost)
        self._post("/tell", Again.ALWAYS, duel=self._number(duel), winner=winner, voter=voter, **noted)

    def undo(self, duel: Asked | int) -> None:
        """Take back the answer to a duel, which is then open again. This voids the promise of a verdict."""
        self._post("/undo", duel=self._number(duel))

    def forget(self, voter: str) -> int:
        """Take back all answers of a voter and erase their name from the log; return how many answers there were."""
        return int(self._post("/forget", voter=voter)["answers"])

    def retire(self) -> None:
        """Stop asking. Late answers are still accepted, and all results remain available."""
        self._post("/retire", Again.ALWAYS)

    def resume(self) -> None:
        """Ask again after `retire`."""
        self._post("/resume", Again.ALWAYS)

    def judges(self) -> Judges:
        """Return what the study's judges have done: calls, cost, sides, repeatability and agreement."""
        found = self._get("/judges")
        kinds: dict[str, Any] = {"positions": Position, "repeatability": Repeatability, "agreements": Agreement}
        lists = {name: [row_of(kind, one) for one in found[name]] for name, kind in kinds.items()}
        return row_of(Judges, found | lists)

    def open_duels(self) -> list[AnyDuel]:
        """Return the duels without an answer, oldest first; the first 10,000 of them."""
        return [self._duel(one) for one in self._get("/duels", limit=10_000)["duels"]]

    def duel(self, number: int) -> AnyDuel:
        """Return a duel by its id."""
        return self._duel(self._get(f"/duels/{duel_number(number)}"))

    def events(self, after: int = 0) -> list[LogEntry]:
        """Return the log, starting with the event after this sequence number."""
        return [row_of(LogEntry, one) for one in self._pages("events", after)]

    def follow(self) -> Iterator[Change]:
        """Yield the study's state now, and again after every change, at most twice a second.

        It ends when the study is deleted, and goes on after the server was restarted.

        Raises:
            StorageError: If the server cannot be reached for long.
        """
        return self._client._changes(f"{self._path}/stream")

    def _number(self, duel: Asked | int) -> int:
        if isinstance(duel, Asked) and duel.study != self.name:
            raise InvalidInput(f"the duel belongs to study {duel.study!r}: expected one of study {self.name!r}")
        return duel_number(duel)
