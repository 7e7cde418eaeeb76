"""Ops of neural networks: activations, convolutions, images, recurrent cells."""
