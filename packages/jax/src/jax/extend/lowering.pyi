from bedrax.extend.mlir_contexts import JaxIrContext as JaxIrContext, upstream_dialects as upstream_dialects
from bedrax.extend.mlir_rules import LoweringRuleContext as LoweringRuleContext
