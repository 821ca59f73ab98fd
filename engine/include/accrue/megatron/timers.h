// SPDX-License-Identifier: Apache-2.0
// Times the phases of a train step under Megatron-LM's names: "forward-backward", "forward-compute", "all-grads-sync".
// Thread: training.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace accrue::megatron {

class Timers {
 public:
  using Clock = std::chrono::steady_clock;

  /// Counts time until it is destroyed.
  class [[nodiscard]] Running {
   public:
    Running(Timers& timers, const char* name) : timers_(timers), name_(name), begin_(Clock::now()) {}
    ~Running() { timers_.seconds_[name_] += std::chrono::duration<double>(Clock::now() - begin_).count(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Timers& timers_;
    const char* name_;
    Clock::time_point begin_;
  };
  Running run(const char* name) { return {*this, name}; }
  /// Counts while the part runs.
  template <typename Part>
  void time(const char* name, const Part& part) {
    const Running running = run(name);
    part();
  }

  /// Seconds since reset(), by name.
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void reset() { seconds_.clear(); }

 private:
  std::map<std::string, double> seconds_;
};

}  // namespace accrue::megatron
