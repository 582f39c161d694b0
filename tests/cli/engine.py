"""A small engine with one fault between two files: the drafter writes live rows only, the captured forward reads the padded ones."""

DRAFTER = '''\
import torch

from engine.forward import Captured


class Drafter(Captured):
    def __init__(self, config, device):
        self.max_num_reqs = config.max_num_seqs
        self.idx_mapping = torch.zeros(self.max_num_reqs, dtype=torch.int32, device=device)
        self.manager = make_manager()

    def neighbour(self, a, b):
        return a + b

    def propose(self, num_reqs, idx_mapping, desc):
        self.idx_mapping[:num_reqs].copy_(idx_mapping)
        self.manager.run_fullgraph(desc)
'''
FILLED = DRAFTER.replace("copy_(idx_mapping)\n", "copy_(idx_mapping)\n        self.idx_mapping[num_reqs:].fill_(-1)\n")
FORWARD = '''\
class Captured:
    def capture(self):
        self.manager.capture(self.generate)

    def generate(self, num_reqs, num_tokens):
        return sample(self.idx_mapping[:num_reqs])
'''
FILES = {"engine/__init__.py": "", "engine/drafter.py": DRAFTER, "engine/forward.py": FORWARD}
