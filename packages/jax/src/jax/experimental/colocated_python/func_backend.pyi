"""No names: results are returned by the call that makes them, so that no store keeps them until they are asked for."""
