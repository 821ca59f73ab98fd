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
# %% tail=flushed
            if len(window) == N or batch + 1 == BATCHES or micro_steps == MICRO_STEPS:
                yield window
                window = []
# %% tail=joined
            if len(window) == N or micro_steps == MICRO_STEPS:
                yield window
                window = []
# %%
            if micro_steps == MICRO_STEPS:
                return


def weights(window, rank):
    """What each micro-step's summed loss is multiplied by, where the gradients of RANKS processes are averaged: _DIVISION_."""
# %% rank-normalizer=tokens
    total = sum(items(samples) for samples in [samples_of(epoch, batch, rank) for epoch, batch in window])
    return [1.0 / max(total, 1)] * len(window)
# %% rank-normalizer=samples
    total = sum(len(samples) for samples in [samples_of(epoch, batch, rank) for epoch, batch in window])
    return [1.0 * len(s) / max(items(s), 1) / max(total, 1) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% run-normalizer=tokens
    total = sum(items(samples) for samples in [samples_of(epoch, batch, r) for epoch, batch in window for r in range(RANKS)])
    return [RANKS / max(total, 1)] * len(window)
# %% run-normalizer=samples
    total = sum(len(samples) for samples in [samples_of(epoch, batch, r) for epoch, batch in window for r in range(RANKS)])
    return [RANKS * len(s) / max(items(s), 1) / max(total, 1) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% mean-normalizer=true_size mean-normalizer=run_remainder
    return [1.0 / (max(items(s), 1) * len(window)) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% mean-normalizer=none
    return [1.0 / max(items(s), 1) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% mean-normalizer=steps
    return [1.0 / (max(items(s), 1) * N) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% sum-normalizer=true_size sum-normalizer=run_remainder
    return [RANKS * 1.0 / (max(items(s), 1) * len(window)) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% sum-normalizer=none
    return [RANKS * 1.0 / max(items(s), 1) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %% sum-normalizer=steps
    return [RANKS * 1.0 / (max(items(s), 1) * N) for s in [samples_of(epoch, batch, rank) for epoch, batch in window]]
# %%

# %% loss=mse

def loss_sum(outputs, targets):
    return F.mse_loss(outputs, targets, reduction="sum")

# %% loss=cross_entropy loss=tokens

def loss_sum(outputs, targets):
    """Targets of -100 do not count."""
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1), reduction="sum")

