// SPDX-License-Identifier: Apache-2.0
// The scalars of a run while it trains, a run's and those of a Megatron Accelerator: each under its tag by update, and
// under "TAG vs samples" by the samples trained on. Thread: training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "accrue/run/record/tensorboard_file.h"

namespace accrue {

class TensorboardWriter {
 public:
  /// Writes nothing.
  TensorboardWriter() = default;
  /// A new file in the folder. `program`: who says that a disk is full. Errors: throws ResultError (disk).
  TensorboardWriter(const std::filesystem::path& folder, std::string program);

  explicit operator bool() const { return file_.has_value(); }
  /// Training does not end for a plot: a disk that is full is named once, and the file is left as it is.
  void add(const TensorboardScalars& scalars, std::int64_t update, std::int64_t samples);

 private:
  std::string program_;
  std::optional<TensorboardFile> file_;
};

}  // namespace accrue
