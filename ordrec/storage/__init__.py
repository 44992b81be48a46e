"""Files of models, without pickle: archive, declaration of what is stored, checks of what is read.

A model file is a zip archive of numpy's ``.npy`` members, none of them compressed, and one
``ordrec.json``: format, version, kind of model, the sha256 of each member, and the model's own
metadata. ``numpy.load`` can read the arrays too. Loading a file from an untrusted source runs no
code from it: there are no pickles, the kind must be in a fixed table, nothing is unpacked to
disk, and reading needs no more memory than the size of the file. What a model recomputes then (the
Gram matrices of a `RatingPredictor`) is estimated first and bounded by ``load(max_memory=)``.

A class is made storable by declaring its attributes in ``stored``, see `ordrec.storage.schema`, and
by a line in the table of models, `ordrec.recommend.registry`; `ordrec.save` and `ordrec.load` write
and read its files. What ``check_stored`` computes must not trust the file: use `claim_memory`
before making arrays that may be much larger than those of the file.
"""

from __future__ import annotations

from ordrec.storage.archive import HEADER, REMEDY, load_arrays, save_arrays
from ordrec.storage.arrays import (
    LARGEST,
    ids_from_arrays,
    ids_to_arrays,
    take,
    take_covariance,
    take_rows,
    take_starts,
    texts_from_arrays,
    texts_to_arrays,
)
from ordrec.storage.limits import claim_memory

__all__ = [
    "HEADER",
    "LARGEST",
    "REMEDY",
    "claim_memory",
    "ids_from_arrays",
    "ids_to_arrays",
    "load_arrays",
    "save_arrays",
    "take",
    "take_covariance",
    "take_rows",
    "take_starts",
    "texts_from_arrays",
    "texts_to_arrays",
]
