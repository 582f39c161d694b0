"""Proves findings by running the kernel: plan -> harness -> run -> verdict.

Nothing here is imported by the lint path. torch, triton and flashinfer are imported only in the child processes that `sandbox` starts.
"""
