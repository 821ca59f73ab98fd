// SPDX-License-Identifier: Apache-2.0
#include "train/reporter.h"

#include <unistd.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "accrue/run/cost/shard_layout.h"
#include "comm/memory_use.h"
#include "kernels/kernels.h"
#include "optim/update_passes.h"

namespace accrue {
namespace {

constexpr std::int64_t gauge_interval_ns = 1'000'000'000;

/// In these phases the window determines the exchanges; in others the user's requests do too.
bool is_training(std::string_view phase) {
  constexpr std::string_view phases[] = {"data", "forward", "backward", "reduce", "step"};
  return std::ranges::find(phases, phase) != std::end(phases);
}

/// Purpose of all exchanges of a phase; none if each call states its own.
std::optional<CollectivePurpose> purpose_of(std::string_view phase) {
  if (phase == "verify") return CollectivePurpose::check;
  if (phase == "evaluate") return CollectivePurpose::evaluation;
  if (phase == "checkpoint") return CollectivePurpose::checkpoint;
  return std::nullopt;
}

/// A step's parts have their own timers.
const char* timer_of(ComputeKind kind) {
  if (kind == ComputeKind::forward) return "forward-compute";
  return kind == ComputeKind::backward ? "backward-compute" : nullptr;
}

/// Timer of a message between stages: an input of forwards, or a gradient.
const char* timer_of_message(const CollectiveRecord& record) {
  const bool sends = record.op == "send";
  if (record.message == MessageLabel::What::input) return sends ? "forward-send" : "forward-recv";
  if (record.message == MessageLabel::What::gradient) return sends ? "backward-send" : "backward-recv";
  return nullptr;
}

/// Timer of an exchange that Megatron-LM times; nullptr for others.
const char* timer_of(const CollectiveRecord& record) {
  if (record.axis != to_string(Axis::data)) return timer_of_message(record);
  if (record.purpose == CollectivePurpose::gradients) return "all-grads-sync";
  if (record.purpose == CollectivePurpose::parameters && record.op == "all_gather") return "params-all-gather";
  return timer_of_message(record);
}

}  // namespace

Reporter::Reporter(const RunOrder& order, const Mesh& mesh, RankChannel& channel, at::Device device)
    : origin_ns_(order.origin_ns),
      chunks_(order.plan.spec.parallel.virtual_pipeline),
      mesh_(mesh),
      channel_(channel),
      device_(device),
      begin_ns_(monotonic_ns()),
      gauge_ns_(begin_ns_) {
  for (Communicator* each : mesh_.communicators()) {
    each->set_observer([this](const CollectiveRecord& record) { collective(record); });
    each->set_begin_observer([this] { channel_.collective_begun(); });
    each->set_wait_observer([this](const CollectiveRecord* call) {
      if (call != nullptr)
        channel_.operation().waits_in(call->op, call->axis);
      else
        channel_.operation().goes_on();
    });
  }
}

Reporter::~Reporter() {
  for (Communicator* each : mesh_.communicators()) {
    each->set_observer({});
    each->set_begin_observer({});
    each->set_wait_observer({});
  }
}

void Reporter::ready() {
  const GridCoordinate at = mesh_.at();
  channel_.send(RankReady{.data = at.data,
                          .pipeline = at.pipeline,
                          .tensor = at.tensor,
                          .device = device_.str(),
                          .pid = ::getpid(),
                          .backend = mesh_.world().backend(),
                          .threads = at::get_num_threads(),
                          .instruction_set = name_of(instruction_set()),
                          .updates_by = path_of(device_).name(),
                          .products_by = device_.is_cpu() && tiles_pay() ? "tiles" : "LibTorch"});
}

void Reporter::phase(const char* name, std::int64_t update, std::int64_t micro_step) {
  update_ = update;
  micro_step_ = micro_step;
  channel_.operation().ends();
  trains_ = is_training(name);
  purpose_ = purpose_of(name);
  phase_ns_ = monotonic_ns();
  channel_.progress(name, update, micro_step);
}

void Reporter::begins(const PipelineOperation& operation, std::int64_t micro_step) {
  channel_.operation().begins(operation, micro_step, chunks_);
}

void Reporter::micro_step(const MicroPlan& plan, const MicroResult& result) {
  channel_.send(MicroSteps{.micro_step = {plan.micro_step},
                           .update = {plan.window + 1},
                           .position = {plan.position + 1},
                           .size = {plan.window_size},
                           .epoch = {plan.epoch},
                           .batch = {plan.batch},
                           .loss = {result.mean_loss},
                           .tokens = {result.items},
                           .samples = {result.samples},
                           .end_ns = {result.end_ns - origin_ns_},
                           .compute_ns = {result.compute_ns}});
}

void Reporter::operation(ComputeKind kind, std::int64_t micro_step, std::int64_t chunk, std::int64_t begin_ns,
                         std::int64_t end_ns) {
  compute_ns_ += end_ns - begin_ns;
  if (const char* timer = timer_of(kind); timer != nullptr) spend(timer, end_ns - begin_ns);
  channel_.send(Operations{.kind = {kind},
                           .micro_step = {micro_step},
                           .chunk = {chunk},
                           .begin_ns = {begin_ns - origin_ns_},
                           .end_ns = {end_ns - origin_ns_}});
}

void Reporter::from_first(EventBody body) {
  if (first()) channel_.send(std::move(body));
}

void Reporter::warn_first(std::string class_name, std::string message, std::string what_to_do) {
  from_first(Warning{std::move(class_name), std::move(message), std::move(what_to_do), update_});
}

void Reporter::gauge_if_due() {
  const std::int64_t now = monotonic_ns();
  if (now - gauge_ns_ < gauge_interval_ns) return;
  std::int64_t calls = 0;
  for (const Communicator* each : mesh_.communicators()) calls += each->traffic().calls;
  const Communicator& data = mesh_.data();
  channel_.send(Gauge{.rss_bytes = resident_bytes(),
                      .device_bytes = memory_use(device_).allocated_bytes,
                      .wire_bytes = all_reduce_wire_bytes(data.traffic().gradient_bytes, data.size()),
                      .collectives = calls});
  gauge_ns_ = now;
}

void Reporter::window_done(bool counts) {
  const SentByAxis window = std::exchange(of_window_, {});
  window_ns_ = monotonic_ns();
  last_counts_ = counts;
  if (!counts) return;
  ++full_updates_;
  for (const auto& [axis, sent] : window) {
    sent_[axis].traffic += sent.traffic;
    sent_[axis].calls += sent.calls;
  }
}

void Reporter::measured(Measured held) {
  held.updates = full_updates_;
  for (const Communicator* each : mesh_.communicators()) {
    const auto sent = sent_.find(each->axis());
    if (sent == sent_.end()) continue;
    held.axis.push_back(sent->first);
    held.sent_bytes.push_back(sent->second.traffic.wire_bytes(each->size()));
    held.calls.push_back(sent->second.calls);
  }
  channel_.send(std::move(held));
}

double Reporter::seconds() const {
  return seconds_before_ + static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9;
}

void Reporter::resumed(const TrainingCursor& cursor) {
  seconds_before_ = cursor.seconds;
}

void Reporter::collective(const CollectiveRecord& record) {
  if (computing_) compute_ns_ -= record.end_ns - record.begin_ns;
  // Calls may still be in progress when the training phase ends; each belongs to the window in which it began.
  // Comparisons that detect mistakes are in no plan and do not count.
  const bool in_training = (trains_ || record.begin_ns < phase_ns_) && record.purpose != CollectivePurpose::check;
  const bool in_last = record.begin_ns < window_ns_;
  if (in_training && (!in_last || last_counts_)) {
    Sent& sent = (in_last ? sent_ : of_window_)[record.axis];
    sent.traffic.add(record.op, static_cast<double>(record.bytes));
    ++sent.calls;
    if (const char* timer = timer_of(record); timer != nullptr) spend(timer, record.end_ns - record.begin_ns);
  }
  channel_.send(Sync{.update = {update_},
                     .micro_step = {micro_step_},
                     .axis = {record.axis},
                     .op = {record.op},
                     .purpose = {in_training ? record.purpose : purpose_.value_or(record.purpose)},
                     .bytes = {record.bytes},
                     .begin_ns = {record.begin_ns - origin_ns_},
                     .end_ns = {record.end_ns - origin_ns_}});
}

}  // namespace accrue
