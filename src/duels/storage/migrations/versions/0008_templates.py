"""Tuning studies have a template: the page on which voters see a setting."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "templates",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("html", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("templates")
