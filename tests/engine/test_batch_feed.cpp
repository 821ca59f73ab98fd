// SPDX-License-Identifier: Apache-2.0
// What a rank fetches, beside what it trains on.
#include <QtTest>

#include <set>

#include "support/table.h"
#include "support/test_program.h"
#include "support/training_body.h"
#include "train/batch_feed.h"

namespace test_batch_feed {

using namespace accrue;
using namespace accrue::test;

namespace {

/// Remembers which samples were asked for.
class WatchedSource final : public DataSource {
 public:
  std::int64_t size(Split) const override { return 10; }
  Batch batch(Split, std::span<const std::int64_t> samples) override {
    fetched.insert(samples.begin(), samples.end());
    return {.inputs = {}, .targets = {}, .samples = std::ssize(samples), .items = std::ssize(samples)};
  }
  std::multiset<std::int64_t> fetched;
};

RunPlan plan_with(const char* tail) {
  const std::string spec =
      std::string("accrue = 1\n[model]\nkind = \"linear\"\n[data]\nkind = \"inline\"\n") +
      "shuffle = false\nx = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0]]\n"
      "y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0]]\n"
      "[accumulation]\nsteps = 4\nmicro_batch = 1\ntail = \"" +
      tail + "\"\n[run]\nepochs = 1\n";
  return order_for({.spec = spec}).plan;
}

}  // namespace

class TestBatchFeed : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_dropped_tail_is_fetched_where_it_is_drained_data() {
    const Rows<QString, int> row;
    row("stop", "drop_stop", 8);
    row("drain", "drop_drain", 10);
    row("flush", "flush", 10);
  }
  void the_dropped_tail_is_fetched_where_it_is_drained() {
    const auto [tail, fetched] = current_row<QString, int>();
    const RunPlan plan = plan_with(tail.toUtf8());
    WatchedSource source;
    BatchFeed feed(plan, source, 0);
    AccumulationWindow window(plan.window);
    std::int64_t trained = 0;
    while (const auto micro = window.next()) {
      trained += feed.batch(*micro).samples;
      if (micro->epoch_ends) feed.drain(*micro);
    }
    QCOMPARE(trained, tail == "flush" ? 10 : 8);
    QCOMPARE(std::ssize(source.fetched), std::ptrdiff_t(fetched));
    QVERIFY2(std::set(source.fetched.begin(), source.fetched.end()).size() == source.fetched.size(), "none twice");
  }
};

ACCRUE_TEST_MAIN(TestBatchFeed)

}  // namespace test_batch_feed
#include "test_batch_feed.moc"
