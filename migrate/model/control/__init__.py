"""TensorFlow's dataflow control ops, read back as branches and loops."""
