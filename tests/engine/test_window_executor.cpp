// SPDX-License-Identifier: Apache-2.0
// The window executor on one stage. ranks/test_pipeline_stages has it on several.
#include <ATen/ops/equal.h>

#include <QTest>

#include "pipeline/message_link.h"
#include "support/split_model.h"
#include "support/test_program.h"

namespace test_window_executor {

using namespace accrue;
using namespace accrue::test;

namespace {

/// Trains the batches with the executor on one stage.
Trained by_one_stage(PipelineSchedule schedule, const std::vector<Batch>& batches) {
  const PipelineShape shape{.schedule = schedule, .micro_steps = std::ssize(batches)};
  const StageLayers stage(shape, 0);
  WindowExecutor executor(stage.parts);
  SplitWork work(batches);
  executor.run(executor.operations(shape), work);
  if (work.done != std::ssize(batches) || !work.in_order) throw std::runtime_error("operations are missing");
  return {{stage.layers[0]->weight.grad()}, work.losses};
}

void compare(const Trained& found, const Trained& wanted) {
  QCOMPARE(found.losses, wanted.losses);
  QCOMPARE(found.gradients.size(), wanted.gradients.size());
  for (std::size_t i = 0; i < wanted.gradients.size(); ++i) QVERIFY(at::equal(found.gradients[i], wanted.gradients[i]));
}

/// The first of several stages; records the requests, and answers with zeros at once.
struct NotedCalls final : Communicator {
  explicit NotedCalls(std::int64_t ranks) : ranks_(ranks) {}
  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return ranks_; }
  std::string axis() const override { return "pipeline"; }
  std::string backend() const override { return "noted"; }
  void push() override { noted += " push"; }

  using Call = std::unique_ptr<PendingCall>;
  Call do_all_reduce(at::Tensor, Reduce, Waits) override { return {}; }
  Call do_reduce_scatter(at::Tensor, at::Tensor, Waits) override { return {}; }
  Call do_all_gather(at::Tensor out, at::Tensor in, Waits) override {
    out.copy_(in.expand_as(out));
    return {};
  }
  Call do_broadcast(at::Tensor, std::int64_t) override { return {}; }
  Call do_send(at::Tensor, std::int64_t, MessageLabel) override {
    noted += " send";
    return {};
  }
  Call do_receive(at::Tensor tensor, std::int64_t, MessageLabel) override {
    noted += " receive";
    tensor.zero_();
    return {};
  }
  Call do_barrier() override { return {}; }

  std::string noted;

 private:
  std::int64_t ranks_;
};

struct NotedLayer final : Layer {
  NotedLayer(std::int64_t index, std::string& to) : Layer(index), noted(to) {}
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override {
    noted += " F";
    return Layer::forward(batch, received);
  }
  void backward(const at::Tensor& outputs, const at::Tensor& gradient) override {
    noted += " B";
    Layer::backward(outputs, gradient);
  }
  std::string& noted;
};

}  // namespace

class TestWindowExecutor : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_has_the_gradients_of_a_plain_loop_data() {
    QTest::addColumn<PipelineSchedule>("schedule");
    QTest::newRow("in turn") << PipelineSchedule::one_forward_one_backward;
    QTest::newRow("all forward first") << PipelineSchedule::all_forward_all_backward;
  }
  void it_has_the_gradients_of_a_plain_loop() {
    QFETCH(PipelineSchedule, schedule);
    const auto batches = made_batches(4);
    compare(by_one_stage(schedule, batches), by_autograd(1, batches));
  }

  void a_batch_without_items_is_passed_over() {
    auto batches = made_batches(4);
    batches[1] = {};
    compare(by_one_stage(PipelineSchedule::one_forward_one_backward, batches), by_autograd(1, batches));
  }

  void the_work_ends_a_list_early() {
    Layer layer(0);
    WindowExecutor executor({&layer});
    SplitWork work(made_batches(4));
    work.ends_before = 2;
    executor.run(executor.operations({.micro_steps = 4}), work);
    QCOMPARE(work.begun, 2);
    QCOMPARE(work.done, 2);
    QCOMPARE(work.losses.size(), std::size_t{2});
  }

  void computation_is_told_in_the_order_of_the_list() {
    Layer layer(0);
    WindowExecutor executor({&layer});
    SplitWork work(made_batches(3));
    const auto operations = executor.operations({.micro_steps = 3});
    executor.run(operations, work);
    QCOMPARE(work.spans, operations);
    QVERIFY(work.in_order);
  }

  void an_undivided_model_has_nothing_to_receive() {
    const auto model = make_model({}, 1);
    QVERIFY_EXCEPTION_THROWN((void)model->empty_input({}), std::logic_error);
  }

  /// A backend that keeps messages for the next call sends them on before the stage computes again: by hand, the first
  /// of four stages in a window of five.
  void what_was_sent_leaves_before_the_next_computation() {
    NotedCalls pipeline(4);
    NotedLayer layer(0, pipeline.noted);
    MessageLink link(pipeline);
    WindowExecutor executor({&layer}, 4, 0, &link);
    SplitWork work(made_batches(5));
    executor.run(executor.operations({.stages = 4, .micro_steps = 5}), work);
    QCOMPARE(QString::fromStdString(pipeline.noted),
             QString(" push F send push F send push F send push F send receive push B push F send receive push B"
                     " receive push B receive push B receive push B"));
  }

  void what_does_not_fit_a_stage_is_refused() {
    Layer layer(0);
    QVERIFY_EXCEPTION_THROWN(WindowExecutor({&layer}, 2), std::invalid_argument);  // no link
    WindowExecutor too_many({&layer, &layer});
    QVERIFY_EXCEPTION_THROWN(too_many.operations({.micro_steps = 1}), std::invalid_argument);  // of one chunk
    WindowExecutor executor({&layer});
    QVERIFY_EXCEPTION_THROWN(executor.operations({.micro_steps = -1}), std::invalid_argument);
    QVERIFY_EXCEPTION_THROWN(executor.operations({.stages = 2, .micro_steps = 1}), std::invalid_argument);
  }
};

ACCRUE_TEST_MAIN(TestWindowExecutor)

}  // namespace test_window_executor
#include "test_window_executor.moc"
