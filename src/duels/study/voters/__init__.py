"""People: voting links, invitations, agreement and tests of voters."""
