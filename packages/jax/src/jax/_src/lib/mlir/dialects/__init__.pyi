from . import func as func, hlo as hlo
