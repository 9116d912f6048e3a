"""Rankers: from LETOR and TREC files, clicks and interleaving to preference matrices."""
