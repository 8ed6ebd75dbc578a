"""What both bridges between programs and TensorFlow share."""
