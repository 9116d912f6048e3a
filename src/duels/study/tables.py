"""The tables of a storage; `migrations/` makes them."""

import sqlalchemy as sa

metadata = sa.MetaData()
studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.Float, nullable=False),  # seconds since 1970
    sa.Column("policy", sa.Text, nullable=False),
    sa.Column("horizon", sa.BigInteger),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("lease", sa.Float, nullable=False),  # seconds after which an open duel stops counting
    sa.Column("settings", sa.Text, nullable=False),  # JSON: what the policy's file was, and the like
    sqlite_autoincrement=True,  # the id of a deleted study is never given again
)
events = sa.Table(
    "events",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("duel", sa.Integer),
    sa.Column("attempt", sa.Integer),  # of a duel: how often its answer was undone before
    sa.Column("left_arm", sa.Integer),
    sa.Column("right_arm", sa.Integer),
    sa.Column("swapped", sa.Integer),  # whether the policy's first arm is shown on the right
    sa.Column("answer", sa.Text),
    sa.Column("voter", sa.Text),
    sa.Column("time", sa.Float, nullable=False),
    sa.Column("note", sa.Text),  # JSON of what only some kinds have
    sa.Column("digest", sa.Text, nullable=False),  # of this event and all before it
    sa.UniqueConstraint("study_id", "duel", "kind", "attempt", name="one_event_of_a_kind"),
    sa.Index("events_by_voter", "study_id", "voter"),
)
snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
EVENT_COLUMNS = tuple(column.name for column in events.columns if column.name != "study_id")
