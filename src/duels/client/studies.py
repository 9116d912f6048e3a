"""What studies of all kinds share, if they are on a server.

Studies that compare arms, on a server.
"""

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from ..checks import check_int
from ..errors import InvalidInput
from ..policies import load_policy
from ..study.allocation import MOST, Allocation
from ..study.duels import Asked, Duel, DuelItem, LogEntry, check_note, duel_number
from ..study.impressions import Document, Impression, impression_number
from ..study.judging.ledger import Judges
from ..study.stats.about import check_about
from ..study.stats.certainty import check_margin
from ..study.stats.forecast import Chance, Forecast
from ..study.stats.goal import Goal, check_after
from ..study.stats.leaderboard import RankRow
from ..study.stats.tally import LeaderboardRow, PairRow
from ..study.stats.verdict import Verdict
from ..study.voters.agreement import Agreement
from ..study.voters.voter_tests import Position, Repeatability
from ..votes.items import AddedItems, ItemSource, Output, read_items
from ..votes.readers import Reading, VoteSource, read_votes
from ..votes.votes import Votes
from ..votes.writers import write_votes
from .connection import Again, Change, Connection, Json, as_json, quote_path, row_of

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

    def withdraw(self, voter: str) -> int:
        """Take back all answers of a voter, and keep the name; return how many answers there were.

        This voids the promise of a verdict, and needs an admin's token.
        """
        return int(self._post("/voters/withdraw", voter=voter)["answers"])

    def check(self) -> int:
        """Replay the whole log on the server, as `Study.check`, and return how many events there are.

        This needs an admin's token.

        Raises:
            DamagedStudy: If the log is not what was written.
        """
        return int(self._get("/check")["events"])

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

        It ends when the study is deleted, and survives a restart of the server.

        Raises:
            StorageError: If the server cannot be reached for long.
        """
        return self._client._changes(f"{self._path}/stream")

    def _number(self, duel: Asked | int) -> int:
        if isinstance(duel, Asked) and duel.study != self.name:
            raise InvalidInput(f"the duel belongs to study {duel.study!r}: expected one of study {self.name!r}")
        return duel_number(duel)


AT_ONCE = 1000  # duels of one request


class RemoteStudy(Remote[Duel]):
    """A study on a server: `ask` for a duel, `tell` who won, look at the `verdict`. It works like `Study`."""

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        return [arm["name"] for arm in self._get()["arms"] if arm["active"]]

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
        n = check_int("n", n, 1, 10_000)
        duels = self._ask(n, AT_ONCE, voter=voter, allow_self=allow_self)
        return duels[0] if n == 1 else duels

    def allocate(self, n: int) -> list[Allocation]:
        """Return how often to ask each pair, for systems that decide by the batch, as `Study.allocate`."""
        return [row_of(Allocation, one) for one in self._get("/allocation", n=check_int("n", n, 1, MOST))["allocation"]]

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs."""
        self._post("/arms", name=name)

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race. Its answers are kept, and no longer count for the verdict on the others."""
        self._post(f"/arms/{quote_path(name)}/retire")

    @property
    def goal(self) -> Goal:
        """What the study is to find out, and by which rules."""
        ties = load_policy(self.policy).live_ties
        return row_of(Goal, {"ties": ties} | self._get()["goal"])

    def set_after(self, after: str) -> None:
        """Change what happens when the winner is known, as `Study.set_after`. This needs an admin's token."""
        self._set(after=check_after(after))

    def set_margin(self, margin: float) -> None:
        """Change the margin, as `Study.set_margin`. This needs an admin's token."""
        self._set(margin=check_margin(margin))

    def set_about(self, about: str) -> None:
        """Change what the verdict is about, as `Study.set_about`. This needs an admin's token."""
        self._set(about=check_about(about))

    def _set(self, **settings: object) -> None:
        self._client._send("PATCH", f"{self._path}/settings", settings)

    def import_votes(self, votes: VoteSource, **reading: Unpack[Reading]) -> int:
        """Add past votes, from anything that `read_votes` reads: all of them or, after an error, none.

        Warns as `Study.import_votes` does.

        Args:
            votes: Anything that `read_votes` reads.
            **reading: As in `read_votes`: columns, on_error and without.

        Returns:
            How many votes were added.
        """
        past = read_votes(votes, **reading)
        for note in past.unread_notes:
            warnings.warn(note, stacklevel=2)
        if not len(past):
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "votes.jsonl"
            write_votes(past, path)
            made = self._post("/import", content=path.read_bytes())
        if made["note"] is not None:
            warnings.warn(made["note"], stacklevel=2)
        return int(made["imported"])

    def votes(self) -> Votes:
        """Return the answers that count as votes, for `write_votes`; self-duels are left out."""
        content = self._client._send("GET", f"{self._path}/export", query={"format": "jsonl"}).content
        return read_votes(content, format="jsonl") if content.strip() else read_votes([])

    def add_items(self, items: ItemSource) -> AddedItems:
        """Add items, from anything that `read_items` reads: all of them or, after an error, none.

        Items that the study has, by their prompts, get the outputs that they lack; see `duels.study.items.add_items`.
        """
        found = read_items(items, fewest=1)
        rows = (one._asdict() | {"outputs": {a: o._asdict() for a, o in one[1].items()}} for one in found)
        made = self._post("/items", content=b"\n".join(map(as_json, rows)))
        return AddedItems(made["items"], made["outputs"])

    def leaderboard(self, confidence: float | None = None) -> list[LeaderboardRow]:
        """Return one row per arm, best first."""
        return [row_of(LeaderboardRow, one) for one in self._get("/leaderboard", confidence=confidence)["leaderboard"]]

    def preferences(self, confidence: float | None = None) -> list[PairRow]:
        """Return one row per pair of arms: wins, counts, estimate and interval."""
        return [row_of(PairRow, one) for one in self._pages("preferences", confidence=confidence)]

    def verdict(self, confidence: float | None = None, margin: float | None = None) -> Verdict:
        """Return the verdict: the winner, or what is still undecided. It is valid at any stopping time."""
        found = self._get("/verdict", confidence=confidence, margin=margin)
        return Verdict.from_dict(found)

    def forecast(self) -> Forecast:
        """Estimate, before the verdict, how likely each arm is the best and how many more answers are needed."""
        found = self._get("/forecast")
        return row_of(Forecast, found | {"chances": tuple(row_of(Chance, one) for one in found["chances"])})

    def ranking(self) -> list[RankRow]:
        """Return the active arms in order, and which ranks are certain, as `Study.ranking`."""
        return [row_of(RankRow, one) for one in self._get("/ranking")["ranking"]]

    @property
    def best_arm(self) -> str:
        """The arm that the policy recommends now; `verdict` says how certain that is."""
        return str(self._get("/recommendation")["arm"])

    def interleave(
        self,
        rankings: Mapping[str, Sequence[Document]],
        duel: Duel | int | None = None,
        *,
        method: str = "team-draft",
        length: int = 10,
        missing: str = "last",
        voter: str | None = None,
    ) -> Impression:
        """Ask for a duel, and return the list to show: the interleaved rankings of its two arms.

        Args:
            rankings: For each active arm its documents, text or whole numbers, best first; empty if it found none.
            duel: A duel that was asked before. Then only the rankings of its two arms are needed, and the same list is
                returned every time.
            method: As in `duels.rankers.interleave`.
            length: As in `duels.rankers.interleave`.
            missing: As in `duels.rankers.interleave`.
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
        return row_of(Impression, shown | {"id": shown["impression"]})

    def clicks(self, impression: Impression | int, clicks: Iterable[Document], *, voter: str | None = None) -> str:
        """Answer a duel by the clicks on its list.

        Args:
            impression: The list, or its id.
            clicks: All documents that were clicked.
            voter: Who clicked.

        Returns:
            Which side the clicks prefer: left, right or tie.
        """
        number = impression_number(impression)
        return str(self._post("/clicks", Again.ALWAYS, impression=number, clicks=clicks, voter=voter)["answer"])

    def _duel(self, values: Mapping[str, Json]) -> Duel:
        duel, item = row_of(Duel, values), values.get("item")
        if item is None:
            return duel
        sides = {side: None if item[side] is None else row_of(Output, item[side]) for side in ("left", "right")}
        return duel._replace(item=DuelItem(item["number"], item["prompt"], **sides))
