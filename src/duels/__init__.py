"""Duels: find the best of K alternatives from pairwise comparisons."""
