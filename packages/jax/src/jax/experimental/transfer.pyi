from bedrax.extend.unsupported import make_error_array as make_error_array
from bedrax.xla_backend.door.runtime import (
    TransferConnection as TransferConnection,
    TransferServer as TransferServer,
    start_transfer_server as start_transfer_server,
)
