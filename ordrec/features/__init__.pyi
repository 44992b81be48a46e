from .low_rank.model import LowRankEM as LowRankEM
from .matrix import Biases as Biases
from .matrix import RatingMatrix as RatingMatrix
from .matrix import damped_biases as damped_biases
from .mean import MeanImputer as MeanImputer
from .side.encoder import SideEncoder as SideEncoder
from .side.encoder import side_encoders as side_encoders
from .text import DocumentTfidf as DocumentTfidf
