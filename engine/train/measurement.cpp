// SPDX-License-Identifier: Apache-2.0
#include "train/measurement.h"

namespace accrue {
namespace {

/// The first may include one-time costs.
constexpr std::int64_t windows_that_show_all = 2;

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

}  // namespace

void measure_window(Training& training) {
  if (!training.executor.counts_kept()) return;
  // A device's libraries allocate their workspaces in the first window and keep them: count the second, if there is
  // one.
  if (training.report.full_updates() == 1 && !training.device.is_cpu()) training.executor.count_kept_anew();
  if (training.report.full_updates() < windows_that_show_all) return;
  report_measured(training);
  training.executor.stop_counting_kept();
}

void report_measured(Training& training) {
  if (training.report.full_updates() == 0) return;
  training.await_parameters();  // its gathers are part of the sent bytes
  Measured measured{
      .parameter_bytes = bytes_of(training.model.flat()),
      .gradient_bytes = bytes_of(training.reducer.flat_gradients()) + bytes_of(training.reducer.flat_compensation()),
      .optimizer_bytes = training.masters.copied() ? bytes_of(training.masters.values()) : 0,
      .activation_bytes = training.executor.most_kept_bytes()};
  for (const auto& [name, state] : training.optimizer->state()) measured.optimizer_bytes += bytes_of(state);
  // State in files is no memory of the process.
  measured.optimizer_bytes -= training.optimizer->bytes_in_files();
  training.report.measured(std::move(measured));
}

}  // namespace accrue
