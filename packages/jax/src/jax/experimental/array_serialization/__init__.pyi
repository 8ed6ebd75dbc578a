from . import serialization as serialization
