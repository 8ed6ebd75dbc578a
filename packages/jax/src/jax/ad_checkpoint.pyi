from bedrax.autodiff.checkpoint_policies import Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable
from bedrax.autodiff.checkpointing import print_saved_residuals as print_saved_residuals
from bedrax.lax.primitives.calls import checkpoint_name_fwd as checkpoint_name_fwd, name_p as name_p
from bedrax.autodiff import checkpoint_name as checkpoint_name
from . import checkpoint_policies as checkpoint_policies
