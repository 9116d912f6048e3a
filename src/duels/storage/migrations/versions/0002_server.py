"""Keys of people and programs, items of a study, impressions of interleaved lists."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
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
        "items",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("prompt", sa.Text, nullable=False),
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
        "impressions",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("duel", sa.Integer, primary_key=True),
        sa.Column("record", sa.Text, nullable=False),
    )


def downgrade() -> None:
    for table in ("impressions", "outputs", "items", "keys"):
        op.drop_table(table)
