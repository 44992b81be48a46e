"""Models of other packages behind ordrec's interface, to compare them in the same table.

Each adapter takes an unfitted model of another package, fits a copy of it to `Ratings` and
predicts for original ids: Surprise, implicit, myFM, and any regressor or classifier with
scikit-learn's interface (LightGBM, mord and skordinal among them). The packages are imported when
a model is fitted; ``pip install 'ordrec[peers]'`` installs them.

A few have names on the command line (``surprise-svd``, ``surprise-knn``, ``implicit-als``,
``implicit-bpr``, ``myfm``, ``ridge``); use any other from a script::

    evaluate(ratings, {"forest": SklearnModel(RandomForestRegressor()), "predictor": "predictor"})
"""
