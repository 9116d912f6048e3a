"""The index of voters contains only events that name one: a smaller index makes commits faster.

Kind and number are in it, so that SQLite uses it for a voter's questions in their order, rather than reading the log.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NAMED = sa.text("voter IS NOT NULL")


def upgrade() -> None:
    op.drop_index("events_by_voter", "events")
    columns = ["study_id", "voter", "kind", "seq"]
    op.create_index("events_by_voter", "events", columns, sqlite_where=NAMED, postgresql_where=NAMED)


def downgrade() -> None:
    op.drop_index("events_by_voter", "events")
    op.create_index("events_by_voter", "events", ["study_id", "voter"])
