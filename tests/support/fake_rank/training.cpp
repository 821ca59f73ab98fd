// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

#include "accrue/run/base/sha256.h"
#include "accrue/run/window/lr_curve.h"

namespace fake_rank {
namespace {

namespace fs = std::filesystem;

std::int64_t to_number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

accrue::ErrorCode code_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(accrue::ErrorCode::internal); ++i)
    if (name == accrue::to_string(static_cast<accrue::ErrorCode>(i))) return static_cast<accrue::ErrorCode>(i);
  return accrue::ErrorCode::internal;
}

}  // namespace

Training::Training(const accrue::RunOrder& order, std::int64_t rank, Script script, Channel& channel, World& world)
    : order_(order),
      rank_(rank),
      script_(std::move(script)),
      channel_(channel),
      world_(world),
      window_(order.plan.window) {}

int Training::run() {
  if (script_.has("version")) channel_.send_raw(R"({"v":99,"kind":"rank_ready","rank":0,"seq":0,"time_ns":0})");
  if (script_.has("absent")) channel_.wait_for_ever();
  channel_.work(static_cast<double>(script_.number("join_ms", 0)) / 1000.0);
  if (!world_.join()) return fail(accrue::ErrorCode::rendezvous, "The ranks never met");
  std::printf("rank %lld of %lld joined\n", static_cast<long long>(rank_),
              static_cast<long long>(order_.plan.grid.world()));
  std::fflush(stdout);
  resume();
  announce();
  return train();
}

void Training::announce() {
  const auto at = order_.plan.grid.coordinate(rank_);
  channel_.emit(accrue::RankReady{at.data, at.pipeline, at.tensor, "cpu", ::getpid(), "fake",
                                  order_.plan.threads_per_rank, "generic"});
}

void Training::resume() {
  if (order_.resume_from.empty()) return;
  std::int64_t newest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(order_.run_dir / "checkpoints", error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("step-")) newest = std::max(newest, to_number(name.substr(5)));
  }
  if (order_.resume_from.starts_with("step-")) newest = to_number(order_.resume_from.substr(5));
  while (updates_ < newest) {
    const auto plan = window_.next();
    if (!plan) break;
    if (plan->update) ++updates_;
  }
}

int Training::train() {
  const auto rate = script_.number("rate", 0);
  const double step_s =
      rate > 0 ? 1.0 / static_cast<double>(rate) : static_cast<double>(script_.number("micro_ms", 5)) / 1000.0;
  due_s_ = static_cast<double>(channel_.now_ns()) / 1e9;
  if (order_.paused && !channel_.stand_still(0)) return finish("stopped");
  while (const auto plan = window_.next()) {
    channel_.set_phase("forward", updates_, plan->micro_step, collectives_);
    act(*plan);
    const auto begin_ns = channel_.now_ns();
    due_s_ += step_s;
    const double ahead_s = due_s_ - static_cast<double>(begin_ns) / 1e9;
    if (ahead_s > (rate > 0 ? 0.002 : 0.0)) channel_.work(ahead_s);
    for (const auto phase : {accrue::StepPhase::forward, accrue::StepPhase::scale}) pass(phase, *plan);
    report_micro_step(*plan, begin_ns, channel_.now_ns() - begin_ns);
    pass(accrue::StepPhase::backward, *plan);
    std::uint32_t flags = 0;
    if (plan->update && !reduce(*plan, flags)) return fail(accrue::ErrorCode::peer_lost, "A peer is gone");
    if (plan->update) pass_boundary(*plan);
    if (plan->update) change_steps(*plan, flags >> steps_shift);
    if (plan->update && is_nan_) {
      is_nan_ = false;
      channel_.emit(accrue::Warning{"numerics", "The loss is NaN, first in h.0.weight", "Lower the rate", updates_});
      if (!order_.interactive) return fail(accrue::ErrorCode::numerics, "The loss is NaN");
      if (!channel_.stand_still(plan->micro_step)) return finish("stopped");
    }
    const auto every = order_.plan.spec.checkpoint.every_updates;
    const bool is_due = every > 0 && updates_ % every == 0;
    if (plan->update && (is_due || (flags & flag_checkpoint) != 0)) save(*plan);
    if ((flags & flag_stop) != 0) return finish("stopped");
    if (!channel_.after_micro_step(plan->micro_step)) return finish("stopped");
    if (due_s_ < static_cast<double>(channel_.now_ns()) / 1e9 - 0.1)
      due_s_ = static_cast<double>(channel_.now_ns()) / 1e9;
  }
  return finish("finished");
}

void Training::pass_boundary(const accrue::MicroPlan& plan) {
  using accrue::StepPhase;
  for (const auto phase :
       {StepPhase::reduce, StepPhase::unscale, StepPhase::clip, StepPhase::step, StepPhase::schedule})
    pass(phase, plan);
  report_update(plan);
  pass(StepPhase::zero, plan);
}

/// Numbers that follow from the place alone: the sum's norm grows by 1 a micro-step, the weights move at the step.
void Training::pass(accrue::StepPhase phase, const accrue::MicroPlan& plan) {
  channel_.after_phase(phase, plan.micro_step, [&] {
    accrue::Held held;
    held.update = plan.window + 1;
    held.micro_step = plan.micro_step;
    held.phase = phase;
    held.position = plan.position + 1;
    held.size = plan.window_size;
    held.loss = loss(plan);
    held.weight = 1.0 / static_cast<double>(plan.window_size);
    held.gradient_norm = static_cast<double>(plan.position + 1);
    held.factor = held.clip = 1.0;
    held.lr = accrue::lr_at(order_.plan.curve, plan.schedule_position - plan.schedule_ticks);
    held.next_lr = accrue::lr_at(order_.plan.curve, plan.schedule_position);
    held.parameter = "0.weight";
    held.elements = 2;
    const auto moved = static_cast<double>(plan.window + (phase >= accrue::StepPhase::step ? 1 : 0));
    held.weights = {moved, -moved};
    held.gradient = {held.gradient_norm, static_cast<double>(rank_)};
    channel_.emit(std::move(held));
  });
}

void Training::act(const accrue::MicroPlan& plan) {
  const auto m = plan.micro_step;
  if (script_.at("garble", m)) channel_.send_raw(R"({"v":1,"kind":"update","rank":)");
  if (const auto gap = script_.at("gap", m)) channel_.skip_numbers(to_number(gap->value));
  if (const auto flood = script_.at("flood", m)) {
    const std::string line(1023, 'x');
    for (std::int64_t sent = 0; sent < to_number(flood->value); sent += 1024) std::puts(line.c_str());
    std::fflush(stdout);
  }
  if (m == script_.number("nan", 0)) is_nan_ = true;
  if (script_.has("once") && !is_first_attempt()) return;
  if (const auto die = script_.at("die", m)) ::raise(static_cast<int>(to_number(die->value)));
  if (const auto leave = script_.at("exit", m)) ::_exit(static_cast<int>(to_number(leave->value)));
  if (const auto failure = script_.at("fail", m)) {
    const int status = fail(code_of(failure->value), "The script says so");
    channel_.work(0.05);
    ::_exit(status);
  }
  if (script_.at("stall", m)) channel_.wait_for_ever();
}

double Training::loss(const accrue::MicroPlan& plan) const {
  if (is_nan_) return std::numeric_limits<double>::quiet_NaN();
  const auto step = static_cast<double>(plan.micro_step);
  return 0.5 + 5.0 * std::exp(-step / 200.0) + 0.05 * std::sin(step * 1.7 + static_cast<double>(rank_));
}

void Training::report_micro_step(const accrue::MicroPlan& plan, std::int64_t begin_ns, std::int64_t busy_ns) {
  const auto samples = order_.plan.spec.accumulation.micro_batch;
  const auto tokens = samples * std::max<std::int64_t>(1, order_.plan.data.tokens_per_sample);
  accrue::MicroSteps steps;
  steps.micro_step = {plan.micro_step};
  steps.update = {plan.window + 1};
  steps.position = {plan.position + 1};
  steps.size = {plan.window_size};
  steps.epoch = {plan.epoch};
  steps.batch = {plan.batch};
  steps.loss = {loss(plan)};
  steps.tokens = {tokens};
  steps.samples = {samples};
  steps.end_ns = {begin_ns + busy_ns};
  steps.compute_ns = {busy_ns};
  channel_.emit(std::move(steps));
  note_operation(accrue::ComputeKind::forward, plan.micro_step, begin_ns, begin_ns + busy_ns / 3);
  note_operation(accrue::ComputeKind::backward, plan.micro_step, begin_ns + busy_ns / 3, begin_ns + busy_ns);
  if (plan.update || operations_.kind.size() >= 64) channel_.emit(std::exchange(operations_, {}));
}

void Training::note_operation(accrue::ComputeKind kind, std::int64_t micro_step, std::int64_t begin_ns,
                              std::int64_t end_ns) {
  operations_.kind.push_back(kind);
  operations_.micro_step.push_back(micro_step);
  operations_.chunk.push_back(0);
  operations_.begin_ns.push_back(begin_ns);
  operations_.end_ns.push_back(end_ns);
}

bool Training::reduce(const accrue::MicroPlan& plan, std::uint32_t& flags) {
  ++collectives_;
  channel_.set_phase("reduce", updates_, plan.micro_step, collectives_);
  const Requests requests = channel_.take_requests();
  if (requests.checkpoint) flags |= flag_checkpoint;
  if (requests.stop) flags |= flag_stop;
  flags |= static_cast<std::uint32_t>(requests.steps) << steps_shift;
  const auto begin_ns = channel_.now_ns();
  if (world_.unite(flags) == Round::peer_lost) {
    if (script_.has("hang_on_loss")) channel_.wait_for_ever();
    return false;
  }
  ++updates_;
  accrue::Sync sync;
  sync.update = {updates_};
  sync.micro_step = {plan.micro_step};
  sync.axis = {"data"};
  sync.op = {"all_reduce"};
  sync.purpose = {accrue::CollectivePurpose::gradients};
  sync.bytes = {4 * order_.plan.parameter_count};
  sync.begin_ns = {begin_ns};
  sync.end_ns = {channel_.now_ns()};
  channel_.emit(std::move(sync));
  return true;
}

void Training::report_update(const accrue::MicroPlan& plan) {
  last_loss_ = loss(plan);
  if (rank_ != 0) return;
  accrue::Update update;
  update.update = updates_;
  update.micro_step = plan.micro_step;
  update.samples = plan.micro_step * order_.plan.spec.accumulation.micro_batch * order_.plan.grid.data;
  update.tokens = update.samples * std::max<std::int64_t>(1, order_.plan.data.tokens_per_sample);
  update.epoch = static_cast<double>(plan.epoch);
  update.loss = last_loss_;
  update.lr = accrue::lr_at(order_.plan.curve, plan.schedule_position - plan.schedule_ticks);
  update.grad_norm = 1.0;
  if (order_.plan.spec.run.update_norm) update.update_norm = 0.5;
  update.seconds = static_cast<double>(channel_.now_ns()) / 1e9;
  update.compute_seconds = update.seconds;
  update.reason = to_string(plan.reason);
  update.steps = window_.position().steps();
  channel_.emit(std::move(update));
}

void Training::change_steps(const accrue::MicroPlan& plan, std::int64_t requested) {
  const auto set = window_.position().next_steps();
  const bool changes = requested > 0 && requested != (set > 0 ? set : order_.plan.window.steps);
  if (changes) window_.change_steps(requested);
  if (rank_ != 0 || (!changes && !window_.steps_set_here())) return;
  channel_.emit(accrue::StepsChanged{updates_, plan.micro_step, window_.position().next_steps(), !changes});
}

/// Rank 0 commits, as the real one does: write aside, rename.
void Training::save(const accrue::MicroPlan& plan) {
  channel_.set_phase("checkpoint", updates_, plan.micro_step, collectives_);
  channel_.checkpoint_done();
  if (rank_ == 0) commit(plan);
  std::uint32_t none = 0;
  world_.unite(none);  // no rank continues before the commit; a lost peer is noticed at the next boundary
}

void Training::commit(const accrue::MicroPlan& plan) {
  const auto name = fmt::format("step-{}", updates_);
  const auto part = order_.run_dir / "checkpoints" / ("." + name + ".part");
  std::error_code error;
  fs::create_directories(part, error);
  channel_.work(static_cast<double>(script_.number("save_ms", 0)) / 1000.0);
  std::ofstream(part / "manifest.json") << fmt::format(R"({{"update":{},"micro_step":{}}})", updates_, plan.micro_step);
  fs::rename(part, order_.run_dir / "checkpoints" / name, error);
  channel_.emit(accrue::CheckpointDone{updates_, "checkpoints/" + name, 32, 0.001});
}

int Training::finish(const char* outcome) {
  channel_.set_phase("finish", updates_, window_.micro_steps_done(), collectives_);
  if (rank_ == 0) {
    if (std::string_view(outcome) == "finished")
      channel_.work(static_cast<double>(script_.number("finish_ms", 0)) / 1000.0);
    report_end(outcome);
  }
  std::uint32_t none = 0;
  world_.unite(none);
  return 0;
}

void Training::report_end(const char* outcome) {
  accrue::RunFinished end;
  end.outcome = outcome;
  end.updates = updates_;
  end.loss = last_loss_;
  end.weights_sha256 = accrue::sha256_hex(fmt::format("{} updates, seed {}", updates_, order_.plan.spec.run.seed));
  channel_.emit(std::move(end));
}

int Training::fail(accrue::ErrorCode code, const char* message) {
  accrue::RankFailed failed;
  failed.class_name = accrue::to_string(code);
  failed.message = fmt::format("Rank {}: {}", rank_, message);
  failed.update = updates_;
  failed.micro_step = window_.micro_steps_done();
  channel_.emit(std::move(failed));
  return accrue::exit_status(code);
}

}  // namespace fake_rank
