// SPDX-License-Identifier: Apache-2.0
// Matrix products on our tiles against LibTorch's, and which of the two a shape takes.
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include <QTest>

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
