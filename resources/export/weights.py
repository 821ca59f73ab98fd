# SPDX-License-Identifier: Apache-2.0
# draw_weights(model), by model.init.
# %% gpt-init=torch gpt-init=normal

def draw_weights(model):
    """The weights a run of Accrue with this seed begins with: matrices in their order, biases zero."""
    source = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                ends_block = name.endswith(("output.weight", "down.weight"))
# %% gpt-init=torch
                std = 0.02 / math.sqrt(2 * LAYERS) if ends_block else 0.02
# %% gpt-init=normal
                std = 0.02 if ends_block else 0.02
# %% gpt-init=torch gpt-init=normal
                parameter.copy_(torch.empty(parameter.shape).normal_(0.0, std, generator=source))
            elif name.endswith("bias"):
                parameter.zero_()
    return model.to(_DTYPE_)

# %% gpt-init=zeros

def draw_weights(model):
    """model.init = "zeros": everything but the norms' weights."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 or name.endswith("bias"):
                parameter.zero_()
    return model.to(_DTYPE_)

# %% init=torch

def draw_weights(model):
    """The weights a run of Accrue with this seed begins with: PyTorch's own rule for linear layers, layer by layer."""
    source = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                bound = 1.0 / math.sqrt(module.in_features)
                for parameter in module.parameters(recurse=False):
                    parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=source))
    return model.to(_DTYPE_)

# %% init=normal

def draw_weights(model):
    """The weights a run of Accrue with this seed begins with: matrices normal, biases zero."""
    source = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.empty(parameter.shape).normal_(0.0, 0.02, generator=source))
            else:
                parameter.zero_()
    return model.to(_DTYPE_)

# %% init=zeros

def draw_weights(model):
    """model.init = "zeros"."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model.to(_DTYPE_)

# %% init=values gpt-init=values

def draw_weights(model):
    """model.values, parameter by parameter."""
    model = model.to(_DTYPE_)
    values = torch.tensor(_VALUES_, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            given, values = values[: parameter.numel()], values[parameter.numel() :]
            parameter.copy_(given.view(parameter.shape))
    return model

