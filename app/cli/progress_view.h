// SPDX-License-Identifier: Apache-2.0
// Events as text for people, on standard error: a progress bar on a terminal, else a line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "accrue/run/events/run_event.h"

namespace accrue::cli {

class ProgressView {
 public:
  enum class Style { bar, lines, quiet };
  ProgressView(Style style, std::int64_t planned_updates) : style_(style), planned_(planned_updates) {}

  void show(const RunEvent& event);
  /// Ends the bar's line; later output starts on a new one.
  void end_bar();
  static Style style_for_stderr(bool quiet);

 private:
  using Clock = std::chrono::steady_clock;
  void show_update(const Update& update);
  void show_failure(const RunEvent& event);
  void draw_bar(const Update& update, double rate, double seconds_left);
  void print(const std::string& line);
  std::string news_in(const std::string& detail) const;

  Style style_;
  std::int64_t planned_ = 0;
  bool bar_shown_ = false;
  bool resumes_ = false;  ///< no update has arrived since the run was restarted
  std::string told_;      ///< the last warning or error
  Clock::time_point last_shown_{};
  std::optional<Update> first_;  ///< since the last start: basis of rates
};

}  // namespace accrue::cli
