from .low_rank import LowRankEM as LowRankEM
from .matrix import Biases as Biases
from .matrix import RatingMatrix as RatingMatrix
from .matrix import damped_biases as damped_biases
from .mean import MeanImputer as MeanImputer
from .side_features import SideEncoder as SideEncoder
from .side_features import side_encoders as side_encoders
from .text import DocumentTfidf as DocumentTfidf
