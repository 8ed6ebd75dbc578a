"""The rows of the column `checks`, by family."""
