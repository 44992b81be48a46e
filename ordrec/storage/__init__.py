"""Save models to files and load them, without pickle.

A model file is a zip archive of numpy's ``.npy`` members, none of them compressed, and one
``ordrec.json``: format, version, kind of model, the sha256 of each member, and the model's own
metadata. ``numpy.load`` can read the arrays too. Loading a file from an untrusted source runs no
code from it: there are no pickles, the kind must be in a fixed table, nothing is unpacked to
disk, and reading needs no more memory than the size of the file. What a model recomputes then (the
Gram matrices of a `RatingPredictor`) is estimated first and bounded by ``load(max_memory=)``.

To make a class storable, give it two methods and a name:

* ``to_state(self)`` returns ``(arrays, metadata)``: a dict of numpy arrays (numbers or
  booleans), and a dict of values that json can represent;
* ``from_state(cls, arrays, metadata)``, a class method, rebuilds the model. It must not trust its
  input: use `take` to check the type, shape and range of an array, since compiled loops do not,
  and `claim_memory` before it makes arrays that may be much larger than those of the file;
* a line in a table of models, `ordrec.recommend.registry` or `ordrec.ordinal.storable`, or a call
  of ``register("Name", "package.module:Class")``.

`ids_to_arrays` and `ids_from_arrays` convert user and item ids, `texts_to_arrays` and
`texts_from_arrays` strings in general, `state_of` and `model_of` a model inside another model;
`take_rows` checks the rows of a sparse table.
"""

from __future__ import annotations

from ordrec.storage.archive import HEADER, REMEDY, load_arrays, save_arrays
from ordrec.storage.checks import LARGEST, take, take_covariance, take_rows, take_starts
from ordrec.storage.limits import claim_memory
from ordrec.storage.models import load, model_of, register, save, state_of
from ordrec.storage.texts import (
    ids_from_arrays,
    ids_to_arrays,
    texts_from_arrays,
    texts_to_arrays,
)

__all__ = [
    "HEADER",
    "LARGEST",
    "REMEDY",
    "claim_memory",
    "ids_from_arrays",
    "ids_to_arrays",
    "load",
    "load_arrays",
    "model_of",
    "register",
    "save",
    "save_arrays",
    "state_of",
    "take",
    "take_covariance",
    "take_rows",
    "take_starts",
    "texts_from_arrays",
    "texts_to_arrays",
]
