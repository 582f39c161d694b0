"""graphlint: a units and lifetime checker for CUDA-graph padding in LLM serving engines."""

__version__ = "0.1.0"
