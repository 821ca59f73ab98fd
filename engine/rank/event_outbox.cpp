// SPDX-License-Identifier: Apache-2.0
#include "rank/event_outbox.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "accrue/run/events/event_codec.h"

namespace accrue {
namespace {

constexpr std::size_t max_trace_bytes = 4 << 20;  ///< waiting; beyond it traces and gauges are dropped
constexpr std::size_t max_bytes = 16 << 20;       ///< waiting; beyond it everything except is_told_once() is dropped
constexpr std::size_t slice_bytes = 1 << 20;
constexpr std::size_t max_trace_entries = 1024;  ///< per array, so that a line stays far below 1 MiB

/// Whether the event is sent at most once in a run or for a command, and so never dropped.
bool is_told_once(const EventBody& body) {
  return std::holds_alternative<RankFailed>(body) || std::holds_alternative<RunFinished>(body) ||
         std::holds_alternative<RankReady>(body) || std::holds_alternative<StepsChanged>(body) ||
         std::holds_alternative<Holding>(body);
}

/// Approximate size of the event in memory and of its line.
std::size_t bytes_of(const EventBody& body) {
  constexpr std::size_t per_micro_step = 11 * sizeof(std::int64_t);
  constexpr std::size_t per_operation = 5 * sizeof(std::int64_t);
  constexpr std::size_t per_sync = 5 * sizeof(std::int64_t) + 2 * sizeof(std::string) + sizeof(CollectivePurpose);
  std::size_t bytes = sizeof(RunEvent);
  if (const auto* micro = std::get_if<MicroSteps>(&body)) bytes += micro->micro_step.size() * per_micro_step;
  if (const auto* operations = std::get_if<Operations>(&body)) bytes += operations->kind.size() * per_operation;
  if (const auto* sync = std::get_if<Sync>(&body)) bytes += sync->update.size() * per_sync;
  if (const auto* update = std::get_if<Update>(&body)) bytes += update->weights.size() * sizeof(double);
  if (const auto* warning = std::get_if<Warning>(&body)) bytes += warning->message.size() + warning->what_to_do.size();
  return bytes;
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void merge(MicroSteps& to, MicroSteps& from) {
  append(to.micro_step, from.micro_step);
  append(to.update, from.update);
  append(to.position, from.position);
  append(to.size, from.size);
  append(to.epoch, from.epoch);
  append(to.batch, from.batch);
  append(to.loss, from.loss);
  append(to.tokens, from.tokens);
  append(to.samples, from.samples);
  append(to.end_ns, from.end_ns);
  append(to.compute_ns, from.compute_ns);
}

void merge(Operations& to, Operations& from) {
  append(to.kind, from.kind);
  append(to.micro_step, from.micro_step);
  append(to.chunk, from.chunk);
  append(to.begin_ns, from.begin_ns);
  append(to.end_ns, from.end_ns);
}

void merge(Sync& to, Sync& from) {
  append(to.update, from.update);
  append(to.micro_step, from.micro_step);
  append(to.axis, from.axis);
  append(to.op, from.op);
  append(to.purpose, from.purpose);
  append(to.bytes, from.bytes);
  append(to.begin_ns, from.begin_ns);
  append(to.end_ns, from.end_ns);
}

}  // namespace

bool EventOutbox::post(EventBody body) {
  const std::int64_t now = monotonic_ns();
  const std::scoped_lock lock(mutex_);
  if (append_trace(body, now)) return false;
  const bool is_gauge = std::holds_alternative<Gauge>(body);
  if (!is_told_once(body) && sealed_bytes_ >= (is_gauge ? max_trace_bytes : max_bytes)) {
    ++(is_gauge ? left_out_traces_ : left_out_others_);
    return false;
  }
  seal_traces();
  seal(std::move(body), now);
  return true;
}

std::optional<std::int64_t> EventOutbox::due_ns() const {
  const std::scoped_lock lock(mutex_);
  if (!sealed_.empty()) return 0;
  if (no_traces()) return std::nullopt;
  return first_trace_ns_ + std::chrono::nanoseconds(flush_interval).count();
}

std::string EventOutbox::take_lines(std::int64_t now_ns, bool all) {
  std::vector<RunEvent> events;
  {
    const std::scoped_lock lock(mutex_);
    if (all || now_ns - first_trace_ns_ >= std::chrono::nanoseconds(flush_interval).count()) seal_traces();
    report_left_out(now_ns);
    for (std::size_t taken = 0; !sealed_.empty() && taken < slice_bytes; sealed_.pop_front()) {
      const std::size_t bytes = bytes_of(sealed_.front().body);
      taken += bytes;
      sealed_bytes_ -= bytes;
      events.push_back(std::move(sealed_.front()));
    }
  }
  std::string lines;
  for (const RunEvent& event : events) {
    lines += encode_event(event);
    lines += '\n';
  }
  return lines;
}

/// Sent once there is room again, so that the count is complete.
void EventOutbox::report_left_out(std::int64_t now_ns) {
  if (left_out_traces_ + left_out_others_ == 0 || sealed_bytes_ >= max_trace_bytes / 2) return;
  std::string what =
      left_out_traces_ == 0 ? "" : std::to_string(left_out_traces_) + " micro-step, operation, sync or gauge";
  if (left_out_others_ > 0) what += (what.empty() ? "" : " and ") + std::to_string(left_out_others_) + " other";
  left_out_traces_ = left_out_others_ = 0;
  seal(Warning{.class_name = "events",
               .message = what + " events were left out: the reader did not read for a while",
               .what_to_do = "The curves have a gap there; weights and checkpoints are complete."},
       now_ns);
}

void EventOutbox::discard() {
  const std::scoped_lock lock(mutex_);
  sealed_.clear();
  sealed_bytes_ = 0;
  micro_steps_ = {};
  operations_ = {};
  syncs_ = {};
}

std::size_t EventOutbox::waiting_bytes() const {
  const std::scoped_lock lock(mutex_);
  return sealed_bytes_;
}

/// Returns true if the body was a trace; it is then merged, or dropped while the reader is slow.
bool EventOutbox::append_trace(EventBody& body, std::int64_t now_ns) {
  auto* micro = std::get_if<MicroSteps>(&body);
  auto* operations = std::get_if<Operations>(&body);
  auto* sync = std::get_if<Sync>(&body);
  if (!micro && !operations && !sync) return false;
  if (sealed_bytes_ >= max_trace_bytes) {
    ++left_out_traces_;
    return true;
  }
  if (no_traces()) first_trace_ns_ = now_ns;
  last_trace_ns_ = now_ns;
  if (micro) merge(micro_steps_, *micro);
  if (operations) merge(operations_, *operations);
  if (sync) merge(syncs_, *sync);
  if (std::max({micro_steps_.micro_step.size(), operations_.kind.size(), syncs_.update.size()}) >= max_trace_entries)
    seal_traces();
  return true;
}

bool EventOutbox::no_traces() const {
  return micro_steps_.micro_step.empty() && operations_.kind.empty() && syncs_.update.empty();
}

void EventOutbox::seal_traces() {
  if (!operations_.kind.empty()) seal(std::exchange(operations_, {}), last_trace_ns_);
  if (!micro_steps_.micro_step.empty()) seal(std::exchange(micro_steps_, {}), last_trace_ns_);
  if (!syncs_.update.empty()) seal(std::exchange(syncs_, {}), last_trace_ns_);
}

void EventOutbox::seal(EventBody body, std::int64_t time_ns) {
  const std::int64_t seq = is_stored(body) ? next_seq_++ : -1;
  sealed_bytes_ += bytes_of(body);
  sealed_.push_back(RunEvent{.rank = rank_, .seq = seq, .time_ns = time_ns - origin_ns_, .body = std::move(body)});
}

}  // namespace accrue
