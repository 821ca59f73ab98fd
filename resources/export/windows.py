# SPDX-License-Identifier: Apache-2.0
# Windows, what a loss is divided by, and the loss.
# %%

def windows():
    """Yields each update's micro-steps, as (epoch, batch)."""
    window, micro_steps = [], 0
    for epoch in itertools.count():
        for batch in range(BATCHES):
            window.append((epoch, batch))
            micro_steps += 1
            if len(window) == N or _ENDS_:
                yield window
                window = []
            if micro_steps == MICRO_STEPS:
                return


def weights(window, rank):
    """What each micro-step's summed loss is multiplied by, where the gradients of RANKS processes are averaged: _DIVISION_."""
# %% normalizer=tokens
    total = sum(items(samples) for samples in _COUNTED_)
    return [_SHARE_ / max(total, 1)] * len(window)
# %% normalizer=samples
    total = sum(len(samples) for samples in _COUNTED_)
    return [_SHARE_ * len(s) / max(items(s), 1) / max(total, 1) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% normalizer=true_size normalizer=run_remainder
    return [_SHARE_ / (max(items(s), 1) * len(window)) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% normalizer=none
    return [_SHARE_ / max(items(s), 1) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% normalizer=steps
    return [_SHARE_ / (max(items(s), 1) * N) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %%

# %% loss=mse

def loss_sum(outputs, targets):
    return F.mse_loss(outputs, targets, reduction="sum")

# %% loss=cross_entropy loss=tokens

def loss_sum(outputs, targets):
    """Targets of -100 do not count."""
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1), reduction="sum")

