"""Deployment configurations: what a command line or manifest asks for, and which CUDA-graph mode it will really run with."""
