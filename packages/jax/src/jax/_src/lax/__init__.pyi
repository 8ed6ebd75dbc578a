from . import control_flow as control_flow, lax as lax
