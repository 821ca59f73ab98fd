// SPDX-License-Identifier: Apache-2.0
// Scalars of a run for TensorBoard (run.tensorboard_dir), under Megatron-LM's tags: x is the update, and for "... vs
// samples" the samples trained on. All ranks hold the same numbers; the last one writes. Thread: training.
#pragma once

#include <map>
#include <string>

#include "accrue/comm/mesh.h"
#include "accrue/run/events/run_event.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/run/record/tensorboard_writer.h"

namespace accrue {

class ScalarLog {
 public:
  /// A relative folder is inside the run's. `device`: the device whose memory is logged. Errors: throws ResultError
  /// (disk; config if there is no run folder for a relative one).
  ScalarLog(const RunOrder& order, const Mesh& mesh, at::Device device);

  /// `update`: as reported; timers: seconds of this rank in the update, by name.
  void add(const Update& update, double batch_size, const std::map<std::string, double>& timers);
  /// Sets the duration of a resumed run's earlier updates.
  void resumes_after(double seconds) { seconds_ = seconds; }
  void add(const Evaluation& evaluation, std::int64_t samples);

 private:
  at::Device device_;
  std::int64_t timer_level_;
  std::string loss_;              ///< its tag
  double flops_of_sample_ = 0.0;  ///< of forward and backward; 0: not known
  double world_;
  double seconds_ = 0.0;  ///< at the last update
  TensorboardWriter file_;
};

}  // namespace accrue
