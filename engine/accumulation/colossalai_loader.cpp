// SPDX-License-Identifier: Apache-2.0
// The loader uses the planner's arithmetic: one epoch of L batches with this system's preset.
#include "accrue/accumulation/colossalai_loader.h"

#include <c10/util/Exception.h>

#include <stdexcept>
#include <string>

namespace accrue::colossalai {

WindowShape epoch_shape(std::optional<std::int64_t> length, std::int64_t accumulate_size, const Replays& replay) {
  WindowShape shape = system_shape(Dialect::colossalai, accumulate_size, "accumulate_size", replay);
  if (!length || *length < 0)
    throw std::invalid_argument(
        "the data source does not tell how many batches an epoch has, and this system drops the tail, which it can "
        "only do where it knows; give the source a length");
  shape.batches_per_epoch = *length;
  shape.max_epochs = 1;
  return shape;
}

void warn_of_empty_epoch(const WindowShape& shape) {
  if (shape.batches_per_epoch >= shape.steps) return;
  TORCH_WARN("GradAccumDataloader: an epoch of ", shape.batches_per_epoch, " batches is shorter than a window of ",
             shape.steps, ", so no batch is ever trained on");
}

void refuse_short_source(std::int64_t batches, const WindowShape& shape) {
  throw std::logic_error("GradAccumDataloader: the source declares " + std::to_string(shape.batches_per_epoch) +
                         " batches an epoch and ended after " + std::to_string(batches) +
                         ", so its last window would stay open; give the source the length that it has");
}

}  // namespace accrue::colossalai
