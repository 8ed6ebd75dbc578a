from . import dialects as dialects, ir as ir
