// SPDX-License-Identifier: Apache-2.0
// A model whose layers lie on several pipeline stages, each a process: its gradients are those of the layers in a row,
// bit for bit, whatever the schedule, over shared memory and over Gloo.
#include <ATen/Parallel.h>

#include <QTest>

#include "accrue/comm/mesh.h"
#include "models/lent_threads.h"
#include "pipeline/message_link.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"
#include "support/split_model.h"

namespace test_pipeline_stages {

using namespace accrue;
using namespace accrue::test;

namespace {

/// The batches of one data-parallel replica.
std::vector<Batch> batches_of(std::int64_t replica, std::int64_t micro_steps) {
  auto all = made_batches((replica + 1) * micro_steps);
  return {all.end() - micro_steps, all.end()};
}

PipelineShape shape_of(const std::vector<std::string>& words) {
  return {.schedule = static_cast<PipelineSchedule>(std::stoi(words[0])),
          .stages = std::stoi(words[1]),
          .micro_steps = std::stoi(words[4]),
          .chunks = std::stoi(words[2]),
          .group = std::stoi(words[3])};
}

/// Arguments: schedule, stages, chunks, group, micro-steps, an empty micro-step or -1, backend.
/// Reports "part <i> <fingerprint of its gradient>", and on the last stage "losses <their sum>".
int run_stage(RankContext& rank) {
  const PipelineShape shape = shape_of(rank.arguments);
  const std::int64_t micro_steps = std::stoi(rank.arguments[4]), empty = std::stoi(rank.arguments[5]);
  const auto joined = join_ranks(rank, backend_named(rank.arguments[6]));
  const RankGrid grid{.data = rank.world / shape.stages, .pipeline = shape.stages};
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, grid));

  auto batches = batches_of(mesh.at().data, micro_steps);
  if (empty >= 0) batches[static_cast<std::size_t>(empty)] = {};
  const std::int64_t stage = mesh.at().pipeline;
  const StageLayers own(shape, stage);
  MessageLink link(mesh.pipeline());
  WindowExecutor executor(own.parts, shape.stages, stage, &link);
  SplitWork work(batches);
  executor.run(executor.operations(shape), work);
  DEMAND(work.in_order && work.done == micro_steps * shape.chunks);

  for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    at::Tensor gradient = own.layers[static_cast<std::size_t>(chunk)]->weight.grad();
    mesh.data().all_reduce_gradients(gradient);
    rank.report("part " + std::to_string(chunk * shape.stages + stage) + " " + fingerprint(gradient));
  }
  double losses = 0.0;
  for (const auto& [micro_step, loss] : work.losses) losses += loss;
  if (mesh.last_stage() && mesh.first_of(Axis::data)) rank.report("losses " + std::to_string(losses));
  return 0;
}

/// Stage 1 has another schedule than stage 0. Arguments: backend.
int run_two_schedules(RankContext& rank) {
  const auto joined = join_ranks(
      rank,
      CommOptions{.backend = backend_named(rank.arguments[0]), .timeout = std::chrono::minutes(1), .run_id = "test"});
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, {.pipeline = 2}));
  using enum PipelineSchedule;
  const PipelineShape shape{
      .schedule = rank.rank == 0 ? one_forward_one_backward : all_forward_all_backward, .stages = 2, .micro_steps = 4};
  const StageLayers own(shape, rank.rank);
  MessageLink link(mesh.pipeline());
  WindowExecutor executor(own.parts, 2, rank.rank, &link);
  SplitWork work(made_batches(4));
  try {
    executor.run(executor.operations(shape), work);
  } catch (const std::invalid_argument& error) {
    rank.report(error.what());
  }
  return 0;
}

/// One stage is not there to receive.
int run_beside_a_lost_stage(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments[0]));
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, {.pipeline = rank.world}));
  const PipelineShape shape{.stages = rank.world, .micro_steps = 6};
  const std::int64_t stage = mesh.at().pipeline;
  if (stage == 1) std::_Exit(0);
  const StageLayers own(shape, stage);
  MessageLink link(mesh.pipeline());
  WindowExecutor executor(own.parts, shape.stages, stage, &link);
  SplitWork work(made_batches(6));
  try {
    executor.run(executor.operations(shape), work);
  } catch (const CommError& error) {
    rank.report(error.what());
  }
  return 0;
}

/// A layer that says how many threads the tasks of its computations have.
struct CountedLayer final : Layer {
  using Layer::Layer;
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override {
    count('F');
    return Layer::forward(batch, received);
  }
  void backward(const at::Tensor& outputs, const at::Tensor& gradient) override {
    count('B');
    Layer::backward(outputs, gradient);
  }
  void count(char letter) {
    if (at::get_num_threads() != 1)
      throw std::logic_error("a loan is for tasks alone");  // all else keeps to the rank's own
    const OnLentThreads threads;
    seen += std::string(" ") + letter + std::to_string(at::get_num_threads());
  }
  std::string seen;
};

/// Replicas of two stages, on a core a rank. Arguments: whether all share the host.
int run_on_lent_threads(RankContext& rank) {
  at::set_num_threads(1);
  const auto joined = join_ranks(rank, BackendKind::shm);
  const std::int64_t replicas = rank.world / 2;
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, {.data = replicas, .pipeline = 2}));
  CountedLayer layer(mesh.at().pipeline);
  MessageLink link(mesh.pipeline());
  WindowExecutor executor({&layer}, 2, mesh.at().pipeline, &link);
  if (rank.arguments[0] == "shared") executor.share_host({.threads = 1, .ranks = replicas, .cores = rank.world});
  SplitWork work(batches_of(mesh.at().data, 4));
  executor.run(executor.operations({.stages = 2, .micro_steps = 4}), work);
  rank.report("stage " + std::to_string(mesh.at().pipeline) + layer.seen);
  rank.report(fingerprint(layer.weight.grad()));
  return 0;
}

struct Layout {
  PipelineShape shape;
  int replicas = 1;
  int micro_steps = 1;
  int empty = -1;
};

/// Returns the expected reports of the stages, computed by autograd in this process.
std::vector<std::string> expected(const Layout& layout) {
  const std::int64_t parts = layout.shape.stages * layout.shape.chunks;
  std::vector<at::Tensor> sums;
  double losses = 0.0;
  for (int replica = 0; replica < layout.replicas; ++replica) {
    auto batches = batches_of(replica, layout.micro_steps);
    if (layout.empty >= 0) batches[static_cast<std::size_t>(layout.empty)] = {};
    const Trained trained = by_autograd(parts, batches);
    for (const auto& [micro_step, loss] : trained.losses) losses += replica == 0 ? loss : 0.0;
    for (std::size_t i = 0; i < trained.gradients.size(); ++i) {
      if (replica == 0)
        sums.push_back(trained.gradients[i]);
      else
        sums[i] += trained.gradients[i];
    }
  }
  std::vector<std::string> lines{"losses " + std::to_string(losses)};
  for (std::size_t i = 0; i < sums.size(); ++i)
    lines.insert(lines.end(), static_cast<std::size_t>(layout.replicas),
                 "part " + std::to_string(i) + " " + fingerprint(sums[i]));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

class TestPipelineStages : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_split_model_has_the_gradients_of_the_whole_data() {
    QTest::addColumn<Layout>("layout");
    QTest::addColumn<QString>("backend");
    using enum PipelineSchedule;
    const std::vector<std::pair<const char*, Layout>> layouts{
        {"two stages, all forward first", {{all_forward_all_backward, 2}, 1, 5}},
        {"two stages in turn", {{one_forward_one_backward, 2}, 1, 5}},
        {"two stages, one micro-step", {{one_forward_one_backward, 2}, 1, 1}},
        {"three stages in turn", {{one_forward_one_backward, 3}, 1, 7}},
        {"four stages in turn", {{one_forward_one_backward, 4}, 1, 8}},
        {"two stages of two chunks", {{interleaved, 2, 1, 2}, 1, 4}},
        {"two stages of two chunks, odd groups", {{interleaved, 2, 1, 2, 3}, 1, 5}},
        {"three stages of three chunks", {{interleaved, 3, 1, 3}, 1, 6}},
        {"an empty micro-step", {{one_forward_one_backward, 2}, 1, 4, 1}},
        {"two replicas of two stages", {{one_forward_one_backward, 2}, 2, 4}},
        {"two replicas of two stages of two chunks", {{interleaved, 2, 1, 2}, 2, 4}}};
    for (const char* backend : {"shm", "gloo"})
      for (const auto& [name, layout] : layouts) QTest::addRow("%s, %s", name, backend) << layout << backend;
  }
  void a_split_model_has_the_gradients_of_the_whole() {
    QFETCH(Layout, layout);
    QFETCH(QString, backend);
    const PipelineShape& shape = layout.shape;
    std::vector<std::string> words;
    for (const std::int64_t number :
         {static_cast<std::int64_t>(shape.schedule), shape.stages, shape.chunks, shape.group,
          static_cast<std::int64_t>(layout.micro_steps), static_cast<std::int64_t>(layout.empty)})
      words.push_back(std::to_string(number));
    words.push_back(backend.toStdString());
    RankGroup ranks("run_stage", static_cast<int>(shape.stages) * layout.replicas, {.arguments = words});
    const auto outcomes = ranks.finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    std::vector<std::string> lines;
    for (const RankOutcome& outcome : outcomes) lines.insert(lines.end(), outcome.lines.begin(), outcome.lines.end());
    std::ranges::sort(lines);
    QCOMPARE(lines, expected(layout));
  }

  /// While a stage computes that the other waits for from begin to end, it has the threads of both.
  void a_stage_computes_on_the_threads_of_one_that_is_idle_data() {
    QTest::addColumn<int>("world");
    QTest::addColumn<QString>("hosts");
    for (const int world : {2, 4})
      for (const char* hosts : {"shared", "several"}) QTest::addRow("%d ranks, %s", world, hosts) << world << hosts;
  }
  void a_stage_computes_on_the_threads_of_one_that_is_idle() {
    QFETCH(int, world);
    QFETCH(QString, hosts);
    RankGroup ranks("run_on_lent_threads", world, {.arguments = {hosts.toStdString()}});
    const auto outcomes = ranks.finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    const bool lent = hosts == "shared";
    const std::string first = lent ? "stage 0 F2 F1 B1 F1 B1 F1 B1 B2" : "stage 0 F1 F1 B1 F1 B1 F1 B1 B1";
    const std::string last = lent ? "stage 1 F1 B2 F1 B1 F1 B1 F1 B1" : "stage 1 F1 B1 F1 B1 F1 B1 F1 B1";
    for (int i = 0; i < world; ++i) {
      const auto& lines = outcomes[static_cast<std::size_t>(i)].lines;
      const int stage = i / (world / 2);
      QCOMPARE(lines[0], stage == 0 ? first : last);
      const Trained trained = by_autograd(2, batches_of(i % (world / 2), 4));
      QCOMPARE(lines[1], fingerprint(trained.gradients[static_cast<std::size_t>(stage)]));
    }
  }

  /// Before a message is sent, so on a backend that compares none as well; long before the calls' time-out of a minute.
  void stages_with_different_schedules_name_them_data() {
    QTest::addColumn<QString>("backend");
    QTest::newRow("shm") << "shm";
    QTest::newRow("gloo") << "gloo";
  }
  void stages_with_different_schedules_name_them() {
    QFETCH(QString, backend);
    const auto outcomes = RankGroup("run_two_schedules", 2, {.arguments = {backend.toStdString()}}).finish(20s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const RankOutcome& each : outcomes) {
      QCOMPARE(each.lines.size(), std::size_t{1});
      const QString said = QString::fromStdString(each.lines.front());
      QVERIFY2(said.contains("stage 1 runs all_forward_all_backward over 4 micro-steps"), qPrintable(said));
      QVERIFY2(said.contains("stage 0 runs one_forward_one_backward over 4 micro-steps"), qPrintable(said));
    }
  }

  void a_lost_stage_is_an_error_on_the_others_data() {
    QTest::addColumn<QString>("backend");
    QTest::newRow("shm") << "shm";
    QTest::newRow("gloo") << "gloo";
  }
  void a_lost_stage_is_an_error_on_the_others() {
    QFETCH(QString, backend);
    RankGroup ranks("run_beside_a_lost_stage", 3, {.arguments = {backend.toStdString()}});
    const auto outcomes = ranks.finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const int rank : {0, 2}) {
      const auto& lines = outcomes[static_cast<std::size_t>(rank)].lines;
      QCOMPARE(lines.size(), std::size_t{1});
      QVERIFY2(lines[0].find("rank 1") != std::string::npos, lines[0].c_str());
    }
  }
};

ACCRUE_RANK_TEST_MAIN(TestPipelineStages, {{"run_stage", run_stage},
                                           {"run_two_schedules", run_two_schedules},
                                           {"run_on_lent_threads", run_on_lent_threads},
                                           {"run_beside_a_lost_stage", run_beside_a_lost_stage}})

}  // namespace test_pipeline_stages
#include "test_pipeline_stages.moc"
