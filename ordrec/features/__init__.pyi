from .low_rank import LowRankEM as LowRankEM
from .matrix import Biases as Biases
from .matrix import RatingMatrix as RatingMatrix
from .matrix import damped_biases as damped_biases
from .mean import MeanImputer as MeanImputer
from .text import DocumentTfidf as DocumentTfidf
