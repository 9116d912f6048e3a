"""The tables of a storage; `migrations/` creates them."""

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
    sa.Column("settings", sa.Text, nullable=False),  # JSON: the policy's file, its code's hash, …
    sqlite_autoincrement=True,  # the id of a deleted study is never reused
)
_named = sa.text("voter IS NOT NULL")
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
    sa.Column("note", sa.Text),  # JSON: fields that only some kinds have
    sa.Column("digest", sa.Text, nullable=False),  # of this event and all before it
    sa.UniqueConstraint("study_id", "duel", "kind", "attempt", name="one_event_of_a_kind"),
    # SQLite reads the whole log in order, rather than use an index without kind and seq for a voter's questions.
    sa.Index("events_by_voter", "study_id", "voter", "kind", "seq", sqlite_where=_named, postgresql_where=_named),
)
snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
votes = sa.Table(
    "votes",  # those of an import; see batches.py
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),  # the import event's
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("voters", sa.LargeBinary),
)
keys = sa.Table(
    "keys",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),  # admin, api, session, vote or results
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),  # of the secret, which is not stored
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE")),
    sa.Column(
        "parent_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE")
    ),  # of a session: the key that signed in
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("expires", sa.Float),
    sa.Column("revoked", sa.Float),
    sa.Column("settings", sa.Text, nullable=False),  # JSON
    sqlite_autoincrement=True,  # the id of a deleted key is never reused
)
link_votes = sa.Table(  # votes, and questions without a vote, of links that have a cap
    "link_votes",
    metadata,
    sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("duel", sa.Integer, primary_key=True),
    sa.Column("address", sa.Text),  # a keyed digest of the network address, if the link counts by address
    sa.Column("asked", sa.Float),  # when the question was asked that has no vote yet; None for a vote
    sa.Index("link_votes_by_address", "key_id", "address"),
)
voters = sa.Table(  # who voted through a link: "Voter 7" of the study is number 7
    "voters",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE")),  # the link, if it is known
    sa.Column("digest", sa.Text, unique=True),  # of the cookie; None once the voter was forgotten
)
invitations = sa.Table(  # people who have a voting link of their own, and vote under their name
    "invitations",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("key_id", sa.Integer, sa.ForeignKey("keys.id", ondelete="CASCADE"), nullable=False, unique=True),
)
items = sa.Table(
    "items",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("prompt", sa.Text, nullable=False),
    sa.Column("tags", sa.Text),  # JSON: a list, if there are any
)
outputs = sa.Table(
    "outputs",
    metadata,
    sa.Column("study_id", sa.Integer, primary_key=True),
    sa.Column("item", sa.Integer, primary_key=True),
    sa.Column("arm", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),  # text, markdown, code, image or html
    sa.Column("content", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["study_id", "item"], ["items.study_id", "items.number"], ondelete="CASCADE"),
)
changes = sa.Table(  # who changed what through the server
    "changes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE")),  # None: of the server
    sa.Column("time", sa.Float, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Index("changes_by_study", "study_id", "id"),
    sqlite_autoincrement=True,
)
impressions = sa.Table(
    "impressions",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("duel", sa.Integer, primary_key=True),
    sa.Column("record", sa.Text, nullable=False),  # JSON: the list that was shown, and the credit for clicks on it
)
templates = sa.Table(  # of tuning studies: the page on which voters see a setting
    "templates",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("html", sa.Text, nullable=False),
)
EVENT_COLUMNS = tuple(column.name for column in events.columns if column.name != "study_id")
