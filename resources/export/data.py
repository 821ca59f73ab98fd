# SPDX-License-Identifier: Apache-2.0
# read(samples) -> inputs, targets; items(samples).
# %% tokens=file

TOKENS = torch.frombuffer(bytearray(open(DATA, "rb").read()), dtype=_TOKEN_TYPE_)


def read(samples):
    """Rows of CONTEXT tokens, and as targets the same rows one token further on."""
    rows = [TOKENS[s * CONTEXT : (s + 1) * CONTEXT + 1].long() for s in samples]
    rows = torch.stack(rows) if rows else torch.empty(0, CONTEXT + 1, dtype=torch.long)
    return rows[:, :-1], rows[:, 1:]

# %% tokens=synthetic

SYMBOLS = min(VOCABULARY, 64)
SUCCESSORS = [mixed(SEED, 0x5353, index) % SYMBOLS for index in range(4 * SYMBOLS)]


def sentence(sample):
    """A walk in which each symbol has four successors, of probability 0.55, 0.25, 0.15 and 0.05."""
    walk = mixed(SEED, 0x5757, sample)
    symbol, tokens = walk % SYMBOLS, []
    for place in range(CONTEXT + 1):
        tokens.append(symbol)
        percent = mixed(walk, 0x5757, place) % 100
        symbol = SUCCESSORS[4 * symbol + (0 if percent < 55 else 1 if percent < 80 else 2 if percent < 95 else 3)]
    return tokens


def read(samples):
    """Rows of CONTEXT tokens, and as targets the same rows one token further on."""
    rows = torch.tensor([sentence(s) for s in samples], dtype=torch.long).view(-1, CONTEXT + 1)
    return rows[:, :-1], rows[:, 1:]

# %% rows=inline

X = torch.tensor(_X_, dtype=torch.float64)
Y = torch.tensor(_Y_, dtype=torch.float64)
# %% rows=synthetic

def normal(stream, index):
    u, v = ((mixed(SEED, stream, 2 * index + i) >> 11) * 2.0**-53 for i in range(2))
    return math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)


def taught(sample):
    """A row of a noisy linear teacher: x is normal, y = W x + 0.1 noise."""
    first = sample * (INPUTS + OUTPUTS)
    x = [normal(0x5252, first + i) for i in range(INPUTS)]
    y = []
    for o in range(OUTPUTS):
        y.append(0.1 * normal(0x5252, first + INPUTS + o))
        for i in range(INPUTS):
            y[o] += TEACHER[o * INPUTS + i] * x[i]
    return x, y


TEACHER = [normal(0x5454, index) / math.sqrt(INPUTS) for index in range(INPUTS * OUTPUTS)]
ROWS = [taught(sample) for sample in range(SAMPLES)]
X, Y = (torch.tensor([row[part] for row in ROWS], dtype=torch.float64) for part in range(2))
# %% labels=synthetic
Y = Y.argmax(dim=1, keepdim=True)
# %% rows=csv

def is_word(cell):
    try:
        float(cell)
        return False
    except ValueError:
        return cell != ""


with open(DATA, encoding="utf-8-sig") as table:
    LINES = [line for line in table.read().split("\n") if line.strip(" \t")]
SEPARATOR = max(",;\t", key=re.sub(r'"[^"]*"|(?<=[0-9]),(?=[0-9])', "", LINES[0].rstrip(" \t")).count)
CELLS = [[cell.strip(" \t") for cell in row] for row in csv.reader(LINES, delimiter=SEPARATOR, skipinitialspace=True)]
NAMES = CELLS[0] if any(map(is_word, CELLS[0])) else []
LABELS = [NAMES.index(name) if name in NAMES else int(name) - 1 for name in LABEL_COLUMNS] or [len(CELLS[0]) - 1]
if any(is_word(cell) for column, cell in enumerate(NAMES) if column not in LABELS or not CLASSES):
    CELLS.pop(0)
elif CLASSES and any(name in NAMES for name in LABEL_COLUMNS):
    CELLS.pop(0)


def value(column, cell):
    return float(CLASSES.index(cell) if CLASSES and column in LABELS else cell)


ROWS = [[value(column, cell) for column, cell in enumerate(row)] for row in CELLS[:SAMPLES]]
X = torch.tensor([[v for column, v in enumerate(row) if column not in LABELS] for row in ROWS], dtype=torch.float64)
Y = torch.tensor([[row[column] for column in LABELS] for row in ROWS], dtype=torch.float64)
# %% rows=inline rows=synthetic rows=csv

X, Y = X.to(_DTYPE_), Y.to(_TARGET_)


def read(samples):
    return X[samples], Y[samples]

# %%

def items(samples):
    """What a loss sums over."""
# %% loss=tokens
    return len(samples) * CONTEXT
# %% loss=cross_entropy
    return int((Y[samples] != -100).sum())
# %% loss=mse
    return len(samples) * OUTPUTS
# %%

