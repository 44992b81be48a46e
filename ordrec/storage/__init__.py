"""Files of models, without pickle: archive, declaration of what is stored, checks of what is read.

A model file is a zip archive of numpy's ``.npy`` members, deflated where that makes them smaller,
and one ``ordrec.json``: format, version, kind of model, the sha256 of each array, and the model's
own metadata. Arrays that are equal are members once. ``numpy.load`` can read the members too.
Loading a file from an untrusted source runs no code from it: there are no pickles, the kind must be
in a fixed table, and nothing is unpacked to disk. What its arrays take, and what a model recomputes
then (the Gram matrices of a `RatingPredictor`), is known first and held to ``load(max_memory=)``.

A class is made storable by declaring its attributes in ``stored``, see `ordrec.storage.schema`, and
by a line in the table of models, `ordrec.recommend.registry`; `ordrec.save` and `ordrec.load` write
and read its files. What ``check_stored`` computes must not trust the file: use `claim_memory`
before making arrays that may be much larger than those of the file.
"""
