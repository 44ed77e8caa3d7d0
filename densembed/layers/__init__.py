"""Torch modules of the framework: thin shells over `densembed.functional`."""

from densembed.layers.convolution import (
    AdaptiveConv1d,
    AdaptiveConv2d,
    DensityConv1d,
    DensityConv2d,
)
from densembed.layers.embedding import (
    AdaptiveDensityEmbedding,
    AdaptiveDensityEmbedding1d,
    AdaptiveDensityEmbedding2d,
    DensityEmbedding,
    DensityEmbedding1d,
    DensityEmbedding2d,
    PixelEmbedding,
)
from densembed.layers.features import FeatureEmbedding
from densembed.layers.linear import DensityLinear
from densembed.layers.pooling import AdaptivePool1d, AdaptivePool2d
from densembed.layers.quadrature import QuadratureEmbedding

__all__ = [
    "AdaptiveConv1d",
    "AdaptiveConv2d",
    "AdaptiveDensityEmbedding",
    "AdaptiveDensityEmbedding1d",
    "AdaptiveDensityEmbedding2d",
    "AdaptivePool1d",
    "AdaptivePool2d",
    "DensityConv1d",
    "DensityConv2d",
    "DensityEmbedding",
    "DensityEmbedding1d",
    "DensityEmbedding2d",
    "DensityLinear",
    "FeatureEmbedding",
    "PixelEmbedding",
    "QuadratureEmbedding",
]
