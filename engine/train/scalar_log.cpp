// SPDX-License-Identifier: Apache-2.0
#include "train/scalar_log.h"

#include <utility>

#include "accrue/run/cost/model_flops.h"
#include "accrue/run/record/tensorboard_scalars.h"
#include "comm/memory_use.h"

namespace accrue {

ScalarLog::ScalarLog(const RunOrder& order, const Mesh& mesh, at::Device device)
    : device_(device),
      timer_level_(order.plan.spec.run.timer_level),
      loss_(loss_tag(order.plan.spec.model)),
      flops_of_sample_(model_flops(order.plan.spec.model, mesh.grid().tensor)),
      world_(static_cast<double>(mesh.grid().world())) {
  const std::string& folder = order.plan.spec.run.tensorboard_dir;
  // The last rank writes, as in Megatron-LM: it has the loss.
  if (folder.empty() || mesh.rank() + 1 != mesh.grid().world()) return;
  const std::filesystem::path path(folder);
  if (path.is_relative() && order.run_dir.empty())
    throw ResultError({ErrorCode::config, "a relative folder lies in the run's, and this run has none",
                       "run.tensorboard_dir", "Name an absolute folder, or give --out."});
  file_ = TensorboardWriter(path.is_relative() ? order.run_dir / path : path, "accrue-rank");
}

void ScalarLog::add(const Update& update, double batch_size, const std::map<std::string, double>& timers) {
  if (!file_) return;
  const UpdateFacts facts{.batch_size = batch_size,
                          .world = world_,
                          .seconds = update.seconds - std::exchange(seconds_, update.seconds),
                          .flops_of_sample = flops_of_sample_,
                          .memory = memory_use(device_),
                          .timers = timers,
                          .timer_level = timer_level_};
  file_.add(scalars_of(loss_, update, facts), update.update, update.samples);
}

void ScalarLog::add(const Evaluation& evaluation, std::int64_t samples) {
  file_.add(scalars_of(loss_, evaluation), evaluation.update, samples);
}

}  // namespace accrue
