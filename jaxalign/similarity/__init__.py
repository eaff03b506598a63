"""Similarities and gap costs by position: what soft and hard alignment both read."""
