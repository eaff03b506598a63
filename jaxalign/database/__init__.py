"""Queries against a database."""
