"""Curves of scale: time and memory per operation, for programs from small to large, upstream beside ours."""
