# SPDX-License-Identifier: Apache-2.0
# Modules and parameters have the names under which a run saves its weights.
# %% model=gpt

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1 = nn.LayerNorm(WIDTH)
        self.attention = nn.ModuleDict({"qkv": nn.Linear(WIDTH, 3 * WIDTH), "output": nn.Linear(WIDTH, WIDTH)})
        self.norm_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict({"up": nn.Linear(WIDTH, 4 * WIDTH), "down": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x):
        rows, length, _ = x.shape
        split = self.attention["qkv"](self.norm_1(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        dropout = DROPOUT if self.training else 0.0
        mixed = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        x = x + F.dropout(self.attention["output"](mixed.transpose(1, 2).reshape(rows, length, WIDTH)), dropout)
        hidden = F.gelu(self.mlp["up"](self.norm_2(x)), approximate="tanh")
        return x + F.dropout(self.mlp["down"](hidden), dropout)


class Model(nn.Module):
    """A GPT-2: norms before the halves of a block, learned positions, the head tied to the token embedding."""

    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embedding = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.final_norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        x = F.dropout(x, DROPOUT if self.training else 0.0)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.final_norm(x), self.token_embedding.weight)

# %% model=mlp

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [INPUTS, *HIDDEN, OUTPUTS]
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=_BIAS_) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
# %% hidden=plain
            x = F._ACTIVATION_(layer(x))
# %% hidden=plain-tanh
            x = torch.tanh(layer(x))
# %% hidden=normed
            x = F._ACTIVATION_(F.batch_norm(layer(x), None, None, training=True))
# %% hidden=normed-tanh
            x = torch.tanh(F.batch_norm(layer(x), None, None, training=True))
# %% model=mlp
        return self.layers[-1](x)

# %% model=linear

class Model(nn.Linear):
    def __init__(self):
        super().__init__(INPUTS, OUTPUTS, bias=_BIAS_)

