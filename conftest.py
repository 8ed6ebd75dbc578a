"""How many examples property tests draw: few in a test run, many in the `fuzz` session.

A test run must say the same thing twice about the same commit, so it draws its examples from a
fixed seed; the `fuzz` session is the place for new ones.
"""

from hypothesis import settings

settings.register_profile("tests", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fuzz", deadline=None, max_examples=3000, print_blob=True)
settings.load_profile("tests")  # pytest's --hypothesis-profile loads another one after this
