// SPDX-License-Identifier: Apache-2.0
// Samples by index. SampleOrder decides which indices a rank reads at (epoch, batch); a source only turns indices into
// tensors, so there is no iterator state to save. Thread: training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "accrue/models/batch.h"
#include "accrue/run/base/result.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

enum class Split { train, validation };

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::int64_t size(Split split) const = 0;  ///< samples
  /// Returns the micro-batch of these samples, with the shapes of Batch; without samples an empty one (samples 0, items
  /// 0).
  virtual Batch batch(Split split, std::span<const std::int64_t> samples) = 0;
};

/// Opens the spec's data. Relative paths start at base_dir. Errors (data): those of scan_data, and "changed since the
/// run began" if facts.fingerprint differs.
Result<std::unique_ptr<DataSource>> open_data(const RunSpec& spec, const DataFacts& facts,
                                              const std::filesystem::path& base_dir);

}  // namespace accrue
