// SPDX-License-Identifier: GPL-3.0-or-later
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <memory>
#include <vector>

#include "made_run.h"
#include "runs/run_library.h"
#include "runs/run_overlay.h"
#include "runs/runs_panel.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_run_overlay {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

enum Optional { plain = 0, checked = 1, weighed = 2, both = checked | weighed };

/// A panel over one run for each set of optional columns.
class Panel {
 public:
  Panel() {
    for (const int optional : {plain, checked, weighed, both}) {
      auto run = std::make_unique<RunSeries>(QStringLiteral("run-%1").arg(optional), optional);
      run->setPlan(MadeRun{.steps = 4 + optional}.plan());
      Update update;
      update.update = update.micro_step = 1;
      if (optional & weighed) update.weights = {0.5};
      run->append({{0, 0, 0, update}});
      if (optional & checked) run->append({{0, 1, 0, ExactnessCheck{.update = 1, .verdict = "exact"}}});
      library.table()->addRun(run.get());
      runs.push_back(std::move(run));
    }
  }
  RunSeries* run(int optional) const { return runs[static_cast<std::size_t>(optional)].get(); }

  QTemporaryDir home;
  RunLibrary library{home.path()};
  RunsPanel panel{&library};
  std::vector<std::unique_ptr<RunSeries>> runs;
};

}  // namespace

class TestRunOverlay : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_new_run_lies_over_those_it_can_be_compared_with() {
    Panel p;
    MessageBar bar;
    RunOverlay overlay(&p.panel, &bar);
    RunSpec other = *p.run(checked)->spec();
    other.data.samples *= 2;
    p.run(checked)->setName(QStringLiteral("Twice the data"));
    p.run(checked)->setSpec(other);
    p.panel.showOnly({p.run(plain), p.run(checked)});
    overlay.show(p.run(both));
    QCOMPARE(p.panel.shownRuns(), (QList<RunSeries*>{p.run(plain), p.run(both)}));
    QCOMPARE(p.panel.currentRun(), p.run(both));
    QVERIFY2(bar.text().startsWith(QStringLiteral("Twice the data is no longer drawn, because its loss")),
             qPrintable(bar.text()));
    QVERIFY2(bar.text().endsWith(QStringLiteral("the runs differ in Samples.")), qPrintable(bar.text()));

    // The offer stands until it is taken, or something else is shown.
    bar.findChild<QPushButton*>(QStringLiteral("messageAction"))->click();
    QCOMPARE(p.panel.shownRuns(), (QList<RunSeries*>{p.run(plain), p.run(checked), p.run(both)}));
    QCOMPARE(p.panel.currentRun(), p.run(both));
    QCOMPARE(bar.currentId(), QString());
    overlay.show(p.run(both));
    QCOMPARE(bar.currentId(), QStringLiteral("overlay"));
    p.panel.showOnly({p.run(weighed)});
    QCOMPARE(bar.currentId(), QString());
    overlay.show(p.run(plain));
    QCOMPARE(p.panel.shownRuns().size(), 2);
    QCOMPARE(bar.currentId(), QString());
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestRunOverlay)

}  // namespace test_run_overlay
#include "test_run_overlay.moc"
