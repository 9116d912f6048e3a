"""Tuning studies by name: create and load them."""

from collections.abc import Mapping

from ...checks import check_int
from ...errors import Conflict
from ...storage.database import DEFAULT
from ...storage.storage import Storage, StudyRow, open_storage
from ...study.create import LEASE, check_lease, find_or_insert, find_row, load_study, refuse_kind
from ...study.stats.goal import new_goal
from ...study.study import Study
from ...votes.names import study_name as checked_name
from ..policies import DEFAULT as DEFAULT_POLICY
from ..policies import Policy, load_policy
from ..spaces import Space
from .log import ARMS, TuningLog
from .study import TuningStudy


def create_tuning(
    space: Space | Mapping[str, object],
    study_name: str = "tuning",
    storage: str | Storage | None = None,
    policy: str | Policy | None = None,
    *,
    confidence: float | None = None,
    seed: int = 0,
    lease: float = LEASE,
    load_if_exists: bool = False,
) -> TuningStudy:
    """Create a study that tunes parameters: which setting do people, or a judge, prefer?

    Args:
        space: The parameters, see `duels.Space`.
        study_name: The study's name, unique in its storage.
        storage: A database's URL, by default `sqlite:///duels.db`; PostgreSQL as `postgresql://user@host/name`.
        policy: What chooses the duels: a name such as `"gp_rucb:beta=3"`; by default `eubo`.
        confidence: The level of the intervals that are shown; by default 0.95.
        seed: Of the policy's random choices.
        lease: Seconds after which a duel without an answer no longer counts as open for the policy's choices. A late
            answer still counts.
        load_if_exists: Load the study of that name if there is one; it must have this space, and this policy and
            confidence if they are given.

    Returns:
        The study.

    Raises:
        Conflict: If there is a study of that name already, or, with `load_if_exists`, a different one.
        InvalidInput: If an argument cannot be used.
        StorageError: If the database cannot be used.

    Example:
        >>> study = duels.create_study(space={"temperature": (0.0, 1.5)}, study_name="voice", storage="sqlite://")
        >>> study.space.names
        ('temperature',)
    """
    found_space, name = Space(space), checked_name(study_name)
    chosen = load_policy(DEFAULT_POLICY if policy is None else policy)
    goal = new_goal(0.95 if confidence is None else confidence, ties="halves")
    plain = found_space.to_dict()
    row = StudyRow(
        id=0,  # given by the database
        name=name,
        created=0.0,
        policy=str(chosen),
        horizon=None,
        seed=check_int("seed", seed, 0, 2**63 - 1),
        lease=check_lease(lease),
        settings={"space": plain, "goal": goal._asdict()},
    )
    store = open_storage(storage or DEFAULT)
    created = find_or_insert(store, row, {"arms": ARMS, "space": plain}, load_if_exists)
    study = TuningStudy(TuningLog(store, created.row))
    if not created.is_new:
        _refuse_different(study, found_space, None if policy is None else str(chosen), confidence)
    return study


def load_tuning(study_name: str, storage: str | Storage | None = None) -> TuningStudy:
    """Load a tuning study.

    Args:
        study_name: The study's name.
        storage: As in `create_tuning`.

    Raises:
        UnknownName: If there is no such study.
        InvalidInput: If the study compares arms.
        StorageError: If the database does not exist, or cannot be used.
    """
    store, row = find_row(study_name, storage)
    refuse_kind(row, "settings")
    return TuningStudy(TuningLog(store, row))


def load_any(study_name: str, storage: str | Storage | None = None) -> Study | TuningStudy:
    """Load a study of any kind.

    Args:
        study_name: The study's name.
        storage: As in `create_tuning`.

    Raises:
        UnknownName: If there is no such study.
        StorageError: If the database does not exist, or cannot be used.
    """
    store, row = find_row(study_name, storage)
    return load_study(study_name, store) if row.kind == "arms" else TuningStudy(TuningLog(store, row))


def newest_tuning(storage: Storage) -> TuningStudy | None:
    """Return the tuning study that was created last and was not retired; None if there is none. Blocks."""
    with storage.lock, storage.translate_errors():
        rows = [row for row in storage.list_studies(storage.connection()) if row.kind == "settings"]
    found = (TuningStudy(TuningLog(storage, row)) for row in reversed(rows))
    return next((study for study in found if not study.retired), None)


def _refuse_different(study: TuningStudy, space: Space, policy: str | None, confidence: float | None) -> None:
    if study.space != space:
        raise Conflict(
            f"study {study.name!r} exists with another space, {study.space.to_dict()}: choose another name for "
            f"{space.to_dict()}"
        )
    for what, own, given in (("policy", study.policy, policy), ("confidence", study.confidence, confidence)):
        if given is not None and given != own:
            raise Conflict(
                f"study {study.name!r} exists with {what} {own}, not {given}: leave {what} out, or choose another name"
            )
