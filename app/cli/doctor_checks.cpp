// SPDX-License-Identifier: Apache-2.0
#include "doctor_checks.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/base/version.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/host/rank_program.h"
#include "accrue/run/host/run_limits.h"
#include "accrue/run/record/run_store.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

double free_on(const fs::path& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return -1.0;
  return static_cast<double>(facts.f_bavail) * static_cast<double>(facts.f_frsize);
}

void check_ranks(std::vector<DoctorCheck>& checks) {
  const std::string program = default_rank_program();
  const bool present = ::access(program.c_str(), X_OK) == 0;
  checks.push_back({"rank program", present, present ? program : program + ": " + std::strerror(errno),
                    "Build the target accrue-rank, or install it beside accrue-run"});
  if (!present) return;
  const auto facts = probe_host(program);
  checks.push_back({"rank program answers", facts.has_value(), facts ? "yes" : facts.error().text(),
                    "Run it with --probe and read what it says; a missing library is named there"});
  if (!facts) return;
  checks.push_back({"LibTorch", !facts->torch_version.empty(),
                    facts->torch_version.empty() ? "not found" : facts->torch_version,
                    "Run packaging/demo, which installs it"});
  const bool same = facts->accrue_version.empty() || facts->accrue_version == version();
  checks.push_back({"versions agree", same, same ? version() : facts->accrue_version + " and " + version(),
                    "Install accrue-rank and accrue-run from the same build"});
  const std::string devices = joined(facts->cuda_devices, ", ", &DeviceFacts::name);
  // Without a driver no device is missing, and a spec that requests one is refused with the reason.
  const bool has_driver = ::access("/dev/nvidiactl", F_OK) == 0;
  checks.push_back(
      {"CUDA devices", !devices.empty() || !has_driver, devices.empty() ? "none" : devices, facts->cuda_error});
}

void check_host(std::vector<DoctorCheck>& checks) {
  const HostFacts facts = local_facts();
  checks.push_back({"processor", true, fmt::format("{} ({})", facts.cpu_name, counted(facts.cores, "core")), {}});
  checks.push_back({"memory", facts.memory_bytes >= (1LL << 30), format_bytes(facts.memory_bytes),
                    "A rank needs about 150 MiB before it holds a model"});
}

void check_runtime_folder(std::vector<DoctorCheck>& checks) {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  if (folder == nullptr || folder[0] != '/') {
    checks.push_back(
        {"control sockets", true, fmt::format("/tmp/accrue-{} (XDG_RUNTIME_DIR is not set)", ::getuid()), {}});
    return;
  }
  struct stat facts {};
  const bool fit = ::stat(folder, &facts) == 0 && facts.st_uid == ::getuid() && ::access(folder, W_OK) == 0;
  checks.push_back({"control sockets", fit, folder, "XDG_RUNTIME_DIR must name a folder of this user's"});
}

void check_runs_folder(std::vector<DoctorCheck>& checks) {
  constexpr double wanted = 256.0 * (1 << 20);
  const fs::path runs = default_runs_dir();
  fs::path there = runs;
  std::error_code error;
  while (!fs::exists(there, error) && there != there.parent_path()) there = there.parent_path();
  const bool writable = ::access(there.c_str(), W_OK) == 0;
  const double free = free_on(there);
  checks.push_back(
      {"run folder", writable && free >= wanted,
       writable ? fmt::format("{} ({} free)", runs.string(), format_bytes(free)) : there.string() + " is not writable",
       "Free some space, or give runs another folder with --out"});
}

/// Checks the limits that a run with a rank on each core needs.
void check_shell_limits(std::vector<DoctorCheck>& checks) {
  const std::int64_t ranks = local_facts().cores;
  const std::string need = fmt::format("; {} may need ", counted(ranks, "rank"));
  const std::int64_t files = needed_open_files(ranks);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  checks.push_back({"open files", limit.rlim_cur >= static_cast<rlim_t>(files),
                    fmt::format("at most {}{}{}", limit.rlim_cur, need, files), fmt::format("ulimit -n {}", files)});
  const std::int64_t bytes = needed_file_bytes(ranks);
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const std::string most = limit.rlim_cur == RLIM_INFINITY
                               ? "unlimited"
                               : fmt::format("at most {}{}{} and the size of a checkpoint",
                                             format_bytes(limit.rlim_cur), need, format_bytes(bytes));
  checks.push_back({"size of files", limit.rlim_cur >= static_cast<rlim_t>(bytes), most, "ulimit -f unlimited"});
}

}  // namespace

std::vector<DoctorCheck> run_doctor_checks() {
  std::vector<DoctorCheck> checks;
  check_host(checks);
  check_ranks(checks);
  check_runtime_folder(checks);
  check_runs_folder(checks);
  check_shell_limits(checks);
  return checks;
}

}  // namespace accrue::cli
