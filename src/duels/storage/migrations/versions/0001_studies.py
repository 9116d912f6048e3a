"""Studies, their events and snapshots."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("horizon", sa.BigInteger),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("lease", sa.Float, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "events",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("duel", sa.Integer),
        sa.Column("attempt", sa.Integer),
        sa.Column("left_arm", sa.Integer),
        sa.Column("right_arm", sa.Integer),
        sa.Column("swapped", sa.Integer),
        sa.Column("answer", sa.Text),
        sa.Column("voter", sa.Text),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("digest", sa.Text, nullable=False),
        sa.UniqueConstraint("study_id", "duel", "kind", "attempt", name="one_event_of_a_kind"),
    )
    op.create_index("events_by_voter", "events", ["study_id", "voter"])
    op.create_table(
        "snapshots",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    for table in ("snapshots", "events", "studies"):
        op.drop_table(table)
