// SPDX-License-Identifier: Apache-2.0
// The field table by itself: every row is whole, and what it sets comes back through the text of a spec.
#include <QRegularExpression>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <set>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_spec_fields {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

// A value of the field's type, in its range, that differs from the default.
SpecValue another_value(const SpecField& field) {
  const SpecValue before = field.get(RunSpec());
  const double low = std::isfinite(field.minimum) ? field.minimum : -3.0;
  const double high = std::isfinite(field.maximum) ? field.maximum : low + 100.0;
  switch (field.type) {
    case FieldType::boolean: {
      const bool* flag = std::get_if<bool>(&before);
      return flag == nullptr || !*flag;
    }
    case FieldType::integer: {
      const SpecValue largest = static_cast<std::int64_t>(high);
      return largest == before ? SpecValue(static_cast<std::int64_t>(low)) : largest;
    }
    case FieldType::real: {
      const SpecValue middle = low + (high - low) / 3.0;
      return middle == before ? SpecValue(high) : middle;
    }
    case FieldType::text:
      return std::string("a \"name\"\twith\\ everything \xC3\xA9\x01");
    case FieldType::choice: {
      const SpecValue last = std::string(field.choices.back());
      return last == before ? SpecValue(std::string(field.choices.front())) : last;
    }
    case FieldType::integers:
      return std::vector<std::int64_t>{7, 1, 9};
    case FieldType::reals:
      return std::vector<double>{0.1, -2.0, 1e-300};
    case FieldType::texts:
      if (!field.choices.empty()) return std::vector<std::string>{std::string(field.choices.back())};
      return std::vector<std::string>{"a", "b c"};
    case FieldType::matrix:
      return field.rows == "[number, ...]" ? Matrix{{1.5, -2.0}, {1e17}} : Matrix{{0.0, 3.0}, {100.0, 8.0}};
  }
  return {};
}

}  // namespace

class TestSpecFields : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_row_is_whole() {
    std::set<std::string_view> keys;
    std::vector<std::string_view> sections;
    const QRegularExpression of_the_sources(QStringLiteral("\\bK\\d"));  // a knob's number, which users do not see
    for (const SpecField& field : spec_fields()) {
      const QByteArray key(field.key.data(), static_cast<int>(field.key.size()));
      QVERIFY2(keys.insert(field.key).second, key);
      QVERIFY2(std::ranges::count(field.key, '.') == 1, key);
      QVERIFY2(!field.label.empty() && field.help.size() > 10 && field.help.ends_with('.'), key);
      QVERIFY2(!of_the_sources.match(QString::fromUtf8(field.help.data(), qsizetype(field.help.size()))).hasMatch(),
               key);
      if (field.type != FieldType::texts) QVERIFY2((field.type == FieldType::choice) == !field.choices.empty(), key);
      QVERIFY2((field.type == FieldType::matrix) == !field.rows.empty(), key);
      QVERIFY2(field.minimum <= field.maximum, key);
      QVERIFY2(find_field(field.key) == &field, key);
      if (sections.empty() || sections.back() != field.section()) sections.push_back(field.section());
    }
    QCOMPARE(std::set(sections.begin(), sections.end()).size(), sections.size());  // a section is written once
    QCOMPARE(find_field("accumulation.nothing"), nullptr);
  }

  void a_default_is_in_its_own_range() {
    for (const SpecField& field : spec_fields()) {
      RunSpec spec;
      std::vector<Finding> findings;
      const std::string value = format_value(field.get(spec));
      set_field(spec, std::string(field.key) + "=" + value, findings);
      QVERIFY2(findings.empty(), findings.empty() ? "" : findings.front().text().c_str());
      QVERIFY2(spec == RunSpec(), field.key.data());
    }
  }

  void every_field_goes_through_the_text_and_back() {
    RunSpec all;
    for (const SpecField& field : spec_fields()) {
      RunSpec spec;
      const SpecValue value = another_value(field);
      field.set(spec, value);
      field.set(all, value);
      QVERIFY2(spec != RunSpec() || field.choices.size() == 1, field.key.data());
      QVERIFY2(field.get(spec) == value, field.key.data());
      const SpecReading reading = parse_spec(write_spec(spec), "text");
      QVERIFY2(reading.findings.empty(), reading.findings.empty() ? "" : reading.findings.front().text().c_str());
      QVERIFY2(reading.spec == spec, write_spec(spec).c_str());
      field.set(spec, SpecValue());
      QVERIFY2(spec == RunSpec(), field.key.data());
    }
    const SpecReading reading = parse_spec(write_spec(all), "text");
    QVERIFY2(reading.findings.empty(), reading.findings.empty() ? "" : reading.findings.front().text().c_str());
    QVERIFY(reading.spec == all);
  }

  void every_field_can_be_set_from_the_command_line() {
    for (const SpecField& field : spec_fields()) {
      RunSpec spec;
      std::vector<Finding> findings;
      set_field(spec, std::string(field.key) + " = " + format_value(another_value(field)), findings);
      QVERIFY2(findings.empty(), findings.empty() ? "" : findings.front().text().c_str());
      QVERIFY2(field.get(spec) == another_value(field), field.key.data());
    }
  }

  void names_the_knob_that_another_tool_calls_otherwise_data() {
    const Rows<QString, QString> row;
    for (const char* name :
         {"gradient_accumulation_steps", "accumulate_grad_batches", "accumulate_size", "accumulative_counts",
          "num_micro_batches", "iter_size", "batch_accumulation", "ACCUMULATE-SIZE"})
      row(name, name, "accumulation.steps");
    row("--micro-batch-size", "--micro-batch-size", "accumulation.micro_batch");
    row("batch_size", "batch_size", "accumulation.micro_batch");
    for (const char* name : {"batch size", "batch-size", "Batch  Size", "size batch"})
      row(name, name, "accumulation.micro_batch");
    row("words of a name in another order", "steps accumulation", "accumulation.steps");
    row("words of a label and a key", "parallel tensor", "parallel.tensor");
    row("a name's words with spaces", "gradient accumulation steps", "accumulation.steps");
    row("world_size", "world_size", "parallel.data");
    row("epochs", "epochs", "run.epochs");
    row("tp_degree", "tp_degree", "parallel.tensor");
    row("pp_degree", "pp_degree", "parallel.pipeline");
    row("use_distributed_optimizer", "use_distributed_optimizer", "parallel.zero");
    for (const char* name : {"mixed_precision", "fp16", "bf16", "autocast"}) row(name, name, "model.dtype");
    row("--global-batch-size", "--global-batch-size", "accumulation.global_batch");
    row("gradient_clip_val", "gradient_clip_val", "optimizer.clip_norm");
    row("learning_rate", "learning_rate", "optimizer.lr");
    row("warmup_steps", "warmup_steps", "schedule.warmup");
    row("own key", "accumulation.tail", "accumulation.tail");
    row("own label", "weight decay", "optimizer.weight_decay");
    row("own label, as it is written", "Data-parallel ranks", "parallel.data");
    row("beginning of a label, before words inside others", "accumulation st", "accumulation.steps");
    row("word of a label, before a part of a key", "ranks", "parallel.data");
    row("whole label, before the name of another", "seed", "run.seed");
  }
  void names_the_knob_that_another_tool_calls_otherwise() {
    const auto [name, key] = current_row<QString, QString>();
    const auto found = search_fields(name.toStdString());
    QVERIFY(!found.empty());
    QCOMPARE(QString::fromUtf8(found.front()->key.data(), static_cast<int>(found.front()->key.size())), key);
  }

  void help_is_searched_where_no_name_fits() {
    const auto found = search_fields("parallel ranks");
    QVERIFY(std::ranges::all_of(found, [](const SpecField* field) {
      return std::string_view(field->label).find("ranks") != std::string::npos;
    }));
    QCOMPARE(found.front()->key, std::string_view("parallel.data"));
  }

  void every_name_of_the_four_systems_finds_its_field() {
    const std::pair<const char*, const char*> names[] = {
        {"num_steps", "accumulation.steps"},
        {"sync_with_dataloader", "accumulation.sync_with_dataloader"},
        {"sync_each_batch", "accumulation.reduce_when"},
        {"split_batches", "accumulation.split_batches"},
        {"step_scheduler_with_optimizer", "accumulation.schedule_clock"},
        {"adjust_scheduler", "accumulation.adjust_scheduler"},
        {"max_iters", "accumulation.max_iters"},
        {"max_counts", "accumulation.max_iters"},
        {"no_sync", "accumulation.no_sync_cover"},
        {"gradient_handlers", "accumulation.reduce_mechanism"},
        {"even_batches", "accumulation.uneven_ranks"},
        {"drop_last", "accumulation.uneven_ranks"},
        {"loss_scaler", "optimizer.loss_scale"},
        {"grad_scaler", "optimizer.loss_scale"},
        {"join_uneven_inputs", "accumulation.uneven_ranks"},
        {"GradientAccumulationPlugin", "accumulation.dialect"},
        {"ColossalAIOptimWrapper", "accumulation.dialect"},
        {"GradAccumDataloader", "accumulation.tail"},
        {"GradAccumLrSchedulerByStep", "accumulation.schedule_clock"},
        {"GradAccumGradientHandler", "accumulation.reduce_mechanism"},
        {"initialize_count_status", "accumulation.counter_reset"},
        {"num_items_in_batch", "accumulation.normalizer"},
        {"clip_grad_norm_", "accumulation.clip_stage"},
        {"step_was_skipped", "accumulation.overflow"}};
    for (const auto& [name, key] : names) {
      const auto named = [&, name = std::string_view(name)](const SpecField* field) {
        return field->key == key &&
               (field->name() == name || std::ranges::count(field->aliases, name, &FieldAlias::name) > 0);
      };
      QVERIFY2(std::ranges::any_of(search_fields(name), named), name);
    }
  }

  void a_search_for_nothing_finds_nothing() {
    QVERIFY(search_fields("").empty());
    QVERIFY(search_fields("   ").empty());
    QVERIFY(search_fields("zzqx").empty());
  }

  void guesses_the_key_that_was_meant_data() {
    const Rows<QString, QString> row;
    row("letters swapped", "accumulation.stesp", "accumulation.steps");
    row("letter missing", "optimizer.clip_nrm", "optimizer.clip_norm");
    row("wrong section", "training.micro_batch", "accumulation.micro_batch");
    row("section misspelt", "acumulation.steps", "accumulation.steps");
    row("as Accelerate's files spell it", "megatron.megatron_lm_pp_degree", "megatron.pp_degree");
    row("nothing near in its section", "accumulation.foo", "");
    row("nothing near", "model.zzzzzzzzz", "");
  }
  void guesses_the_key_that_was_meant() {
    const auto [given, meant] = current_row<QString, QString>();
    const std::string_view near = nearest_key(given.toStdString());
    QCOMPARE(QString::fromUtf8(near.data(), static_cast<int>(near.size())), meant);
  }

  void shows_values_as_toml_data() {
    const Rows<double, QString> row;
    row("whole", 25.0, "25.0");
    row("small", 3e-4, "3e-4");
    row("large", 1e6, "1e6");
    row("plain", 0.1, "0.1");
    row("digits", 0.30000000000000004, "0.30000000000000004");
    row("zero", 0.0, "0.0");
  }
  void shows_values_as_toml() {
    const auto [number, text] = current_row<double, QString>();
    QCOMPARE(QString::fromStdString(format_value(number)), text);
  }

  void tells_two_specs_apart() {
    RunSpec left;
    RunSpec right;
    QVERIFY(diff_specs(left, right).empty());
    right.accumulation.steps = 16;
    right.run.epochs = 2.0;
    const std::vector<SpecDifference> expected = {{"accumulation.steps", "4", "16"}, {"run.epochs", "", "2.0"}};
    QVERIFY(diff_specs(left, right) == expected);
  }

  void hides_what_has_no_meaning() {
    RunSpec spec;
    QVERIFY(find_field("model.layers")->applies(spec));
    QVERIFY(!find_field("model.inputs")->applies(spec));
    QVERIFY(!find_field("accumulation.split_batches")->applies(spec));
    spec.model.kind = ModelKind::linear;
    spec.accumulation.dialect = Dialect::accelerate;
    QVERIFY(!find_field("model.layers")->applies(spec));
    QVERIFY(find_field("model.inputs")->applies(spec));
    QVERIFY(find_field("accumulation.split_batches")->applies(spec));
  }

  void spells_choices_as_the_format_fixes_them() {
    QVERIFY(from_name<ScheduleKind>("inverse-square-root") == ScheduleKind::inverse_square_root);
    QVERIFY(from_name<ScheduleKind>("WSD") == ScheduleKind::wsd);
    QVERIFY(from_name<DataKind>("inline") == DataKind::inline_);
    QVERIFY(from_name<BackendKind>("auto") == BackendKind::automatic);
    QVERIFY(from_name<Normalizer>("true_size") == Normalizer::true_size);
    QVERIFY(!from_name<Normalizer>("truesize"));
    QVERIFY(to_name(Dialect::colossalai) == "colossalai");
  }
};

ACCRUE_TEST_MAIN(TestSpecFields)

}  // namespace test_spec_fields
#include "test_spec_fields.moc"
