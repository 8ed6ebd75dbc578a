from bedrax.call_tf import (
    CallTfEffect as CallTfEffect,
    CallTfOrderedEffect as CallTfOrderedEffect,
    TfConcreteFunction as TfConcreteFunction,
    TfVal as TfVal,
    UnspecifiedOutputShapeDtype as UnspecifiedOutputShapeDtype,
    add_to_call_tf_concrete_function_list as add_to_call_tf_concrete_function_list,
    call_tf as call_tf,
    call_tf_effect as call_tf_effect,
    call_tf_ordered_effect as call_tf_ordered_effect,
    call_tf_p as call_tf_p,
    check_tf_result as check_tf_result,
    emit_tf_embedded_graph_custom_call as emit_tf_embedded_graph_custom_call,
)
