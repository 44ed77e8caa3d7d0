"""Torch modules of the framework: thin shells over `densembed.gamma`."""

from densembed.layers.convolution import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    DensityConv1d,
    DensityConv2d,
)
from densembed.layers.embedding import AdaptiveDensityEmbedding, DensityEmbedding, PixelEmbedding
from densembed.layers.linear import DensityLinear
from densembed.layers.pooling import AdaptivePool1d, AdaptivePool2d
from densembed.layers.quadrature import QuadratureEmbedding

__all__ = [
    "AdaptiveConv1d",
    "AdaptiveConv2d",
    "AdaptiveDensityEmbedding",
    "AdaptivePool1d",
    "AdaptivePool2d",
    "DensityConv1d",
    "DensityConv2d",
    "DensityEmbedding",
    "DensityLinear",
    "PixelEmbedding",
    "QuadratureEmbedding",
]
