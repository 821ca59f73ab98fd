// SPDX-License-Identifier: Apache-2.0
// A spec as code for other tools: what each text says of an update, what could not be carried over, and what is
// refused. That the scripts train to the losses of a run is check_code_export.py's to show.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <fstream>
#include <set>

#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/export/code_export.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_arguments.h"
#include "accrue/run/preflight/preflight.h"
#include "support/test_program.h"

namespace test_code_export {

using namespace accrue;

namespace {

constexpr CodeTarget scripts[] = {CodeTarget::accelerate, CodeTarget::lightning, CodeTarget::pytorch};

RunSpec small_gpt() {
  RunSpec spec;
  spec.model.layers = 2;
  spec.model.width = 32;
  spec.model.context = 16;
  spec.model.vocabulary = 40;
  spec.data.samples = 80;
  spec.accumulation.steps = 5;
  spec.accumulation.micro_batch = 4;
  spec.parallel.data = 2;
  spec.run.updates = 20;
  return spec;
}

RunPlan plan_of(const RunSpec& spec) {
  HostFacts host;
  host.cores = 16;
  const Preflight checked = preflight_files(spec, host, "/data");
  if (!checked.plan) qFatal("%s", checked.findings.empty() ? "no plan" : checked.findings.front().text().c_str());
  return *checked.plan;
}

CodeExport code_of(const RunSpec& spec, CodeTarget target) {
  const auto code = export_code(plan_of(spec), target);
  if (!code) qFatal("%s", code.error().text().c_str());
  return *code;
}

Error refusal_of(const RunSpec& spec, CodeTarget target) {
  const auto code = export_code(plan_of(spec), target);
  return code ? Error{} : code.error();
}

bool names(const CodeExport& code, const std::string& key) {
  return std::ranges::any_of(code.not_carried, [&](const NotCarried& each) { return each.key == key; });
}

/// The number that a script gives a constant.
int constant(const CodeExport& code, const char* name) {
  const QRegularExpression line(QStringLiteral("^%1 = (\\d+)").arg(QLatin1String(name)),
                                QRegularExpression::MultilineOption);
  const auto match = line.match(QString::fromStdString(code.text));
  return match.hasMatch() ? match.captured(1).toInt() : -1;
}

QJsonObject object_of(const std::string& text) {
  return QJsonDocument::fromJson(QByteArray::fromStdString(text)).object();
}

/// The options of the shell script, without their dashes.
QMap<QString, QString> options_of(const CodeExport& code) {
  QMap<QString, QString> options;
  const QRegularExpression line(QStringLiteral("^  --([a-z0-9-]+)(?: (.*?))?(?: \\\\)?$"),
                                QRegularExpression::MultilineOption);
  auto matches = line.globalMatch(QString::fromStdString(code.text));
  while (matches.hasNext()) {
    const auto match = matches.next();
    options.insert(match.captured(1), match.captured(2));
  }
  return options;
}

}  // namespace

class TestCodeExport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// 4 samples x 5 micro-steps x 2 processes = 40 samples an update, in the words of each tool.
  void every_target_keeps_the_samples_of_an_update() {
    for (const CodeTarget target : scripts) {
      const CodeExport code = code_of(small_gpt(), target);
      QCOMPARE(constant(code, "MICRO_BATCH") * constant(code, "N") * constant(code, "RANKS"), 40);
      QCOMPARE(code.file_name, "train.py");
    }
    const QJsonObject deepspeed = object_of(code_of(small_gpt(), CodeTarget::deepspeed).text);
    QCOMPARE(deepspeed["train_batch_size"].toInt(), 40);
    QCOMPARE(deepspeed["train_micro_batch_size_per_gpu"].toInt(), 4);
    QCOMPARE(deepspeed["gradient_accumulation_steps"].toInt(), 5);
    QCOMPARE(deepspeed["accrue"].toObject()["processes"].toInt(), 2);
    const auto megatron = options_of(code_of(small_gpt(), CodeTarget::megatron));
    QCOMPARE(megatron["global-batch-size"], "40");
    QCOMPARE(megatron["micro-batch-size"], "4");
    QCOMPARE(megatron["train-iters"], "20");
  }

  /// The words for a device, which no spec of check_script_templates.py can request on a machine without one.
  void a_run_on_a_device_is_a_script_for_a_device() {
    HostFacts host;
    host.cores = 16;
    host.cuda_devices.resize(2);
    RunSpec spec = small_gpt();
    spec.launch.device = DeviceKind::cuda;
    const Preflight checked = preflight_files(spec, host, "/data");
    QVERIFY(checked.plan);
    const auto has = [&](CodeTarget target, const char* words) {
      return export_code(*checked.plan, target).value().text.find(words) != std::string::npos;
    };
    QVERIFY(has(CodeTarget::pytorch, "torch.device(\"cuda\", int(os.environ.get(\"LOCAL_RANK\", \"0\")))\n"));
    QVERIFY(has(CodeTarget::pytorch, "init_process_group(\"nccl\")\n"));
    QVERIFY(!has(CodeTarget::pytorch, "gloo\""));
    QVERIFY(has(CodeTarget::accelerate, "Accelerator(gradient_accumulation_steps=N)\n"));
    QVERIFY(has(CodeTarget::lightning, "accelerator=\"gpu\""));
  }

  /// 80 samples: 10 batches of 4 on 2 processes; N = 4 leaves two at an epoch's end.
  void a_tail_is_flushed_carried_or_dropped_as_the_dialect_has_it() {
    RunSpec spec = small_gpt();
    spec.accumulation.steps = 4;
    QVERIFY(code_of(spec, CodeTarget::pytorch).text.find("or batch + 1 == BATCHES") != std::string::npos);
    QCOMPARE(constant(code_of(spec, CodeTarget::pytorch), "BATCHES"), 10);
    spec.accumulation.dialect = Dialect::llm;
    QVERIFY(code_of(spec, CodeTarget::pytorch).text.find("batch + 1 == BATCHES") == std::string::npos);
    spec.accumulation.dialect = Dialect::colossalai;
    QCOMPARE(constant(code_of(spec, CodeTarget::pytorch), "BATCHES"), 8);
    spec.accumulation.dialect = Dialect::accelerate;
    QVERIFY(code_of(spec, CodeTarget::accelerate).text.find("* N) for s in") != std::string::npos);
    spec.accumulation.dialect = Dialect::mmengine;
    spec.schedule.kind = ScheduleKind::linear;
    QVERIFY(code_of(spec, CodeTarget::pytorch).text.find("(update + 1) * N") != std::string::npos);
  }

  /// For every key that is set, a target contains it, names it, or refuses the spec.
  void no_key_is_left_out_in_silence() {
    RunSpec spec = small_gpt();
    spec.parallel.zero = 1;
    spec.evaluate.every_updates = 5;
    spec.data.validation_fraction = 0.25;
    spec.run.stop_when = RunMeasure::validation_loss;
    spec.checkpoint.best = RunMeasure::validation_loss;
    spec.checkpoint.every_updates = 5;
    spec.run.tensorboard_dir = "board";
    spec.model.dropout = 0.1;
    spec.model.label_smoothing = 0.1;
    spec.optimizer.weight_decay = 0.1;
    spec.optimizer.decoupled_lr = 0.5;
    for (const CodeTarget target : scripts) {
      const CodeExport code = code_of(spec, target);
      for (const char* key :
           {"parallel.zero", "evaluate.every_updates", "checkpoint.every_updates", "run.tensorboard_dir",
            "run.stop_when", "checkpoint.best", "model.dropout", "model.label_smoothing", "optimizer.decoupled_lr"})
        QVERIFY2(names(code, key), key);
      QVERIFY(!names(code, "optimizer.weight_decay"));
      for (const NotCarried& each : code.not_carried) QVERIFY2(!each.why.empty(), each.key.c_str());
    }
    const CodeExport deepspeed = code_of(spec, CodeTarget::deepspeed);
    QVERIFY(names(deepspeed, "model.layers"));
    QVERIFY(!names(deepspeed, "parallel.zero"));
    QCOMPARE(object_of(deepspeed.text)["zero_optimization"].toObject()["stage"].toInt(), 1);
  }

  void a_tokenizer_that_megatron_does_not_get_is_named() {
    const QTemporaryDir folder;
    RunPlan plan = plan_of(small_gpt());
    plan.base_dir = folder.path().toStdString();
    plan.spec.data.kind = DataKind::indexed;
    plan.spec.data.paths = {"known", "unknown"};
    const DatasetSidecar sidecar{.tokenizer = "bpe",
                                 .files = {{"vocab.json", std::string(64, 'a')}, {"merges.txt", std::string(64, 'b')}},
                                 .special = {.vocabulary = 40}};
    QVERIFY(write_sidecar(plan.base_dir / "known", sidecar).has_value());
    const auto code = export_code(plan, CodeTarget::megatron);
    QVERIFY2(code.has_value(), code ? "" : code.error().text().c_str());
    const auto paths = std::ranges::find(code->not_carried, "data.paths", &NotCarried::key);
    QVERIFY(paths != code->not_carried.end());
    QVERIFY2(paths->why.find("bpe of vocab.json and merges.txt") != std::string::npos, paths->why.c_str());
    QVERIFY2(paths->why.find("tokens of unknown") != std::string::npos, paths->why.c_str());
    QVERIFY(code->text.find("NullTokenizer") != std::string::npos);
  }

  void megatron_is_asked_for_the_same_scalars() {
    RunSpec spec = small_gpt();
    QVERIFY(!options_of(code_of(spec, CodeTarget::megatron)).contains("log-params-norm"));
    spec.run.tensorboard_dir = "board";
    spec.run.parameter_norm = spec.run.gradient_zeros = spec.run.update_norm = true;
    spec.run.timer_level = 1;
    const CodeExport code = code_of(spec, CodeTarget::megatron);
    const auto options = options_of(code);
    for (const char* flag : {"log-params-norm", "log-num-zeros-in-grad", "log-timers-to-tensorboard"})
      QVERIFY2(options.contains(flag), flag);
    QCOMPARE(options["timing-log-level"], "1");
    QVERIFY(names(code, "run.update_norm"));
    QVERIFY(!names(code, "run.parameter_norm"));
  }

  /// A schedule that ends before the run has its length in the tool's unit, or is named.
  void the_length_of_a_schedule_is_carried_or_named() {
    RunSpec spec = small_gpt();
    spec.schedule = {.kind = ScheduleKind::linear, .warmup = 2, .total = 10};
    QCOMPARE(options_of(code_of(spec, CodeTarget::megatron))["lr-decay-iters"], "10");
    const auto scheduler = [](const CodeExport& code) { return object_of(code.text)["scheduler"].toObject(); };
    const CodeExport linear = code_of(spec, CodeTarget::deepspeed);
    QCOMPARE(scheduler(linear)["params"].toObject()["total_num_steps"].toInt(), 10);
    QVERIFY(!names(linear, "schedule.total"));
    // 40 samples are an update: 400 are ten of them, 410 are no whole number.
    spec.schedule.clock = RateClock::samples;
    spec.schedule.warmup = 80;
    spec.schedule.total = 400;
    QCOMPARE(options_of(code_of(spec, CodeTarget::megatron))["lr-decay-iters"], "10");
    QCOMPARE(options_of(code_of(spec, CodeTarget::megatron))["lr-warmup-iters"], "2");
    spec.schedule.total = 410;
    for (const CodeTarget target : {CodeTarget::deepspeed, CodeTarget::megatron}) {
      const CodeExport code = code_of(spec, target);
      QVERIFY(names(code, "schedule.total"));
      QVERIFY(names(code, "schedule.clock"));
    }
  }

  void a_schedule_that_deepspeed_lacks_is_named() {
    for (const ScheduleKind kind : {ScheduleKind::wsd, ScheduleKind::exponential, ScheduleKind::inverse_square_root}) {
      RunSpec spec = small_gpt();
      spec.schedule.kind = kind;
      spec.schedule.min_lr = 1e-5;
      if (kind == ScheduleKind::wsd) {
        spec.schedule.total = 10;
        spec.schedule.decay_fraction = 0.5;
        spec.schedule.decay_tail = DecayTail::cosine;
      }
      if (kind == ScheduleKind::exponential) spec.schedule.gamma = 0.8;
      const CodeExport code = code_of(spec, CodeTarget::deepspeed);
      const auto named = std::ranges::find(code.not_carried, "schedule.kind", &NotCarried::key);
      QVERIFY(named != code.not_carried.end());
      QVERIFY2(named->why.starts_with("DeepSpeed has no such schedule"), named->why.c_str());
      QVERIFY(names(code, "schedule.min_lr"));
      QCOMPARE(names(code, "schedule.total"), kind == ScheduleKind::wsd);
      QCOMPARE(names(code, "schedule.decay_fraction"), kind == ScheduleKind::wsd);
      QCOMPARE(names(code, "schedule.gamma"), kind == ScheduleKind::exponential);
    }
    RunSpec spec = small_gpt();
    spec.schedule.kind = ScheduleKind::cosine;
    spec.schedule.min_lr = 1e-5;
    QVERIFY(!names(code_of(spec, CodeTarget::deepspeed), "schedule.min_lr"));
  }

  /// As Megatron-LM's arguments.py and NullTokenizer have them.
  void megatron_gets_its_own_words_and_its_own_vocabulary() {
    RunSpec spec = small_gpt();
    spec.schedule = {.kind = ScheduleKind::wsd, .decay_fraction = 0.35, .decay_tail = DecayTail::minus_square_root};
    const CodeExport code = code_of(spec, CodeTarget::megatron);
    const auto options = options_of(code);
    QCOMPARE(options["lr-wsd-decay-style"], "minus_sqrt");
    QCOMPARE(options["lr-wsd-decay-iters"], "7");  // of 20
    QVERIFY(!names(code, "schedule.decay_tail") && !names(code, "schedule.decay_fraction"));
    QCOMPARE(options["tokenizer-type"], "NullTokenizer");
    QCOMPARE(options["vocab-size"], "39");  // and the end of a document
  }

  void megatron_scales_the_loss_of_a_float16_as_the_run_does() {
    RunSpec spec = small_gpt();
    spec.model.dtype = Dtype::float16;
    QCOMPARE(options_of(code_of(spec, CodeTarget::megatron))["initial-loss-scale"], "65536");
    spec.optimizer.loss_scale = 1024.0;
    QCOMPARE(options_of(code_of(spec, CodeTarget::megatron))["initial-loss-scale"], "1024");
  }

  /// The list is in the text as well.
  void what_is_not_carried_over_stands_at_the_head() {
    RunSpec spec = small_gpt();
    spec.checkpoint.every_updates = 7;
    for (const CodeTarget target : scripts) {
      const CodeExport code = code_of(spec, target);
      QVERIFY(code.text.find("#   checkpoint.every_updates = 7: ") != std::string::npos);
    }
    QVERIFY(code_of(small_gpt(), CodeTarget::pytorch).text.find("# Everything that the spec sets is carried over.") !=
            std::string::npos);
    const QJsonArray listed =
        object_of(code_of(spec, CodeTarget::deepspeed).text)["accrue"].toObject()["not_carried"].toArray();
    QVERIFY(
        std::ranges::any_of(listed, [](const QJsonValue& each) { return each["key"] == "checkpoint.every_updates"; }));
    const QJsonObject json = object_of(to_json(code_of(spec, CodeTarget::pytorch)));
    QCOMPARE(json["to"].toString(), "pytorch");
    QCOMPARE(json["not_carried"].toArray().size(), 1);
  }

  /// The same word means something else there.
  void keys_that_would_mislead_are_named() {
    RunSpec spec = small_gpt();
    spec.schedule.kind = ScheduleKind::cosine;
    spec.schedule.warmup = 5;
    spec.accumulation.steps = 4;
    for (const CodeTarget target : {CodeTarget::deepspeed, CodeTarget::megatron}) {
      const CodeExport code = code_of(spec, target);
      QVERIFY(names(code, "schedule.kind"));       // warm-up from 0
      QVERIFY(names(code, "accumulation.steps"));  // the tail
      QVERIFY(names(code, "run.seed"));
      std::set<std::string> keys;
      for (const NotCarried& each : code.not_carried) QVERIFY2(keys.insert(each.key).second, each.key.c_str());
    }
  }

  void a_spec_that_a_script_would_train_wrongly_is_refused_by_its_key() {
    const auto refused = [](const char* key, const std::function<void(RunSpec&)>& change) {
      for (const CodeTarget target : scripts) {
        RunSpec spec = small_gpt();
        change(spec);
        const Error error = refusal_of(spec, target);
        QCOMPARE(error.code, ErrorCode::config);
        QCOMPARE(error.where, key);
      }
    };
    refused("model.kind", [](RunSpec& spec) { spec.model.kind = ModelKind::bert; });
    refused("optimizer.kind", [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::lamb; });
    refused("data.validation_shuffle", [](RunSpec& spec) {
      spec.data.validation_fraction = 0.1;
      spec.data.validation_shuffle = true;
    });
    refused("teaching.bug", [](RunSpec& spec) { spec.teaching.bug = Bug::no_division; });
    refused("schedule.clock", [](RunSpec& spec) { spec.schedule.clock = RateClock::samples; });
    refused("accumulation.group_length", [](RunSpec& spec) {
      spec.accumulation.knobs.group_length = GroupLength::by_update;
      spec.accumulation.knobs.length_schedule = {{0, 2}, {10, 5}};
    });
    refused("accumulation.reduce_when", [](RunSpec& spec) { spec.accumulation.knobs.reduce_when = ReduceWhen::never; });
    refused("accumulation", [](RunSpec& spec) {
      spec.accumulation.steps = 4;
      spec.accumulation.knobs.tail = EpochTail::pad_repeat;
    });
    refused("accumulation.schedule_clock", [](RunSpec& spec) {
      spec.schedule.kind = ScheduleKind::linear;
      spec.accumulation.knobs.schedule_clock = ScheduleClock::epoch;
    });
  }

  void megatron_takes_a_gpt_with_its_layout() {
    RunSpec spec = small_gpt();
    spec.model.kind = ModelKind::mlp;
    QCOMPARE(refusal_of(spec, CodeTarget::megatron).where, "model.kind");
    spec = small_gpt();
    spec.parallel.tensor = 2;
    spec.parallel.pipeline = 2;
    spec.parallel.zero = 1;
    const auto options = options_of(code_of(spec, CodeTarget::megatron));
    QCOMPARE(options["tensor-model-parallel-size"], "2");
    QCOMPARE(options["pipeline-model-parallel-size"], "2");
    QVERIFY(options.contains("use-distributed-optimizer"));
    QVERIFY(code_of(spec, CodeTarget::megatron).text.find("--nproc-per-node 8") != std::string::npos);
  }

  /// Against the schema by which the plug-in reads Megatron-LM's arguments; what it does not hold is listed here.
  void megatrons_options_are_arguments_of_megatron() {
    const std::set<std::string> others = {"tokenizer-type", "log-interval"};
    RunSpec spec = small_gpt();
    spec.schedule.kind = ScheduleKind::wsd;
    spec.schedule.warmup = 3;
    spec.checkpoint.every_updates = 5;
    spec.evaluate.every_updates = 5;
    spec.optimizer.weight_decay = 0.1;
    spec.parallel.recompute = RecomputeKind::full;
    const auto options = options_of(code_of(spec, CodeTarget::megatron));
    QVERIFY(options.size() > 30);
    for (auto option = options.begin(); option != options.end(); ++option) {
      const std::string name = option.key().toStdString();
      QVERIFY2(others.contains(name) || find_megatron_argument("--" + name) != nullptr, name.c_str());
    }
  }

  /// "import lightning" in a file of that name finds the file.
  void a_script_may_not_have_the_name_of_what_it_imports() {
    const CodeExport code = code_of(small_gpt(), CodeTarget::lightning);
    for (const char* name : {"lightning.py", "/home/me/torch.py", "json.py"}) {
      const auto refused = check_file_name(code, name);
      QVERIFY2(!refused, name);
      QVERIFY(refused.error().text().find("Choose another name") != std::string::npos);
    }
    for (const char* name :
         {"train.py", "accelerate.py", "lightning.txt", "lightning/train.py", "my_lightning.py", "nn.py"})
      QVERIFY2(check_file_name(code, name), name);
  }

  /// Names and paths come from users; none of them may end a comment or a string.
  void text_of_a_spec_cannot_become_code() {
    RunSpec spec = small_gpt();
    spec.run.name = "a\nimport os\r\"\"\"'";
    for (const CodeTarget target : {CodeTarget::pytorch, CodeTarget::megatron}) {
      const std::string text = code_of(spec, target).text;
      QVERIFY(text.find("\nimport os\r") == std::string::npos);
      QVERIFY(text.find("# a import os \"\"\"', for") != std::string::npos);
    }
    const QTemporaryDir folder;
    spec.data.path = folder.filePath("a\"\nimport os").toStdString();
    std::ofstream(spec.data.path) << std::string(4096, 'x');
    spec.data.kind = DataKind::text;
    spec.model.vocabulary = 256;
    QVERIFY(code_of(spec, CodeTarget::pytorch).text.find("/a\\\"\\nimport os\"\n") != std::string::npos);
  }
};

ACCRUE_TEST_MAIN(TestCodeExport)

}  // namespace test_code_export
#include "test_code_export.moc"
