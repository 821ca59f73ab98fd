// SPDX-License-Identifier: Apache-2.0
#include "spawn_watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace accrue {
namespace {

bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto name_ends = text.rfind(") ");
  return name_ends != std::string::npos && (text[name_ends + 2] == 'T' || text[name_ends + 2] == 't');
}

/// Whether it has not yet become its program.
bool is_still_us(pid_t pid) {
  std::error_code none;
  const auto ours = std::filesystem::read_symlink("/proc/self/exe", none);
  return !none && std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), none) == ours;
}

}  // namespace

SpawnWatch::SpawnWatch(std::chrono::milliseconds patience)
    : parent_(::gettid()), patience_(patience), thread_([this] { watch(); }) {}

SpawnWatch::~SpawnWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SpawnWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, patience_, [this] { return over_; })) {
    std::ifstream children(fmt::format("/proc/self/task/{}/children", parent_));
    for (pid_t child = 0; children >> child;)
      if (is_still_us(child) && is_stopped(child)) ::kill(child, SIGKILL);
  }
}

}  // namespace accrue
