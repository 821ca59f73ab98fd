// SPDX-License-Identifier: Apache-2.0
// All numbers come from a counter-based generator (a 64-bit mixer over seed and index). So any sample can be made at
// any time, on any rank, and is the same on every machine. No standard-library distribution is used, since their
// results differ between libraries.
#include "data/synthetic.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "accrue/run/base/mix64.h"

namespace accrue {
namespace {

constexpr std::uint64_t successor_stream = 0x5353;
constexpr std::uint64_t walk_stream = 0x5757;
constexpr std::uint64_t teacher_stream = 0x5454;
constexpr std::uint64_t row_stream = 0x5252;
constexpr double teacher_noise = 0.1;

class MarkovLanguage final : public TokenStore {
 public:
  MarkovLanguage(std::uint64_t seed, std::int64_t vocabulary)
      : seed_(seed), symbols_(static_cast<std::uint64_t>(std::clamp<std::int64_t>(vocabulary, 1, 64))) {
    for (std::uint64_t symbol = 0; symbol < symbols_; ++symbol)
      for (std::uint64_t way = 0; way < 4; ++way)
        successors_.push_back(static_cast<std::int64_t>(mix64(seed, successor_stream, symbol * 4 + way) % symbols_));
  }

  void read(std::int64_t sample, std::int64_t* tokens, std::int64_t count) const override {
    const std::uint64_t walk = mix64(seed_, walk_stream, static_cast<std::uint64_t>(sample));
    auto symbol = static_cast<std::int64_t>(walk % symbols_);
    for (std::int64_t i = 0; i < count; ++i) {
      tokens[i] = symbol;
      const std::uint64_t percent = mix64(walk, walk_stream, static_cast<std::uint64_t>(i)) % 100;
      const std::int64_t way = percent < 55 ? 0 : percent < 80 ? 1 : percent < 95 ? 2 : 3;
      symbol = successors_[static_cast<std::size_t>(symbol * 4 + way)];
    }
  }

 private:
  std::uint64_t seed_;
  std::uint64_t symbols_;
  std::vector<std::int64_t> successors_;
};

double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const double u = unit(mix64(seed, stream, 2 * index));
  const double v = unit(mix64(seed, stream, 2 * index + 1));
  return std::sqrt(-2.0 * std::log(1.0 - u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace

std::unique_ptr<TokenStore> make_markov_language(std::uint64_t seed, std::int64_t vocabulary) {
  return std::make_unique<MarkovLanguage>(seed, vocabulary);
}

Table make_linear_teacher(std::uint64_t seed, std::int64_t samples, const ModelSpec& model) {
  const std::int64_t inputs = model.inputs;
  const std::int64_t outputs = model.outputs;
  Table table{.x = at::empty({samples, inputs}, at::kDouble), .y = at::empty({samples, outputs}, at::kDouble)};
  auto* x = table.x.mutable_data_ptr<double>();
  auto* y = table.y.mutable_data_ptr<double>();
  std::vector<double> weights(static_cast<std::size_t>(inputs * outputs));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = normal(seed, teacher_stream, i) / std::sqrt(static_cast<double>(inputs));
  const auto row_length = static_cast<std::uint64_t>(inputs + outputs);
  for (std::int64_t s = 0; s < samples; ++s) {
    const std::uint64_t first = static_cast<std::uint64_t>(s) * row_length;
    for (std::int64_t i = 0; i < inputs; ++i)
      x[s * inputs + i] = normal(seed, row_stream, first + static_cast<std::uint64_t>(i));
    for (std::int64_t o = 0; o < outputs; ++o) {
      double sum = teacher_noise * normal(seed, row_stream, first + static_cast<std::uint64_t>(inputs + o));
      for (std::int64_t i = 0; i < inputs; ++i)
        sum += weights[static_cast<std::size_t>(o * inputs + i)] * x[s * inputs + i];
      y[s * outputs + o] = sum;
    }
  }
  if (model.loss == LossKind::cross_entropy) table.y = largest_output(table.y);
  return table;
}

}  // namespace accrue
