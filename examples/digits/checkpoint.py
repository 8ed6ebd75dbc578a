"""Checkpoints, in one of two formats: Orbax (a folder) or msgpack (one file)."""

from pathlib import Path

from flax import serialization


def save_orbax(path: Path, tree) -> None:
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path.absolute(), tree, force=True)


def restore_orbax(path: Path, like):
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(path.absolute(), like)


def save_msgpack(path: Path, tree) -> None:
    path.write_bytes(serialization.to_bytes(tree))


def restore_msgpack(path: Path, like):
    return serialization.from_bytes(like, path.read_bytes())


FORMATS = {"orbax": (save_orbax, restore_orbax), "msgpack": (save_msgpack, restore_msgpack)}
