// SPDX-License-Identifier: Apache-2.0
// What [megatron] of a spec names of plug-in libraries, in a run: a train step, a loss, a model, data of one's own. To
// the trainer they look like any part of a model and any data: it counts, reduces, divides and reports as always.
// Over the tensor axis is compared (megatron/same_batch.h) what the library's data sets and its
// custom_get_batch_function give, and each batch that its own train step computed.
// Thread: training.
#pragma once

#include <memory>

#include "accrue/comm/mesh.h"
#include "accrue/data/data_source.h"
#include "accrue/megatron/registry.h"
#include "accrue/models/model_part.h"
#include "accrue/run/run_event.h"
#include "accrue/run/run_plan.h"

namespace accrue {

class RunHooks {
 public:
  /// The mesh must outlive this. Errors: throws std::invalid_argument for a name that the registry does not have, and
  /// for what a step of the library cannot be made with.
  RunHooks(const RunPlan& plan, const Mesh& mesh, const megatron::Registry& registry);

  /// Whether the spec names anything.
  bool any() const { return named_ != nullptr; }
  /// In place of the spec's data. Null: those are read.
  std::unique_ptr<DataSource> data() const;
  /// As make_model_part(), behind the train step where the spec names anything. With a number type other than the
  /// spec's the batches of the library are converted, too. Errors: likewise, and where the library's provider gives no
  /// model.
  std::shared_ptr<ModelPart> part(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                  const TensorAxis& axis, const ParallelSpec& parallel) const;
  /// What the train step has reported beside its loss since the last call, over all ranks; empty where the spec names
  /// nothing. Collective: the world, where it does.
  NamedNumbers take_reports(Split split) const;
  void drop_reports() const;
  /// This rank's reports of the open window, for a checkpoint (StepReports::text()), and the same back.
  std::string open_reports() const;
  void restore_reports(const std::string& text) const;
  /// The forward that follows belongs to this micro-step of the window.
  void starts(std::int64_t position) const;

 private:
  struct Named;
  class HookedPart;
  class HookedSource;
  std::shared_ptr<Named> named_;  ///< null where the spec names nothing
};

}  // namespace accrue
