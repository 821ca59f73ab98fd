// SPDX-License-Identifier: Apache-2.0
// Ranks may report different names: a rank without a batch reports none. So each sends its sums as text, one name per
// line.
#include "train/step_reports.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "comm/gathered.h"

namespace accrue {
namespace {

using Sums = std::map<std::string, std::array<double, 2>>;

std::string text_of(const std::map<std::string, at::Tensor>& sums) {
  std::string text;
  for (const auto& [name, tensor] : sums) {
    const at::Tensor numbers = tensor.cpu();
    std::array<char, 64> line{};
    // Hexadecimal: every bit of a double survives.
    std::snprintf(line.data(), line.size(), "%a %a ", numbers[0].item<double>(), numbers[1].item<double>());
    std::string word = name;
    std::ranges::replace(word, '\n', ' ');
    text += line.data() + word + "\n";
  }
  return text;
}

/// Returns false if a line is not from text_of().
bool add_lines(Sums& sums, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    char *first_end = nullptr, *end = nullptr;
    const double numerator = std::strtod(line.c_str(), &first_end);
    const double denominator = std::strtod(first_end, &end);
    if (end == first_end || *end != ' ') return false;
    auto& sum = sums[end + 1];
    sum[0] += numerator;
    sum[1] += denominator;
  }
  return true;
}

}  // namespace

void StepReports::add(const megatron::LossReport& report, std::string_view loss) {
  for (const auto& [name, tensor] : report) {
    if (name == loss) continue;
    if (!tensor.defined() || tensor.numel() < 1 || tensor.numel() > 2)
      throw std::invalid_argument("the train step reports \"" + name +
                                  "\" as a tensor that has neither one element nor a numerator and a denominator");
    at::Tensor pair = tensor.detach().reshape({-1}).to(at::kDouble);
    // [] or [1] -> [2]: a value without a denominator counts as one, so its mean is over micro-steps.
    if (pair.numel() == 1) pair = at::cat({pair, at::ones({1}, pair.options())});
    const auto [at, is_new] = sums_.try_emplace(name, pair);
    if (!is_new) at->second = at->second.to(pair.device()) + pair;
  }
}

std::string StepReports::text() const {
  return text_of(sums_);
}

bool StepReports::restore(const std::string& text) {
  Sums sums;
  if (!add_lines(sums, text)) return false;
  drop();
  for (const auto& [name, sum] : sums) sums_[name] = at::tensor({sum[0], sum[1]}, at::kDouble);
  return true;
}

NamedNumbers StepReports::take(const Mesh& mesh) {
  const std::string text = mesh.tensor().rank() == 0 ? text_of(sums_) : std::string();  // the others report the same
  drop();
  Communicator& world = mesh.world();
  at::Tensor longest = at::zeros({1}, at::kDouble);
  longest.fill_(static_cast<double>(text.size()));
  world.all_reduce(longest, Reduce::max, CollectivePurpose::agreement);
  const auto length = static_cast<std::int64_t>(longest.item<double>());
  if (length == 0) return {};
  at::Tensor mine = at::zeros({length}, at::kByte);
  std::ranges::copy(text, mine.mutable_data_ptr<std::uint8_t>());
  const at::Tensor all = gathered(world, mine);
  Sums sums;
  const auto* const bytes = reinterpret_cast<const char*>(all.const_data_ptr<std::uint8_t>());
  for (std::int64_t rank = 0; rank < world.size(); ++rank) {
    const char* const begin = bytes + rank * length;
    add_lines(sums, std::string(begin, std::find(begin, begin + length, '\0')));
  }
  NamedNumbers means;
  // Sum of numerators over sum of denominators, over all ranks and micro-steps.
  for (const auto& [name, sum] : sums) means[name] = sum[0] / sum[1];
  return means;
}

}  // namespace accrue
