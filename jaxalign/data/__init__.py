"""Files shipped with jaxalign; see README.md beside this file for their sources."""
