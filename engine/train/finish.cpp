// SPDX-License-Identifier: Apache-2.0
#include "train/finish.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/run/base/sync_path.h"
#include "comm/gathered.h"
#include "train/model_axis.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

/// Writes a temporary file and renames it, so that a reader finds the old file or the new one.
Result<void> write_model_file(const fs::path& folder, const NamedTensors& tensors) {
  const fs::path file = folder / "model.safetensors";
  const fs::path part = folder / ".model.safetensors.part";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::disk, "the folder cannot be made: " + error.message(), folder.string());
  fs::remove(part, error);
  const auto written = write_archive(part, tensors, {{"format", "pt"}});
  if (!written) return tl::unexpected(written.error());
  fs::rename(part, file, error);
  if (error) return fail(ErrorCode::disk, "the file cannot be given its name: " + error.message(), file.string());
  return sync_path(folder);
}

/// The hash as numbers that the ranks exchange.
at::Tensor numbers_of(const std::string& hash) {
  at::Tensor numbers = at::zeros({64}, at::kLong);
  for (std::size_t i = 0; i < std::min<std::size_t>(hash.size(), 64); ++i)
    numbers.mutable_data_ptr<std::int64_t>()[i] = static_cast<unsigned char>(hash[i]);
  return numbers;
}

/// Whether all ranks of the axis have this hash. Collective: the axis.
bool is_alike(Communicator& axis, const std::string& hash) {
  const at::Tensor mine = numbers_of(hash);
  return (gathered(axis, mine) == mine).all().item<bool>();
}

/// Broadcasts the first stage's hash to all stages.
std::string told_to_all_stages(const Training& training, const std::string& hash) {
  if (training.mesh.pipeline().size() == 1) return hash;
  at::Tensor numbers = numbers_of(hash);
  training.mesh.pipeline().broadcast(numbers);
  std::string told;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) told += static_cast<char>(numbers[i].item<std::int64_t>());
  return told;
}

/// Compares hashes of each rank's copies of replicated parameters. Copies that were kept equal by construction are
/// equal to the bit; anything else is damage and reported. Replicas that never reduce are meant to differ. Collective:
/// the world.
void compare_copies(Training& training, const std::string& hash) {
  const bool replicas_differ = training.plan().knobs.reduce_when == ReduceWhen::never;
  Communicator& ranks = replicas_differ ? training.mesh.model() : training.mesh.world();
  if (is_alike(ranks, hash)) return;
  training.report.warn_first("internal", "the ranks do not hold equal parameters at the end of the run",
                             "Copies drifted apart: use an earlier checkpoint, and check the memory of this machine.");
}

/// Does the same for the copies of a tied embedding, which get the same updates. Collective: the world.
void compare_tied_copies(Training& training) {
  if (training.mesh.grid().pipeline == 1) return;
  double differ = 0.0;
  if (const auto tied = tied_parameter(training)) {
    const at::Tensor own = training.model.slice(training.model.flat(), *tied);
    const std::string hash = weights_sha256({{std::string(tied_embedding), own}});
    if (!is_alike(training.mesh.along(Axis::embedding), hash)) differ = 1.0;
  }
  if (sum_over_ranks(training.mesh.world(), differ) == 0.0) return;
  training.report.warn_first(
      "internal", "the stages do not hold equal copies of the token embedding at the end of the run",
      "The stages drifted apart: use an earlier checkpoint, and check the memory of this machine.");
}

}  // namespace

Result<std::string> write_final_weights(Training& training) {
  training.report.phase("finish");
  const auto untimed = training.mesh.pipeline().untimed();  // the first stage receives and reads the whole model
  NamedTensors tensors = whole_parameters(training);
  // After a discarded window each replica has its own buffers; the first's are the model's.
  if (training.plan().knobs.reduce_when != ReduceWhen::never) training.reducer.before_forward();
  std::ranges::copy(training.model.buffers(), std::back_inserter(tensors));
  const std::string hash =
      told_to_all_stages(training, training.mesh.first_stage() ? weights_sha256(tensors) : std::string());
  compare_copies(training, hash);
  compare_tied_copies(training);
  if (!training.report.first() || training.order.run_dir.empty()) return hash;
  if (auto written = write_model_file(training.order.run_dir / "final", tensors); !written)
    return tl::unexpected(written.error());
  return hash;
}

}  // namespace accrue
