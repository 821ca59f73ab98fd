#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small models of the real transformers, with random weights, and what they say of a text.

    make_huggingface_models.py OUT

OUT/NAME is a folder as save_pretrained writes it, and OUT/NAME.safetensors holds "tokens" [2, 24] and "logits" [2, 24, V]. Weights are larger than a
fresh model's, so that norms, biases and rotations all matter. Runs in the environment of python_tools.py.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM

SMALL = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6, vocab_size=71, max_position_embeddings=64)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)

MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=48, n_head=6, n_positions=64, vocab_size=71)),
    "gpt2-other": lambda: GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_embd=48, n_head=4, n_positions=64, vocab_size=71, n_inner=100, activation_function="gelu", layer_norm_epsilon=1e-3, tie_word_embeddings=False)
    ),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SMALL)),
    "llama-grouped": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=2, rms_norm_eps=1e-3, rope_parameters=LLAMA3)),
    "llama-tied": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=3, head_dim=10, tie_word_embeddings=True)),
    "llama-biased": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=64)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL, num_key_value_heads=2, tie_word_embeddings=True)),
}


def make(name, out):
    torch.manual_seed(len(name))
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + 0.2 * torch.randn_like(parameter))
    # One of them is cut into files of at most 30 kB.
    model.save_pretrained(out / name, max_shard_size="30KB" if name == "llama-grouped" else "5GB")
    tokens = torch.randint(0, 71, (2, 24))
    with torch.no_grad():
        logits = model(tokens).logits
    save_file({"tokens": tokens, "logits": logits.contiguous()}, out / f"{name}.safetensors")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for each in MODELS:
        make(each, folder)
        print(each)
