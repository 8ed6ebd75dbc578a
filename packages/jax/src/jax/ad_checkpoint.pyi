from bedrax.autodiff.policies import (
    Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable,
)  # fmt: skip
from bedrax.autodiff.checkpointing import print_saved_residuals as print_saved_residuals
from bedrax.autodiff import (
    checkpoint_name as checkpoint_name, checkpoint_policies as checkpoint_policies,
)  # fmt: skip
