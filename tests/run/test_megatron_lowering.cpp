// SPDX-License-Identifier: Apache-2.0
// From the plug-in's fields to ordinary keys: what each sets, who wins, what stays the same when it is done again.
#include <QRegularExpression>
#include <QTest>
#include <filesystem>
#include <map>

#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/window/lr_curve.h"
#include "accrue/run/window/weight_decay.h"
#include "megatron_consumers.h"
#include "support/test_program.h"

namespace test_megatron_lowering {

using namespace accrue;

namespace {

using Variables = std::map<std::string, std::string>;

MegatronEnvironment environment_with(Variables variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

RunSpec spec_of(const QStringList& assignments) {
  RunSpec spec;
  std::vector<Finding> findings;
  for (const QString& assignment : assignments) set_field(spec, assignment.toStdString(), findings);
  for (const Finding& finding : findings) qWarning("%s", finding.text().c_str());
  return spec;
}

LoweredMegatron lower(const QStringList& assignments) {
  return lower_megatron(spec_of(assignments), empty_environment());
}

/// A source file with its headers, its own and its public one.
QString text_of(const std::filesystem::path& stem) {
  QString text;
  const std::filesystem::path engine = std::filesystem::path(ACCRUE_SOURCE_TREE) / "engine";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(engine)) {
    const std::filesystem::path folder = entry.path().parent_path();
    const bool near = folder == stem.parent_path() || folder.string().find("/include/") != std::string::npos;
    if (!near || entry.path().stem() != stem.filename()) continue;
    QFile file(QString::fromStdString(entry.path().string()));
    if (file.open(QIODevice::ReadOnly)) text += QString::fromUtf8(file.readAll());
  }
  return text;
}

QString value_of(const RunSpec& spec, const QString& key) {
  const SpecField* field = find_field(key.toStdString());
  return field == nullptr ? "no such key" : QString::fromStdString(format_value(field->get(spec)));
}

QString errors_of(const std::vector<Finding>& findings) {
  QString text;
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error) text += QString::fromStdString(finding.text()) + "\n";
  return text;
}

const MegatronEffect& effect(const LoweredMegatron& lowered, const char* name) {
  for (const MegatronEffect& candidate : lowered.fields)
    if (candidate.name == name) return candidate;
  qFatal("no field %s", name);
}

}  // namespace

class TestMegatronLowering : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// A model of one's own asks for nothing else: its spec trains as it would without [megatron], whatever the
  /// variables.
  void parts_of_ones_own_leave_other_keys_alone() {
    RunSpec spec = spec_of({"megatron.custom_model_provider_function=mine", "megatron.custom_loss_function=own"});
    const auto variables = environment_with({{"MEGATRON_LM_GRADIENT_CLIPPING", "0.5"}, {"MEGATRON_LM_TP_DEGREE", "2"}});
    const LoweredMegatron lowered = lower_megatron(spec, variables);
    QCOMPARE(errors_of(lowered.findings), QString());
    QVERIFY(lowered.spec == spec);
    for (const char* key : {"accumulation.steps", "schedule.kind", "optimizer.clip_norm", "evaluate.batches"})
      QVERIFY2(lowered.setter_of(key) == nullptr, key);
    // With any other field it is the plug-in of Megatron-LM.
    spec.megatron.num_micro_batches = 4;
    QVERIFY(lower_megatron(spec, empty_environment()).spec.optimizer.clip_norm == 1.0);
  }

  void a_spec_without_the_plugin_is_left_alone() {
    const RunSpec spec = spec_of({"parallel.data=2"});
    const LoweredMegatron lowered = lower_megatron(spec, environment_with({{"MEGATRON_LM_TP_DEGREE", "4"}}));
    QCOMPARE(write_spec(lowered.spec), write_spec(spec));
    QVERIFY(lowered.fields.empty());
    QVERIFY(lowered.findings.empty());
  }

  void an_empty_section_is_the_plug_in() {
    const SpecReading reading = parse_spec("accrue = 1\n[megatron]\n# all of it by default\n", "s.accrue");
    QCOMPARE(errors_of(reading.findings), QString());
    const LoweredMegatron lowered = lower_megatron(reading.spec, empty_environment());
    QCOMPARE(value_of(lowered.spec, "optimizer.clip_norm"), QString("1.0"));
    QCOMPARE(value_of(lowered.spec, "schedule.kind"), QString("\"linear\""));
    QVERIFY(has_megatron(parse_spec(write_spec(reading.spec), "s.accrue").spec));
    QVERIFY(!has_megatron(parse_spec("accrue = 1\n", "s.accrue").spec));
  }

  // 2 replicas x micro-batch 4 x 8 micro-steps = 64 samples an update.
  void fields_set_keys_data() {
    QTest::addColumn<QStringList>("set");
    QTest::addColumn<QString>("key");
    QTest::addColumn<QString>("value");
    const auto row = [](QStringList set, const char* key, const char* value) {
      QTest::newRow(qPrintable(set.last() + " " + key)) << set << key << value;
    };
    row({"megatron.tp_degree=2"}, "parallel.tensor", "2");
    row({"megatron.pp_degree=2"}, "parallel.pipeline", "2");
    row({"megatron.num_micro_batches=8"}, "accumulation.steps", "8");
    row({"megatron.tp_degree=2"}, "accumulation.steps", "1");
    row({"megatron.gradient_clipping=0.5"}, "optimizer.clip_norm", "0.5");
    row({"megatron.tp_degree=2"}, "optimizer.clip_norm", "1.0");
    row({"megatron.tp_degree=2", "megatron.sequence_parallelism=true"}, "parallel.sequence", "true");
    row({"megatron.recompute_activations=true"}, "parallel.recompute", "\"selective\"");
    row({"megatron.use_distributed_optimizer=true"}, "parallel.zero", "1");
    row({"megatron.pp_degree=2", "megatron.num_micro_batches=2", "megatron.num_layers_per_virtual_pipeline_stage=1"},
        "parallel.virtual_pipeline", "2");
    row({"megatron.train_iters=50"}, "run.updates", "50");
    row({"megatron.train_samples=640"}, "run.samples", "640");
    row({"megatron.train_samples=640"}, "schedule.total", "");
    // 30 samples are seven whole updates of 4; the rate falls over all 30.
    row({"accumulation.micro_batch=4", "megatron.train_samples=30"}, "run.updates", "7");
    row({"accumulation.micro_batch=4", "megatron.train_samples=30"}, "run.samples", "");
    row({"accumulation.micro_batch=4", "megatron.train_samples=30"}, "schedule.total", "30");
    row({"accumulation.micro_batch=4", "megatron.train_samples=30", "megatron.lr_decay_samples=40"}, "schedule.total",
        "40");
    row({"accumulation.micro_batch=4", "megatron.lr_decay_style=constant", "megatron.train_samples=30"},
        "schedule.total", "");
    row({"megatron.weight_decay_incr_style=linear", "megatron.start_weight_decay=0.01",
         "megatron.end_weight_decay=0.1"},
        "optimizer.weight_decay_style", "\"linear\"");
    row({"megatron.weight_decay_incr_style=linear", "megatron.start_weight_decay=0.01",
         "megatron.end_weight_decay=0.1"},
        "optimizer.end_weight_decay", "0.1");
    row({"megatron.tensorboard_dir=logs", "megatron.set_all_logging_options=true"}, "run.parameter_norm", "true");
    row({"megatron.tensorboard_dir=logs", "megatron.set_all_logging_options=true"}, "run.gradient_zeros", "true");
    row({"megatron.tensorboard_dir=logs"}, "run.parameter_norm", "false");
    row({"megatron.other_megatron_args=[\"log_params_norm = true\"]"}, "run.parameter_norm", "true");
    row({"megatron.other_megatron_args=[\"log_num_zeros_in_grad = true\"]"}, "run.gradient_zeros", "true");
    row({"megatron.other_megatron_args=[\"timing_log_level = 1\"]"}, "run.timer_level", "1");
    row({"megatron.lr_decay_style=cosine"}, "schedule.kind", "\"cosine\"");
    row({"megatron.lr_decay_style=cosine"}, "schedule.clock", "\"samples\"");
    row({"megatron.tp_degree=2"}, "schedule.kind", "\"linear\"");
    row({"parallel.data=2", "megatron.num_micro_batches=8", "megatron.lr_decay_iters=100"}, "schedule.total", "6400");
    row({"megatron.lr_decay_samples=999"}, "schedule.total", "999");
    row({"parallel.data=2", "megatron.num_micro_batches=8", "megatron.lr_warmup_iters=10"}, "schedule.warmup", "640");
    row({"megatron.lr_warmup_samples=70"}, "schedule.warmup", "70");
    row({"megatron.lr_warmup_fraction=0.25"}, "schedule.warmup_fraction", "0.25");
    row({"megatron.min_lr=1e-5"}, "schedule.min_lr", "1e-5");
    row({"megatron.no_wd_decay_cond=[\"*.bias\"]"}, "optimizer.no_decay", "[\"*.bias\"]");
    row({"megatron.lr_mult=0.5", "megatron.scale_lr_cond=[\"head*\"]"}, "optimizer.scaled_lr", "[\"head*\"]");
    row({"megatron.scale_lr_cond=[\"head*\"]", "megatron.lr_mult=0.5"}, "optimizer.lr_mult", "0.5");
    row({"optimizer.scaled_lr=[\"head*\"]", "megatron.lr_mult=0.5"}, "optimizer.lr_mult", "0.5");
    row({"megatron.lr_mult=0.5"}, "optimizer.lr_mult", "1.0");
    row({"megatron.seq_length=64"}, "model.context", "64");
    row({"megatron.decoder_seq_length=64"}, "model.context", "64");
    row({"model.kind=bert", "megatron.encoder_seq_length=64"}, "model.context", "64");
    row({"model.kind=t5", "megatron.encoder_seq_length=64"}, "model.context", "64");
    row({"model.kind=t5", "megatron.pp_degree=4", "megatron.pipeline_model_parallel_split_rank=1"},
        "parallel.split_stage", "1");
    row({"megatron.consumed_samples=[8]"}, "data.consumed_samples", "[8, 0, 0]");
    row({"megatron.eval_iters=5"}, "evaluate.batches", "5");
    row({"megatron.eval_interval=20"}, "evaluate.every_updates", "20");
    row({"data.validation_fraction=0.1", "megatron.tp_degree=2"}, "evaluate.every_updates", "1000");
    row({"megatron.tp_degree=2"}, "evaluate.every_updates", "0");
    row({"megatron.eval_iters=0", "megatron.eval_interval=5"}, "evaluate.every_updates", "0");
    const auto argument = [&](const char* argument, const char* key, const char* value, QStringList before = {}) {
      row(before << QString("megatron.other_megatron_args=[\"%1\"]").arg(argument), key, value);
    };
    argument("micro_batch_size = 2", "accumulation.micro_batch", "2");
    argument("global_batch_size = 64", "accumulation.steps", "8", {"parallel.data=2"});
    argument("hidden_dropout = 0.1", "model.dropout", "0.1");
    argument("num_layers = 6", "model.layers", "6");
    argument("optimizer = adam", "optimizer.kind", "\"adamw\"");
    argument("lr = 1", "optimizer.lr", "1.0");
    argument("bf16 = True", "model.dtype", "\"bfloat16\"");
    argument("fp16 = true", "model.dtype", "\"float16\"");
    argument("fp16 = true", "optimizer.loss_scale", "4294967296.0");
    argument("fp16 = true", "optimizer.min_loss_scale", "1.0");
    argument("fp16 = true", "optimizer.loss_scale_window", "1000");
    argument("fp16 = true", "optimizer.loss_scale_hysteresis", "2");
    row({"model.dtype=float16", "megatron.tp_degree=2"}, "optimizer.loss_scale", "4294967296.0");
    argument("bf16 = true", "optimizer.loss_scale", "");
    argument("bf16 = true", "optimizer.loss_scale_window", "2000");
    const QStringList half{"model.dtype=float16"};
    argument("initial_loss_scale = 1024", "optimizer.loss_scale", "1024.0", half);
    argument("loss_scale = 1024", "optimizer.loss_scale", "1024.0", half);
    argument("loss_scale = 1024", "optimizer.min_loss_scale", "1024.0", half);
    argument("loss_scale = 1024", "optimizer.loss_scale_window", "1000000000", half);
    argument("loss_scale = 1024", "accumulation.overflow", "\"hold\"", half);
    argument("loss_scale = 1024", "accumulation.overflow", "\"advance\"",
             half + QStringList("accumulation.overflow=advance"));
    argument("initial_loss_scale = 1024", "optimizer.loss_scale_hysteresis", "2", half);
    argument("hysteresis = 1", "optimizer.loss_scale_hysteresis", "1", half);
    argument("loss_scale_window = 2000", "optimizer.loss_scale_window", "2000", half);
    argument("fp16 = on", "optimizer.min_loss_scale", "0.5", {"optimizer.min_loss_scale=0.5"});
    argument("fp16 = on", "optimizer.loss_scale", "8.0", {"optimizer.loss_scale=8"});
    argument("fp16 = on", "optimizer.loss_scale_window", "2000", {"optimizer.loss_scale=0"});
    argument("recompute_granularity = full", "parallel.recompute", "\"full\"");
    argument("lr_wsd_decay_style = minus_sqrt", "schedule.decay_tail", "\"minus-square-root\"");
    row({"megatron.lr_decay_style=WSD"}, "schedule.decay_tail", "\"exponential\"");
    argument("lr_wsd_decay_style = linear", "schedule.decay_tail", "\"linear\"");
    argument("lr_wsd_decay_iters = 25", "schedule.decay_fraction", "0.25",
             {"megatron.lr_decay_style=WSD", "megatron.train_iters=100"});
    argument("dataloader_type = cyclic", "data.sampler", "\"cyclic\"");
    argument("data_sharding = false", "data.sharding", "false");
    argument("train_data_path = a", "data.paths", "[\"a\"]");
    argument("train_data_path = 1 a 2 b", "data.weights", "[1, 2]");
    argument("train_data_path = a b", "data.paths", "[\"a\", \"b\"]");
    argument("train_data_path = a b c", "data.paths", "[\"a\", \"b\", \"c\"]");
    argument("train_data_path = 7", "data.paths", "[\"7\"]");
    argument("train_data_path = a", "data.split", "\"1, 0, 0\"");
    row({"megatron.other_megatron_args=[\"train_data_path = a\", \"valid_data_path = b\"]"}, "data.validation_paths",
        "[\"b\"]");
    row({"megatron.other_megatron_args=[\"train_data_path = a\", \"valid_data_path = b\"]"}, "data.split",
        "\"969, 30, 1\"");
    argument("distributed_timeout_minutes = 2", "launch.collective_timeout_s", "120.0");
    argument("rampup_batch_size = 4 4 64", "accumulation.rampup", "[4, 4, 64]", {"megatron.train_samples=640"});
    // 4, 4, 8 and 12 samples while the ramp is not over, then two whole updates of 16 of the 42 that are left.
    argument("rampup_batch_size = 4 4 24", "run.updates", "6",
             {"accumulation.micro_batch=4", "megatron.num_micro_batches=4", "megatron.train_samples=70"});
    argument("seed = 7", "run.seed", "7");
    argument("calculate_per_token_loss = true", "accumulation.normalizer", "\"tokens\"");
    argument("tensor_model_parallel_size = 2", "parallel.tensor", "2", {"megatron.tp_degree=4"});
    // Of what set_all_logging_options adds an argument may take one away, as in an Accelerator.
    const QStringList all{"megatron.tensorboard_dir=logs", "megatron.set_all_logging_options=true"};
    argument("log_num_zeros_in_grad = false", "run.gradient_zeros", "false", all);
    argument("log_num_zeros_in_grad = false", "run.parameter_norm", "true", all);
    argument("log_params_norm = false", "run.parameter_norm", "false", all);
  }
  void fields_set_keys() {
    QFETCH(QStringList, set);
    QFETCH(QString, key);
    QFETCH(QString, value);
    const LoweredMegatron lowered = lower(set);
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(value_of(lowered.spec, key), value);
  }

  // Lowering a lowered spec again changes nothing, even in a different environment.
  void lowering_twice_is_lowering_once_data() { fields_set_keys_data(); }
  void lowering_twice_is_lowering_once() {
    QFETCH(QStringList, set);
    const LoweredMegatron once = lower(set);
    const LoweredMegatron twice =
        lower_megatron(once.spec, environment_with({{"MEGATRON_LM_TP_DEGREE", "3"},
                                                    {"MEGATRON_LM_NUM_MICRO_BATCHES", "5"},
                                                    {"MEGATRON_LM_GRADIENT_CLIPPING", "7"},
                                                    {"MEGATRON_LM_PP_DEGREE", "9"},
                                                    {"MEGATRON_LM_USE_DISTRIBUTED_OPTIMIZER", "true"}}));
    QCOMPARE(errors_of(twice.findings), QString());
    QCOMPARE(QString::fromStdString(write_spec(twice.spec)), QString::fromStdString(write_spec(once.spec)));
    // Read from its own text, and without the keys that follow, it is the same, too.
    const SpecReading read = parse_spec(write_spec(once.spec), "written");
    QVERIFY(read.ok());
    QVERIFY(read.spec == once.spec);
    const LoweredMegatron bare = lower_megatron(without_lowered(once.spec), empty_environment());
    QCOMPARE(QString::fromStdString(write_spec(bare.spec)), QString::fromStdString(write_spec(once.spec)));
  }

  void a_field_of_a_lowered_spec_can_be_changed() {
    RunSpec spec = without_lowered(lower({"megatron.tp_degree=2"}).spec);
    spec.megatron.tp_degree = 4;
    const LoweredMegatron lowered = lower_megatron(spec, empty_environment());
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(lowered.spec.parallel.tensor, std::int64_t{4});
  }

  void variables_act_and_are_kept() {
    const RunSpec spec = spec_of({"megatron.min_lr=1e-5"});
    const LoweredMegatron lowered = lower_megatron(spec, environment_with({{"MEGATRON_LM_TP_DEGREE", "2"}}));
    QCOMPARE(lowered.spec.parallel.tensor, std::int64_t{2});
    QCOMPARE(effect(lowered, "tp_degree").value.origin, FieldOrigin::environment);
    QCOMPARE(*lowered.spec.megatron.tp_degree, std::int64_t{2});
    QCOMPARE(*lowered.spec.megatron.pp_degree, std::int64_t{1});
    QVERIFY(!lowered.spec.megatron.train_iters);
  }

  void a_key_of_another_value_is_refused_with_both_names() {
    const LoweredMegatron lowered = lower({"parallel.tensor=4", "megatron.tp_degree=2"});
    QCOMPARE(errors_of(lowered.findings),
             QString("error: parallel.tensor: is set by tp_degree of the plug-in to another value: set "
                     "megatron.tp_degree in its place (found 4, expected 2)\n"));
    QCOMPARE(*lowered.findings.front().fix_value, std::string());
    QVERIFY(errors_of(lower({"run.epochs=1", "megatron.train_iters=5"}).findings).contains("excludes train_iters"));
    QCOMPARE(errors_of(lower({"parallel.tensor=2", "megatron.tp_degree=2"}).findings), QString());
    const auto variable = lower_megatron(spec_of({"parallel.tensor=4", "megatron.min_lr=0.0"}),
                                         environment_with({{"MEGATRON_LM_TP_DEGREE", "2"}}));
    QVERIFY(errors_of(variable.findings).contains("MEGATRON_LM_TP_DEGREE"));
    QVERIFY(errors_of(variable.findings).contains("set megatron.tp_degree in its place"));
    QVERIFY(errors_of(lower({"model.dropout=0.5", "megatron.other_megatron_args=[\"hidden_dropout=0.1\"]"}).findings)
                .contains("set megatron.other_megatron_args in its place"));
  }

  void a_constant_loss_scale_excludes_what_moves_one() {
    const auto found =
        lower({"model.dtype=float16", "megatron.other_megatron_args=[\"loss_scale = 8\", \"initial_loss_scale = 16\"]"})
            .findings;
    QCOMPARE(errors_of(found), QString("error: megatron.other_megatron_args: loss_scale is a constant scale, for which "
                                       "initial_loss_scale has no use (found both, expected one of the two)\n"));
  }

  void a_default_gives_way_to_a_key() {
    const LoweredMegatron lowered = lower({"optimizer.clip_norm=0.25", "schedule.kind=cosine", "parallel.zero=1",
                                           "parallel.recompute=full", "megatron.tp_degree=2"});
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(lowered.spec.optimizer.clip_norm, 0.25);
    QCOMPARE(value_of(lowered.spec, "schedule.kind"), QString("\"cosine\""));
    QCOMPARE(lowered.spec.parallel.zero, std::int64_t{1});
    QCOMPARE(value_of(lowered.spec, "parallel.recompute"), QString("\"full\""));
    QVERIFY(QString::fromStdString(effect(lowered, "gradient_clipping").nothing).contains("gives way"));
    QCOMPARE(QString::fromStdString(format_value(effect(lowered, "gradient_clipping").value.value)), QString("0.25"));
    QCOMPARE(effect(lowered, "gradient_clipping").value.from, std::string("optimizer.clip_norm"));
    QCOMPARE(*lowered.spec.megatron.use_distributed_optimizer, true);
    QVERIFY(lowered.setter_of("optimizer.clip_norm") == nullptr);
  }

  void a_key_that_a_text_sets_to_its_default_is_kept() {
    SpecReading reading = parse_spec("accrue = 1\n[optimizer]\nclip_norm = 0.0\n[megatron]\ntp_degree = 2\n", "x");
    QVERIFY(reading.ok());
    keep_set_keys(reading);
    QCOMPARE(lower_megatron(reading.spec, empty_environment()).spec.optimizer.clip_norm, 0.0);
    SpecReading silent = parse_spec("accrue = 1\n[megatron]\ntp_degree = 2\n", "x");
    keep_set_keys(silent);
    QCOMPARE(lower_megatron(silent.spec, empty_environment()).spec.optimizer.clip_norm, 1.0);
  }

  // Reads like a program: the text of a spec, and --set.
  static SpecReading read(const char* text, const std::vector<std::string>& sets = {}) {
    SpecReading reading = parse_spec(text, "x");
    apply_sets(reading, sets, empty_environment());
    return reading;
  }

  void a_recorded_spec_comes_to_the_same_data() { fields_set_keys_data(); }
  void a_recorded_spec_comes_to_the_same() {
    QFETCH(QStringList, set);
    const LoweredMegatron once = lower(set);
    const SpecReading again = read(write_spec(once.spec).c_str());
    QCOMPARE(errors_of(again.findings), QString());
    QCOMPARE(QString::fromStdString(write_spec(lower_megatron(again.spec, empty_environment()).spec)),
             QString::fromStdString(write_spec(once.spec)));
  }

  void the_loss_scale_of_a_float16_is_a_default_of_the_plug_in() {
    const auto row_of = [](const LoweredMegatron& lowered, const char* name) {
      const auto found = std::ranges::find(lowered.arguments, name, &MegatronEffect::name);
      return found == lowered.arguments.end() ? MegatronEffect() : *found;
    };
    const LoweredMegatron lowered = lower({"model.dtype=float16", "optimizer.loss_scale_window=500",
                                           "megatron.other_megatron_args=[\"min_loss_scale = 2\"]"});
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(row_of(lowered, "initial_loss_scale").value.origin, FieldOrigin::fallback);
    QCOMPARE(row_of(lowered, "initial_loss_scale").consumers, std::string("engine/train/training"));
    QCOMPARE(row_of(lowered, "min_loss_scale").value.origin, FieldOrigin::other_megatron_args);
    QVERIFY(row_of(lowered, "loss_scale_window").nothing.ends_with("the default gives way"));
    QCOMPARE(value_of(lowered.spec, "optimizer.loss_scale_window"), QString("500"));
    const QString text = QString::fromStdString(megatron_report(lowered));
    QVERIFY2(text.contains(QRegularExpression("  hysteresis +2 +default\n")), qPrintable(text));
    QVERIFY(text.contains("optimizer.loss_scale_hysteresis = 2 (engine/train/training)"));
    QVERIFY(lower({"megatron.tp_degree=2"}).arguments.empty());
  }

  // 2000 and 1 are what the two keys are without the plug-in.
  void a_loss_scale_that_a_text_sets_to_its_default_is_kept() {
    const char* text =
        "accrue = 1\n[model]\ndtype = \"float16\"\n[optimizer]\nloss_scale_window = 2000\n"
        "loss_scale_hysteresis = 1\n[megatron]\ntp_degree = 2\n";
    const SpecReading reading = read(text);
    QCOMPARE(errors_of(reading.findings), QString());
    const LoweredMegatron lowered = lower_megatron(reading.spec, empty_environment());
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(value_of(lowered.spec, "optimizer.loss_scale_window"), QString("2000"));
    QCOMPARE(value_of(lowered.spec, "optimizer.loss_scale_hysteresis"), QString("1"));
    QCOMPARE(value_of(lowered.spec, "optimizer.loss_scale"), QString("4294967296.0"));
    const SpecReading set = read(text, {"optimizer.loss_scale_window=3"});
    QCOMPARE(errors_of(set.findings), QString());
    QCOMPARE(value_of(lower_megatron(set.spec, empty_environment()).spec, "optimizer.loss_scale_window"), QString("3"));
  }

  void a_text_keeps_what_the_plug_in_gives_anyway() {
    const SpecReading reading =
        read("accrue = 1\n[schedule]\nkind = \"linear\"\n[accumulation]\nsteps = 1\n[megatron]\ntp_degree = 2\n");
    QCOMPARE(errors_of(reading.findings), QString());
    const RunSpec spec = lower_megatron(reading.spec, empty_environment()).spec;
    QCOMPARE(value_of(spec, "schedule.kind"), QString("\"linear\""));
    QCOMPARE(spec.accumulation.steps, std::int64_t{1});
  }

  void a_set_wins_over_the_text_and_a_default() {
    const char* text = "accrue = 1\n[optimizer]\nclip_norm = 0.0\n[megatron]\ntp_degree = 2\n";
    const SpecReading other = read(text, {"optimizer.clip_norm=0.5"});
    QCOMPARE(errors_of(other.findings), QString());
    QCOMPARE(lower_megatron(other.spec, empty_environment()).spec.optimizer.clip_norm, 0.5);
    const SpecReading none = read("accrue = 1\n[megatron]\ntp_degree = 2\n", {"optimizer.clip_norm=0"});
    QCOMPARE(errors_of(none.findings), QString());
    QCOMPARE(lower_megatron(none.spec, empty_environment()).spec.optimizer.clip_norm, 0.0);
    const SpecReading field = read("accrue = 1\n[optimizer]\nclip_norm = 0.0\n", {"megatron.tp_degree=2"});
    QCOMPARE(lower_megatron(field.spec, empty_environment()).spec.optimizer.clip_norm, 0.0);
    const SpecReading silent =
        read("accrue = 1\n[data]\nvalidation_fraction = 0.5\n[evaluate]\nevery_updates = 0\n[megatron]\nmin_lr = 0\n");
    QCOMPARE(errors_of(silent.findings), QString());
    QCOMPARE(lower_megatron(silent.spec, empty_environment()).spec.evaluate.every_updates, std::int64_t{0});
  }

  void a_written_default_is_no_silent_loser_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("set");
    QTest::addColumn<QString>("key");
    const auto row = [](const char* text, const char* set, const char* key) {
      QTest::newRow(key) << text << set << key;
    };
    row("accrue = 1\n[parallel]\ntensor = 1\n[megatron]\ntp_degree = 2\n", "", "parallel.tensor");
    row("accrue = 1\n[megatron]\npp_degree = 2\n", "parallel.pipeline=1", "parallel.pipeline");
    row("accrue = 1\n[schedule]\nclock = \"positions\"\n[megatron]\ntp_degree = 2\n", "", "schedule.clock");
    row("accrue = 1\n[megatron]\ngradient_clipping = 1.0\n", "optimizer.clip_norm=0", "optimizer.clip_norm");
    row("accrue = 1\n[evaluate]\nevery_updates = 0\n[megatron]\neval_interval = 5\n", "", "evaluate.every_updates");
  }
  void a_written_default_is_no_silent_loser() {
    QFETCH(QString, text);
    QFETCH(QString, set);
    QFETCH(QString, key);
    std::vector<std::string> sets;
    if (!set.isEmpty()) sets.push_back(set.toStdString());
    const QString errors = errors_of(read(text.toUtf8().constData(), sets).findings);
    QVERIFY2(errors.contains(key + ": is set by"), qPrintable(errors));
  }

  void arguments_exclude_each_other_data() {
    QTest::addColumn<QString>("arguments");
    QTest::addColumn<QString>("said");
    QTest::newRow("types") << "[\"fp16 = true\", \"bf16 = true\"]"
                           << "bf16 and fp16 exclude";
    QTest::newRow("tails") << "[\"lr_wsd_decay_iters = 2\", \"lr_wsd_decay_samples = 2\"]"
                           << "exclude each other";
    QTest::newRow("data of their own") << "[\"train_data_path = a\", \"data_path = b\"]"
                                       << "train_data_path and data_path exclude each other";
    QTest::newRow("data and a split") << "[\"train_data_path = a\", \"split = 9,1,0\"]"
                                      << "train_data_path and split exclude each other";
    QTest::newRow("a weight too few") << "[\"data_path = 1 a b c\"]"
                                      << "data_path has a path where a weight should stand";
    QTest::newRow("a weight too late") << "[\"data_path = a b 1 c\"]"
                                       << "data_path has a path where a weight should stand";
    QTest::newRow("a weight too many") << "[\"data_path = 1 a 2\"]"
                                       << "data_path ends with a weight that has no path";
    QTest::newRow("a test") << "[\"test_data_path = a\"]"
                            << "a run reads no test samples";
    QTest::newRow("workers") << "[\"num_workers = 2\"]"
                             << "has no processes that read ahead";
    QTest::newRow("no workers") << "[\"num_workers = 0\"]"
                                << "";
    QTest::newRow("a vocabulary") << "[\"vocab_file = vocab.json\"]"
                                  << "says what made its tokens";
    QTest::newRow("merges") << "[\"merge_file = merges.txt\"]"
                            << "says what made its tokens";
    QTest::newRow("mock data") << "[\"mock_data = true\"]"
                               << "data.kind = synthetic";
    QTest::newRow("unmapped") << "[\"mmap_bin_files = false\"]"
                              << "always mapped";
    QTest::newRow("a loader of one's own") << "[\"dataloader_type = external\"]"
                                           << "given to its own loop";
    QTest::newRow("softmax") << "[\"attention_softmax_in_fp32 = false\"]"
                             << "in float32, whatever half type";
    QTest::newRow("softmax in float32") << "[\"attention_softmax_in_fp32 = true\"]"
                                        << "";
    QTest::newRow("inner layer") << "[\"ffn_hidden_size = 100\", \"hidden_size = 32\"]"
                                 << "expected 128";
    QTest::newRow("inner layer first") << "[\"ffn_hidden_size = 128\", \"hidden_size = 32\"]"
                                       << "";
  }
  void arguments_exclude_each_other() {
    QFETCH(QString, arguments);
    QFETCH(QString, said);
    const QString errors = errors_of(lower({"megatron.other_megatron_args=" + arguments}).findings);
    QVERIFY2(said.isEmpty() ? errors.isEmpty() : errors.contains(said), qPrintable(errors));
  }

  void evaluation_data_have_weights_of_their_own() {
    const LoweredMegatron lowered =
        lower({"data.kind=indexed", "megatron.other_megatron_args=[\"valid_data_path = 0.3 a 0.7 b\"]"});
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(lowered.spec.data.validation_paths, (std::vector<std::string>{"a", "b"}));
    QCOMPARE(lowered.spec.data.validation_weights, (std::vector<double>{0.3, 0.7}));
  }

  void every_field_says_what_became_of_it() {
    const LoweredMegatron lowered = lower({"megatron.tp_degree=2", "megatron.return_logits=true"});
    QCOMPARE(lowered.fields.size(), std::size_t{43});
    for (const MegatronEffect& field : lowered.fields) {
      QVERIFY2(!field.nothing.empty() || !field.consumers.empty(), field.name.c_str());
      for (const LoweredKey& key : field.keys) QVERIFY2(!megatron_detail::consumer_of(key.key).empty(), key.key.data());
    }
    QCOMPARE(effect(lowered, "tp_degree").consumers, std::string("engine/parallel/tensor_layers"));
    QVERIFY(effect(lowered, "tp_degree").nothing.empty());
    QCOMPARE(effect(lowered, "pp_degree").nothing, std::string("parallel.pipeline is 1 without it"));
    QVERIFY(!effect(lowered, "return_logits").nothing.empty());
    QVERIFY(effect(lowered, "is_train_batch_min").nothing.find("accumulation.micro_batch") != std::string::npos);
    QVERIFY(!effect(lowered, "sequence_parallelism").nothing.empty());
    const LoweredKey* setter = lowered.setter_of("parallel.tensor");
    QVERIFY(setter != nullptr);
    QCOMPARE(setter->by, std::string("tp_degree"));
  }

  void consumers_are_files_of_this_tree_that_mention_their_key() {
    for (const megatron_detail::Consumer& consumer : megatron_detail::consumers()) {
      const QString text = text_of(std::filesystem::path(ACCRUE_SOURCE_TREE) / consumer.file);
      QVERIFY2(!text.isEmpty(), consumer.file.data());
      const std::string key(consumer.keys);
      const auto name = QString::fromStdString(key.substr(key.find('.') + 1));
      if (name.isEmpty()) continue;  // a section
      QVERIFY2(QRegularExpression("\\b" + name + "\\b").match(text).hasMatch(), key.c_str());
    }
  }

  /// Without the field the default of the plug-in would hold, not that of the spec.
  void a_field_that_holds_off_its_default_changes_something() {
    const LoweredMegatron lowered =
        lower({"megatron.num_micro_batches=4", "megatron.gradient_clipping=0", "megatron.pp_degree=1"});
    for (const char* name : {"num_micro_batches", "gradient_clipping"})
      QVERIFY2(effect(lowered, name).nothing.empty(), effect(lowered, name).nothing.c_str());
    QCOMPARE(effect(lowered, "pp_degree").nothing, std::string("parallel.pipeline is 1 without it"));
  }

  void what_the_checks_say_stands_beside_the_field() {
    LoweredMegatron lowered = lower({"megatron.use_distributed_optimizer=true"});
    const auto found = [](std::string key, Severity severity, std::string message) {
      return Finding{.severity = severity, .key = std::move(key), .message = std::move(message)};
    };
    remark_effects(lowered, {found("megatron.use_distributed_optimizer", Severity::warning, "shards over one replica"),
                             found("megatron.use_distributed_optimizer", Severity::note, "and more"),
                             found("megatron.pp_degree", Severity::note, "changes nothing as it is"),
                             found("megatron.use_distributed_optimizer", Severity::error, "is refused elsewhere")});
    const QString text = QString::fromStdString(megatron_report(lowered));
    QVERIFY2(text.contains("shards over one replica; and more\n"), qPrintable(text));
    QVERIFY(!text.contains("as it is") && !text.contains("elsewhere"));
    QVERIFY(
        QString::fromStdString(megatron_json(lowered)).contains("\"remark\": \"shards over one replica; and more\""));
  }

  void reports_hold_every_field() {
    const LoweredMegatron lowered = lower({"megatron.tp_degree=2", "megatron.other_megatron_args=[\"seed = 3\"]"});
    const QString text = QString::fromStdString(megatron_report(lowered));
    const QString json = QString::fromStdString(megatron_json(lowered));
    const QString reference = QString::fromStdString(megatron_reference());
    for (const MegatronField& field : megatron_fields()) {
      const QString name = QString::fromUtf8(field.name.data(), static_cast<qsizetype>(field.name.size()));
      if (name != "other_megatron_args") QVERIFY2(text.contains("  " + name + " "), qPrintable(name));
      QVERIFY2(json.contains("\"name\": \"" + name + "\""), qPrintable(name));
      QVERIFY2(reference.contains("\n" + name + " ("), qPrintable(name));
    }
    QVERIFY(text.contains("parallel.tensor = 2 (engine/parallel/tensor_layers)"));
    QVERIFY(text.contains("run.seed = 3"));
    QVERIFY(QString::fromStdString(megatron_report(lower({}))).contains("no [megatron]"));
    const auto board = [](const QString& dir) {
      return QString::fromStdString(megatron_report(lower({"megatron.tensorboard_dir=" + dir})));
    };
    QVERIFY(board("board").contains("run.tensorboard_dir = \"board\", in the run folder ("));
    QVERIFY(!board("/board").contains("in the run folder"));
  }

  void whose_schedule_a_load_takes_is_said_of_a_run() {
    const LoweredMegatron lowered = lower({"megatron.other_megatron_args=[\"override_opt_param_scheduler = true\"]"});
    QCOMPARE(errors_of(lowered.findings), QString());
    QCOMPARE(lowered.arguments.size(), std::size_t{1});
    QVERIFY(lowered.arguments.front().nothing.ends_with("a branch names each key that it changes"));
    QVERIFY(megatron_reference().find("use_checkpoint_opt_param_scheduler (bool): load_state()") != std::string::npos);
    const LoweredMegatron both =
        lower({"megatron.other_megatron_args=[\"override_opt_param_scheduler = true\", "
               "\"use_checkpoint_opt_param_scheduler = true\"]"});
    QVERIFY(errors_of(both.findings).contains("exclude each other"));
  }

  void lengths_beyond_every_number_are_refused() {
    const LoweredMegatron lowered = lower({"accumulation.micro_batch=1000000", "parallel.data=1024",
                                           "megatron.num_micro_batches=1000000", "megatron.lr_decay_iters=100000000"});
    QVERIFY(errors_of(lowered.findings).contains("lr_decay_iters gives schedule.total"));
  }

  // The gate of every run: the plan holds ordinary keys, and what is wrong with them is said of the field.
  // Megatron-LM: train_iters = train_samples / batch, rounded down; rate and weight decay count to train_samples.
  void samples_that_fill_no_update_are_left_out_and_the_rate_counts_them() {
    const Preflight checked =
        preflight_files(spec_of({"model.kind=linear", "optimizer.lr=1e-3", "accumulation.micro_batch=4",
                                 "megatron.train_samples=30", "megatron.weight_decay_incr_style=linear",
                                 "megatron.start_weight_decay=0", "megatron.end_weight_decay=0.3"}),
                        local_facts(), ".");
    QCOMPARE(errors_of(checked.findings), QString());
    const RunPlan& plan = *checked.plan;
    QCOMPARE(plan.totals.updates, std::int64_t{7});
    QCOMPARE(plan.curve.total, std::int64_t{30});
    QCOMPARE(lr_at(plan.curve, 4), 1e-3 * (1.0 - 4.0 / 30.0));
    QCOMPARE(weight_decay_at(plan.weight_decay, 10), 0.1);
    for (const Finding& finding : checked.findings) QVERIFY2(finding.key != "schedule.total", finding.text().c_str());
  }

  void preflight_plans_what_the_fields_say() {
    const RunSpec spec = spec_of({"megatron.tp_degree=2", "megatron.num_micro_batches=8", "megatron.train_iters=5"});
    HostFacts host;
    host.cores = 4;
    host.memory_bytes = std::int64_t{64} << 30;
    host.backends = {"shm"};
    const Preflight checked = preflight_files(spec, host, ".");
    QCOMPARE(errors_of(checked.findings), QString());
    QVERIFY(checked.plan.has_value());
    QCOMPARE(checked.plan->grid.world(), std::int64_t{2});
    QCOMPARE(checked.plan->totals.updates, std::int64_t{5});
    QCOMPARE(checked.plan->global_batch, std::int64_t{32});
    QCOMPARE(checked.plan->curve.total, std::int64_t{160});
    host.variables = {{"MEGATRON_LM_PP_DEGREE", "2"}};
    QCOMPARE(preflight_files(spec, host, ".").plan->grid.world(), std::int64_t{4});
    const Preflight refused =
        preflight_files(spec_of({"model.heads=3", "model.width=129", "megatron.tp_degree=2"}), host, ".");
    QVERIFY(!refused.plan);
    QVERIFY2(errors_of(refused.findings).contains("megatron.tp_degree: must divide the attention heads"),
             qPrintable(errors_of(refused.findings)));
    QVERIFY(!errors_of(refused.findings).contains("parallel.tensor"));
  }
};

ACCRUE_TEST_MAIN(TestMegatronLowering)

}  // namespace test_megatron_lowering
#include "test_megatron_lowering.moc"
