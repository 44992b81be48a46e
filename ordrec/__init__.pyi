from .datasets import load_dataset as load_dataset
from .errors import OrdrecError as OrdrecError
from .persistence import load as load
from .persistence import save as save
from .ratings import Ratings as Ratings
from .ratings import Scale as Scale

__version__: str
