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

from . import data as data
from . import datasets as datasets
from . import documents as documents
from . import evaluation as evaluation
from . import features as features
from . import kernels as kernels
from . import ordinal as ordinal
from . import recommend as recommend

__version__: str
