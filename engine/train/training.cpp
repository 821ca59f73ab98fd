// SPDX-License-Identifier: Apache-2.0
#include "train/training.h"

#include <stdexcept>
#include <utility>

namespace accrue {
namespace {

std::int64_t bucket_bytes(const RunSpec& spec) {
  return static_cast<std::int64_t>(spec.parallel.bucket_mb * 1024.0 * 1024.0);
}

std::uint64_t seed_of(const RunSpec& spec) {
  return static_cast<std::uint64_t>(spec.run.seed);
}

}  // namespace

Training::Training(const RunOrder& run, Communicator& data_axis, RankChannel& rank_channel,
                   std::unique_ptr<DataSource> source)
    : order(run),
      axis(data_axis),
      channel(rank_channel),
      report(run, data_axis, rank_channel),
      data(std::move(source)),
      model(run.plan.spec.model, seed_of(run.plan.spec), bucket_bytes(run.plan.spec)),
      scaling(run.plan.knobs, data_axis.size()),
      reducer(model.module(), data_axis,
              {.bucket_bytes = bucket_bytes(run.plan.spec), .op = scaling.reduce_op(), .broadcast_parameters = true}),
      optimizer(make_flat_optimizer(run.plan.spec.optimizer, model.decay_segments(run.plan.spec.optimizer.weight_decay),
                                    model.layout().numel, model.dtype())),
      window(run.plan.window) {
  if (!(reducer.layout() == model.layout()))
    throw std::logic_error("the gradient arena and the flat parameters are laid out differently");
}

}  // namespace accrue
