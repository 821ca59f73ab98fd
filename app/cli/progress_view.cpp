// SPDX-License-Identifier: Apache-2.0
#include "progress_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "accrue/run/base/result.h"
#include "print.h"

namespace accrue::cli {
namespace {

using namespace std::chrono_literals;

std::string clock_text(double seconds) {
  const auto whole = std::llround(std::max(0.0, seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// Formats the event and the advice.
template <typename Body>
std::string sentences(const Body& body) {
  return Error{ErrorCode::unset, body.message, {}, body.what_to_do}.text();
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

ProgressView::Style ProgressView::style_for_stderr(bool quiet) {
  if (quiet) return Style::quiet;
  return ::isatty(STDERR_FILENO) != 0 ? Style::bar : Style::lines;
}

void ProgressView::end_bar() {
  if (!bar_shown_) return;
  say("\n");
  bar_shown_ = false;
}

void ProgressView::print(const std::string& line) {
  end_bar();
  say("%s\n", line.c_str());
}

void ProgressView::show(const RunEvent& event) {
  if (const auto* warning = std::get_if<Warning>(&event.body)) {
    told_ = warning->message;
    print(fmt::format("warning ({}): {}", warning->class_name, sentences(*warning)));
  } else if (const auto* failed = std::get_if<RankFailed>(&event.body)) {
    told_ = failed->message;
    print(fmt::format("error ({}): {}", failed->class_name, sentences(*failed)));
    const auto tail = failed->log_tail.substr(0, failed->log_tail.find_last_not_of('\n') + 1);
    if (!tail.empty()) say("  its last output:\n%s\n", tail.c_str());
  }
  if (style_ == Style::quiet) return show_failure(event);
  if (const auto* update = std::get_if<Update>(&event.body)) {
    if (event.rank <= 0) show_update(*update);
  } else if (const auto* started = std::get_if<RunStarted>(&event.body)) {
    first_.reset();
    resumes_ = started->resumed;
  } else if (const auto* changed = std::get_if<StateChanged>(&event.body)) {
    if (changed->state == "running" || changed->state == "starting") return;
    if (const std::string news = news_in(changed->detail); !news.empty()) print(news);
  } else if (const auto* evaluation = std::get_if<Evaluation>(&event.body)) {
    if (event.rank <= 0) print(fmt::format("update {}: evaluation loss {:.4f}", evaluation->update, evaluation->loss));
  } else if (const auto* check = std::get_if<ExactnessCheck>(&event.body)) {
    print(fmt::format("update {}: {}, relative difference {:.1e} (tolerance {:.0e}){}{}", check->update,
                      check->verdict == "not" ? "not exact" : check->verdict, check->relative, check->tolerance,
                      check->message.empty() ? "" : ". ", check->message));
  } else if (const auto* changed_steps = std::get_if<StepsChanged>(&event.body)) {
    print(fmt::format("update {}: N is {} from here on", changed_steps->update, changed_steps->steps));
    planned_ = 0;  // of the previous plan
  } else if (const auto* checkpoint = std::get_if<CheckpointDone>(&event.body)) {
    const auto& best = checkpoint->best_loss;
    print(fmt::format("update {}: checkpoint {}{}", checkpoint->update, checkpoint->path,
                      best ? fmt::format(", the best so far: validation loss {:.6g}", *best) : ""));
  }
}

/// Returns a state's detail without the text of the preceding warning or error.
std::string ProgressView::news_in(const std::string& detail) const {
  const auto at = told_.empty() ? std::string::npos : detail.find(told_);
  if (at == std::string::npos) return detail;
  const auto trimmed = [](std::string text) {
    text.erase(0, text.find_first_not_of(" .:;"));
    return text.substr(0, text.find_last_not_of(" .:;") + 1);
  };
  const std::string before = trimmed(detail.substr(0, at));
  const std::string after = trimmed(detail.substr(at + told_.size()));
  return before + (before.empty() || after.empty() ? "" : ". ") + after;
}

/// In quiet style: a failed run says why, unless a warning or an error has just said it.
void ProgressView::show_failure(const RunEvent& event) {
  const auto* changed = std::get_if<StateChanged>(&event.body);
  if (changed == nullptr || changed->state != "failed" || changed->detail.empty()) return;
  if (told_.empty() || changed->detail.find(told_) == std::string::npos) print(changed->detail);
}

void ProgressView::show_update(const Update& update) {
  // Only now is it known which checkpoint could be used.
  if (std::exchange(resumes_, false))
    print(update.update == 1 ? "starting over" : fmt::format("continuing from update {}", update.update - 1));
  if (!first_) first_ = update;
  const auto now = Clock::now();
  const bool is_last = planned_ > 0 && update.update >= planned_;
  const auto interval = style_ == Style::bar ? Clock::duration(100ms) : Clock::duration(1s);
  if (!is_last && now - last_shown_ < interval) return;
  last_shown_ = now;
  const double elapsed = update.seconds - first_->seconds;
  const double rate = elapsed > 0 ? static_cast<double>(update.samples - first_->samples) / elapsed : 0.0;
  const auto done = update.update - first_->update;
  const double left =
      done > 0 ? elapsed / static_cast<double>(done) * static_cast<double>(planned_ - update.update) : 0.0;
  if (style_ == Style::bar) return draw_bar(update, rate, left);
  std::string line =
      planned_ > 0 ? fmt::format("update {}/{}", update.update, planned_) : fmt::format("update {}", update.update);
  line += update.outcome == StepOutcome::skipped_empty ? "  no label" : fmt::format("  loss {:.6g}", update.loss);
  if (update.lr) line += fmt::format("  lr {:.3g}", *update.lr);
  if (rate > 0) line += fmt::format("  {:.0f} samples/s", rate);
  if (done > 0 && planned_ > 0) line += fmt::format("  {} left", clock_text(left));
  print(line);
}

void ProgressView::draw_bar(const Update& update, double rate, double seconds_left) {
  std::string tail = fmt::format(" {}/{}", update.update, planned_);
  tail += update.outcome == StepOutcome::skipped_empty ? "  no label" : fmt::format("  loss {:.4f}", update.loss);
  if (update.lr) tail += fmt::format("  lr {:.2e}", *update.lr);
  if (rate > 0) tail += fmt::format("  {:.0f} samples/s  {} left", rate, clock_text(seconds_left));
  const auto width = terminal_width();
  const auto cells = width > tail.size() + 12 ? std::min<std::size_t>(40, width - tail.size() - 4) : 0;
  const double share =
      planned_ > 0 ? std::min(1.0, static_cast<double>(update.update) / static_cast<double>(planned_)) : 0.0;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(cells));
  const std::string bar = cells == 0 ? "" : "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "]";
  draw_line(bar + tail);
  bar_shown_ = true;
}

}  // namespace accrue::cli
