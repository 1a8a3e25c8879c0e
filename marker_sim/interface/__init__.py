"""What programs and tests in Python use of the kit.

calls.py        `import marker_sim`: verify, replay and judge, which take classes and strings alike
verdict.py      the result of `verify`, also as a picture in a notebook
conformance.py  the items of `pytest --marker-sut`
"""
