// SPDX-License-Identifier: Apache-2.0
// The order of the samples, and generated data, are pure functions of the seed. They are reimplemented here with
// Python's integers, so a script needs no file of ours.
#include <fmt/format.h>

#include <cmath>

#include "accrue/run/choice_names.h"
#include "json_text.h"
#include "script_parts.h"

namespace accrue::export_detail {

namespace {

constexpr std::string_view mixer = R"py(
def mix(value):
    """The finaliser of SplitMix64."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def mixed(seed, stream, index):
    return mix(mix(mix(seed & MASK) ^ stream) ^ index)

)py";

constexpr std::string_view permutation = R"py(
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

)py";

constexpr std::string_view short_batches = R"py(
def samples_of(epoch, batch, rank):
    """A rank's samples at a batch of the epoch; fewer, or none, where the data end."""
    first = (batch * RANKS + rank) * MICRO_BATCH
    return [@SAMPLE@ for place in range(first, min(first + MICRO_BATCH, SAMPLES))]

)py";

constexpr std::string_view repeated_batches = R"py(
def samples_of(epoch, batch, rank):
    """A rank's samples at a batch of the epoch; where the data end they are completed from the epoch's start."""
    first = (batch * RANKS + rank) * MICRO_BATCH
    return [@SAMPLE@ for place in (p % SAMPLES for p in range(first, first + MICRO_BATCH))]

)py";

constexpr std::string_view token_file = R"py(
TOKENS = torch.frombuffer(bytearray(open(DATA, "rb").read()), dtype=@TYPE@)


def read(samples):
    """Rows of CONTEXT tokens, and as targets the same rows one token further on."""
    rows = [TOKENS[s * CONTEXT : (s + 1) * CONTEXT + 1].long() for s in samples]
    rows = torch.stack(rows) if rows else torch.empty(0, CONTEXT + 1, dtype=torch.long)
    return rows[:, :-1], rows[:, 1:]

)py";

constexpr std::string_view markov_language = R"py(
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

)py";

constexpr std::string_view teacher = R"py(
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
)py";

constexpr std::string_view csv_table = R"py(
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
)py";

constexpr std::string_view table_rows = R"py(
X, Y = X.to(@DTYPE@), Y.to(@TARGET@)


def read(samples):
    return X[samples], Y[samples]

)py";

bool has_labels(const ModelSpec& model) {
  return model.loss.value_or(LossKind::mse) == LossKind::cross_entropy && model.kind != ModelKind::gpt;
}

std::string inline_rows(const Matrix& rows, std::int64_t count) {
  std::string text = "[";
  for (std::size_t row = 0; row < rows.size() && static_cast<std::int64_t>(row) < count; ++row)
    text += (row > 0 ? ", " : "") + python_list(rows[row]);
  return text + "]";
}

std::string table_code(const RunPlan& plan) {
  const DataSpec& data = plan.spec.data;
  const ModelSpec& model = plan.spec.model;
  std::string text;
  if (data.kind == DataKind::csv)
    text = csv_table;
  else if (data.kind == DataKind::inline_)
    text = fmt::format("\nX = torch.tensor({}, dtype=torch.float64)\nY = torch.tensor({}, dtype=torch.float64)\n",
                       inline_rows(data.x, plan.data.samples), inline_rows(data.y, plan.data.samples));
  else
    text = teacher;
  if (data.kind == DataKind::synthetic && has_labels(model)) text += "Y = Y.argmax(dim=1, keepdim=True)\n";
  const std::string_view dtype = model.dtype == Dtype::float64 ? "torch.float64" : "torch.float32";
  return text + filled(filled(table_rows, "@DTYPE@", dtype), "@TARGET@", has_labels(model) ? "torch.long" : dtype);
}

std::string items_code(const ModelSpec& model) {
  if (model.kind == ModelKind::gpt) return "len(samples) * CONTEXT";
  return has_labels(model) ? "int((Y[samples] != -100).sum())" : "len(samples) * OUTPUTS";
}

}  // namespace

std::string python(std::string_view text) {
  return json_ascii(Json(text));
}

std::string python(double number) {
  if (std::isnan(number)) return "math.nan";
  if (std::isinf(number)) return number > 0 ? "math.inf" : "-math.inf";
  return fmt::format("{}", number);
}

std::string python(bool flag) {
  return flag ? "True" : "False";
}

std::string filled(std::string_view text, std::string_view place, std::string_view value) {
  std::string result(text);
  for (auto at = result.find(place); at != std::string::npos; at = result.find(place, at + value.size()))
    result.replace(at, place.size(), value);
  return result;
}

std::string order_part(const RunPlan& plan) {
  const bool repeats = plan.order.uneven == UnevenRanks::repeat && plan.order.world > 1;
  const bool mixes = plan.order.shuffle || plan.spec.data.kind == DataKind::synthetic;
  std::string text(mixes ? mixer : "");
  if (plan.order.shuffle) text += permutation;
  return text + filled(repeats ? repeated_batches : short_batches, "@SAMPLE@",
                       plan.order.shuffle ? "shuffled(epoch, place)" : "place");
}

std::string data_part(const RunPlan& plan) {
  const DataSpec& data = plan.spec.data;
  std::string text;
  if (data.kind == DataKind::text || data.kind == DataKind::tokens)
    text = filled(token_file, "@TYPE@",
                  data.kind == DataKind::text   ? "torch.uint8"
                  : data.token_type == "uint32" ? "torch.uint32"
                                                : "torch.uint16");
  else if (plan.spec.model.kind == ModelKind::gpt)
    text = markov_language;
  else
    text = table_code(plan);
  return text + fmt::format("\ndef items(samples):\n    \"\"\"What a loss sums over.\"\"\"\n    return {}\n\n",
                            items_code(plan.spec.model));
}

}  // namespace accrue::export_detail
