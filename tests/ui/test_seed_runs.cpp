// SPDX-License-Identifier: GPL-3.0-or-later
// Several seeds over ranks that really train: they hold their data against the plan.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "accrue/run/facts/data_facts.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_seed_runs {

using namespace accrue;
using namespace accrue::ui;

class TestSeedRuns : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_seed_trains_on_data_of_its_own() {
    StudioFixture studio(std::make_shared<QTemporaryDir>(), "", "accrue-rank");
    studio.show();
    RunSpec spec = smallSpec(3, 1);
    spec.data.kind = DataKind::synthetic;
    studio.openSpec(spec);
    studio.dialogs.seeds_answer = 3;
    std::vector<const RunSeries*> runs;
    connect(studio.control.get(), &RunControl::runBegun, this, [&] { runs.push_back(studio.control->run()); });
    studio.action("runSeedsAction")->trigger();
    const auto ended = [&] {
      return runs.size() == 3 && std::ranges::all_of(runs, [](const RunSeries* run) { return is_over(run->state()); });
    };
    QTRY_VERIFY_WITH_TIMEOUT(ended(), 3 * patience_ms);
    std::set<std::string> fingerprints;
    for (const RunSeries* run : runs) {
      QCOMPARE(run->state(), RunState::finished);
      fingerprints.insert(scan_data(*run->spec(), {}).value().fingerprint);
    }
    QCOMPARE(fingerprints.size(), std::size_t{3});
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestSeedRuns)

}  // namespace test_seed_runs
#include "test_seed_runs.moc"
