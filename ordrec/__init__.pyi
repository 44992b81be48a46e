from ordrec.data import Ratings as Ratings
from ordrec.data import Scale as Scale
from ordrec.datasets import load_dataset as load_dataset
from ordrec.errors import OrdrecError as OrdrecError
from ordrec.evaluation import evaluate as evaluate
from ordrec.files import load as load
from ordrec.files import save as save
from ordrec.recommend import OrdinalFactors as OrdinalFactors
from ordrec.recommend import RatingPredictor as RatingPredictor
from ordrec.recommend import Recommender as Recommender

__version__: str
