// SPDX-License-Identifier: Apache-2.0
// Samples by index. Which indices a rank reads at (epoch, batch) is SampleOrder's answer; a source only turns indices
// into tensors, so there is no iterator state to save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "accrue/models/batch.h"
#include "accrue/run/data_facts.h"
#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"

namespace accrue {

enum class Split { train, validation };

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::int64_t size(Split split) const = 0;
  /// The micro-batch of these samples; no samples make an empty batch (samples 0, items 0).
  virtual Batch batch(Split split, std::span<const std::int64_t> samples) = 0;
};

/// Opens the spec's data. Errors (data): what scan_data finds, and "changed since the run began" where
/// facts.fingerprint differs.
Result<std::unique_ptr<DataSource>> open_data(const RunSpec& spec, const DataFacts& facts,
                                              const std::filesystem::path& base_dir);

}  // namespace accrue
