"""Tools that show a programmer a running program: a debugger, pictures of shardings, source maps of programs."""
