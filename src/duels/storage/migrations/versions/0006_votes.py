"""The votes of an import as a compressed table, beside its one event."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "votes",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("voters", sa.LargeBinary),
    )


def downgrade() -> None:
    op.drop_table("votes")
