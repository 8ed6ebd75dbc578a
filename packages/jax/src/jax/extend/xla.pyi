from bedrax.extend.services import (
    PipelineStage as PipelineStage,
    clear_hlo_module_transformation as clear_hlo_module_transformation,
)
from bedrax.extend.unsupported import register_hlo_module_transformation as register_hlo_module_transformation
