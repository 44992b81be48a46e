"""Rating models: what will they think of it?"""
