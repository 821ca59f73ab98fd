// SPDX-License-Identifier: GPL-3.0-or-later
// The data dock and the form of indexed data: what is read of each dataset, and what a sample is cut from.
#include <QDockWidget>
#include <QRegularExpression>
#include <QSpinBox>
#include <QTemporaryDir>
#include <fstream>

#include "accrue/run/data/text_dataset.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_data_panel {

using namespace accrue;
using namespace accrue::ui;

class TestDataPanel : public QObject {
  Q_OBJECT
  QTemporaryDir data_;

  void build(const char* name, int paragraphs) const {
    const std::filesystem::path dir = data_.path().toStdString();
    const auto text = dir / (std::string(name) + ".txt");
    std::ofstream file(text);
    for (int i = 0; i < paragraphs; ++i) file << name << " paragraph " << i << " of the text\n\n";
    file.close();
    build_text_dataset({.texts = {text}, .prefix = dir / name, .documents = DocumentKind::paragraph},
                       [](const TextProgress&) { return true; })
        .value();
  }
  RunSpec indexedSpec() const {
    RunSpec spec = smallSpec(10);
    spec.model.vocabulary = 257;
    spec.data.kind = DataKind::indexed;
    spec.data.paths = {data_.filePath(QStringLiteral("first")).toStdString(),
                       data_.filePath(QStringLiteral("second")).toStdString()};
    spec.data.weights = {3, 1};
    spec.data.split = "90, 10";
    return spec;
  }

 private Q_SLOTS:
  void initTestCase() {
    build("first", 40);
    build("second", 20);
  }

  void datasets_are_shown_with_their_shares() {
    OpenStudio studio(indexedSpec());
    studio.find<QDockWidget>("dataDock")->raise();
    auto* sets = studio.find<QLabel>("dataSets");
    QTRY_VERIFY_WITH_TIMEOUT(sets->isVisible() && sets->text().contains(QStringLiteral("first")), patience_ms);
    // 10 updates of 4 x 2 x 2 samples, divided 3 to 1.
    QVERIFY2(studio.find<QLabel>("dataTitle")->text().startsWith(QStringLiteral("160 samples to train on")),
             qPrintable(studio.find<QLabel>("dataTitle")->text()));
    QVERIFY2(sets->text().contains(QStringLiteral("120</td>")) && sets->text().contains(QStringLiteral("75.0")),
             qPrintable(sets->text()));
    QVERIFY(sets->text().contains(QStringLiteral("0 to 35 are read")));
    QVERIFY(!studio.find<QLabel>("dataOrigin")->isVisible());
    studio.set("data.weights", std::vector<double>{1, 1});
    QTRY_VERIFY_WITH_TIMEOUT(sets->text().contains(QStringLiteral("50.0")), patience_ms);
  }

  void a_sample_shows_what_it_is_cut_from() {
    OpenStudio studio(indexedSpec());
    studio.find<QDockWidget>("dataDock")->raise();
    auto* sample = studio.find<QSpinBox>("dataSample");
    QTRY_VERIFY_WITH_TIMEOUT(sample->isVisible() && sample->maximum() == 159, patience_ms);
    sample->setValue(1);  // after sample 0 of the first set, that is 0.25 ahead, and the second as much behind
    studio.find<QPushButton>("dataShow")->click();
    auto* origin = studio.find<QLabel>("dataOrigin");
    QTRY_VERIFY_WITH_TIMEOUT(origin->isVisible(), patience_ms);
    QVERIFY2(origin->text().contains(QStringLiteral("second")) && origin->text().contains(QStringLiteral("document ")),
             qPrintable(origin->text()));
  }

  void a_sample_shows_its_prompts_in_grey() {
    const std::filesystem::path dir = data_.path().toStdString();
    std::ofstream lines(dir / "asked.jsonl");
    for (int i = 0; i < 40; ++i) lines << R"({"ask": "how many <b>?", "say": "forty two"})" << '\n';
    lines.close();
    build_text_dataset(
        {.texts = {dir / "asked.jsonl"}, .prefix = dir / "asked", .json_key = "say", .prompt_key = "ask"}, {})
        .value();
    RunSpec spec = indexedSpec();
    spec.data.paths = {(dir / "asked").string()};
    spec.data.weights.clear();
    OpenStudio studio(spec);
    studio.find<QDockWidget>("dataDock")->raise();
    auto* show = studio.find<QPushButton>("dataShow");
    QTRY_VERIFY_WITH_TIMEOUT(show->isVisible() && show->isEnabled(), patience_ms);
    show->click();
    auto* origin = studio.find<QLabel>("dataOrigin");
    QTRY_VERIFY_WITH_TIMEOUT(origin->isVisible() && origin->text().contains(QStringLiteral("Grey: prompts")),
                             patience_ms);
    QString grey, black;
    const QRegularExpression parts(QStringLiteral("<span style='color:[^']*'>([^<]*)</span> ([^<]*)"));
    for (const auto& part : parts.globalMatch(origin->text())) {
      grey += part.captured(1);
      black += part.captured(2);
      QVERIFY2(QStringLiteral("how many &lt;b&gt;?").contains(part.captured(1)), qPrintable(origin->text()));
      QVERIFY2(QStringLiteral("forty two").contains(part.captured(2)), qPrintable(origin->text()));
    }
    QVERIFY2(!grey.isEmpty() && !black.isEmpty(), qPrintable(origin->text()));
  }

  void edits_made_while_the_dock_is_behind_are_shown_when_it_comes_to_the_front() {
    OpenStudio studio(indexedSpec());
    auto* dock = studio.find<QDockWidget>("dataDock");
    dock->hide();
    studio.set("data.weights", std::vector<double>{1, 1});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    auto* sets = studio.find<QLabel>("dataSets");
    QVERIFY(!sets->text().contains(QStringLiteral("50.0")));
    dock->show();
    dock->raise();
    QTRY_VERIFY_WITH_TIMEOUT(sets->text().contains(QStringLiteral("50.0")), patience_ms);
  }

  void data_that_cannot_be_read_say_why() {
    RunSpec spec = indexedSpec();
    spec.data.paths = {"nowhere"};
    spec.data.weights.clear();
    OpenStudio studio(spec);
    studio.find<QDockWidget>("dataDock")->raise();
    auto* empty = studio.find<QLabel>("dataEmpty");
    QTRY_VERIFY_WITH_TIMEOUT(empty->isVisible() && empty->text().contains(QStringLiteral("nowhere")), patience_ms);
    studio.set("data.kind", std::string("synthetic"));
    QTRY_VERIFY_WITH_TIMEOUT(empty->text().contains(QStringLiteral("set data.kind to indexed")), patience_ms);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestDataPanel)

}  // namespace test_data_panel
#include "test_data_panel.moc"
