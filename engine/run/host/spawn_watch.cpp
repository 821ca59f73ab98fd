// SPDX-License-Identifier: Apache-2.0
// A spawned child shares this process's memory until it has become the program, so its parent stands still meanwhile,
// and no clock of the parent's can end a child that was stopped there. Another thread's can.
#include "spawn_watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace accrue {
namespace {

bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto name_ends = text.rfind(") ");
  return name_ends != std::string::npos && (text[name_ends + 2] == 'T' || text[name_ends + 2] == 't');
}

/// It has not become its program yet.
bool is_still_us(pid_t pid) {
  std::error_code none;
  const auto ours = std::filesystem::read_symlink("/proc/self/exe", none);
  return !none && std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), none) == ours;
}

class SpawnWatch {
 public:
  explicit SpawnWatch(std::chrono::milliseconds patience)
      : parent_(::gettid()), patience_(patience), thread_([this] { watch(); }) {}
  ~SpawnWatch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  SpawnWatch(const SpawnWatch&) = delete;
  SpawnWatch& operator=(const SpawnWatch&) = delete;

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, patience_, [this] { return over_; })) {
      std::ifstream children(fmt::format("/proc/self/task/{}/children", parent_));
      for (pid_t child = 0; children >> child;)
        if (is_still_us(child) && is_stopped(child)) ::kill(child, SIGKILL);
    }
  }

  const pid_t parent_;  ///< the thread that spawns
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

int spawn_in_time(pid_t& pid, const std::string& program, const SpawnSettings& settings,
                  std::vector<std::string>& arguments, std::vector<std::string>& environment,
                  std::chrono::milliseconds patience) {
  const SpawnWatch watch(patience);
  return ::posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes, pointers(arguments).data(),
                       pointers(environment).data());
}

}  // namespace accrue
