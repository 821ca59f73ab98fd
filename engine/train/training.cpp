// SPDX-License-Identifier: Apache-2.0
#include "train/training.h"

#include <ATen/OpMathType.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "accrue/run/facts/host_facts.h"
#include "accrue/run/fields/block_form.h"
#include "accrue/run/plan/overlap.h"
#include "checkpoint/checkpoint_folders.h"
#include "models/load_weights.h"
#include "train/compute_device.h"
#include "train/model_axis.h"
#include "train/parameter_norms.h"

namespace accrue {
namespace {

std::int64_t bucket_bytes_of(const RunPlan& plan) {
  return bucket_bytes(plan.knobs.reduce_mechanism, plan.spec.parallel.bucket_mb);
}

LaunchBuckets launch_of(const RunPlan& plan) {
  return reduces_during_backward(plan) ? LaunchBuckets::when_ready : LaunchBuckets::at_finish;
}

std::int64_t gradient_element(const RunPlan& plan, at::ScalarType own) {
  return bytes_of_sum(plan.knobs.accumulation_dtype, static_cast<std::int64_t>(c10::elementSize(own)));
}

/// float16 is scaled, from the usual start; other types only if the spec gives a scale.
DynamicScale loss_scale_of(const RunSpec& spec) {
  const double usual = spec.model.dtype == Dtype::float16 ? DynamicScale::first : 0.0;
  DynamicScale scale{.scale = spec.optimizer.loss_scale.value_or(usual),
                     .growth_interval = spec.optimizer.loss_scale_window,
                     .hysteresis = spec.optimizer.loss_scale_hysteresis};
  scale.lowest = spec.optimizer.min_loss_scale.value_or(scale.lowest);
  return scale;
}

bool is_sharded(const RunPlan& plan) {
  return plan.spec.parallel.zero > 0;
}

std::int64_t shards_of(const RunPlan& plan) {
  return is_sharded(plan) ? plan.grid.data : 1;
}

/// A tied embedding whose two copies are updated by different ranks: both are divided alike, so that the owners on the
/// first and on the last stage sum the same elements.
std::optional<std::size_t> alone_in(const RunPlan& plan, const std::vector<ParameterShare>& shares) {
  if (!is_sharded(plan) || plan.grid.pipeline == 1 || !block_form(plan.spec.model).tied_head) return std::nullopt;
  const auto tied = std::ranges::find(shares, tied_embedding, &ParameterShare::name);
  if (tied == shares.end()) return std::nullopt;
  return static_cast<std::size_t>(tied - shares.begin());
}

at::Tensor alone_in(const RunPlan& plan, const FlatModel& model) {
  const auto alone = alone_in(plan, model.shares());
  return alone ? model.parameters()[*alone] : at::Tensor();
}

FlatLayout layout_of(const RunPlan& plan, at::ScalarType own, const std::vector<ParameterShare>& shares) {
  std::vector<std::int64_t> numels;
  for (const ParameterShare& each : shares) numels.push_back(each.numel());
  return flat_layout(numels, gradient_element(plan, own), bucket_bytes_of(plan), shards_of(plan),
                     alone_in(plan, shares));
}

std::optional<UpdateShard> shard_of(const RunPlan& plan, const FlatModel& model, const Mesh& mesh) {
  if (!is_sharded(plan)) return std::nullopt;
  return UpdateShard(model.layout(), mesh.data());
}

/// This rank's shares of the model, by chunk.
std::vector<ModelShare> shares_of(const RunSpec& spec, const Mesh& mesh) {
  std::vector<ModelShare> shares;
  for (std::int64_t chunk = 0; chunk < spec.parallel.virtual_pipeline; ++chunk)
    shares.push_back(share_under(spec.model, spec.parallel, mesh.at().tensor, mesh.at().pipeline, chunk));
  return shares;
}

bool goes_on(const RunOrder& order) {
  if (order.resume_from.empty()) return false;
  const auto saved = committed_checkpoints(order.run_dir);
  return saved && !saved->empty();
}

/// The model to build, whose weights are verified. A run that goes on takes them from its own checkpoint, so it does
/// not need the folder that it started from.
ModelSpec started(const RunOrder& order, const Communicator& world) {
  ModelSpec model = Faults::model(order.plan.spec);
  if (model.init == WeightInit::checkpoint && goes_on(order)) model.init = WeightInit::zeros;
  verify_weights(model, world.rank(), world.size());
  return model;
}

std::uint64_t seed_of(const RunSpec& spec) {
  return static_cast<std::uint64_t>(spec.run.seed);
}

}  // namespace

Training::Training(const RunOrder& run, const Mesh& ranks, RankChannel& rank_channel, at::Device computes_on,
                   RunHooks named, std::unique_ptr<DataSource> source)
    : order(run),
      mesh(ranks),
      channel(rank_channel),
      hooks(std::move(named)),
      report(run, ranks, rank_channel, computes_on),
      scalars(run, ranks, computes_on),
      device(computes_on),
      clock(computes_on),
      data(on_device(std::move(source), computes_on)),
      faults(run.plan, ranks.data().rank()),
      tensor(ranks.tensor(), run.plan.spec.parallel.sequence),
      model(
          Faults::model(run.plan.spec), shares_of(run.plan.spec, ranks),
          [this, &spec = run.plan.spec, built = started(run, ranks.world())](const ModelShare& share) {
            return hooks.part(built, seed_of(spec), share, tensor, spec.parallel);
          },
          computes_on,
          [&run](at::ScalarType own, const std::vector<ParameterShare>& shares) {
            return layout_of(run.plan, own, shares);
          }),
      scaling(run.plan.knobs, run.plan.spec.teaching.bug, ranks.data().size()),
      reducer(model.module(), ranks.data(),
              {.bucket_bytes = bucket_bytes_of(run.plan),
               .op = scaling.reduce_op(),
               .broadcast_parameters = true,
               .launch = launch_of(run.plan),
               .accumulation = run.plan.knobs.accumulation_dtype,
               .shard = is_sharded(run.plan),
               .alone = alone_in(run.plan, model)}),
      shard(shard_of(run.plan, model, ranks)),
      // Moments are [numel], under ZeRO [elements of this rank's share], in float32 for half-precision parameters.
      optimizer(make_flat_optimizer(
          run.plan.spec.optimizer,
          shard ? shard->segments(model.segments(run.plan.spec.optimizer)) : model.segments(run.plan.spec.optimizer),
          shard ? shard->numel() : model.layout().numel, at::toOpMathType(model.dtype()), computes_on)),
      masters(model.flat(), shard ? &*shard : nullptr),
      driver(std::make_shared<AccumulationWindow>(run.plan.window), ClearGradients::engine, {}, &reducer),
      window(driver.window()),
      feed(run.plan, *data, ranks.data().rank()),
      link(ranks.pipeline()),
      executor(model.parts(), ranks.grid().pipeline, ranks.at().pipeline, &link),
      loss_scale(loss_scale_of(run.plan.spec)) {
  optimizer->set_complete_sums([this](at::Tensor& sums) { complete_sums(*this, sums); });
  // Element i of the arena is the gradient of element i of the flat parameters. All passes over both rely on it.
  if (!(reducer.layout() == model.layout()))
    throw std::logic_error("the gradient arena and the flat parameters are laid out differently");
  if (ranks.grid().pipeline > 1 && ranks.pipeline().backend() == "shm")  // all stages are on this host
    executor.share_host({.threads = run.plan.threads_per_rank,
                         .ranks = ranks.grid().world() / ranks.grid().pipeline,
                         .cores = local_facts().cores});
  if (!shard || !run.plan.spec.parallel.overlap_param_gather) return;
  for (ModelPart* part : model.parts())
    part->before_use([this](const at::Tensor& first, const at::Tensor& last) {
      shard->await(FlatModel::range_between(first, last));
    });
}

}  // namespace accrue
