# SPDX-License-Identifier: Apache-2.0
# The order of the samples, a pure function of the seed, in Python's whole numbers.
# %% mixes

def mix(value):
    """The finaliser of SplitMix64."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def mixed(seed, stream, index):
    return mix(mix(mix(seed & MASK) ^ stream) ^ index)

# %% shuffles

@functools.lru_cache(maxsize=4)
def round_keys(epoch):
    key = mix(SEED & MASK) ^ mix(~epoch & MASK)
    keys = []
    for _ in range(4):
        key = mix(key)
        keys.append(key)
    return keys


def shuffled(epoch, place):
    """The sample at a place of the epoch's order: a keyed Feistel network, walked until it lands among the samples."""
    half = (max(SAMPLES - 1, 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    value = place
    while True:
        left, right = value >> half, value & mask
        for key in round_keys(epoch):
            left, right = right, left ^ (mix(right ^ key) & mask)
        value = left << half | right
        if value < SAMPLES:
            return value

# %% uneven=short

def samples_of(epoch, batch, rank):
    """A rank's samples at a batch of the epoch; fewer, or none, where the data end."""
    first = (batch * RANKS + rank) * MICRO_BATCH
# %% shuffled=short
    return [shuffled(epoch, place) for place in range(first, min(first + MICRO_BATCH, SAMPLES))]
# %% in-order=short
    return [place for place in range(first, min(first + MICRO_BATCH, SAMPLES))]
# %% uneven=short

# %% uneven=repeat

def samples_of(epoch, batch, rank):
    """A rank's samples at a batch of the epoch; where the data end they are completed from the epoch's start."""
    first = (batch * RANKS + rank) * MICRO_BATCH
# %% shuffled=repeat
    return [shuffled(epoch, place) for place in (p % SAMPLES for p in range(first, first + MICRO_BATCH))]
# %% in-order=repeat
    return [place for place in (p % SAMPLES for p in range(first, first + MICRO_BATCH))]
# %% uneven=repeat

