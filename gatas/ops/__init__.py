"""The fused operators and what they stand on, at the bottom of the package.

One folder for each operator: `contract.py` says what it means in plain torch, which is the oracle of its tests, `cpu.py`
computes it with numba and `cuda.py` with Triton. `from gatas.ops.attend import attend` gives the callable. Nothing is
registered with torch, and neither torch nor numba nor Triton is imported, before an operator's folder is.
"""
