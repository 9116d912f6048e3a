"""Studies by name: begin one, find it again, list them, delete one."""

import json
import shlex
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..checks import check_int
from ..engine import loop
from ..errors import Conflict, DamagedStudy, DuelsError, InvalidInput, StorageError, UnknownName
from ..policies import Policy
from ..policies import policy as find_policy
from ..storage.database import DEFAULT
from ..storage.database_errors import shown
from ..storage.registry import existing_storage, open_storage
from ..storage.storage import Storage, StudyRow, Write
from ..storage.tables import events, snapshots, studies, votes
from ..votes.names import arm_names, composed, is_text
from ..votes.names import study_name as checked_name
from . import log
from .duels import iso_time
from .history import History
from .record import chained, made
from .study import Study

LEASE = 600.0  # seconds


class StudyInfo(NamedTuple):
    """A study in a list. Numbers that cannot be read from a damaged log are None."""

    name: str
    policy: str
    arms: int | None
    answers: int | None
    open: int | None
    created: str
    damaged: str | None = None  # what is wrong with its log, if it cannot be read


def create_study(
    arms: Iterable[str],
    study_name: str = "study",
    storage: Any = None,
    policy: Any = "rucb",
    *,
    horizon: int | None = None,
    seed: int = 0,
    lease: float = LEASE,
    load_if_exists: bool = False,
) -> Study:
    """Begin a study of the given arms.

    storage: a database's URL, by default `sqlite:///duels.db`; PostgreSQL as `postgresql://user@host/name`.
    policy: what chooses the duels; a name such as `"rucb:alpha=0.6"`, a Python file, or a module of yours.
    horizon: how many duels there will be, for policies that need to know.
    lease: seconds after which a duel that nobody answered stops counting as one under way. A late answer still counts.
    load_if_exists: take the study of that name if there is one; it must have these arms and this policy.
    """
    given: Any = arms if isinstance(arms, str) or not isinstance(arms, Iterable) else list(arms)
    try:
        names, name = arm_names(given), checked_name(study_name)
    except InvalidInput:
        if not (load_if_exists and _is_there(given, study_name, storage)):
            raise
        names, name = given, study_name  # a study from before there were these rules keeps its names
    chosen = find_policy(policy)
    horizon = None if horizon is None else check_int("horizon", horizon, 1)
    chosen.start(len(names), horizon)  # refuses a missing horizon
    seed = check_int("seed", seed, 0, 2**63 - 1)
    if not (isinstance(lease, int | float) and 0 < lease < float("inf")):
        raise InvalidInput(f"lease is {lease!r}: expected a positive number of seconds")
    store = open_storage(storage or DEFAULT)
    source = {"source": str(chosen.source)} if chosen.source and str(chosen.source).endswith(".py") else {}
    settings = source | {"code": loop.code_of(chosen)}

    def operation(connection: sa.Connection) -> tuple[StudyRow, bool]:
        found = _find(store, connection, name)
        if found is not None:
            if not load_if_exists:
                raise Conflict(
                    f"there is a study {name!r} already: choose another name, or say load_if_exists=True "
                    "(--load-if-exists) to go on with it"
                )
            return found, False
        values: dict[str, Any] = {
            "name": name,
            "created": log.clock(),
            "policy": str(chosen),
            "horizon": horizon,
            "seed": seed,
            "lease": float(lease),
            "settings": json.dumps(settings),
        }
        key = connection.execute(sa.insert(studies).values(values).returning(studies.c.id)).scalar_one()
        row = StudyRow(key, **(values | {"settings": settings}))
        history = History(row, chosen)
        event = made(history, "create", row.created, note=json.dumps({"arms": names}, ensure_ascii=False))
        store.append(connection, key, [event])
        return row, True

    row, fresh = store.write(Write(operation))
    study = Study(store, row, chosen)
    if not fresh:
        _refuse_different(study, names, chosen, horizon)
    return study


def load_study(study_name: str, storage: Any = None, policy: Any = None) -> Study:
    """A study that exists. `policy` is needed where it was a module of your own rather than a name or a file."""
    store = _storage_of(study_name, storage)
    with store.turn, store.explained():
        row = _found(store, store.connection(), study_name)
    chosen = None if policy is None else find_policy(policy)
    if chosen is not None and str(chosen) != row.policy:
        raise InvalidInput(
            f"study {study_name!r} has the policy {row.policy}, not {chosen}: its answers were to that one"
        )
    return Study(store, row, chosen)


def delete_study(study_name: str, storage: Any = None) -> None:
    """Remove a study with all its answers; there is no way back."""
    store = _storage_of(study_name, storage)

    def operation(connection: sa.Connection) -> int:
        row = _found(store, connection, study_name)
        store.flush(connection)
        for table in (snapshots, votes, events):
            connection.execute(sa.delete(table).where(table.c.study_id == row.id))
        connection.execute(sa.delete(studies).where(studies.c.id == row.id))
        return row.id

    number = store.write(Write(operation))
    with store.turn:
        store.followers.pop(number, None)


def list_studies(storage: Any = None) -> list[StudyInfo]:
    """All studies of a storage, oldest first."""
    store = existing_storage(storage or DEFAULT)
    if store is None:
        return []
    with store.reading() as connection:
        return [_info_or_damage(store, connection, row) for row in store.listed(connection)]


def list_policies(storage: Storage) -> list[Policy]:
    """The built-in policies that studies of a storage have."""
    with storage.turn, storage.explained():
        specs = sorted({row.policy for row in storage.listed(storage.connection()) if "source" not in row.settings})
    found = []
    for spec in specs:
        with suppress(DuelsError):  # a module of somebody's own
            found.append(find_policy(spec))
    return found


def _storage_of(study_name: str, storage: Any) -> Storage:
    store = existing_storage(storage or DEFAULT)
    if store is None:
        raise StorageError(
            f"there is no database {shown(storage or DEFAULT)}, so no study {study_name!r}: begin it with duels "
            f"create-study {shlex.quote(str(study_name))} …, or say where its database is (storage, --storage)"
        )
    return store


def _is_there(arms: Any, name: Any, storage: Any) -> bool:
    """Whether there is a study of that very name with these very arms."""
    try:
        return load_study(name, storage).events(limit=1)[0].note["arms"] == arms
    except (StorageError, UnknownName):
        return False


def _find(store: Storage, connection: sa.Connection, name: str) -> StudyRow | None:
    """The study of that name, else one whose name is the same in composed form."""
    row = store.find(connection, name)
    if row is None and not name.isascii():
        row = next((one for one in store.listed(connection) if composed(one.name) == composed(name)), None)
    return row


def _found(store: Storage, connection: sa.Connection, name: str) -> StudyRow:
    row = _find(store, connection, name) if is_text(str(name)) and "\x00" not in str(name) else None
    if row is None:
        raise UnknownName("study", name, [one.name for one in store.listed(connection)], "duels studies")
    return row


def _info_or_damage(store: Storage, connection: sa.Connection, row: StudyRow) -> StudyInfo:
    try:
        with store.explained():
            _check_tail(store, connection, row)
            return _info(connection, row)
    except DamagedStudy as error:
        words = str(error)
    except (ValueError, TypeError, KeyError) as error:  # an event before the snapshot
        words = f"the log of study {row.name!r} is not what was written: {error}"
    return StudyInfo(row.name, row.policy, None, None, None, iso_time(row.created), words)


def _check_tail(store: Storage, connection: sa.Connection, row: StudyRow) -> None:
    """Refuse a log whose digests are wrong after the last snapshot: the part that is read to use the study."""
    chosen = sa.select(snapshots.c.seq, snapshots.c.digest).where(snapshots.c.study_id == row.id)
    seq, digest = connection.execute(chosen).first() or (0, "")
    if seq:
        found = store.read_events(connection, row.id, seq - 1, 1)
        if [(event[0], event[-1]) for event in found] != [(seq, digest)]:
            raise DamagedStudy(f"event {seq} of study {row.name!r} is not what was written, or gone")
    for event in store.read_events(connection, row.id, seq):
        if event[0] != seq + 1 or chained(digest, event) != event[-1]:
            raise DamagedStudy(f"event {seq + 1} of study {row.name!r} is not what was written, or gone")
        seq, digest = event[0], event[-1]
    if not seq or "damaged" in row.settings:
        raise DamagedStudy(f"study {row.name!r} has no events, or its settings are not what was written")


def _info(connection: sa.Connection, row: StudyRow) -> StudyInfo:
    here = events.c.study_id == row.id
    counted = sa.select(events.c.kind, sa.func.count()).where(here).group_by(events.c.kind)
    counts: dict[str, int] = {kind: count for kind, count in connection.execute(counted)}  # noqa: C416
    undone = sa.alias(events)
    undoes = (undone.c.study_id == row.id, undone.c.kind == "undo")
    taken_back = sa.exists().where(*undoes, undone.c.duel == events.c.duel, undone.c.attempt == events.c.attempt)
    said = sa.select(sa.func.count()).where(here, events.c.kind.in_(("tell", "vote")), events.c.answer != "skip")
    notes = sa.select(events.c.note, events.c.duel)
    forgotten = connection.execute(notes.where(here, events.c.kind == "forget")).all()
    answers = connection.execute(said.where(~taken_back)).scalar_one()
    answers -= sum(len(json.loads(note)["duels"]) for note, _ in forgotten)
    waiting = counts.get("ask", 0) - counts.get("tell", 0) + counts.get("undo", 0)
    for note, first in connection.execute(notes.where(here, events.c.kind == "import")).all():
        size = json.loads(note)["votes"]
        among = undone.c.duel.between(first, first + size - 1) & (undone.c.attempt == 0)
        answers += size - connection.execute(sa.select(sa.func.count()).where(*undoes, among)).scalar_one()
    first_note = connection.execute(sa.select(events.c.note).where(here, events.c.seq == 1)).scalar()
    arms = len(json.loads(str(first_note))["arms"]) + counts.get("add_arm", 0) - counts.get("retire_arm", 0)
    return StudyInfo(row.name, row.policy, arms, answers, waiting, iso_time(row.created))


def _refuse_different(study: Study, names: list[str], policy: Policy, horizon: int | None) -> None:
    started = study.events(limit=1)[0].note["arms"]
    if names not in (started, list(map(composed, started))):
        raise Conflict(f"study {study.name!r} exists with other arms ({', '.join(started)}): choose another name")
    if (study.policy, study._row.horizon) != (str(policy), horizon):
        raise Conflict(f"study {study.name!r} exists with the policy {study.policy}: choose another name")
