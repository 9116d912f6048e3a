"""The tables, as `storage.tables` describes them."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NAMED = sa.text("voter IS NOT NULL")
TABLES = (
    "studies",
    "events",
    "snapshots",
    "votes",
    "keys",
    "link_votes",
    "voters",
    "invitations",
    "items",
    "outputs",
    "changes",
    "impressions",
    "templates",
)


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
    columns = ["study_id", "voter", "kind", "seq"]
    op.create_index("events_by_voter", "events", columns, sqlite_where=NAMED, postgresql_where=NAMED)
    op.create_table(
        "snapshots",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "votes",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("voters", sa.LargeBinary),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE")),
        sa.Column("parent_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE")),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("expires", sa.Float),
        sa.Column("revoked", sa.Float),
        sa.Column("settings", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "link_votes",
        sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("duel", sa.Integer, primary_key=True),
        sa.Column("address", sa.Text),
        sa.Column("asked", sa.Float),
    )
    op.create_index("link_votes_by_address", "link_votes", ["key_id", "address"])
    op.create_table(
        "voters",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE")),
        sa.Column("digest", sa.Text, unique=True),
    )
    op.create_table(
        "invitations",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE"), nullable=False, unique=True),
    )
    op.create_table(
        "items",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("tags", sa.Text),
    )
    op.create_table(
        "outputs",
        sa.Column("study_id", sa.Integer, primary_key=True),
        sa.Column("item", sa.Integer, primary_key=True),
        sa.Column("arm", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["study_id", "item"], ["items.study_id", "items.number"], ondelete="CASCADE"),
    )
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE")),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("changes_by_study", "changes", ["study_id", "id"])
    op.create_table(
        "impressions",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("duel", sa.Integer, primary_key=True),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "templates",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("html", sa.Text, nullable=False),
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
