// SPDX-License-Identifier: Apache-2.0
// Output of specs: the short text, the annotated defaults, the schema, and the shipped specs.
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include "accrue/run/base/sha256.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "support/places.h"
#include "support/test_program.h"

namespace test_spec_writer {

using namespace accrue;

namespace {

QString qs(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<int>(text.size()));
}

}  // namespace

class TestSpecWriter : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void writes_only_what_differs_from_the_defaults() {
    RunSpec spec;
    QCOMPARE(write_spec(spec), std::string("accrue = 1\n"));
    spec.optimizer.lr = 3e-4;
    spec.accumulation.steps = 16;
    spec.accumulation.knobs.tail = EpochTail::drop_stop;
    spec.accumulation.knobs.length_schedule = {{0, 4}, {100, 8}};
    spec.run.epochs = 2;
    QCOMPARE(write_spec(spec), std::string("accrue = 1\n\n[optimizer]\nlr = 3e-4\n\n[accumulation]\nsteps = 16\n"
                                           "length_schedule = [[0, 4], [100, 8]]\ntail = \"drop_stop\"\n\n"
                                           "[run]\nepochs = 2.0\n"));
  }

  void the_annotated_defaults_are_a_spec_of_all_defaults() {
    const std::string text = annotated_defaults();
    const SpecReading reading = parse_spec(text, "defaults");
    QVERIFY2(reading.findings.empty(), reading.findings.empty() ? "" : reading.findings.front().text().c_str());
    QVERIFY(reading.spec == RunSpec());
    const QString shown = qs(text);
    for (const SpecField& field : spec_fields())
      QVERIFY2(shown.contains("\n" + qs(field.name()) + " =") || shown.contains("\n# " + qs(field.name()) + " ="),
               field.key.data());
    QVERIFY(shown.contains("# A whole number from 1 to 1048576, in micro-steps."));
    for (const QString& line : shown.split('\n')) QVERIFY2(line.size() <= 120, qPrintable(line));
  }

  void the_schema_names_every_field_with_type_range_and_choices() {
    const QJsonDocument document = QJsonDocument::fromJson(QByteArray::fromStdString(json_schema()));
    QVERIFY(document.isObject());
    const QJsonObject root = document.object();
    QCOMPARE(root["additionalProperties"].toBool(true), false);
    QCOMPARE(root["properties"].toObject()["accrue"].toObject()["const"].toInt(), 1);
    qsizetype count = 0;
    for (const QJsonValue& section : root["properties"].toObject()) {
      const QJsonObject object = section.toObject();
      if (object["type"].toString() != "object") continue;
      QCOMPARE(object["additionalProperties"].toBool(true), false);
      count += object["properties"].toObject().size();
    }
    QCOMPARE(count, static_cast<qsizetype>(spec_fields().size()));
    const auto field = [&](const char* section, const char* name) {
      return root["properties"].toObject()[section].toObject()["properties"].toObject()[name].toObject();
    };
    QCOMPARE(field("accumulation", "steps")["type"].toString(), QString("integer"));
    QCOMPARE(field("accumulation", "steps")["minimum"].toInt(), 1);
    QCOMPARE(field("accumulation", "steps")["default"].toInt(), 4);
    QCOMPARE(field("optimizer", "lr")["exclusiveMinimum"].toDouble(-1), 0.0);
    QCOMPARE(field("schedule", "kind")["enum"].toArray().size(),
             static_cast<qsizetype>(choice_names<ScheduleKind>().size()));
    QVERIFY(field("accumulation", "tail")["description"].toString().startsWith("What becomes of the batches"));
    QCOMPARE(field("data", "x")["items"].toObject()["type"].toString(), QString("array"));
  }

  void every_shipped_spec_can_be_planned_data() {
    QTest::addColumn<QString>("file");
    const QDir dir(accrue::test::sourcePath("resources/presets"));
    const QStringList files = dir.entryList({"*.accrue"});
    QVERIFY(files.size() >= 3);
    for (const QString& file : files) QTest::newRow(qPrintable(file)) << dir.filePath(file);
  }
  void every_shipped_spec_can_be_planned() {
    QFETCH(QString, file);
    QVERIFY(QFileInfo(file).size() < 4096);
    const SpecReading reading = read_spec(file.toStdString());
    QVERIFY2(reading.findings.empty(), reading.findings.empty() ? "" : reading.findings.front().text().c_str());
    if (reading.spec.data.path.starts_with('/') && !QFileInfo::exists(qs(reading.spec.data.path)))
      QSKIP("the text that this spec reads is not installed here");
    HostFacts host;
    host.cores = 8;  // one for each rank of the largest grid
    const Preflight result =
        preflight_files(reading.spec, host, accrue::test::sourcePath("resources/presets").toStdString());
    QVERIFY2(result.plan.has_value(), result.findings.empty() ? "" : result.findings.front().text().c_str());
    QCOMPARE(result.findings.size(), 0u);
  }

  void hashes_as_the_standard_says() {
    QCOMPARE(sha256_hex("abc"), std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    QCOMPARE(sha256_hex(""), std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    Sha256 parts;
    parts.update("a", 1);
    parts.update("bc", 2);
    QCOMPARE(parts.hex(), sha256_hex("abc"));
  }
};

ACCRUE_TEST_MAIN(TestSpecWriter)

}  // namespace test_spec_writer
#include "test_spec_writer.moc"
