from bedrax.autodiff.checkpoint_policies import (
    SaveAndOffloadOnlyTheseNames as SaveAndOffloadOnlyTheseNames, SaveAnyNamesButThese as SaveAnyNamesButThese,
    SaveOnlyTheseNames as SaveOnlyTheseNames, checkpoint_dots as checkpoint_dots,
    checkpoint_dots_with_no_batch_dims as checkpoint_dots_with_no_batch_dims, dots_saveable as dots_saveable,
    dots_with_no_batch_dims_saveable as dots_with_no_batch_dims_saveable, everything_saveable as everything_saveable,
    nothing_saveable as nothing_saveable, offload_dot_with_no_batch_dims as offload_dot_with_no_batch_dims,
    save_and_offload_only_these_names as save_and_offload_only_these_names,
    save_any_names_but_these as save_any_names_but_these,
    save_anything_except_these_names as save_anything_except_these_names,
    save_from_both_policies as save_from_both_policies, save_only_these_names as save_only_these_names,
)  # fmt: skip
