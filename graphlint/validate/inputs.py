"""Makes the tensors of a case: inputs that satisfy what the kernel assumes, outputs full of poison. Runs in the child."""

from __future__ import annotations

from typing import Any

from graphlint.validate.case import Case, Pointer, Step

#: small numbers: a kernel that reads its own output before it writes it must still find a valid index there
POISON = (1, 2)


class Buffers:
    """All buffers of one case on one device, kept at their addresses from step to step as a captured graph demands."""

    def __init__(self, case: Case, device: str) -> None:
        import torch

        self.case, self.device = case, device
        self.size = max(case.token_capacity, case.capacity + 1) * case.row
        self.tensors = {
            pointer.name: torch.zeros(self.size, dtype=getattr(torch, pointer.dtype), device=device)
            for pointer in case.pointers
            if pointer.role != "pointers"
        }
        for pointer in case.pointers:
            if pointer.role == "pointers":
                inner = self.tensors.get(f"{pointer.name}[]")
                address = inner.data_ptr() if inner is not None else 0
                self.tensors[pointer.name] = torch.full((8,), address, dtype=torch.int64, device=device).view(torch.uint64)

    def outputs(self) -> list[Pointer]:
        """Buffers the kernel stores to."""
        return [pointer for pointer in self.case.pointers if pointer.stored]

    def fill(self, step: Step, seed: int, poison: int | None, shuffle: bool = False) -> None:
        """Inputs of `step`; stored buffers hold `poison` wherever the kernel is not owed an input (None: they keep what they hold).

        `shuffle` draws other index and slot values and leaves all else as it is.
        """
        import torch

        for number, pointer in enumerate(self.case.pointers):
            if pointer.role == "pointers":
                continue
            # a generator each: a live lane gets the same input in the live and in the full batch
            other = 500 if shuffle and pointer.role in ("index", "slot", "table") else 0
            generator = torch.Generator().manual_seed(seed * 1000 + number + other)
            tensor = self.tensors[pointer.name]
            values = self._values(pointer, step, generator)
            if not pointer.stored:
                tensor.copy_(values.to(tensor.dtype))
                continue
            owed = self._owed(pointer, step)
            if poison is not None:
                tensor[owed:] = bool(poison % 2) if pointer.dtype == "bool" else poison
            if owed:
                tensor[:owed] = values[:owed].to(device=tensor.device, dtype=tensor.dtype)

    def _owed(self, pointer: Pointer, step: Step) -> int:
        """Elements of a stored buffer that the kernel also reads, as inputs of live lanes."""
        if not pointer.loaded:
            return 0
        if pointer.role == "offset":
            return step.live + 1
        tokens = sum(step.lengths[: step.live])
        lanes = {"position": tokens, "owner": tokens, "slot": tokens, "token": tokens}.get(pointer.role, step.live)
        return min(self.size, lanes * self.case.rows.get(pointer.name, 1))

    def _values(self, pointer: Pointer, step: Step, generator: Any) -> Any:
        import torch

        case, size = self.case, self.size
        lengths = torch.tensor(step.lengths[: step.live])
        tokens = int(lengths.sum())
        values = torch.zeros(size, dtype=torch.float64)
        role = pointer.role
        context = 5 + torch.arange(step.live) % 3
        if role == "offset":
            values[:] = tokens
            values[0] = 0
            values[1 : step.live + 1] = lengths.cumsum(0).double()
        elif role == "owner":
            values[:tokens] = torch.repeat_interleave(torch.arange(step.live), lengths).double()
        elif role == "index":
            # a permutation of the capacity, repeated: any lane, any request slot
            values[:] = torch.randperm(case.capacity, generator=generator).double().repeat(size // case.capacity + 1)[:size]
            if pointer.loaded and not pointer.stored and case.pad_index:
                values[step.live : case.capacity] = case.pad_index
        elif role == "length":
            values[: step.live] = (context + lengths).double()
        elif role == "count":
            values[: step.live] = _count(pointer.name, lengths, generator)
        elif role == "flag":
            values[:tokens] = 1
        elif role == "padding-flag":
            values[tokens:] = 1
        elif role == "table":
            values[:] = (1 + torch.randperm(size, generator=generator)).double()
        elif role == "position":
            values[:tokens] = torch.cat(
                [start + torch.arange(length) for start, length in zip(context.tolist(), lengths.tolist(), strict=True)]
            ).double()
        elif role == "slot":
            values[:] = torch.randperm(size, generator=generator).double()
        elif role == "stride":
            values[:] = case.row
        elif role == "size":
            values[:] = 16
        elif role == "token":
            values[:] = torch.randint(3, 100, (size,), generator=generator).double()
        elif pointer.dtype == "float32":
            values[:] = torch.rand(size, generator=generator, dtype=torch.float64) + 0.5
        else:
            values[:] = torch.randint(3, 8, (size,), generator=generator).double()
        return values


def _count(name: str, lengths: Any, generator: Any) -> Any:
    """Counts of live requests: nothing rejected beyond the query, one sampled or accepted at least."""
    import torch

    low = name.lower()
    if "reject" in low:
        return torch.tensor([int(torch.randint(0, int(length), (1,), generator=generator)) for length in lengths], dtype=torch.float64)
    if "computed" in low:
        return torch.full((len(lengths),), 5.0, dtype=torch.float64)
    if "block" in low or "page" in low:
        return torch.full((len(lengths),), 2.0, dtype=torch.float64)
    return torch.ones(len(lengths), dtype=torch.float64)
