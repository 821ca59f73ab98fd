# SPDX-License-Identifier: Apache-2.0
"""One rank of the plain PyTorch side: the same GPT over two tensor-parallel ranks or two pipeline stages, by torch.distributed over Gloo.

Started by torchrun (compare.py does it). Written as small teaching codes write it: column- and row-parallel linear layers around each block with an
all-reduce in forward and backward, a vocabulary-parallel embedding whose logits are gathered; one-forward-one-backward between stages by batched
messages. The rank that has the loss writes one JSON line per update to --out: update, loss (mean over the window), seconds since its own start.
"""
import argparse
import json
import os
import time

started = time.monotonic()

import numpy
import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn


class Copy(torch.autograd.Function):
    """Identity; the gradient is summed over the tensor ranks."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Reduce(torch.autograd.Function):
    """The sum over the tensor ranks; the gradient passes."""

    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Gather(torch.autograd.Function):
    """The last dim from all tensor ranks; the gradient is the own part."""

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.chunk(dist.get_world_size(), dim=-1)[dist.get_rank()].contiguous()


class Block(nn.Module):
    def __init__(self, width, heads, tensor):
        super().__init__()
        self.heads, self.divided = heads // tensor, tensor > 1
        own = width // tensor
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.output = nn.Linear(width, 3 * own), nn.Linear(own, width)
        self.up, self.down = nn.Linear(width, 4 * own), nn.Linear(4 * own, width)

    def row(self, layer, x):
        if not self.divided:
            return layer(x)
        return Reduce.apply(F.linear(x, layer.weight)) + layer.bias

    def column(self, layer, x):
        return layer(Copy.apply(x) if self.divided else x)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.column(self.qkv, self.norm_1(x)).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, -1)
        x = x + self.row(self.output, mixed)
        return x + self.row(self.down, F.gelu(self.column(self.up, self.norm_2(x)), approximate="tanh"))


class Stage(nn.Module):
    """The whole model over tensor ranks, or one stage of it."""

    def __init__(self, args, rank):
        super().__init__()
        tensor, stage = (rank, 0) if args.layout == "tensor" else (0, rank)
        self.tensor_ranks = args.ranks if args.layout == "tensor" else 1
        stages = args.ranks if args.layout == "pipeline" else 1
        self.first, self.last = stage == 0, stage == stages - 1
        self.rows = 256 // self.tensor_ranks
        self.low = tensor * self.rows
        each = args.layers // stages
        self.blocks = nn.ModuleList(Block(args.width, args.heads, self.tensor_ranks) for _ in range(each))
        ours = load_file(args.weights)
        part = lambda x, dim: x.chunk(self.tensor_ranks, dim=dim)[tensor].clone()
        packed = lambda x: torch.cat([part(third, 0) for third in x.chunk(3)])
        self.token = nn.Parameter(part(ours["token_embedding.weight"], 0)) if self.first or self.last else None
        self.position = nn.Parameter(ours["position_embedding.weight"]) if self.first else None
        self.norm = nn.LayerNorm(args.width) if self.last else None
        with torch.no_grad():
            for own, block in enumerate(self.blocks):
                names = f"blocks.{stage * each + own}."
                for layer, name, cut in ((block.qkv, "attention.qkv", packed), (block.up, "mlp.up", lambda x: part(x, 0))):
                    layer.weight.copy_(cut(ours[names + name + ".weight"]))
                    layer.bias.copy_(cut(ours[names + name + ".bias"]))
                for layer, name in ((block.output, "attention.output"), (block.down, "mlp.down")):
                    layer.weight.copy_(part(ours[names + name + ".weight"], 1))
                    layer.bias.copy_(ours[names + name + ".bias"])
                for layer, name in ((block.norm_1, "norm_1"), (block.norm_2, "norm_2")):
                    layer.weight.copy_(ours[names + name + ".weight"])
                    layer.bias.copy_(ours[names + name + ".bias"])
            if self.last:
                self.norm.weight.copy_(ours["final_norm.weight"])
                self.norm.bias.copy_(ours["final_norm.bias"])

    def embed(self, tokens):
        if self.tensor_ranks == 1:
            return F.embedding(tokens, self.token) + self.position
        outside = (tokens < self.low) | (tokens >= self.low + self.rows)
        own = F.embedding((tokens - self.low).masked_fill(outside, 0), self.token).masked_fill(outside.unsqueeze(-1), 0.0)
        return Reduce.apply(own) + self.position

    def forward(self, x, targets):
        if self.first:
            x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        if not self.last:
            return x
        x = self.norm(x)
        logits = F.linear(x, self.token) if self.tensor_ranks == 1 else Gather.apply(F.linear(Copy.apply(x), self.token))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def is_divided(self, name):
        return self.tensor_ranks > 1 and (name == "token" or any(part in name for part in (".qkv.", ".up.", "output.weight", "down.weight")))


def exchange(*operations):
    for request in dist.batch_isend_irecv(list(operations)):
        request.wait()


def pipeline_window(model, rank, args, micro_batches):
    """One-forward-one-backward over two stages; returns the window's loss on the last."""
    shape = (args.micro_batch, args.context, args.width)
    peer = 1 - rank
    loss_sum = torch.zeros(())
    if rank == 0:
        kept = []
        forward = lambda number: model(micro_batches[number][0], None)
        kept.append(forward(0))
        exchange(dist.P2POp(dist.isend, kept[0].detach(), peer))
        for number in range(args.accumulate):
            gradient = torch.empty(shape)
            if number + 1 < args.accumulate:
                kept.append(forward(number + 1))
                exchange(dist.P2POp(dist.isend, kept[-1].detach(), peer), dist.P2POp(dist.irecv, gradient, peer))
            else:
                exchange(dist.P2POp(dist.irecv, gradient, peer))
            torch.autograd.backward(kept.pop(0), gradient)
        return loss_sum
    received = torch.empty(shape)
    exchange(dist.P2POp(dist.irecv, received, peer))
    for number in range(args.accumulate):
        x = received.requires_grad_()
        loss = model(x, micro_batches[number][1])
        (loss / args.accumulate).backward()
        loss_sum += loss.detach()
        if number + 1 < args.accumulate:
            received = torch.empty(shape)
            exchange(dist.P2POp(dist.isend, x.grad, peer), dist.P2POp(dist.irecv, received, peer))
        else:
            exchange(dist.P2POp(dist.isend, x.grad, peer))
    return loss_sum


def whole_window(model, args, micro_batches):
    loss_sum = torch.zeros(())
    for inputs, targets in micro_batches:
        loss = model(inputs, targets)
        (loss / args.accumulate).backward()
        loss_sum += loss.detach()
    return loss_sum


def clip(model, args, rank):
    """One norm over the parameters of all ranks, each counted once."""
    own = torch.zeros(())
    for name, parameter in model.named_parameters():
        tied_copy = args.layout == "pipeline" and name == "token" and rank > 0
        if not tied_copy and (args.layout == "pipeline" or model.is_divided(name) or rank == 0):
            own += parameter.grad.square().sum()
    dist.all_reduce(own)
    factor = args.clip_norm / (own.sqrt() + 1e-6)
    if factor < 1:
        torch._foreach_mul_([parameter.grad for parameter in model.parameters()], factor)


def arguments():
    parser = argparse.ArgumentParser()
    for name, kind in (("tokens", str), ("weights", str), ("out", str), ("layers", int), ("width", int), ("heads", int), ("context", int),
                       ("micro-batch", int), ("accumulate", int), ("updates", int), ("lr", float), ("clip-norm", float)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--layout", choices=("tensor", "pipeline"), required=True)
    return parser.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dist.init_process_group("gloo")
    rank, args.ranks = dist.get_rank(), dist.get_world_size()
    assert args.ranks == 2
    model = Stage(args, rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    tokens = numpy.memmap(args.tokens, dtype=numpy.uint16, mode="r")
    reports = model.last and (args.layout == "pipeline" or rank == 0)
    report = open(args.out, "w", buffering=1) if reports else None
    sample = 0
    for update in range(1, args.updates + 1):
        micro_batches = []
        for _ in range(args.accumulate):
            rows = [tokens[(sample + row) * args.context : (sample + row + 1) * args.context + 1].astype(numpy.int64) for row in range(args.micro_batch)]
            batch = torch.from_numpy(numpy.stack(rows))
            micro_batches.append((batch[:, :-1].contiguous(), batch[:, 1:].contiguous()))
            sample += args.micro_batch
        loss = pipeline_window(model, rank, args, micro_batches) if args.layout == "pipeline" else whole_window(model, args, micro_batches)
        if args.layout == "pipeline":
            dist.all_reduce(model.token.grad)
        clip(model, args, rank)
        optimizer.step()
        optimizer.zero_grad()
        if report:
            report.write(json.dumps({"update": update, "loss": (loss / args.accumulate).item(), "seconds": time.monotonic() - started}) + "\n")
    dist.barrier()
    if report:
        report.close()


main()
# Gloo's threads can block the interpreter's shutdown forever; everything is written by now.
os._exit(0)
