// SPDX-License-Identifier: Apache-2.0
#include "train/scalar_log.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace accrue {
namespace {

/// Models of text have the loss that Megatron-LM calls so.
const char* loss_tag(ModelKind kind) {
  const bool text = kind == ModelKind::gpt || kind == ModelKind::bert || kind == ModelKind::t5;
  return text ? "lm loss" : "loss";
}

}  // namespace

ScalarLog::ScalarLog(const RunOrder& order, const Mesh& mesh)
    : loss_(loss_tag(order.plan.spec.model.kind)), world_(static_cast<double>(mesh.grid().world())) {
  const std::string& folder = order.plan.spec.run.tensorboard_dir;
  if (folder.empty() || mesh.rank() + 1 != mesh.grid().world()) return;
  const std::filesystem::path path(folder);
  if (path.is_relative() && order.run_dir.empty())
    throw ResultError({ErrorCode::config, "a relative folder lies in the run's, and this run has none",
                       "run.tensorboard_dir", "Name an absolute folder, or give --out."});
  file_ = TensorboardFile::create(path.is_relative() ? order.run_dir / path : path, wall_clock_seconds()).value();
}

void ScalarLog::add(const Update& update, double batch_size, double loss_scale) {
  if (!file_) return;
  TensorboardScalars scalars{{"learning-rate", update.lr}, {"batch-size", batch_size}, {loss_, update.loss}};
  if (loss_scale > 0.0) scalars.emplace_back("loss-scale", loss_scale);
  scalars.emplace_back("world-size", world_);
  scalars.emplace_back("grad-norm", update.grad_norm);
  scalars.emplace_back("iteration-time", update.seconds - std::exchange(seconds_, update.seconds));
  write(scalars, update.update, update.samples);
}

void ScalarLog::add(const Evaluation& evaluation, std::int64_t samples) {
  write({{loss_ + " validation", evaluation.loss},
         {loss_ + " validation ppl", std::exp(std::min(20.0, evaluation.loss))}},
        evaluation.update, samples);
}

/// Training does not end for a plot: a disk that is full is named once, and the file is left as it is.
void ScalarLog::write(const TensorboardScalars& scalars, std::int64_t update, std::int64_t samples) {
  if (!file_) return;
  const double now = wall_clock_seconds();
  TensorboardScalars twins;
  for (const auto& [tag, value] : scalars) twins.emplace_back(tag + " vs samples", value);
  auto written = file_->add(now, update, scalars);
  if (written) written = file_->add(now, samples, twins);
  if (written) return;
  std::fprintf(stderr, "accrue-rank: %s. No more scalars are written for TensorBoard.\n",
               written.error().text().c_str());
  file_.reset();
}

}  // namespace accrue
