from bedrax.extend.mlir_modules import *
from bedrax.extend.mlir_rules import (
    ConstantHandler as ConstantHandler, DEVICE_TO_DEVICE_TYPE as DEVICE_TO_DEVICE_TYPE,
    LoweringRule as LoweringRule, LoweringRuleContext as LoweringRuleContext, Mesh as Mesh,
    MeshAxisName as MeshAxisName, ModuleContext as ModuleContext,
    RECV_FROM_HOST_TYPE as RECV_FROM_HOST_TYPE, SEND_TO_HOST_TYPE as SEND_TO_HOST_TYPE, Token as Token,
    TokenSet as TokenSet, Value as Value, aval_to_ir_type as aval_to_ir_type,
    aval_to_ir_types as aval_to_ir_types, core_call_lowering as core_call_lowering,
    dense_int_array as dense_int_array, dense_int_elements as dense_int_elements,
    dtype_to_ir_type as dtype_to_ir_type, emit_python_callback as emit_python_callback,
    flatten_ir_types as flatten_ir_types, flatten_ir_values as flatten_ir_values, i32_attr as i32_attr,
    i64_attr as i64_attr, ir as ir, ir_attribute as ir_attribute, ir_constant as ir_constant,
    ir_constants as ir_constants, ir_tree_registry as ir_tree_registry, ir_type_handlers as ir_type_handlers,
    lower_fun as lower_fun, lowerable_effects as lowerable_effects,
    make_ir_context as make_ir_context, module_to_bytecode as module_to_bytecode,
    module_to_string as module_to_string, register_constant_handler as register_constant_handler,
    register_lowering as register_lowering, shape_tensor as shape_tensor, token_type as token_type,
)  # fmt: skip
