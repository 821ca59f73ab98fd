// SPDX-License-Identifier: Apache-2.0
#include "support/training_body.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <stdexcept>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/train/trainer.h"
#include "support/joined_rank.h"

namespace accrue::test {
namespace {

/// "2:8 4:1": after two updates eight micro-steps per window, after four one.
std::string changes_text(const std::vector<LengthChange>& changes) {
  std::string text;
  for (const LengthChange& each : changes) text += std::to_string(each.from) + ":" + std::to_string(each.steps) + " ";
  return text;
}

std::vector<LengthChange> changes_from(const std::string& text) {
  std::vector<LengthChange> changes;
  std::istringstream in(text);
  LengthChange change;
  for (char colon = 0; in >> change.from >> colon >> change.steps;) changes.push_back(change);
  return changes;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> to_arguments(const TrainingScript& script) {
  return {script.spec,
          script.base_dir,
          script.run_dir,
          script.resume_from,
          script.interactive ? "1" : "0",
          std::to_string(script.stop_before),
          std::to_string(script.checkpoint_request),
          std::to_string(script.stop_request),
          std::to_string(script.full_disk_update),
          std::to_string(script.die_at_update),
          std::to_string(script.kill_before),
          std::to_string(script.steps_request),
          std::to_string(script.requested_steps),
          changes_text(script.steps_set),
          script.cuda ? "1" : "0",
          joined(script.set),
          std::to_string(script.branched_at)};
}

TrainingScript from_arguments(const std::vector<std::string>& words) {
  return {.spec = words.at(0),
          .set = lines_of(words.at(15)),
          .base_dir = words.at(1),
          .run_dir = words.at(2),
          .resume_from = words.at(3),
          .interactive = words.at(4) == "1",
          .cuda = words.at(14) == "1",
          .stop_before = std::stoll(words.at(5)),
          .checkpoint_request = std::stoll(words.at(6)),
          .stop_request = std::stoll(words.at(7)),
          .full_disk_update = std::stoll(words.at(8)),
          .die_at_update = std::stoll(words.at(9)),
          .kill_before = std::stoll(words.at(10)),
          .steps_request = std::stoll(words.at(11)),
          .requested_steps = std::stoll(words.at(12)),
          .branched_at = std::stoll(words.at(16)),
          .steps_set = changes_from(words.at(13))};
}

/// Imitates a full disk without mounting one: writing past the limit fails with EFBIG.
void limit_files(bool limited) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = limited ? 1024 : limit.rlim_max;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

/// Acts as the supervisor by script and reports every event as a line.
class ScriptedChannel final : public RankChannel {
 public:
  ScriptedChannel(const TrainingScript& script, const RankContext& rank) : script_(script), rank_(rank) {}

  void send(EventBody body) override {
    const std::int64_t seq = is_stored(body) ? seq_++ : -1;
    rank_.report("event " + encode_event({.rank = rank_.rank, .seq = seq, .time_ns = 0, .body = std::move(body)}));
  }
  void progress(const char*, std::int64_t update, std::int64_t) override {
    if (script_.die_at_update > 0 && update > script_.die_at_update) ::_exit(9);
    if (script_.full_disk_update > 0 && update != update_) limit_files(update == script_.full_disk_update);
    update_ = update;
  }
  Gate before_micro_step(std::int64_t micro_step, const std::function<void()>&) override {
    if (script_.kill_before == micro_step && rank_.rank == rank_.world - 1) ::raise(SIGKILL);
    return {.stop = script_.stop_before > 0 && micro_step >= script_.stop_before};
  }
  BoundaryRequests boundary_requests() override {
    BoundaryRequests requests;
    if (rank_.rank == 0 && update_ == script_.checkpoint_request) requests.checkpoint = true;
    if (rank_.rank == rank_.world - 1 && update_ == script_.stop_request) requests.checkpoint = requests.stop = true;
    if (rank_.rank == rank_.world - 1 && update_ == script_.steps_request) requests.steps = script_.requested_steps;
    if (rank_.rank == 0 && update_ == script_.steps_request + 1) requests.steps = script_.requested_steps;
    return requests;
  }
  void hold_here() override { ++holds; }
  void close() override {}

  std::int64_t holds = 0;

 private:
  const TrainingScript& script_;
  const RankContext& rank_;
  std::int64_t seq_ = 0;
  std::int64_t update_ = 0;
};

}  // namespace

RunOrder order_for(const TrainingScript& script) {
  SpecReading reading = parse_spec(script.spec, "test.accrue");
  for (const std::string& setting : script.set) set_field(reading.spec, setting, reading.findings);
  for (const Finding& finding : reading.findings) throw std::runtime_error(finding.text());
  const Preflight checked = preflight_files(reading.spec, local_facts(), script.base_dir);
  if (!checked.plan) {
    std::string text;
    for (const Finding& finding : checked.findings) text += finding.text() + "\n";
    throw std::runtime_error(text);
  }
  RunOrder order{.plan = *checked.plan, .run_id = "test", .run_dir = script.run_dir};
  order.resume_from = script.resume_from;
  order.branched_at = script.branched_at;
  order.interactive = script.interactive;
  order.plan.window.steps_set = script.steps_set;
  if (script.cuda) {
    order.plan.spec.launch.device = DeviceKind::cuda;
    if (order.plan.grid.world() > 1) order.plan.backend = BackendKind::nccl;
  }
  return order;
}

bool TrainedRank::warned(const std::string& words) const {
  return std::ranges::any_of(all<Warning>(),
                             [&](const Warning& warning) { return warning.message.find(words) != std::string::npos; });
}

std::string TrainedRank::text() const {
  return outcome + " " + message + "\n" + process.text();
}

int train_body(RankContext& rank) {
  const TrainingScript script = from_arguments(rank.arguments);
  const RunOrder order = order_for(script);
  ScriptedChannel channel(script, rank);
  const JoinedRank joined = join_ranks(rank, order.plan.backend);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, order.plan.grid));
  const auto outcome = train_run(order, mesh, joined.rendezvous->identity().local_rank, channel);
  rank.report("holds " + std::to_string(channel.holds));
  if (outcome) {
    mesh.world().barrier();
    rank.report("updates " + std::to_string(outcome->updates));
    rank.report("sha256 " + outcome->weights_sha256);
    rank.report("outcome " + outcome->outcome);
  } else {
    rank.report("message " + outcome.error().text());
    rank.report(std::string("outcome error ") + to_string(outcome.error().code));
  }
  return 0;
}

std::vector<TrainedRank> train(const TrainingScript& script, int world, std::chrono::milliseconds deadline) {
  RankGroup group("train", world, {.arguments = to_arguments(script)});
  std::vector<TrainedRank> trained;
  for (RankOutcome& process : group.finish(deadline)) {
    TrainedRank rank;
    for (const std::string& line : process.lines) {
      const std::string rest = line.substr(std::min(line.size(), line.find(' ') + 1));
      if (line.starts_with("event "))
        if (auto event = decode_event(rest)) rank.events.push_back(std::move(*event));
      if (line.starts_with("holds ")) rank.holds = std::stoll(rest);
      if (line.starts_with("updates ")) rank.updates = std::stoll(rest);
      if (line.starts_with("sha256 ")) rank.weights_sha256 = rest;
      if (line.starts_with("message ")) rank.message = rest;
      if (line.starts_with("outcome ")) rank.outcome = rest;
    }
    rank.process = std::move(process);
    rank.process.lines.clear();
    trained.push_back(std::move(rank));
  }
  return trained;
}

}  // namespace accrue::test
