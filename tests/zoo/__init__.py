"""A zoo of models, each carried to TensorFlow and TFLite."""
