"""The compiled kernel: blocks of raw lines become columns without a Python object per value.

It takes apart what is plain JSON throughout and leaves every line that is odd in any way to the
careful reading, so that there is one place that says what odd lines mean.
"""
