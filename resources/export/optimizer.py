# SPDX-License-Identifier: Apache-2.0
# rate(update), with the schedules of lr_curve.cpp; make_optimizer(model).
# %%

def rate(update):
    """The learning rate of an update, counted from 0."""
# %% position=update
    position = update
# %% position=update_times_world
    position = update * RANKS
# %% position=guarded
    position = min(update * RANKS, _LAST_)
# %% position=micro_step
    position = min((update + 1) * N, MICRO_STEPS) - 1
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
# %% decay-tail=linear
    return MIN_LR + (LR - MIN_LR) * (left)
# %% decay-tail=cosine
    return MIN_LR + (LR - MIN_LR) * (0.5 * (1.0 + math.cos(math.pi * (1.0 - left))))
# %% decay-tail=exponential
    return MIN_LR + (LR - MIN_LR) * (2.0 * 0.5 ** (1.0 - left) - 1.0)
# %% decay-tail=minus-square-root
    return MIN_LR + (LR - MIN_LR) * (1.0 - math.sqrt(1.0 - left))
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
# %% decays=matrices
        decay = WEIGHT_DECAY if parameter.dim() > 1 else 0.0
# %% decays=named
        decay = WEIGHT_DECAY if not matches(name, _NO_DECAY_) else 0.0
# %% factor=one
        factor = 1.0
# %% factor=scaled
        factor = _LR_MULT_ if matches(name, _SCALED_LR_) else 1.0
# %% groups=several
        groups.setdefault((decay, factor), []).append(parameter)
    groups = [{"params": each, "weight_decay": decay, "factor": factor} for (decay, factor), each in groups.items()]
# %% optimizer=sgd
    return torch.optim.SGD(groups, lr=LR, momentum=_MOMENTUM_, dampening=_DAMPENING_, nesterov=_NESTEROV_)
# %% optimizer=adam
    return torch.optim._ADAM_(groups, lr=LR, betas=(_BETA1_, _BETA2_), eps=_EPS_)
# %%

