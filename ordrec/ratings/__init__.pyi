from .columns import Duplicates as Duplicates
from .partitions import write_partitions as write_partitions
from .scale import Scale as Scale
from .scan import RatingsScan as RatingsScan
from .table import Ratings as Ratings
