// SPDX-License-Identifier: Apache-2.0
#include "optim/flat_base.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace accrue {
namespace {

std::int64_t end_of(const FlatRange& range) {
  return range.offset + range.size;
}

std::string text_of(const FlatRange& range) {
  return "[" + std::to_string(range.offset) + ", +" + std::to_string(range.size) + ")";
}

std::vector<OptimizerSegment> by_offset(std::vector<OptimizerSegment> segments, std::int64_t numel) {
  std::ranges::sort(segments, {}, [](const OptimizerSegment& segment) { return segment.range.offset; });
  for (std::size_t i = 0; i < segments.size(); ++i) {
    check_inside(segments[i].range, numel, "optimizer segment");
    if (i > 0 && end_of(segments[i - 1].range) > segments[i].range.offset)
      throw std::invalid_argument("optimizer segment " + text_of(segments[i].range) + " overlaps the one before it");
  }
  return segments;
}

void check_ranges(std::span<const FlatRange> ranges, std::int64_t numel) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    check_inside(ranges[i], numel, "range");
    if (i > 0 && end_of(ranges[i - 1]) > ranges[i].offset)
      throw std::invalid_argument("range " + text_of(ranges[i]) + " begins before the end of the one before it");
  }
}

}  // namespace

std::optional<FlatRange> common_part(const FlatRange& a, const FlatRange& b) {
  const std::int64_t begin = std::max(a.offset, b.offset);
  const std::int64_t end = std::min(end_of(a), end_of(b));
  if (begin >= end) return std::nullopt;
  return FlatRange{begin, end - begin};
}

void check_inside(const FlatRange& range, std::int64_t numel, const std::string& what) {
  const auto [offset, size] = range;
  if (offset < 0 || size < 0 || offset > numel || size > numel - offset)
    throw std::invalid_argument(what + " " + text_of(range) + " lies outside the " + std::to_string(numel) +
                                " elements");
}

at::Tensor part_of(const at::Tensor& flat, const FlatRange& range) {
  return flat.defined() ? flat.narrow(0, range.offset, range.size) : at::Tensor();
}

FlatBase::FlatBase(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments, std::int64_t numel,
                   at::TensorOptions options)
    : spec_(spec),
      segments_(by_offset(std::move(segments), numel)),
      segment_steps_(at::zeros({std::ssize(segments_)}, at::kLong)),
      numel_(numel),
      options_(options) {}

at::Tensor FlatBase::state_tensor() const {
  return at::zeros({numel_}, options_);
}

void FlatBase::check(const at::Tensor& params, const at::Tensor& grads) const {
  for (const at::Tensor* flat : {&params, &grads}) {
    if (flat->numel() == numel_ && flat->is_contiguous() && flat->dtype() == options_.dtype() &&
        flat->device().type() == options_.device().type())
      continue;
    throw std::invalid_argument("the optimizer takes " + std::to_string(numel_) + " contiguous elements of type " +
                                std::string(options_.dtype().name()) + " on " + options_.device().str() + ", got " +
                                std::to_string(flat->numel()) + " of type " + std::string(flat->dtype().name()) +
                                " on " + flat->device().str());
  }
}

// Segments and ranges both ascend. So stretches do, and a merge need only look at the last one. A ZeRO shard may reach
// a segment in several ranges, or not at all; its t counts the updates that reach it.
std::vector<Stretch> FlatBase::begin_step(const UpdateRates& rates, std::span<const FlatRange> ranges, Stretches kind) {
  check_ranges(ranges, numel_);
  const double weight_decay = rates.weight_decay.value_or(spec_.weight_decay);
  ++steps_;
  std::vector<Stretch> stretches;
  std::int64_t* const counts = segment_steps_.mutable_data_ptr<std::int64_t>();
  bool joined = false;  // the last stretch ends with the previous segment
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const OptimizerSegment& segment = segments_[i];
    bool reached = false;
    for (const FlatRange& range : ranges) {
      const auto part = common_part(segment.range, range);
      if (!part) continue;
      if (!reached) ++counts[i];  // once, however many ranges reach it
      const double rate = segment.decoupled ? rates.decoupled_lr : rates.lr;
      const Stretch next{*part, weight_decay * segment.weight_decay, rate * segment.lr, counts[i], i};
      // Next to the last stretch, or behind the padding that follows a segment which it covered to its end.
      const bool adjacent = !stretches.empty() && (end_of(stretches.back().range) == part->offset ||
                                                   (joined && !reached && part->offset == segment.range.offset));
      if (kind == Stretches::merged && adjacent && stretches.back().like(next))
        stretches.back().range.size = end_of(*part) - stretches.back().range.offset;
      else
        stretches.push_back(next);
      reached = true;
    }
    joined = reached && end_of(stretches.back().range) == end_of(segment.range);
  }
  return stretches;
}

}  // namespace accrue
