# SPDX-License-Identifier: Apache-2.0
"""One rank of the Accelerate side: GPT2LMHeadModel from Accrue's initial weights, the same tokens in the same order.

Started by torchrun (compare.py does it). Written as Accelerate's own guide shows: prepare(), accumulate(), backward(), clip_grad_norm_(), step().
Rank 0 writes one JSON line per update to --out: update, loss (mean over all targets of the window on all ranks), seconds since its own start.
"""
import argparse
import json
import os
import time

started = time.monotonic()

import numpy
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from safetensors.torch import load_file
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel


class TokenWindows(Dataset):
    """Sample i is the tokens [i * context, (i + 1) * context]: `context` inputs and, one token further on, `context` targets."""

    def __init__(self, path, context):
        self.tokens = numpy.memmap(path, dtype=numpy.uint16, mode="r")
        self.context = context

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index):
        begin = index * self.context
        window = torch.from_numpy(self.tokens[begin : begin + self.context + 1].astype(numpy.int64))
        return window[:-1], window[1:]


def load_weights(model, path, layers):
    """Accrue keeps a linear weight as [outputs, inputs]; GPT-2's Conv1D keeps the transposed one."""
    ours = load_file(path)
    renamed = {"transformer.wte.weight": ours["token_embedding.weight"], "transformer.wpe.weight": ours["position_embedding.weight"]}
    pairs = {"norm_1": "ln_1", "norm_2": "ln_2", "attention.qkv": "attn.c_attn", "attention.output": "attn.c_proj", "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj"}
    for layer in range(layers):
        for mine, theirs in pairs.items():
            for part in ("weight", "bias"):
                tensor = ours[f"blocks.{layer}.{mine}.{part}"]
                renamed[f"transformer.h.{layer}.{theirs}.{part}"] = tensor.t().contiguous() if tensor.dim() == 2 else tensor
    for part in ("weight", "bias"):
        renamed[f"transformer.ln_f.{part}"] = ours[f"final_norm.{part}"]
    missing, unexpected = model.load_state_dict(renamed, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)


def arguments():
    parser = argparse.ArgumentParser()
    for name, kind in (("tokens", str), ("weights", str), ("out", str), ("layers", int), ("width", int), ("heads", int), ("context", int),
                       ("micro-batch", int), ("accumulate", int), ("updates", int), ("lr", float), ("clip-norm", float)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--tuned", action="store_true", help="fused AdamW, gradients as views of the buckets, static graph")
    return parser.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    handlers = [DistributedDataParallelKwargs(gradient_as_bucket_view=True, static_graph=True)] if args.tuned else []
    accelerator = Accelerator(cpu=args.device == "cpu", gradient_accumulation_steps=args.accumulate, kwargs_handlers=handlers)
    config = GPT2Config(vocab_size=256, n_positions=args.context, n_embd=args.width, n_layer=args.layers, n_head=args.heads, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa", use_cache=False, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    load_weights(model, args.weights, args.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, fused=args.tuned or None)
    loader = DataLoader(TokenWindows(args.tokens, args.context), batch_size=args.micro_batch, shuffle=False)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()

    report = open(args.out, "w", buffering=1) if accelerator.is_main_process else None
    window_loss, micro_steps, updates = torch.zeros((), device=accelerator.device), 0, 0
    while updates < args.updates:
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = model(input_ids=inputs, labels=inputs, shift_labels=targets).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), args.clip_norm)
                optimizer.step()
                optimizer.zero_grad()
            window_loss += loss.detach()
            micro_steps += 1
            if accelerator.sync_gradients:
                mean = accelerator.reduce(window_loss / micro_steps, reduction="mean")
                updates += 1
                if report:
                    report.write(json.dumps({"update": updates, "loss": mean.item(), "seconds": time.monotonic() - started}) + "\n")
                window_loss, micro_steps = torch.zeros((), device=accelerator.device), 0
                if updates == args.updates:
                    break
    accelerator.wait_for_everyone()
    if report:
        report.close()


main()
# Gloo's threads can block the interpreter's shutdown forever; everything is written by now.
os._exit(0)
