# SPDX-License-Identifier: Apache-2.0
# rate(update), make_optimizer(model).
# %%

def rate(update):
    """The learning rate of an update, counted from 0."""
# %% moves
    position = _POSITION_
# %% warm-up
    if position < WARMUP:
        return LR * (position + 1) / (WARMUP + 1)
# %% schedule=linear schedule=cosine
    done = min((position - WARMUP) / (TOTAL - WARMUP), 1.0) if position < TOTAL else 1.0
# %% schedule=linear
    return MIN_LR + (LR - MIN_LR) * (1.0 - done)
# %% schedule=cosine
    return MIN_LR + (LR - MIN_LR) * 0.5 * (1.0 + math.cos(math.pi * done))
# %% schedule=inverse-square-root
    return max(MIN_LR, LR * math.sqrt((WARMUP + 1) / (position + 1)))
# %% schedule=exponential
    return max(MIN_LR, LR * _GAMMA_ ** (position - WARMUP))
# %% schedule=WSD
    left = min(max((TOTAL - position) / (_DECAY_ * TOTAL), 0.0), 1.0)
    return MIN_LR + (LR - MIN_LR) * (_TAIL_)
# %% schedule=constant
    return LR
# %%

# %% globs

def matches(name, globs):
    return any(re.fullmatch(".*".join(map(re.escape, glob.split("*"))), name) for glob in globs)

# %%

def make_optimizer(model):
# %% groups=one
    groups = [{"params": list(model.parameters()), "weight_decay": 0.0, "factor": 1.0}]
# %% groups=several
    groups = {}
    for name, parameter in model.named_parameters():
        decay = WEIGHT_DECAY if _DECAYS_ else 0.0
        factor = _FACTOR_
        groups.setdefault((decay, factor), []).append(parameter)
    groups = [{"params": each, "weight_decay": decay, "factor": factor} for (decay, factor), each in groups.items()]
# %% optimizer=sgd
    return torch.optim.SGD(groups, lr=LR, momentum=_MOMENTUM_, dampening=_DAMPENING_, nesterov=_NESTEROV_)
# %% optimizer=adam
    return torch.optim._ADAM_(groups, lr=LR, betas=(_BETA1_, _BETA2_), eps=_EPS_)
# %%

