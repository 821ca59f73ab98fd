// SPDX-License-Identifier: Apache-2.0
#include "train/scalar_log.h"

#include <cstdio>
#include <utility>

#include "accrue/run/model_flops.h"
#include "accrue/run/printable.h"
#include "accrue/run/tensorboard_scalars.h"
#include "comm/memory_use.h"

namespace accrue {

ScalarLog::ScalarLog(const RunOrder& order, const Mesh& mesh, at::Device device)
    : device_(device),
      timer_level_(order.plan.spec.run.timer_level),
      loss_(loss_tag(order.plan.spec.model)),
      flops_of_sample_(model_flops(order.plan.spec.model, mesh.grid().tensor)),
      world_(static_cast<double>(mesh.grid().world())) {
  const std::string& folder = order.plan.spec.run.tensorboard_dir;
  if (folder.empty() || mesh.rank() + 1 != mesh.grid().world()) return;
  const std::filesystem::path path(folder);
  if (path.is_relative() && order.run_dir.empty())
    throw ResultError({ErrorCode::config, "a relative folder lies in the run's, and this run has none",
                       "run.tensorboard_dir", "Name an absolute folder, or give --out."});
  file_ = TensorboardFile::create(path.is_relative() ? order.run_dir / path : path, wall_clock_seconds()).value();
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
  write(scalars_of(loss_, update, facts), update.update, update.samples);
}

void ScalarLog::add(const Evaluation& evaluation, std::int64_t samples) {
  write(scalars_of(loss_, evaluation), evaluation.update, samples);
}

/// Training does not stop for a plot: a full disk is reported once, and the file is left as it is.
void ScalarLog::write(const TensorboardScalars& scalars, std::int64_t update, std::int64_t samples) {
  if (!file_) return;
  const double now = wall_clock_seconds();
  auto written = file_->add(now, update, scalars);
  if (written) written = file_->add(now, samples, over_samples(scalars));
  if (written) return;
  std::fprintf(stderr, "accrue-rank: %s. No more scalars are written for TensorBoard.\n",
               printable(written.error().text()).c_str());
  file_.reset();
}

}  // namespace accrue
