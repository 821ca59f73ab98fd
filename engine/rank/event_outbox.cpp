// SPDX-License-Identifier: Apache-2.0
#include "rank/event_outbox.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "accrue/run/event_codec.h"

namespace accrue {
namespace {

constexpr std::size_t max_waiting = 4096;        ///< events; beyond it traces and gauges are dropped
constexpr std::size_t max_trace_entries = 1024;  ///< per array: a line stays far below 1 MiB

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
  append(to.bytes, from.bytes);
  append(to.begin_ns, from.begin_ns);
  append(to.end_ns, from.end_ns);
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

bool EventOutbox::post(EventBody body) {
  const std::int64_t now = monotonic_ns();
  const std::scoped_lock lock(mutex_);
  if (append_trace(body, now)) return false;
  if (std::holds_alternative<Gauge>(body) && sealed_.size() >= max_waiting) {
    ++dropped_;
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
  std::deque<RunEvent> events;
  {
    const std::scoped_lock lock(mutex_);
    if (all || now_ns - first_trace_ns_ >= std::chrono::nanoseconds(flush_interval).count()) seal_traces();
    if (dropped_ > dropped_reported_ && sealed_.size() < max_waiting / 2) {
      seal(Warning{.class_name = "events",
                   .message = std::to_string(dropped_ - dropped_reported_) +
                              " micro-step, operation, sync or gauge events were dropped: the reader was too slow",
                   .what_to_do = "Curves have gaps there; updates are complete."},
           now_ns);
      dropped_reported_ = dropped_;
    }
    events.swap(sealed_);
  }
  std::string lines;
  for (const RunEvent& event : events) {
    lines += encode_event(event);
    lines += '\n';
  }
  return lines;
}

std::int64_t EventOutbox::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

/// True where the body was a trace; it is then merged, or dropped behind a reader that does not read.
bool EventOutbox::append_trace(EventBody& body, std::int64_t now_ns) {
  auto* micro = std::get_if<MicroSteps>(&body);
  auto* operations = std::get_if<Operations>(&body);
  auto* sync = std::get_if<Sync>(&body);
  if (!micro && !operations && !sync) return false;
  if (sealed_.size() >= max_waiting) {
    ++dropped_;
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
  sealed_.push_back(RunEvent{.rank = rank_, .seq = seq, .time_ns = time_ns - origin_ns_, .body = std::move(body)});
}

}  // namespace accrue
