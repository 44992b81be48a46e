"""Other people's models as rows of the same table.

Each adapter takes an unfitted model of another package, fits a copy of it to `Ratings` and
answers for original ids: Surprise, implicit, myFM, and any regressor or classifier with
scikit-learn's face (LightGBM, mord and skordinal among them). The packages are imported when
a model is fitted; ``pip install 'ordrec[peers]'`` brings them.

A few stand in the command line under names of their own (``surprise-svd``, ``surprise-knn``,
``implicit-bpr``, ``myfm``, ``ridge``); any other is a row of the same table from a script::

    evaluate(ratings, {"forest": SklearnModel(RandomForestRegressor()), "predictor": "predictor"})
"""
