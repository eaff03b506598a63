"""The command line: one file per verb; the only room that prints or exits."""
