"""Votes through a link are counted where the link has a cap on them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "link_votes",
        sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("duel", sa.Integer, primary_key=True),
        sa.Column("address", sa.Text),
        sa.Column("asked", sa.Float),
    )
    op.create_index("link_votes_by_address", "link_votes", ["key_id", "address"])


def downgrade() -> None:
    op.drop_table("link_votes")
