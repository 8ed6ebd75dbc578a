"""Two transformations that go through control flow: a count of operations, and interval arithmetic."""
