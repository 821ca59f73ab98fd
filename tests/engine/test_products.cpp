// SPDX-License-Identifier: Apache-2.0
// Matrix products on our tiles against LibTorch's, and which of the two a shape takes.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include <QScopeGuard>
#include <QTest>
#include <tuple>
#include <vector>

#include "models/lent_threads.h"
#include "models/product.h"
#include "support/test_program.h"

namespace test_products {

using namespace accrue;

class TestProducts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void our_tiles_and_the_librarys_routine_agree_on_any_shape() {
    // Around the tiles' edges, and wider and deeper than a block.
    for (const std::int64_t m : {1, 7, 13, 95, 96, 193}) {
      for (const std::int64_t n : {1, 15, 33, 130}) {
        for (const std::int64_t k : {1, 31, 400}) {
          for (const bool turned : {false, true}) {
            const at::Tensor a = turned ? at::randn({k, m}, at::kDouble).t() : at::randn({m, k}, at::kDouble);
            const at::Tensor b = turned ? at::randn({n, k}, at::kDouble).t() : at::randn({k, n}, at::kDouble);
            at::Tensor ours = at::empty({m, n}, at::kDouble), theirs = at::empty({m, n}, at::kDouble);
            product_into(ours, a, b, ProductPath::tiles);
            product_into(theirs, a, b, ProductPath::library);
            const double apart = (ours - theirs).abs().max().item<double>();
            QVERIFY2(apart < 1e-12 * static_cast<double>(k + 10),
                     qPrintable(QStringLiteral("%1 x %2 x %3: %4").arg(m).arg(k).arg(n).arg(apart)));
          }
        }
      }
    }
  }

  void adding_a_product_keeps_what_was_there() {
    for (const std::int64_t rows : {8, 128}) {  // one of each path where tiles pay
      const at::Tensor a = at::randn({rows, 40}, at::kDouble), b = at::randn({40, 24}, at::kDouble);
      const at::Tensor before = at::randn({rows, 24}, at::kDouble);
      at::Tensor sum = before.clone();
      add_product(sum, a, b);
      QVERIFY((sum - (before + at::matmul(a, b))).abs().max().item<double>() < 1e-12);
    }
  }

  /// Among them shapes whose pieces LibTorch's routine rounds in another way than the whole.
  void lent_threads_change_no_bit_of_a_product_data() {
    QTest::addColumn<ProductPath>("path");
    QTest::newRow("our tiles") << ProductPath::tiles;
    QTest::newRow("the library's routine") << ProductPath::library;
  }
  void lent_threads_change_no_bit_of_a_product() {
    QFETCH(ProductPath, path);
    int divided = 0;
    const int had = at::get_num_threads();
    at::set_num_threads(1);
    const auto restore = qScopeGuard([had] { at::set_num_threads(had); });
    using Numbers = std::tuple<int, int, int>;
    for (const auto& [m, k, n] : {Numbers{1024, 384, 384}, {256, 2048, 384}, {384, 1024, 1536}, {300, 1001, 1500}})
      for (const bool turned : {false, true}) {
        const at::Tensor a = turned ? at::randn({k, m}).t() : at::randn({m, k}), b = at::randn({k, n});
        const at::Tensor before = at::randn({m, n});
        at::Tensor whole = at::empty({m, n}), sum = before.clone();
        product_into(whole, a, b, path);
        add_product(sum, a, b, path);
        QVERIFY(!library_divides(whole, a, b, false));  // without a loan
        for (const int threads : {2, 3, 4}) {
          const ThreadLoan loan(threads);
          for (const int round : {1, 2}) {  // the first use of a shape finds out, the second knows
            at::Tensor shared = at::empty({m, n}), added = before.clone();
            product_into(shared, a, b, path);
            add_product(added, a, b, path);
            QVERIFY2(
                at::equal(shared, whole) && at::equal(added, sum),
                qPrintable(QString("%1 x %2 x %3, %4 threads, use %5").arg(m).arg(k).arg(n).arg(threads).arg(round)));
            divided += library_divides(shared, a, b, false) ? 1 : 0;
            divided += library_divides(added, a, b, true) ? 1 : 0;
          }
        }
      }
    qInfo("%d products of the library divide", divided);
    QVERIFY(path == ProductPath::tiles || divided > 0);  // else nothing of the library was shared
  }

  void the_path_depends_on_the_rows_of_the_result_and_the_ranks_cpus_alone() {
    QCOMPARE(product_path(95, true), ProductPath::library);
    QCOMPARE(product_path(96, true), ProductPath::tiles);
    QCOMPARE(product_path(4096, false), ProductPath::library);
  }

  void ranks_whose_processors_differ_compute_with_the_least_of_them() {
    const InstructionSet had = instruction_set();
    limit_instruction_set(InstructionSet::avx512);
    QCOMPARE(instruction_set(), had);  // a limit above what is there changes nothing
    limit_instruction_set(InstructionSet::generic);
    QCOMPARE(instruction_set(), InstructionSet::generic);
    QCOMPARE(QString(name_of(instruction_set())), QStringLiteral("generic"));
    QVERIFY(!tiles_pay());  // tiles are of AVX-512
  }
};

ACCRUE_TEST_MAIN(TestProducts)

}  // namespace test_products
#include "test_products.moc"
