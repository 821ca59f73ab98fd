// SPDX-License-Identifier: Apache-2.0
// Plug-in library parts that [megatron] of a spec names, in a run: train step, loss, model and data. The trainer treats
// them like any model part and any data: it counts, reduces, divides and reports as usual. The tensor axis compares
// (megatron/same_batch.h) the output of the library's data sets and its custom_get_batch_function, and each batch that
// its train step computed.
// Thread: training.
#pragma once

#include <memory>

#include "accrue/comm/mesh.h"
#include "accrue/data/data_source.h"
#include "accrue/megatron/registry.h"
#include "accrue/models/model_part.h"
#include "accrue/run/events/run_event.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

class RunHooks {
 public:
  /// The mesh must outlive this. Errors: throws std::invalid_argument for a name that the registry lacks, and for
  /// arguments that the library's step cannot be made with.
  RunHooks(const RunPlan& plan, const Mesh& mesh, const megatron::Registry& registry);

  /// Whether the spec names anything.
  bool any() const { return named_ != nullptr; }
  /// Replaces the spec's data. Null: those are read.
  std::unique_ptr<DataSource> data() const;
  /// Does make_model_part(), behind the train step if the spec names anything. With a number type other than the
  /// spec's, the library's batches are converted too. Errors: likewise, and if the library's provider returns no model.
  std::shared_ptr<ModelPart> part(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                  const TensorAxis& axis, const ParallelSpec& parallel) const;
  /// Returns the train step's reports beside its loss since the last call, over all ranks; empty if the spec names
  /// nothing. Collective: the world, unless the spec names nothing.
  NamedNumbers take_reports(Split split) const;
  void drop_reports() const;
  /// Returns this rank's reports of the open window for a checkpoint (StepReports::text()); the second function
  /// restores them.
  std::string open_reports() const;
  void restore_reports(const std::string& text) const;
  /// The next forward belongs to this micro-step of the window.
  void starts(std::int64_t position) const;

 private:
  struct Named;
  class HookedPart;
  class HookedSource;
  std::shared_ptr<Named> named_;  ///< null if the spec names nothing
};

}  // namespace accrue
