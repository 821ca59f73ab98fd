// SPDX-License-Identifier: Apache-2.0
// The window executor: a model that is split over stages by hand, one thread per stage, has the gradients of the model
// in one part, bit for bit, whatever the schedule.
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tanh.h>

#include <QtTest/QTest>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "support/test_program.h"
#include "train/window_executor.h"

namespace test_window_executor {

using namespace accrue;

namespace {

constexpr std::int64_t width = 3;

at::Tensor numbers(std::int64_t rows, std::int64_t columns, double from, double to) {
  return at::linspace(from, to, rows * columns, at::kFloat).view({rows, columns});
}

/// tanh(x weight^T); the last part's loss is a sum of squares.
struct Layer : ModelPart {
  explicit Layer(std::int64_t index)
      : weight(register_parameter("weight", numbers(width, width, -0.5 - 0.1 * static_cast<double>(index),
                                                    0.9 - 0.2 * static_cast<double>(index)))) {}
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override {
    return at::tanh(at::linear(received.defined() ? received : batch.inputs, weight));
  }
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override {
    return {at::mse_loss(outputs, batch.targets, at::Reduction::Sum), batch.targets.numel()};
  }
  at::Tensor weight;
};

std::vector<Batch> made_batches(std::int64_t count) {
  std::vector<Batch> batches;
  for (std::int64_t m = 0; m < count; ++m) {
    const double shift = 0.1 * static_cast<double>(m);
    batches.push_back({numbers(2, width, -1.0 + shift, 1.0), numbers(2, width, 0.3, 0.7 - shift), 2, 2 * width});
  }
  return batches;
}

double weight_of(std::int64_t micro_step) {
  return 1.0 / static_cast<double>(micro_step + 2);
}

struct Work final : WindowWork {
  explicit Work(std::vector<Batch> made) : batches(std::move(made)) {}
  bool begin(std::int64_t micro_step) override {
    if (micro_step >= ends_before) return false;
    ++begun;
    return true;
  }
  const Batch& batch(std::int64_t micro_step) override { return batches[static_cast<std::size_t>(micro_step)]; }
  void starts(const PipelineOperation&) override {
    in_order = in_order && !computing;
    computing = true;
  }
  double weigh(std::int64_t micro_step, LossSum& loss) override {
    losses[micro_step] = loss.sum.item<double>();
    return weight_of(micro_step);
  }
  void computed(const PipelineOperation& operation) override {
    spans.push_back(operation);
    in_order = in_order && computing;
    computing = false;
  }
  void finished(const PipelineOperation&) override { ++done; }

  std::vector<Batch> batches;
  std::map<std::int64_t, double> losses;
  std::vector<PipelineOperation> spans;
  std::int64_t ends_before = 1 << 20;
  std::int64_t begun = 0;
  std::int64_t done = 0;
  bool computing = false;
  bool in_order = true;
};

/// Transfers between threads that block both sides until they meet.
class Exchange {
 public:
  void send(std::int64_t from, std::int64_t to, const at::Tensor& tensor) {
    std::unique_lock lock(mutex_);
    at::Tensor& slot = slots_[{from, to}];
    wait(lock, [&] { return !slot.defined(); });
    slot = tensor.clone();
    changed_.notify_all();
    wait(lock, [&] { return !slot.defined(); });
  }
  at::Tensor receive(std::int64_t from, std::int64_t to) {
    std::unique_lock lock(mutex_);
    at::Tensor& slot = slots_[{from, to}];
    wait(lock, [&] { return slot.defined(); });
    at::Tensor taken = std::move(slot);
    slot.reset();
    changed_.notify_all();
    return taken;
  }

 private:
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition) {
    if (!changed_.wait_for(lock, std::chrono::seconds(30), condition)) throw std::runtime_error("stages never met");
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> slots_;
};

class ThreadLink final : public StageLink {
 public:
  ThreadLink(Exchange& exchange, std::int64_t stage) : exchange_(exchange), stage_(stage) {}
  void send(const PipelineOperation& operation, const at::Tensor& tensor) override {
    exchange_.send(stage_, operation.peer, tensor);
  }
  at::Tensor receive(const PipelineOperation& operation) override { return exchange_.receive(operation.peer, stage_); }

 private:
  Exchange& exchange_;
  std::int64_t stage_;
};

struct Trained {
  std::vector<at::Tensor> gradients;  ///< by part
  std::map<std::int64_t, double> losses;
};

/// What autograd makes of the parts in a row, micro-step after micro-step.
Trained by_autograd(std::int64_t parts, const std::vector<Batch>& batches) {
  std::vector<std::shared_ptr<Layer>> layers;
  for (std::int64_t i = 0; i < parts; ++i) layers.push_back(std::make_shared<Layer>(i));
  Trained trained;
  for (std::size_t m = 0; m < batches.size(); ++m) {
    if (batches[m].items == 0) continue;
    at::Tensor x;
    for (const auto& layer : layers) x = layer->forward(batches[m], x);
    const LossSum loss = layers.back()->loss(x, batches[m]);
    trained.losses[static_cast<std::int64_t>(m)] = loss.sum.item<double>();
    (loss.sum * weight_of(static_cast<std::int64_t>(m))).backward();
  }
  for (const auto& layer : layers) trained.gradients.push_back(layer->weight.grad());
  return trained;
}

Trained by_stages(const PipelineShape& shape, const std::vector<Batch>& batches) {
  const std::int64_t parts = shape.stages * shape.chunks;
  std::vector<std::shared_ptr<Layer>> layers;
  for (std::int64_t i = 0; i < parts; ++i) layers.push_back(std::make_shared<Layer>(i));
  Exchange exchange;
  Trained trained;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::string failure;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage)
    threads.emplace_back([&, stage] {
      try {
        std::vector<ModelPart*> own;
        for (std::int64_t c = 0; c < shape.chunks; ++c)
          own.push_back(layers[static_cast<std::size_t>(c * shape.stages + stage)].get());
        ThreadLink link(exchange, stage);
        WindowExecutor executor(own, shape, stage, &link);
        Work work(batches);
        executor.run(executor.operations(std::ssize(batches)), work);
        const std::scoped_lock lock(mutex);
        if (stage == shape.stages - 1) trained.losses = work.losses;
        if (work.done != std::ssize(batches) * shape.chunks || !work.in_order) failure = "operations are missing";
      } catch (const std::exception& error) {
        const std::scoped_lock lock(mutex);
        failure = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (!failure.empty()) throw std::runtime_error(failure);
  for (const auto& layer : layers) trained.gradients.push_back(layer->weight.grad());
  return trained;
}

void compare(const Trained& found, const Trained& wanted) {
  QCOMPARE(found.losses, wanted.losses);
  QCOMPARE(found.gradients.size(), wanted.gradients.size());
  for (std::size_t i = 0; i < wanted.gradients.size(); ++i) QVERIFY(at::equal(found.gradients[i], wanted.gradients[i]));
}

}  // namespace

class TestWindowExecutor : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_split_model_has_the_gradients_of_the_whole_data() {
    QTest::addColumn<PipelineShape>("shape");
    QTest::addColumn<int>("micro_steps");
    using enum PipelineSchedule;
    QTest::newRow("one stage") << PipelineShape{one_forward_one_backward, 1} << 4;
    QTest::newRow("one stage, all forward first") << PipelineShape{all_forward_all_backward, 1} << 4;
    QTest::newRow("two stages, all forward first") << PipelineShape{all_forward_all_backward, 2} << 5;
    QTest::newRow("two stages in turn") << PipelineShape{one_forward_one_backward, 2} << 5;
    QTest::newRow("two stages, one micro-step") << PipelineShape{one_forward_one_backward, 2} << 1;
    QTest::newRow("three stages in turn") << PipelineShape{one_forward_one_backward, 3} << 7;
    QTest::newRow("two stages of two chunks") << PipelineShape{interleaved, 2, 1, 2} << 4;
    QTest::newRow("two stages of two chunks, odd groups") << PipelineShape{interleaved, 2, 1, 2, 3} << 5;
    QTest::newRow("three stages of three chunks") << PipelineShape{interleaved, 3, 1, 3} << 6;
  }
  void a_split_model_has_the_gradients_of_the_whole() {
    QFETCH(PipelineShape, shape);
    QFETCH(int, micro_steps);
    const auto batches = made_batches(micro_steps);
    compare(by_stages(shape, batches), by_autograd(shape.stages * shape.chunks, batches));
  }

  void a_batch_without_items_passes_every_stage_untouched() {
    auto batches = made_batches(4);
    batches[1] = {};
    const PipelineShape shape{PipelineSchedule::one_forward_one_backward, 2};
    compare(by_stages(shape, batches), by_autograd(2, batches));
  }

  void the_work_ends_a_list_early() {
    Layer layer(0);
    WindowExecutor executor({&layer}, {});
    Work work(made_batches(4));
    work.ends_before = 2;
    executor.run(executor.operations(4), work);
    QCOMPARE(work.begun, 2);
    QCOMPARE(work.done, 2);
    QCOMPARE(work.losses.size(), std::size_t{2});
  }

  void computation_is_told_in_the_order_of_the_list() {
    Layer layer(0);
    WindowExecutor executor({&layer}, {});
    Work work(made_batches(3));
    const auto operations = executor.operations(3);
    executor.run(operations, work);
    QCOMPARE(work.spans, operations);
    QVERIFY(work.in_order);
  }

  void what_does_not_fit_a_stage_is_refused() {
    Layer layer(0);
    const PipelineShape two{PipelineSchedule::one_forward_one_backward, 2};
    QVERIFY_EXCEPTION_THROWN(WindowExecutor({&layer}, two), std::invalid_argument);         // no link
    QVERIFY_EXCEPTION_THROWN(WindowExecutor({&layer, &layer}, {}), std::invalid_argument);  // one part too many
    WindowExecutor executor({&layer}, {});
    QVERIFY_EXCEPTION_THROWN(executor.operations(0), std::invalid_argument);
  }
};

ACCRUE_TEST_MAIN(TestWindowExecutor)

}  // namespace test_window_executor
#include "test_window_executor.moc"
