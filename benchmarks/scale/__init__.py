"""Curves of scale: time and memory per operation, for programs from small to large, with upstream's next to ours."""
