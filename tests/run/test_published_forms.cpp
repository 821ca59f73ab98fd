// SPDX-License-Identifier: Apache-2.0
// Published closed forms, against the numbers that were published with them, of the models of 175 and 530 billion
// parameters.
#include "published_forms.h"

#include <QTest>
#include <cmath>

#include "accrue/run/cost/model_flops.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_published_forms {

using namespace accrue;
using namespace accrue::test;

namespace {

const ModelSpec of_175_billion{
    .kind = ModelKind::gpt, .layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 51200};
const ModelSpec of_530_billion{
    .kind = ModelKind::gpt, .layers = 105, .width = 20480, .heads = 128, .context = 2048, .vocabulary = 51200};

ParallelSpec layout(std::int64_t tensor, bool sequence, RecomputeKind recompute) {
  ParallelSpec parallel;
  parallel.tensor = tensor;
  parallel.sequence = sequence;
  parallel.recompute = recompute;
  return parallel;
}

double per_cent(double part) {
  return std::round(1000.0 * part) / 10.0;
}

}  // namespace

class TestPublishedForms : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_block_keeps_the_published_bytes_data() {
    const Rows<int, bool, int, double> row;  // tensor ranks, by rows, recomputation, MiB
    const int none = int(RecomputeKind::none), selective = int(RecomputeKind::selective),
              full = int(RecomputeKind::full);
    row("undivided", 1, false, none, 2736);
    row("tensor ranks", 8, false, none, 552);
    row("by rows", 8, true, none, 342);
    row("selective", 8, false, selective, 312);
    row("by rows, selective", 8, true, selective, 102);
    row("full", 8, false, full, 48);
  }
  void a_block_keeps_the_published_bytes() {
    const auto [tensor, sequence, recompute, mib] = current_row<int, bool, int, double>();
    const ParallelSpec parallel = layout(tensor, sequence, static_cast<RecomputeKind>(recompute));
    QCOMPARE(published_block_bytes(of_175_billion, 1, parallel), mib * 0x1p20);
    QCOMPARE(published_block_bytes(of_175_billion, 3, parallel), 3 * mib * 0x1p20);
  }

  void recomputation_saves_and_costs_what_was_published_data() {
    const Rows<bool, double, double> row;  // the larger model; bytes saved and operations added, in per cent
    row("175 billion", false, 70.2, 2.7);
    row("530 billion", true, 65.3, 1.6);
  }
  void recomputation_saves_and_costs_what_was_published() {
    const auto [larger, saved, added] = current_row<bool, double, double>();
    const ModelSpec& model = larger ? of_530_billion : of_175_billion;
    const ParallelSpec none = layout(1, false, RecomputeKind::none), full = layout(1, false, RecomputeKind::full);
    const ParallelSpec selective = layout(1, false, RecomputeKind::selective);
    QCOMPARE(per_cent(1.0 - published_block_bytes(model, 1, selective) / published_block_bytes(model, 1, none)), saved);
    QCOMPARE(per_cent(published_flops(model, selective) / published_flops(model, none) - 1.0), added);
    // A forward more, but for the logits.
    QCOMPARE(std::round(100.0 * published_flops(model, full) / published_flops(model, none)), 133.0);
  }

  /// 72 s L h^2 (1 + s / 12 h + V / 12 h L), where the published form has s / 6 h: half of the scores, 6 s^2 h L, are
  /// not counted.
  void operations_of_a_logger_are_72sLh2_with_half_of_the_scores() {
    const double s = 2048, L = 96, h = 12288, V = 51200;
    const double expected = 72 * s * L * h * h * (1 + s / (12 * h) + V / (12 * h * L));
    const double found = model_flops(of_175_billion, 1);
    QVERIFY(std::abs(found / expected - 1.0) < 1e-14);
    const double published = published_flops(of_175_billion, layout(1, false, RecomputeKind::none));
    QVERIFY(std::abs((published - found) / (6 * s * s * h * L) - 1.0) < 1e-12);
  }
};

ACCRUE_TEST_MAIN(TestPublishedForms)

}  // namespace test_published_forms
#include "test_published_forms.moc"
