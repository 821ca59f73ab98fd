// SPDX-License-Identifier: Apache-2.0
// Checkpoints under <run>/checkpoints/step-N/: one shard-r.safetensors for each rank that wrote, and manifest.json,
// made durable before one rename commits them. Protocol: write to .step-N.<random>.part, hash while writing, fdatasync,
// manifest last, fsync the folder, rename, fsync the parent; never write into a committed folder. Retention first
// renames to .trash-*, and never drops the last two, the last finite one, or the best one.
//
// Every tensor is stored with its name, the shape of the whole and the file's slice of it; any rank may write any
// slice. A reader requests a slice by name and gets it from the files that hold it. So ranks in one layout can read the
// checkpoint of another. A tensor that one file holds whole is an ordinary safetensors entry.
//
// Thread: training, except for CheckpointReader's const members, which any thread may call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/checkpoint/tensor_slice.h"
#include "accrue/comm/communicator.h"
#include "accrue/comm/mesh.h"
#include "accrue/run/base/result.h"
#include "accrue/run/window/accumulation_window.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "accrue/run/window/evaluation_progress.h"

namespace accrue {

/// State besides tensors with which a run resumes bit-identically.
struct TrainingCursor {
  WindowPosition window;
  std::int64_t optimizer_steps = 0;
  std::int64_t samples = 0;  ///< over all ranks
  std::int64_t tokens = 0;
  double seconds = 0.0;
  double loss = 0.0;  ///< of the last update with a labelled item
  bool finite = true;
  double loss_scale = 0.0;              ///< float16's dynamic scale; 0: none
  std::int64_t scale_growth = 0;        ///< updates since it last changed
  std::int64_t scale_overflows = 0;     ///< overflows since it last grew
  std::int64_t empty_windows = 0;       ///< of the updates: without a labelled item
  std::int64_t overflowed_windows = 0;  ///< of the updates: with a non-finite loss or gradient
  EvaluationProgress evaluations;
  double frozen_lr = -1.0;  ///< replayed defect: the constant rate of a resumed run; negative: none
  /// Completed micro-steps, including those of an open window.
  std::int64_t micro_step() const { return window.micro_step(); }
  /// Boundaries passed.
  std::int64_t update() const { return window.updates(); }
  std::int64_t schedule_position() const { return window.schedule_position(); }
  CheckpointMark mark() const { return {update(), window.position()}; }
  bool operator==(const TrainingCursor&) const = default;
};

/// Identity of a checkpoint: its spec and data, and the ranks and software that computed it.
struct CheckpointIdentity {
  std::string spec_sha256;
  std::string data_fingerprint;
  std::int64_t world = 1;     ///< ranks
  std::int64_t replicas = 1;  ///< data-parallel ones
  std::int64_t threads_per_rank = 1;
  std::string torch_version;
  std::string cpu_capability;  ///< for example "AVX2"
};

/// Identity of these ranks' machine alone, without a spec or data.
CheckpointIdentity machine_identity(const Mesh& mesh);

/// A tensor, or a part of one, in memory.
struct PlacedTensor {
  std::string name;   ///< the same in every layout
  TensorSlice slice;  ///< its part of the whole
  at::Tensor values;  ///< [*slice.extent] if the slice is a box, otherwise [slice.range.size]
};
PlacedTensor whole_tensor(std::string name, at::Tensor values);
PlacedTensor text_tensor(std::string name, std::string_view text);
/// Places a stretch of a rank's elements of a parameter. `slice`: the elements as stored. `values`: those of the
/// stretch, flat or not; they are not copied. Padding is at the end and is left out; returns none if the stretch is
/// padding alone.
std::optional<PlacedTensor> placed_stretch(std::string name, TensorSlice slice, const FlatRange& stretch,
                                           const at::Tensor& values);

struct CheckpointContent {
  TrainingCursor cursor;  ///< equal on all ranks
  std::vector<PlacedTensor>
      tensors;  ///< tensors that this rank writes; each element of a tensor is written by one rank
};

struct CommittedCheckpoint {
  std::string name;  ///< "step-100"
  std::int64_t bytes = 0;
  double seconds = 0.0;
  std::optional<Error> retention;  ///< why outdated checkpoints were not removed; on rank 0
};

/// Removes unfinished and discarded folders. Called by one process, before any rank opens or saves a checkpoint of this
/// run.
void tidy_checkpoints(const std::filesystem::path& run_dir);

/// Writes and commits a checkpoint. All ranks get the same result. Errors (disk): previous checkpoints are intact and
/// training may continue. Collective: the world, at a boundary or between two micro-steps.
Result<CommittedCheckpoint> save_checkpoint(const std::filesystem::path& run_dir, const CheckpointContent& content,
                                            const CheckpointIdentity& identity, std::int64_t keep, Communicator& world);

/// A committed checkpoint that verified. Holds its files open; each tensor is read on request.
class CheckpointReader {
 public:
  struct Stored {
    std::vector<std::int64_t> shape;  ///< of the whole tensor
    at::ScalarType dtype = at::ScalarType::Undefined;
    std::string text() const;  ///< "Float [3, 4]"
  };

  const std::string& name() const;  ///< "step-100"
  const TrainingCursor& cursor() const;
  const CheckpointIdentity& identity() const;
  std::vector<std::string> tensor_names() const;
  /// Returns null if the tensor does not exist.
  const Stored* find(const std::string& tensor) const;
  /// Returns how a stored tensor differs from the live one; empty if it does not.
  std::string mismatch(const PlacedTensor& live) const;
  /// Fills into.values: directly from the file if the slice was written as requested, else by copying one part at a
  /// time. Errors (protocol): no such tensor, or of another shape or type; (disk): cannot be read.
  Result<void> read(const PlacedTensor& into) const;
  /// Returns the whole of a small tensor. Errors as above.
  Result<at::Tensor> read(const std::string& tensor) const;
  /// Returns the text of a tensor that text_tensor() made. Errors as above.
  Result<std::string> read_text(const std::string& tensor) const;

  struct Index;
  explicit CheckpointReader(std::shared_ptr<const Index> index);

 private:
  std::shared_ptr<const Index> index_;
};

struct OpenedCheckpoint {
  std::optional<CheckpointReader> checkpoint;  ///< empty: none is usable
  std::vector<std::string> refused;            ///< newer checkpoints that were refused, with reasons
  std::vector<std::string> not_bit_exact;      ///< differences from this run (threads, world size, ...)
};

/// The run's own check of a checkpoint whose files are intact. An error of code protocol or disk refuses it, and an
/// older one is tried; any other error ends the search.
using CheckpointFits = std::function<Result<void>(const CheckpointReader&)>;

/// Returns the newest checkpoint that verifies and fits on all ranks; `name` is "newest", or "step-100" to consider
/// that one and older ones. Rank 0 finds candidates, the ranks share the hashing of their files, and all refuse a
/// candidate that one rank refuses. Collective: the world.
/// Errors, equal on all ranks: data (the fingerprint differs), config (`name` is not the name of a checkpoint; a
/// checkpoint of another format, with advice), and any error of `fits` that ends the search.
Result<OpenedCheckpoint> open_checkpoint(const std::filesystem::path& run_dir, const std::string& name,
                                         const CheckpointIdentity& identity, const CheckpointFits& fits,
                                         Communicator& world);

}  // namespace accrue
