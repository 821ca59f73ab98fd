// SPDX-License-Identifier: Apache-2.0
// Facts of plug-in libraries in the core: registered names, and the keys of a spec that they set.
#include <QTest>

#include "accrue/run/data/data_split.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_plugin_facts {

using namespace accrue;

namespace {

RunSpec spec_of(const QStringList& assignments) {
  RunSpec spec;
  std::vector<Finding> findings;
  for (const QString& assignment : assignments) set_field(spec, assignment.toStdString(), findings);
  return spec;
}

LoweredMegatron lower(const QStringList& assignments) {
  return lower_megatron(spec_of(assignments), empty_environment());
}

QString errors_of(const std::vector<Finding>& findings) {
  QString text;
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error) text += QString::fromStdString(finding.text()) + "\n";
  return text;
}

}  // namespace

class TestPluginFacts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_a_library_registers_is_read_by_the_ranks() {
    const LoweredMegatron lowered = lower({"megatron.custom_loss_function=mine"});
    QVERIFY2(errors_of(lowered.findings).isEmpty(), qPrintable(errors_of(lowered.findings)));
    const auto effect = std::ranges::find(lowered.fields, "custom_loss_function", &MegatronEffect::name);
    QCOMPARE(effect->consumers, std::string("engine/train/run_hooks"));
    QVERIFY(effect->nothing.empty());
  }

  void a_model_and_data_of_a_library_say_what_they_need() {
    QVERIFY(errors_of(lower({"megatron.custom_model_provider_function=mine", "megatron.tp_degree=2"}).findings)
                .contains("needs parallel.tensor = 1"));
    QVERIFY(errors_of(lower({"megatron.custom_megatron_datasets_provider_function=mine", "data.kind=text"}).findings)
                .contains("data.samples say how many"));
    QVERIFY(errors_of(lower({"megatron.custom_get_batch_function=a", "megatron.custom_train_step_class=b"}).findings)
                .contains("excludes custom_train_step_class"));
  }

  void data_sets_of_a_library_say_how_many_samples_they_have_data() {
    const test::Rows<QStringList, DatasetSizes, QString> row;
    row("training alone", {}, {96, 0}, "96 of 96");
    row("and validation", {}, {80, 20}, "80 of 100");
    row("a part that no short number is", {}, {2, 1}, "2 of 3");
    row("beside fields that act", {"megatron.num_micro_batches=4"}, {80, 20}, "80 of 100");
    row("said by the spec, too", {"data.samples=100", "data.validation_fraction=0.2"}, {80, 20}, "80 of 100");
    row("the spec says more", {"data.samples=101"}, {80, 20},
        "data.samples: is not what the data sets of the plug-in library say");
    row("the spec keeps another part", {"data.validation_fraction=0.1"}, {96, 0}, "data.validation_fraction: ");
    row("of another kind", {"data.kind=text"}, {96, 0}, "needs data.kind = \"synthetic\"");
    row("too many for validation", {}, {1, 10}, "gives data.validation_fraction, which ");
  }
  void data_sets_of_a_library_say_how_many_samples_they_have() {
    const auto [sets, sizes, words] = test::current_row<QStringList, DatasetSizes, QString>();
    const PluginFacts mine{.file = "a.so",
                           .name = "mine",
                           .sha256 = {},
                           .entries = {{"custom_megatron_datasets_provider_function", "mine", sizes}},
                           .error = {}};
    const RunSpec spec = spec_of(QStringList(sets) << "megatron.custom_megatron_datasets_provider_function=mine");
    const LoweredMegatron lowered = lower_megatron(spec, empty_environment(), {&mine, 1});
    if (!has_errors(lowered.findings)) {
      const DataSplit split = split_samples(lowered.spec.data.samples, lowered.spec.data.validation_fraction);
      QCOMPARE(split.validation, sizes.validation);
      QCOMPARE(QStringLiteral("%1 of %2").arg(split.training).arg(lowered.spec.data.samples), words);
      QVERIFY(lower_megatron(lowered.spec, empty_environment(), {&mine, 1}).spec == lowered.spec);
      return;
    }
    QVERIFY2(errors_of(lowered.findings).contains(words), qPrintable(errors_of(lowered.findings)));
  }

  /// A value in the text is kept or refused, even if it equals the key's default.
  void a_size_that_a_text_gives_is_not_overridden_data() {
    const test::Rows<QByteArray, QStringList, QString> row;
    row("nothing", "", {}, "");
    row("the library's", "samples = 100", {}, "");
    row("the default", "samples = 512", {}, "data.samples: is not what the data sets of the plug-in library say");
    row("the default, by --set", "", {"data.samples=512"}, "data.samples: is not what the data sets");
    row("no part for evaluation", "validation_fraction = 0", {}, "data.validation_fraction: is not what the data sets");
  }
  void a_size_that_a_text_gives_is_not_overridden() {
    const auto [text, sets, words] = test::current_row<QByteArray, QStringList, QString>();
    const PluginFacts mine{.file = "a.so",
                           .name = "mine",
                           .sha256 = {},
                           .entries = {{"custom_megatron_datasets_provider_function", "mine", DatasetSizes{80, 20}}},
                           .error = {}};
    SpecReading reading = parse_spec(
        ("accrue = 1\n[data]\n" + text + "\n[megatron]\ncustom_megatron_datasets_provider_function = \"mine\"\n")
            .toStdString(),
        "a.accrue");
    std::vector<std::string> given;
    for (const QString& each : sets) given.push_back(each.toStdString());
    apply_sets(reading, given, empty_environment(), {&mine, 1});
    const QString errors = errors_of(reading.findings);
    QVERIFY2(words.isEmpty() ? errors.isEmpty() : errors.contains(words), qPrintable(errors));
  }

  void names_of_a_library_are_looked_up() {
    const PluginFacts mine{.file = "a.so",
                           .name = "mine",
                           .sha256 = "1",
                           .entries = {{"custom_loss_function", "focal"},
                                       {"custom_train_step_class", "focus"},
                                       {"custom_megatron_datasets_provider_function", "sets", DatasetSizes{8, 2}}},
                           .error = {}};
    const PluginFacts broken{.file = "b.so", .name = {}, .sha256 = {}, .entries = {}, .error = "it is no library"};
    MegatronSpec spec;
    const auto errors = [&spec](const std::vector<PluginFacts>& libraries) {
      return errors_of(check_plugins(spec, libraries));
    };
    QVERIFY(errors({mine}).isEmpty());
    QVERIFY(errors({broken}).contains("it is no library"));
    QVERIFY(errors({mine, mine}).contains("two plug-in libraries register custom_loss_function"));
    spec.custom_loss_function = "focal";
    QVERIFY(errors({mine}).isEmpty());
    QVERIFY(errors({}).contains("none was given"));
    spec.custom_loss_function = "focla";
    QVERIFY(errors({mine}).contains("\"focal\""));
    spec.custom_loss_function = "focus";  // of another field
    QVERIFY(errors({mine}).contains("no plug-in library registers"));
    const auto read = plugin_facts_from_json(to_json(std::vector{mine, broken}));
    QVERIFY(read.has_value());
    QCOMPARE(*read, (std::vector{mine, broken}));
    QVERIFY(!plugin_facts_from_json("[{}]").has_value());
  }
};

ACCRUE_TEST_MAIN(TestPluginFacts)

}  // namespace test_plugin_facts
#include "test_plugin_facts.moc"
