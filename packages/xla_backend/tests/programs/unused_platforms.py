"""Prints the platforms that are not used, after one that fails to start was registered."""

from bedrax.xla_backend import clients


def fail():
    raise RuntimeError("it does not start")


clients.register_client_factory("toaster", fail)
clients.backends()
print(clients.unused()["toaster"])
