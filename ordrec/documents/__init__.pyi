from .features import QueryDocumentFeatures as QueryDocumentFeatures
from .ranker import RelevanceRanker as RelevanceRanker
