// SPDX-License-Identifier: Apache-2.0
// model.init = "checkpoint": the folder that model.weights names, its model, and what of it a spec must not contradict.
// The folder is in Hugging Face's layout, a run's, or a checkpoint's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/weights/weight_names.h"
#include "accrue/run/weights/weights_folder.h"

namespace accrue {

struct StartWeights {
  WeightsFolder folder;
  WeightNames names = WeightNames::accrue;
  bool checkpoint = false;  ///< the files hold parts of tensors, which a CheckpointReader puts together

  /// Takes Hugging Face's folders by their config.json, a run's folder, its final weights, and its checkpoints. Of a
  /// run without final weights it takes the newest complete checkpoint. Errors (data).
  static Result<StartWeights> open(const std::filesystem::path& folder);
  /// XXH3-128 over each file's size, its ends and 62 places between them, as of indexed data; of a checkpoint over the
  /// same of its manifest, whose hashes the ranks compare with the files when they read them. Errors: a file cannot be
  /// read.
  Result<std::string> fingerprint() const;
  /// Their tensor of this name, with or without the prefix of the whole model ("transformer.", "model.").
  const WeightsFolder::Place* find(const std::string& tensor) const;
};

struct SpecWithWeights {
  RunSpec spec;  ///< with the keys that the weights set, and model.weights as an absolute path to a folder that
                 ///< stays what it is: a checkpoint instead of a run that may go on
  std::vector<Finding> findings;
  std::string fingerprint;  ///< of the weights; empty if the spec does not start from any, or they cannot be read
};

/// Errors (data): the fingerprint of model.weights is not the one that a run recorded. A run without one fits all.
Result<void> check_same_weights(const ModelSpec& model, const std::string& recorded, const std::string& now);

/// Fills the model's keys from the folder. Findings: a key that is set otherwise, a tensor that is missing, misshapen
/// or no part of the model, a folder that cannot be read, a run that is still training. Specs that start otherwise are
/// returned as they are.
SpecWithWeights with_weights(const RunSpec& spec, const std::filesystem::path& base_dir);

/// The same from an earlier answer, without reading a file: keys of the model that the spec leaves at their defaults
/// are those of `filled`, if both start from weights.
RunSpec with_keys_of(const RunSpec& spec, const RunSpec& filled);

}  // namespace accrue
