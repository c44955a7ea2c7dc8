"""The languages of the Triton cache, one module each; `FORMATS` is the only list of them."""
