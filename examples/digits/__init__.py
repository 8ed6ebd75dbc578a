"""Handwritten digits from training to deployment and back; see README.md."""
