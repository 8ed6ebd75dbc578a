"""Rules of the column `discharge`, by family."""
