from .columns import Duplicates as Duplicates
from .on_disk.partitions import write_partitions as write_partitions
from .on_disk.scan import RatingsScan as RatingsScan
from .ratings import Ratings as Ratings
from .scale import Scale as Scale
