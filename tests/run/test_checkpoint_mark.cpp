// SPDX-License-Identifier: Apache-2.0
#include <QTest>

#include "accrue/run/window/checkpoint_mark.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_checkpoint_mark {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

class TestCheckpointMark : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_name_says_where_a_checkpoint_was_taken_data() {
    const Rows<QString, int, int> row;
    row("on a boundary", "step-100", 100, 0);
    row("before the first update", "step-0", 0, 0);
    row("inside a window", "step-7+3", 7, 3);
  }
  void a_name_says_where_a_checkpoint_was_taken() {
    const auto [name, update, position] = current_row<QString, int, int>();
    const CheckpointMark mark{update, position};
    QCOMPARE(QString::fromStdString(checkpoint_name(mark)), name);
    QVERIFY(checkpoint_mark(name.toStdString()) == mark);
    QVERIFY(mark.valid());
  }

  void any_other_name_is_none_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"", "step-", "step--1", "step-1+", "step-1+0", "step-+1", "step-1+-2", "step-1.5",
                             "step-1 ", "Step-1", ".step-1.abc.part", "abandoned-step-1", "step-99999999999999999999"})
      QTest::newRow(name) << name;
  }
  void any_other_name_is_none() {
    QFETCH(QString, name);
    QVERIFY(!checkpoint_mark(name.toStdString()).valid());
  }

  void later_marks_are_larger() {
    QVERIFY((CheckpointMark{3, 0} < CheckpointMark{3, 1}));
    QVERIFY((CheckpointMark{3, 9} < CheckpointMark{4, 0}));
    QVERIFY(CheckpointMark{} < CheckpointMark{0});
  }
};

ACCRUE_TEST_MAIN(TestCheckpointMark)

}  // namespace test_checkpoint_mark
#include "test_checkpoint_mark.moc"
