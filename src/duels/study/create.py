"""Studies by name: create, load, list and delete them."""

import json
import shlex
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Literal, NamedTuple, cast

import sqlalchemy as sa

from ..checks import check_int
from ..engine import loop
from ..errors import (
    Conflict,
    DamagedStudy,
    DeletedStudy,
    DuelsError,
    InvalidInput,
    StorageError,
    UnknownName,
    format_count,
)
from ..policies import Policy, load_policy
from ..storage.database import DEFAULT
from ..storage.database_errors import quote_url
from ..storage.storage import Kind, Storage, StudyRow, Write, find_storage, open_storage
from ..storage.tables import events, snapshots, studies, votes
from ..votes.names import arm_names, compose, is_text
from ..votes.names import study_name as checked_name
from . import base
from .arm_log import ArmLog
from .duels import iso_time
from .state.counts import next_event
from .state.live import LiveState, digest_of_file
from .stats.about import About
from .stats.goal import goal_of, new_goal
from .study import Study

LEASE = 3600.0  # seconds
DEFAULT_POLICY = "verdict"
NO_MARGIN = (
    "without a margin, a study of equally good arms never ends; a margin of 0.05 accepts an arm that no other beats "
    "more than 55 % of the time"
)


class StudyInfo(NamedTuple):
    """A study in a list. Numbers that cannot be read from a damaged log are None.

    Attributes:
        name: The study's name.
        policy: Its policy.
        arms: How many active arms it has.
        answers: How many answers count: no skips, and nothing that was taken back.
        open: How many duels have no answer.
        created: When it was created, in ISO 8601.
        damaged: What is wrong with its log, if it cannot be read.
        parameters: How many parameters it tunes, if it is a tuning study, which has no arms.
    """

    name: str
    policy: str
    arms: int | None
    answers: int | None
    open: int | None
    created: str
    damaged: str | None = None
    parameters: int | None = None


def create_study(
    arms: Iterable[str],
    study_name: str = "study",
    storage: str | Storage | None = None,
    policy: str | Policy | ModuleType | None = None,
    *,
    confidence: float | None = None,
    margin: float | None = None,
    after: Literal["stop", "rank"] | None = None,
    about: About | None = None,
    horizon: int | None = None,
    seed: int = 0,
    lease: float = LEASE,
    load_if_exists: bool = False,
) -> Study:
    """Create a study.

    Args:
        arms: The names of the arms, at least two.
        study_name: The study's name, unique in its storage.
        storage: A database's URL, by default `sqlite:///duels.db`; PostgreSQL as `postgresql://user@host/name`.
        policy: What chooses the duels: a name such as `"rucb:alpha=0.6"`, a Python file, or a module of yours. By
            default `verdict`, which needs the fewest answers.
        confidence: The probability that no verdict of the study is ever wrong; by default 0.95.
        margin: If above 0, an arm may be declared practically tied with the best: none beats it with a probability of
            more than ½ + margin. By default 0, where arms that are equally good never get a verdict: set a margin such
            as 0.05 if they may be.
        after: What to do when the winner is known: `"stop"` asking people and judges (the default), or `"rank"` the
            others too.
        about: What the verdict is about, if the study has items. By default `"these-items"`: they are fixed, people
            vary, and each pair is asked about items drawn at random. `"new-items"`: they are a sample of the items that
            matter, and each pair is asked about each of them once. `"these-answers"`: the same, and every answer is
            final, so that the verdict says who wins more of them.
        horizon: How many duels there will be, for policies that need to know.
        seed: Of the policy's random choices, and of the orders in which pairs are asked about these items.
        lease: Seconds after which a duel without an answer no longer counts as open. An answer that comes later is
            stored and shown, but does not count.
        load_if_exists: Load the study of that name if there is one; it must have these arms, and this policy and goal
            if they are given. Another margin is set, since it may be chosen at any time.

    Returns:
        The study.

    Raises:
        Conflict: If there is a study of that name already, or, with `load_if_exists`, a different one.
        InvalidInput: If an argument cannot be used.
        StorageError: If the database cannot be used.

    Example:
        >>> study = duels.create_study(["prompt-1", "prompt-2"], "prompts", "sqlite://")
    """
    given = cast("list[str]", arms if isinstance(arms, str) or not isinstance(arms, Iterable) else list(arms))
    names, name = arm_names(given), checked_name(study_name)
    chosen = load_policy(DEFAULT_POLICY if policy is None else policy)
    wanted: dict[str, Any] = {"confidence": confidence, "margin": margin, "after": after, "about": about}
    asked_for = {name: value for name, value in wanted.items() if value is not None}
    goal = new_goal(ties=chosen.live_ties, **asked_for)
    chosen = chosen.with_goal(goal.confidence, goal.margin)
    horizon = None if horizon is None else check_int("horizon", horizon, 1)
    chosen.start(len(names), horizon)  # refuses a missing horizon
    seed = check_int("seed", seed, 0, 2**63 - 1)
    lease = check_lease(lease)
    store = open_storage(storage or DEFAULT)
    path = str(chosen.source) if chosen.source and str(chosen.source).endswith(".py") else None
    source = {} if path is None else {"source": path, "source_digest": digest_of_file(path)}
    row = StudyRow(
        id=0,  # given by the database
        name=name,
        created=0.0,
        policy=str(chosen),
        horizon=horizon,
        seed=seed,
        lease=lease,
        settings=source | {"code": loop.code_of(chosen), "goal": goal._asdict()},
    )
    created = find_or_insert(store, row, {"arms": list(names)}, load_if_exists)
    if created.is_new:
        made = Study(ArmLog(store, created.row, chosen))
        if "policy" in (known := notices(made, chosen)):
            warnings.warn(known["policy"], stacklevel=2)
        return made
    found = Study(ArmLog(store, created.row))
    _refuse_different(found, names, {name: getattr(goal, name) for name in asked_for if name != "margin"})
    if margin is not None:
        found.set_margin(goal.margin)
    if policy is None:
        return found
    chosen = load_policy(policy).with_goal(found.goal.confidence, found.goal.margin)
    if (found.policy, found._log.row.horizon) != (str(chosen), horizon):
        raise Conflict(f"study {found.name!r} exists with the policy {found.policy}: choose another name")
    return Study(ArmLog(store, created.row, chosen))


def notices(study: Study, policy: Policy) -> dict[str, str]:
    """Return what may keep a new study from ending, by the argument of `create_study` that is the cause.

    A study that asks each pair about each item once ends when all was asked.

    Args:
        study: The study.
        policy: Its policy.

    Returns:
        Sentences under `policy` and `margin`; empty if there is nothing to say.
    """
    known: dict[str, str] = {}
    goal = goal_of(study._log.row.settings)
    if goal.asks_once:
        return known
    if policy.live:
        known["policy"] = f"study {study.name!r} may never end with the policy {policy}: {policy.live}"
    if goal.margin == 0:
        known["margin"] = NO_MARGIN
    return known


def check_lease(lease: object) -> float:
    """Return the seconds until a duel without an answer expires, if they are a positive number.

    Raises:
        InvalidInput: If they are not.
    """
    if isinstance(lease, int | float) and 0 < lease < float("inf"):
        return float(lease)
    raise InvalidInput(f"lease is {lease!r}: expected a positive number of seconds")


class Created(NamedTuple):
    """A study's row, and whether it was created just now."""

    row: StudyRow
    is_new: bool


def find_or_insert(store: Storage, row: StudyRow, note: Mapping[str, object], load: bool) -> Created:
    """Create a study, or find the one of its name.

    Args:
        store: Where.
        row: The study; its id and time are given here.
        note: Of its first event.
        load: Whether there may be one of that name already.

    Raises:
        Conflict: If there is one already, and that is not wanted.
        InvalidInput: If there is one of another kind.
    """
    text = json.dumps(note, ensure_ascii=False)
    insert = Write(partial(_find_or_insert, store=store, row=row, note=text, load=load))
    try:
        return store.write(insert)
    except StorageError as error:
        if not isinstance(error.__cause__, sa.exc.IntegrityError):
            raise
        return store.write(insert)  # another process has just created it


def _find_or_insert(connection: sa.Connection, *, store: Storage, row: StudyRow, note: str, load: bool) -> Created:
    found = _find(store, connection, row.name)
    if found is not None and not load:
        raise Conflict(
            f"there is a study {row.name!r} already: choose another name, or say load_if_exists=True "
            "(--load-if-exists) to load it"
        )
    if found is not None:
        refuse_kind(found, row.kind)
        return Created(found, False)
    row = row._replace(created=base.clock())
    values = row._asdict() | {"settings": json.dumps(row.settings)}
    del values["id"]
    row = row._replace(id=connection.execute(sa.insert(studies).values(values).returning(studies.c.id)).scalar_one())
    store.append(row.id, [next_event(LiveState(row), "create", row.created, note=note)])
    return Created(row, True)


def refuse_kind(row: StudyRow, wanted: Kind) -> None:
    """Raise `InvalidInput` if a study is not of the wanted kind.

    Args:
        row: The study.
        wanted: What it is to compare.
    """
    if row.kind == wanted:
        return
    if wanted == "arms":
        raise InvalidInput(
            f"study {row.name!r} tunes {format_count(len(row.settings['space']), 'parameter')} and has no arms to "
            "compare: load it with duels.load_study, and see its best setting with study.best (duels study best)"
        )
    raise InvalidInput(f"study {row.name!r} compares arms and tunes no parameters: load it with duels.load_study")


def load_study(
    study_name: str, storage: str | Storage | None = None, policy: str | Policy | ModuleType | None = None
) -> Study:
    """Load a study.

    Args:
        study_name: The study's name.
        storage: As in `create_study`.
        policy: Needed only if it was a module of your own rather than a name or a file.

    Returns:
        The study.

    Raises:
        UnknownName: If there is no such study.
        StorageError: If the database does not exist, or cannot be used.
        InvalidInput: If the study has another policy.
    """
    store, row = find_row(study_name, storage)
    refuse_kind(row, "arms")
    chosen = None if policy is None else load_policy(policy)
    if chosen is not None and str(chosen) != row.policy:
        raise InvalidInput(
            f"study {study_name!r} has the policy {row.policy}, not {chosen}: its answers were to that one"
        )
    return Study(ArmLog(store, row, chosen))


def find_row(study_name: str, storage: str | Storage | None = None) -> tuple[Storage, StudyRow]:
    """Find a study of any kind by its name.

    Raises:
        UnknownName: If there is no such study.
        StorageError: If the database does not exist, or cannot be used.
    """
    store = _storage_of(study_name, storage)
    with store.lock, store.translate_errors():
        return store, _find_or_refuse(store, store.connection(), study_name)


def delete_study(study_name: str, storage: str | Storage | None = None) -> None:
    """Delete a study with all its answers. This cannot be undone.

    Args:
        study_name: The study's name.
        storage: As in `create_study`.

    Raises:
        UnknownName: If there is no such study.
        StorageError: If the database does not exist, or cannot be used.
    """
    store = _storage_of(study_name, storage)
    number = store.write(Write(partial(_delete, store=store, name=study_name)))
    with store.lock:
        store.histories.pop(number, None)


def _delete(connection: sa.Connection, *, store: Storage, name: str) -> int:
    row = _find_or_refuse(store, connection, name)
    store.flush(connection)
    for table in (snapshots, votes, events):
        connection.execute(sa.delete(table).where(table.c.study_id == row.id))
    connection.execute(sa.delete(studies).where(studies.c.id == row.id))
    return row.id


def list_studies(storage: str | Storage | None = None) -> list[StudyInfo]:
    """List all studies of a storage.

    Args:
        storage: As in `create_study`. A file that does not exist has no studies, and is not created.

    Returns:
        One entry per study, oldest first.
    """
    store = find_storage(storage or DEFAULT)
    if store is None:
        return []
    with store.lock, store.translate_errors():
        rows = store.list_studies(store.connection())
    found = []
    for row in rows:
        with suppress(DeletedStudy):  # meanwhile, by another process
            found.append(_info(Study(ArmLog(store, row))))
    return found


def _info(study: Study) -> StudyInfo:
    row = study._log.row
    compares_arms = row.kind == "arms"
    tuned = None if compares_arms else len(row.settings["space"])
    known = StudyInfo(row.name, row.policy, None, None, None, iso_time(row.created), parameters=tuned)
    try:
        history = study._log.history()
    except DamagedStudy as error:
        return known._replace(damaged=str(error))
    arms = sum(history.active) if compares_arms else None
    return known._replace(arms=arms, answers=history.total, open=len(history.open))


def list_policies(storage: Storage) -> list[Policy]:
    """Return the built-in policies of a storage's studies on arms."""
    with storage.lock, storage.translate_errors():
        rows = [row for row in storage.list_studies(storage.connection()) if row.kind == "arms"]
    specs = sorted({row.policy for row in rows if "source" not in row.settings})
    found = []
    for spec in specs:
        with suppress(DuelsError):  # a module of a user's own
            found.append(load_policy(spec))
    return found


def _storage_of(study_name: str, storage: str | Storage | None) -> Storage:
    store = find_storage(storage or DEFAULT)
    if store is None:
        raise StorageError(
            f"there is no database {quote_url(storage or DEFAULT)}, so no study {study_name!r}: create it with duels "
            f"study create {shlex.quote(str(study_name))} …, or say where its database is (storage, --storage)"
        )
    return store


def _find(store: Storage, connection: sa.Connection, name: str) -> StudyRow | None:
    """The study of that name, else one whose name is the same in composed form."""
    row = store.find(connection, name)
    if row is None and not name.isascii():
        row = next((one for one in store.list_studies(connection) if compose(one.name) == compose(name)), None)
    return row


def _find_or_refuse(store: Storage, connection: sa.Connection, name: str) -> StudyRow:
    row = _find(store, connection, name) if is_text(str(name)) and "\x00" not in str(name) else None
    if row is None:
        raise UnknownName("study", name, [one.name for one in store.list_studies(connection)], "duels study list")
    return row


def _refuse_different(study: Study, names: list[str], goal: Mapping[str, object]) -> None:
    started = study.events(limit=1)[0].note["arms"]
    if names not in (started, list(map(compose, started))):
        raise Conflict(f"study {study.name!r} exists with other arms ({', '.join(started)}): choose another name")
    own = goal_of(study._log.row.settings)._asdict()  # as it was created: `set_after` may have been called since
    own["about"] = study.goal.about
    for what, value in goal.items():
        if own[what] != value:
            raise Conflict(
                f"study {study.name!r} exists with {what} {own[what]}, not {value}: leave {what} out, or choose "
                "another name"
            )
