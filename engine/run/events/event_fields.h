// SPDX-License-Identifier: Apache-2.0
// The single list of every event's kind and fields. The reader and the writer both walk it, so they cannot use
// different names. An optional field may be missing in a line and then keeps its default; later versions add fields
// this way.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "accrue/run/events/run_event.h"

namespace accrue::event_fields {

template <typename T, typename Body>
concept IsBody = std::same_as<std::remove_const_t<T>, Body>;

/// later: an array that a later version added beside required ones. If a line lacks it, each entry has its default.
enum class Need { required, optional, later };
inline constexpr Need required = Need::required;
inline constexpr Need optional = Need::optional;
inline constexpr Need later = Need::later;

/// A member that holds JSON text: it is an object in the line, not a string.
template <typename Text>
struct RawJson {
  Text& text;
};
template <typename Text>
RawJson<Text> raw(Text& text) {
  return {text};
}

/// The kind of a body, and visit(v, body), which calls v(name, member, need) for every field in the order of the line.
#define ACCRUE_EVENT(Body, kind, fields)                 \
  constexpr std::string_view kind_of_body(const Body&) { \
    return kind;                                         \
  }                                                      \
  template <IsBody<Body> B>                              \
  void visit(auto& v, B& b) {                            \
    fields                                               \
  }
#define REQUIRED(name) v(#name, b.name, required);
#define OPTIONAL(name) v(#name, b.name, optional);
#define LATER(name) v(#name, b.name, later);
#define REQUIRED_AS(name, member) v(name, member, required);

// clang-format off
ACCRUE_EVENT(RunStarted, "run_started", REQUIRED(run) REQUIRED(spec_sha256) REQUIRED_AS("plan", raw(b.plan_json))
             REQUIRED_AS("versions", raw(b.versions_json)) REQUIRED_AS("host", raw(b.host_json)) OPTIONAL(started_at)
             OPTIONAL(resumed) OPTIONAL(resumed_update) OPTIONAL(resumed_position) OPTIONAL(branched_from))
ACCRUE_EVENT(RankReady, "rank_ready", REQUIRED(data) REQUIRED(pipeline) REQUIRED(tensor) REQUIRED(device)
             REQUIRED(pid) OPTIONAL(backend) OPTIONAL(threads) OPTIONAL(instruction_set) OPTIONAL(updates_by)
             OPTIONAL(products_by))
ACCRUE_EVENT(MicroSteps, "micro_steps", REQUIRED(micro_step) REQUIRED(update) REQUIRED(position) REQUIRED(size)
             REQUIRED(epoch) REQUIRED(batch) REQUIRED(loss) REQUIRED(tokens) REQUIRED(samples) REQUIRED(end_ns)
             REQUIRED(compute_ns))
ACCRUE_EVENT(Operations, "operations", REQUIRED_AS("operation", b.kind) REQUIRED(micro_step) REQUIRED(chunk)
             REQUIRED(begin_ns) REQUIRED(end_ns))
ACCRUE_EVENT(Sync, "sync", REQUIRED(update) REQUIRED(micro_step) REQUIRED(axis) REQUIRED(op) LATER(purpose)
             REQUIRED(bytes) REQUIRED(begin_ns) REQUIRED(end_ns))
ACCRUE_EVENT(Update, "update", REQUIRED(update) REQUIRED(micro_step) REQUIRED(samples) REQUIRED(tokens)
             REQUIRED(epoch) REQUIRED(loss) OPTIONAL(lr) OPTIONAL(grad_norm) REQUIRED(outcome) REQUIRED(seconds)
             OPTIONAL(compute_seconds) OPTIONAL(reason) OPTIONAL(steps) OPTIONAL(dropped_batches)
             OPTIONAL(empty_windows) OPTIONAL(overflowed_windows) OPTIONAL(weights) OPTIONAL(losses)
             OPTIONAL(loss_scale) OPTIONAL(update_norm) OPTIONAL(parameter_norm) OPTIONAL(gradient_zeros)
             OPTIONAL(scalars))
ACCRUE_EVENT(Evaluation, "evaluation", REQUIRED(update) REQUIRED(loss) REQUIRED(batches) REQUIRED(tokens)
             OPTIONAL(losses) OPTIONAL(scalars))
ACCRUE_EVENT(ExactnessCheck, "exactness", REQUIRED(update) REQUIRED(max_abs) REQUIRED(relative) REQUIRED(cosine)
             OPTIONAL(ratio) REQUIRED(tolerance) REQUIRED(verdict) OPTIONAL(reason) OPTIONAL(message)
             OPTIONAL(reductions) OPTIONAL(needed) OPTIONAL(seconds))
ACCRUE_EVENT(StepsChanged, "steps_changed", REQUIRED(update) REQUIRED(micro_step) REQUIRED(steps) OPTIONAL(repeated))
ACCRUE_EVENT(CheckpointDone, "checkpoint", REQUIRED(update) REQUIRED(path) REQUIRED(bytes) REQUIRED(seconds)
             OPTIONAL(best_loss))
ACCRUE_EVENT(Gauge, "gauge", OPTIONAL(rss_bytes) OPTIONAL(device_bytes) OPTIONAL(wire_bytes) OPTIONAL(collectives))
ACCRUE_EVENT(Measured, "measured", REQUIRED(updates) REQUIRED_AS("parameters", b.parameter_bytes)
             REQUIRED_AS("gradients", b.gradient_bytes) REQUIRED_AS("optimizer", b.optimizer_bytes)
             REQUIRED_AS("activations", b.activation_bytes) REQUIRED(axis) REQUIRED(sent_bytes) REQUIRED(calls))
ACCRUE_EVENT(Heartbeat, "heartbeat", REQUIRED(phase) OPTIONAL(update) OPTIONAL(micro_step) OPTIONAL(collective)
             OPTIONAL(operation))
ACCRUE_EVENT(Holding, "holding", REQUIRED(micro_step) REQUIRED(held) OPTIONAL(phase))
ACCRUE_EVENT(Held, "held", REQUIRED(update) REQUIRED(micro_step) REQUIRED(phase) REQUIRED(position) REQUIRED(size)
             REQUIRED(loss) REQUIRED(weight) REQUIRED(gradient_norm) REQUIRED(factor) REQUIRED(clip) REQUIRED(lr)
             REQUIRED(next_lr) OPTIONAL(parameter) OPTIONAL(elements) OPTIONAL(weights) OPTIONAL(gradient))
ACCRUE_EVENT(StateChanged, "state", REQUIRED(state) OPTIONAL(detail) OPTIONAL(micro_step) OPTIONAL(update)
             OPTIONAL(phase))
ACCRUE_EVENT(Warning, "warning", REQUIRED_AS("class", b.class_name) REQUIRED(message) OPTIONAL(what_to_do)
             OPTIONAL(update))
ACCRUE_EVENT(RankFailed, "rank_failed", REQUIRED_AS("class", b.class_name) REQUIRED(message) OPTIONAL(what_to_do)
             OPTIONAL(phase) OPTIONAL(signal) OPTIONAL(exit_status) OPTIONAL(log_tail) OPTIONAL(update)
             OPTIONAL(micro_step))
ACCRUE_EVENT(RunFinished, "run_finished", REQUIRED(outcome) REQUIRED(updates) REQUIRED(loss) REQUIRED(weights_sha256)
             OPTIONAL(reason) OPTIONAL(exit_status) OPTIONAL(seconds))
// clang-format on

#undef ACCRUE_EVENT
#undef REQUIRED
#undef OPTIONAL
#undef LATER
#undef REQUIRED_AS

}  // namespace accrue::event_fields
