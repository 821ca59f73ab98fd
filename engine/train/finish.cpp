// SPDX-License-Identifier: Apache-2.0
#include "train/finish.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "accrue/checkpoint/tensor_archive.h"
#include "train/model_axis.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

/// Written beside its place and renamed, so that a reader finds the old file or the new one.
Result<void> write_model_file(const fs::path& folder, const NamedTensors& parameters) {
  const fs::path file = folder / "model.safetensors";
  const fs::path part = folder / ".model.safetensors.part";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::disk, "the folder cannot be made: " + error.message(), folder.string());
  fs::remove(part, error);
  const auto written = write_archive(part, parameters, {{"format", "pt"}});
  if (!written) return tl::unexpected(written.error());
  fs::rename(part, file, error);
  if (error) return fail(ErrorCode::disk, "the file cannot be given its name: " + error.message(), file.string());
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int failed = errno;
  if (fd >= 0) ::close(fd);
  if (!synced)
    return fail(ErrorCode::disk, std::string("the folder cannot be synced: ") + std::strerror(failed), folder.string());
  return {};
}

/// Replicas that were kept equal by construction are equal to the bit; anything else is damage worth a word.
void compare_replicas(Training& training, const std::string& hash) {
  at::Tensor mine = at::empty({1}, at::kLong);
  at::Tensor all = at::empty({training.mesh.data().size(), 1}, at::kLong);
  mine.fill_(static_cast<std::int64_t>(std::stoull(hash.substr(0, 15), nullptr, 16)));
  training.mesh.data().all_gather(all, mine);
  if (all.min().item<std::int64_t>() == all.max().item<std::int64_t>()) return;
  training.report.warn_first(
      "internal", "the ranks do not hold equal parameters at the end of the run",
      "Replicas drifted apart: use an earlier checkpoint, and check the memory of this machine.");
}

}  // namespace

Result<std::string> write_final_weights(Training& training) {
  training.report.phase("finish");
  const NamedTensors parameters = whole_parameters(training);
  const std::string hash = weights_sha256(parameters);
  if (training.plan().knobs.reduce_when != ReduceWhen::never) compare_replicas(training, hash);
  if (!training.report.first() || training.order.run_dir.empty()) return hash;
  if (auto written = write_model_file(training.order.run_dir / "final", parameters); !written)
    return tl::unexpected(written.error());
  return hash;
}

}  // namespace accrue
