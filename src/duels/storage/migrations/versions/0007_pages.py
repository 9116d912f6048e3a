"""Items have tags, changes of a study are noted with who made them, and people can be invited by name."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("items", sa.Column("tags", sa.Text))
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
        "invitations",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE"), nullable=False, unique=True),
    )


def downgrade() -> None:
    op.drop_table("invitations")
    op.drop_table("changes")
    op.drop_column("items", "tags")
