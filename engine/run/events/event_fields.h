// SPDX-License-Identifier: Apache-2.0
// The one list of every event's fields: reader and writer both walk it, so a field cannot be written under one name and
// read under another. A field marked optional may be missing in a line and then keeps its default: that is how a later
// version adds fields.
#pragma once

#include <concepts>
#include <type_traits>

#include "accrue/run/run_event.h"

namespace accrue::event_fields {

template <typename T, typename Body>
concept IsBody = std::same_as<std::remove_const_t<T>, Body>;

enum class Need { required, optional };
inline constexpr Need required = Need::required;
inline constexpr Need optional = Need::optional;

/// A member that holds JSON text: an object in the line, not a string.
template <typename Text>
struct RawJson {
  Text& text;
};
template <typename Text>
RawJson<Text> raw(Text& text) {
  return {text};
}

template <IsBody<RunStarted> B>
void visit(auto& v, B& b) {
  v("run", b.run, required);
  v("spec_sha256", b.spec_sha256, required);
  v("plan", raw(b.plan_json), required);
  v("versions", raw(b.versions_json), required);
  v("host", raw(b.host_json), required);
  v("started_at", b.started_at, optional);
  v("resumed", b.resumed, optional);
  v("resumed_update", b.resumed_update, optional);
  v("resumed_position", b.resumed_position, optional);
}

template <IsBody<RankReady> B>
void visit(auto& v, B& b) {
  v("data", b.data, required);
  v("pipeline", b.pipeline, required);
  v("tensor", b.tensor, required);
  v("device", b.device, required);
  v("pid", b.pid, required);
  v("backend", b.backend, optional);
  v("threads", b.threads, optional);
  v("instruction_set", b.instruction_set, optional);
}

template <IsBody<MicroSteps> B>
void visit(auto& v, B& b) {
  v("micro_step", b.micro_step, required);
  v("update", b.update, required);
  v("position", b.position, required);
  v("size", b.size, required);
  v("epoch", b.epoch, required);
  v("batch", b.batch, required);
  v("loss", b.loss, required);
  v("tokens", b.tokens, required);
  v("samples", b.samples, required);
  v("end_ns", b.end_ns, required);
  v("compute_ns", b.compute_ns, required);
}

template <IsBody<Operations> B>
void visit(auto& v, B& b) {
  v("operation", b.kind, required);
  v("micro_step", b.micro_step, required);
  v("chunk", b.chunk, required);
  v("begin_ns", b.begin_ns, required);
  v("end_ns", b.end_ns, required);
}

template <IsBody<Sync> B>
void visit(auto& v, B& b) {
  v("update", b.update, required);
  v("micro_step", b.micro_step, required);
  v("axis", b.axis, required);
  v("op", b.op, required);
  v("bytes", b.bytes, required);
  v("begin_ns", b.begin_ns, required);
  v("end_ns", b.end_ns, required);
}

template <IsBody<Update> B>
void visit(auto& v, B& b) {
  v("update", b.update, required);
  v("micro_step", b.micro_step, required);
  v("samples", b.samples, required);
  v("tokens", b.tokens, required);
  v("epoch", b.epoch, required);
  v("loss", b.loss, required);
  v("lr", b.lr, required);
  v("grad_norm", b.grad_norm, required);
  v("outcome", b.outcome, required);
  v("seconds", b.seconds, required);
  v("compute_seconds", b.compute_seconds, optional);
  v("reason", b.reason, optional);
  v("steps", b.steps, optional);
  v("dropped_batches", b.dropped_batches, optional);
  v("weights", b.weights, optional);
}

template <IsBody<Evaluation> B>
void visit(auto& v, B& b) {
  v("update", b.update, required);
  v("loss", b.loss, required);
  v("batches", b.batches, required);
  v("tokens", b.tokens, required);
}

template <IsBody<ExactnessCheck> B>
void visit(auto& v, B& b) {
  v("update", b.update, required);
  v("max_abs", b.max_abs, required);
  v("relative", b.relative, required);
  v("cosine", b.cosine, required);
  v("ratio", b.ratio, optional);
  v("tolerance", b.tolerance, required);
  v("verdict", b.verdict, required);
  v("reason", b.reason, optional);
  v("message", b.message, optional);
  v("reductions", b.reductions, optional);
  v("needed", b.needed, optional);
  v("seconds", b.seconds, optional);
}

template <IsBody<StepsChanged> B>
void visit(auto& v, B& b) {
  v("update", b.update, required);
  v("micro_step", b.micro_step, required);
  v("steps", b.steps, required);
  v("repeated", b.repeated, optional);
}

template <IsBody<CheckpointDone> B>
void visit(auto& v, B& b) {
  v("update", b.update, required);
  v("path", b.path, required);
  v("bytes", b.bytes, required);
  v("seconds", b.seconds, required);
}

template <IsBody<Gauge> B>
void visit(auto& v, B& b) {
  v("rss_bytes", b.rss_bytes, optional);
  v("device_bytes", b.device_bytes, optional);
  v("wire_bytes", b.wire_bytes, optional);
  v("collectives", b.collectives, optional);
}

template <IsBody<Heartbeat> B>
void visit(auto& v, B& b) {
  v("phase", b.phase, required);
  v("update", b.update, optional);
  v("micro_step", b.micro_step, optional);
  v("collective", b.collective, optional);
}

template <IsBody<Holding> B>
void visit(auto& v, B& b) {
  v("micro_step", b.micro_step, required);
  v("held", b.held, required);
}

template <IsBody<StateChanged> B>
void visit(auto& v, B& b) {
  v("state", b.state, required);
  v("detail", b.detail, optional);
  v("micro_step", b.micro_step, optional);
  v("update", b.update, optional);
}

template <IsBody<Warning> B>
void visit(auto& v, B& b) {
  v("class", b.class_name, required);
  v("message", b.message, required);
  v("what_to_do", b.what_to_do, optional);
  v("update", b.update, optional);
}

template <IsBody<RankFailed> B>
void visit(auto& v, B& b) {
  v("class", b.class_name, required);
  v("message", b.message, required);
  v("what_to_do", b.what_to_do, optional);
  v("phase", b.phase, optional);
  v("signal", b.signal, optional);
  v("exit_status", b.exit_status, optional);
  v("log_tail", b.log_tail, optional);
  v("update", b.update, optional);
  v("micro_step", b.micro_step, optional);
}

template <IsBody<RunFinished> B>
void visit(auto& v, B& b) {
  v("outcome", b.outcome, required);
  v("updates", b.updates, required);
  v("loss", b.loss, required);
  v("weights_sha256", b.weights_sha256, required);
  v("reason", b.reason, optional);
  v("exit_status", b.exit_status, optional);
  v("seconds", b.seconds, optional);
}

}  // namespace accrue::event_fields
