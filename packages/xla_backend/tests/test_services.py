"""Services of the backend under the names of `jax.extend`."""

import pytest

from bedrax.xla_backend import clients, services
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.sharding import SingleDeviceSharding


def test_options_of_compilation():
    options = services.get_compile_options(1, 1, env_options_overrides={"xla_cpu_enable_fast_math": "true"})
    assert options.num_partitions == 1
    given = dict(options.env_option_overrides)
    assert given["xla_cpu_enable_fast_math"] == "true"
    assert given["xla_cpu_parallel_codegen_split_count"] == min(32, runtime.cores())  # no more parts than cores
    chosen = services.get_compile_options(1, 1, env_options_overrides={"xla_cpu_parallel_codegen_split_count": 5})
    assert chosen.env_option_overrides == [("xla_cpu_parallel_codegen_split_count", 5)]
    with pytest.raises(NotImplementedError, match="num_replicas"):
        services.get_compile_options(2, 1)
    with pytest.raises(ValueError, match=r"no devices \[1000\]"):
        services.get_compile_options(1, 1, device_assignment=[1000])
    with pytest.raises(ValueError, match="1000 partitions"):
        services.get_compile_options(1, 1000)
    assert services.backend_xla_version() is None or isinstance(services.backend_xla_version(), int)


def test_clear_caches_empties_caches_of_libraries():
    cleared = []

    class Cache:
        def cache_clear(self):
            cleared.append(1)

    services.register_backend_cache(Cache(), "this test")
    services.clear_in_memory_compilation_cache()
    assert cleared == [1]
    with pytest.raises(TypeError, match="cache_clear"):
        services.register_backend_cache(3, "nothing")


def test_platforms_of_libraries():
    services.register_backend_factory("of_this_test", lambda: clients.get_backend("cpu"), priority=-1)
    with pytest.raises(NotImplementedError):
        services.register_backend_factory("other", lambda: None, experimental=True)


def test_shardings_as_bytes():
    hlo = SingleDeviceSharding(clients.devices()[0])._to_xla_hlo_sharding(1)
    data = services.get_serialized_proto_from_hlo_sharding(hlo)
    assert services.get_hlo_sharding_from_serialized_proto(data) == hlo
    split = runtime.HloSharding.iota_tile([2, 1])
    data = services.get_serialized_proto_from_hlo_sharding(split)
    assert services.get_hlo_sharding_from_serialized_proto(data).tile_assignment_dimensions() == [2, 1]
