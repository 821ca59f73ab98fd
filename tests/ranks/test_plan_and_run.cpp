// SPDX-License-Identifier: Apache-2.0
// The picture before a run and the events in it: over random specs of every dialect, what the plan says micro-step by
// micro-step is what the ranks report.
#include <QTest>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "accrue/run/window/lr_curve.h"
#include "accrue/train/trainer.h"
#include "support/joined_rank.h"
#include "support/training_body.h"

namespace test_plan_and_run {

using namespace accrue;
using namespace accrue::test;

namespace {

std::string random_spec(std::mt19937_64& random, int world) {
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const auto one_of = [&](std::initializer_list<const char*> names) {
    return std::string(*(names.begin() + pick(0, static_cast<int>(names.size()) - 1)));
  };
  const int samples = pick(world, 26);
  std::string x;
  std::string y;
  for (int i = 1; i <= samples; ++i) {
    x += (i > 1 ? ", [" : "[") + std::to_string(i % 5) + ".5]";
    y += (i > 1 ? ", [" : "[") + std::to_string(i % 3) + ".0]";
  }
  const std::string dialect = one_of({"accrue", "llm", "colossalai", "accelerate", "mmengine"});
  const int steps = pick(1, 6);
  const int micro_batch = pick(1, std::max(1, samples / world / 2));
  std::string accumulation = "dialect = \"" + dialect + "\"\nsteps = " + std::to_string(steps) +
                             "\nmicro_batch = " + std::to_string(micro_batch) + "\n";
  if (pick(0, 2) == 0) accumulation += "tail = \"" + one_of({"carry", "drop_stop", "flush", "pad_repeat"}) + "\"\n";
  const bool in_samples = pick(0, 2) == 0;
  if (!in_samples && pick(0, 2) == 0)
    accumulation += "schedule_clock = \"" +
                    one_of({"update", "update_times_world", "micro_step", "epoch", "every_nth_call"}) + "\"\n";
  if (pick(0, 3) == 0) accumulation += "reduce_when = \"every_micro_step\"\n";
  const bool ramps = in_samples && steps > 1 && dialect != "accelerate" && dialect != "mmengine" && pick(0, 1) == 0;
  const std::string micro = std::to_string(micro_batch * world);
  if (ramps)
    accumulation += "rampup = [" + micro + ", " + micro + ", " + std::to_string(pick(1, 2 * samples)) + "]\n";
  else if (pick(0, 3) == 0)
    accumulation += "group_length = \"by_update\"\nlength_schedule = [[0, 1], [2, 3]]\n";
  const bool free_tail = accumulation.find("tail") == std::string::npos;  // the two would contradict each other
  if (dialect == "accelerate" && free_tail && pick(0, 1) == 0) accumulation += "sync_with_dataloader = false\n";
  return "accrue = 1\n[model]\nkind = \"linear\"\ninit = \"zeros\"\ndtype = \"float64\"\n[data]\nkind = \"inline\"\n"
         "shuffle = " +
         one_of({"true", "false"}) + "\nx = [" + x + "]\ny = [" + y +
         "]\n[optimizer]\nkind = \"sgd\"\nlr = 0.01\n[schedule]\nkind = \"" +
         (in_samples ? one_of({"linear", "cosine", "inverse-square-root", "WSD"}) +
                           "\"\nclock = \"samples\"\nwarmup_fraction = 0.2"
                     : one_of({"exponential", "linear", "cosine"}) + "\"") +
         "\n[accumulation]\n" + accumulation + "[parallel]\ndata = " + std::to_string(world) +
         "\n[evaluate]\nexactness_every = " + std::to_string(samples % 3) +
         "\n[run]\nepochs = " + std::to_string(pick(1, 3)) + "\n";
}

/// Promises of a plan and reports of a run, one line per event.
struct Story {
  std::vector<std::string> updates;
  std::set<std::int64_t> reductions;
  std::vector<std::string> micro_steps;
};

std::string micro_step_line(std::int64_t micro_step, std::int64_t update, std::int64_t position, std::int64_t size,
                            std::int64_t epoch, std::int64_t batch) {
  std::ostringstream line;
  line << "micro-step " << micro_step << " of update " << update << ", " << position << " of " << size << ", epoch "
       << epoch << " batch " << batch;
  return line.str();
}

std::string update_line(std::int64_t update, std::int64_t micro_step, std::string_view reason, double lr) {
  std::ostringstream line;
  line.precision(17);
  line << "update " << update << " at " << micro_step << " " << reason << " lr " << lr;
  return line.str();
}

/// N is set to `steps` at that update's boundary; 0 = never.
struct StepsRequest {
  std::int64_t update = 0;
  std::int64_t steps = 0;
};

/// Every third run that can have another N while it trains gets one.
StepsRequest random_request(std::mt19937_64& random, const RunPlan& plan) {
  const StepsRequest request{static_cast<std::int64_t>(1 + random() % 4), static_cast<std::int64_t>(1 + random() % 6)};
  const Dialect dialect = plan.spec.accumulation.dialect;
  const bool drops = plan.knobs.tail == EpochTail::drop_stop || plan.knobs.tail == EpochTail::drop_drain;
  const bool epochs_move = drops && plan.knobs.schedule_clock == ScheduleClock::epoch;
  const bool ramps = !plan.spec.accumulation.rampup.empty();
  const bool can = !ramps && (dialect == Dialect::accrue || dialect == Dialect::accelerate) && !epochs_move;
  return can && random() % 3 == 0 ? request : StepsRequest{};
}

Story planned(const RunPlan& plan, const StepsRequest& request) {
  Story story;
  WindowShape shape = plan.window;
  if (request.steps > 0) shape.set_steps_after(request.update, request.steps);
  AccumulationWindow window(shape);
  while (const auto micro = window.next()) {
    story.micro_steps.push_back(micro_step_line(micro->micro_step, micro->window + 1, micro->position + 1,
                                                micro->window_size, micro->epoch, micro->batch));
    if (micro->sync && plan.grid.world() > 1) story.reductions.insert(micro->micro_step);
    if (micro->update)
      story.updates.push_back(update_line(micro->window + 1, micro->micro_step, to_string(micro->reason),
                                          lr_at(plan.curve, micro->schedule_position - micro->schedule_ticks)));
  }
  return story;
}

class StoryRecorder final : public RankChannel {
 public:
  explicit StoryRecorder(StepsRequest request) : request_(request) {}
  void send(EventBody body) override {
    if (const auto* update = std::get_if<Update>(&body))
      story.updates.push_back(update_line(update->update, update->micro_step, update->reason, update->lr.value()));
    if (const auto* micro = std::get_if<MicroSteps>(&body)) take(*micro);
    if (const auto* sync = std::get_if<Sync>(&body))
      for (std::size_t i = 0; i < sync->op.size(); ++i)
        if (reduces_gradients(sync->purpose[i], sync->axis[i], sync->op[i]))
          story.reductions.insert(sync->micro_step[i]);
  }
  void progress(const char*, std::int64_t, std::int64_t) override {}
  Gate before_micro_step(std::int64_t, const std::function<void()>&) override { return {}; }
  BoundaryRequests boundary_requests() override {
    return {.steps = ++boundaries_ == request_.update ? request_.steps : std::int64_t{0}};
  }
  void hold_here() override {}
  void close() override {}
  Story story;
  bool changed() const { return request_.steps > 0 && boundaries_ >= request_.update; }

 private:
  void take(const MicroSteps& steps) {
    for (std::size_t i = 0; i < steps.micro_step.size(); ++i)
      story.micro_steps.push_back(micro_step_line(steps.micro_step[i], steps.update[i], steps.position[i],
                                                  steps.size[i], steps.epoch[i], steps.batch[i]));
  }

  StepsRequest request_;
  std::int64_t boundaries_ = 0;
};

/// The first line that the two do not have in common.
std::string parted(const std::vector<std::string>& plan, const std::vector<std::string>& run) {
  for (std::size_t i = 0; i < std::max(plan.size(), run.size()); ++i) {
    const std::string wanted = i < plan.size() ? plan[i] : "nothing";
    const std::string found = i < run.size() ? run[i] : "nothing";
    if (wanted != found) return "planned " + wanted + ", run " + found;
  }
  return {};
}

std::string difference(const Story& plan, const Story& run) {
  if (plan.reductions != run.reductions) return "other micro-steps reduced than planned";
  if (std::string micro = parted(plan.micro_steps, run.micro_steps); !micro.empty()) return micro;
  return parted(plan.updates, run.updates);
}

int random_runs(RankContext& rank) {
  const JoinedRank joined = join_ranks(rank, BackendKind::shm);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, RankGrid{.data = rank.world}));
  std::mt19937_64 random(static_cast<std::uint64_t>(1000 + rank.world));
  const std::int64_t runs = std::stoll(rank.arguments.at(0));
  std::int64_t updates = 0;
  std::int64_t changes = 0;
  for (std::int64_t i = 0; i < runs; ++i) {
    const std::string spec = random_spec(random, rank.world);
    const RunOrder order = order_for({.spec = spec});
    const StepsRequest request = random_request(random, order.plan);
    StoryRecorder recorder(request);
    const auto outcome = train_run(order, mesh, 0, recorder);
    if (!outcome) rank.report("failed " + outcome.error().text());
    if (rank.rank != 0) continue;
    std::string told = spec.substr(spec.find("shuffle"));
    std::ranges::replace(told, '\n', ' ');
    if (request.steps > 0)
      told += "N " + std::to_string(request.steps) + " after update " + std::to_string(request.update);
    if (const std::string differs = difference(planned(order.plan, request), recorder.story); !differs.empty())
      rank.report("parted: " + differs + " in run " + std::to_string(i) + ": " + told);
    changes += recorder.changed() ? 1 : 0;
    updates += std::ssize(recorder.story.updates);
  }
  mesh.world().barrier();
  rank.report("updates " + std::to_string(updates));
  rank.report("changes " + std::to_string(changes));
  return 0;
}

}  // namespace

class TestPlanAndRun : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_run_does_what_its_plan_says_data() {
    QTest::addColumn<int>("world");
    for (const int world : {1, 2, 3}) QTest::addRow("%d ranks", world) << world;
  }
  void a_run_does_what_its_plan_says() {
    QFETCH(int, world);
    RankGroup group("random_runs", world, {.arguments = {"400"}});
    const auto outcomes = group.finish(std::chrono::seconds(120));
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const std::string& line : outcomes[0].lines) {
      const bool counted = line.starts_with("updates ") || line.starts_with("changes ");
      if (!counted) QFAIL(line.c_str());
      QVERIFY2(std::stoll(line.substr(8)) > (line.starts_with("updates ") ? 300 : 20), line.c_str());
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestPlanAndRun, {{"random_runs", random_runs}})

}  // namespace test_plan_and_run
#include "test_plan_and_run.moc"
