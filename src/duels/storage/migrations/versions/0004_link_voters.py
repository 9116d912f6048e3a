"""Voters of links get numbers; the cookies that were their names are erased and no longer work."""

import sqlalchemy as sa
from alembic import op

from duels.votes.names import is_reserved, link_voter, name_imported

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "voters",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE")),
        sa.Column("digest", sa.Text, unique=True),
    )
    _rename_voters(op.get_bind())


def _rename_voters(connection: sa.Connection) -> None:
    cookies = _cookies(connection)
    grouped = sa.text("SELECT study_id, voter, MIN(seq) FROM events WHERE voter IS NOT NULL GROUP BY study_id, voter")
    named = sorted(connection.execute(grouped), key=lambda row: (row[0], row[2], row[1]))
    change = sa.text("UPDATE events SET voter = :new WHERE study_id = :study AND voter = :old")
    for study, voter, _ in named:  # these first: they free the names "Voter 1", "Voter 2", …
        if voter not in cookies and is_reserved(voter):
            connection.execute(change, {"study": study, "old": voter, "new": name_imported(voter)})
    numbers: dict[int, int] = {}
    for study, voter, _ in named:
        if voter in cookies:
            number = numbers[study] = numbers.get(study, 0) + 1
            connection.execute(change, {"study": study, "old": voter, "new": str(link_voter(number))})
            values = {"study": study, "number": number}
            connection.execute(sa.text("INSERT INTO voters (study_id, number) VALUES (:study, :number)"), values)


def _cookies(connection: sa.Connection) -> set[str]:
    """The names that were cookies: 22 characters, asked as links ask, in a study that has or had a link.

    Wherever else such a name appears, it was imported from a file.
    """
    asked = sa.text(
        "SELECT DISTINCT voter FROM events WHERE kind = 'ask' AND voter IS NOT NULL "
        "AND note LIKE '%\"allow_self\": false%' "
        "AND study_id IN (SELECT study_id FROM keys WHERE kind = 'vote' AND study_id IS NOT NULL)"
    )
    return {voter for voter in connection.execute(asked).scalars() if len(voter) == 22 and voter.isascii()}


def downgrade() -> None:
    op.drop_table("voters")
