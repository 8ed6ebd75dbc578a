from bedrax.extend.services import (
    get_hlo_sharding_from_serialized_proto as get_hlo_sharding_from_serialized_proto,
    get_op_sharding_from_serialized_proto as get_op_sharding_from_serialized_proto,
    get_serialized_proto_from_hlo_sharding as get_serialized_proto_from_hlo_sharding,
)
from bedrax.xla_backend.sharding import GSPMDSharding as GSPMDSharding
