// SPDX-License-Identifier: Apache-2.0
// Configuration files of Accelerate. The files of tests/run/accelerate were written by accelerate 1.9.0's own
// ClusterConfig.to_yaml_file. What a file starts was seen with accelerate launch 1.15.0.
#include <QTest>
#include <random>

#include "accrue/run/fields/spec_io.h"
#include "support/fuzz_inputs.h"
#include "support/test_program.h"
#include "yaml_entries.h"

namespace test_accelerate_config {

using namespace accrue;
using namespace accrue::test;
using accrue::cli::yaml_entries;

namespace {

std::filesystem::path file_of(const QString& name) {
  return std::filesystem::path(ACCRUE_ACCELERATE_FILES) / (name.toStdString() + ".yaml");
}

AccelerateImport import_file(const QString& name) {
  const auto entries = cli::read_yaml_entries(file_of(name));
  if (!entries) qFatal("%s", entries.error().text().c_str());
  return import_accelerate(*entries).value();
}

AccelerateImport import_text(const std::string& text, const std::optional<DeepSpeedFile>& deepspeed = {}) {
  return import_accelerate(yaml_entries(text, "x").value(), deepspeed).value();
}

/// Returns the note on a key that is not imported.
std::string why_not(const AccelerateImport& import, const std::string& key) {
  for (const ConfigNote& note : import.notes)
    if (note.key == key && note.use == ConfigUse::not_taken) return note.why;
  return "taken";
}

const ConfigNote* note_of(const AccelerateImport& import, const std::string& key) {
  for (const ConfigNote& note : import.notes)
    if (note.key == key) return &note;
  return nullptr;
}

QString text_of(const QString& name) {
  QFile file(QString::fromStdString(file_of(name).string()));
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

}  // namespace

class TestAccelerateConfig : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void files_of_the_original_become_specs_data() {
    QTest::addColumn<QString>("spec");
    QTest::addColumn<QStringList>("not_taken");
    QTest::newRow("megatron")
        << "accrue = 1\n\n[model]\ndtype = \"bfloat16\"\n\n[parallel]\ndata = 2\n\n[launch]\n"
           "device = \"cuda\"\n\n[megatron]\ntp_degree = 2\npp_degree = 2\nnum_micro_batches = 2\n"
           "gradient_clipping = 1.0\nsequence_parallelism = true\nrecompute_activations = true\n"
           "use_distributed_optimizer = true\n"
        << QStringList{"[model] and [data]"};
    QTest::newRow("cpu")
        << "accrue = 1\n\n[accumulation]\ndialect = \"accelerate\"\nsteps = 1\n\n[parallel]\ndata = 2\n"
        << QStringList{"gradient_accumulation_steps", "[model] and [data]"};
    QTest::newRow("single")
        << "accrue = 1\n\n[model]\ndtype = \"float16\"\n\n[accumulation]\ndialect = \"accelerate\"\n"
           "steps = 1\n\n[launch]\ndevice = \"cuda\"\n"
        << QStringList{"gradient_accumulation_steps", "[model] and [data]"};
    QTest::newRow("deepspeed") << "accrue = 1\n\n[model]\ndtype = \"bfloat16\"\n\n[optimizer]\nclip_norm = 1.0\n\n"
                                  "[accumulation]\ndialect = \"accelerate\"\nsteps = 8\n\n[parallel]\ndata = 4\n\n"
                                  "[launch]\ndevice = \"cuda\"\n"
                               << QStringList{"deepspeed_config.offload_param_device",
                                              "deepspeed_config.zero3_init_flag", "deepspeed_config.zero_stage",
                                              "[model] and [data]"};
    QTest::newRow("fsdp")
        << "accrue = 1\n\n[accumulation]\ndialect = \"accelerate\"\nsteps = 1\n\n[parallel]\ndata = 4\n\n"
           "[launch]\ndevice = \"cuda\"\n"
        << QStringList{"distributed_type", "fsdp_config.fsdp_reshard_after_forward", "fsdp_config.fsdp_version",
                       "gradient_accumulation_steps", "[model] and [data]"};
    QTest::newRow("hosts") << "accrue = 1\n\n[accumulation]\ndialect = \"accelerate\"\nsteps = 1\n\n[parallel]\n"
                              "data = 16\n\n[launch]\ndevice = \"cuda\"\n"
                           << QStringList{"machine_rank",      "main_process_ip",
                                          "main_process_port", "mixed_precision",
                                          "num_machines",      "rdzv_backend",
                                          "same_network",      "gradient_accumulation_steps",
                                          "[model] and [data]"};
  }
  void files_of_the_original_become_specs() {
    QFETCH(QString, spec);
    QFETCH(QStringList, not_taken);
    const AccelerateImport import = import_file(QTest::currentDataTag());
    QCOMPARE(QString::fromStdString(write_spec(import.spec)), spec);
    QStringList refused;
    for (const ConfigNote& note : import.notes) {
      QVERIFY2(!note.why.empty(), note.key.c_str());
      if (note.use == ConfigUse::not_taken) refused << QString::fromStdString(note.key);
    }
    QCOMPARE(refused, not_taken);
    // Every key of the file is answered for.
    const auto entries = cli::read_yaml_entries(file_of(QTest::currentDataTag()));
    for (const ConfigEntry& entry : *entries) QVERIFY2(note_of(import, entry.key) != nullptr, entry.key.c_str());
    QVERIFY(parse_spec(write_spec(import.spec), "import").ok());
  }

  void values_that_do_not_fit_are_named() {
    const std::string head = "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  ";
    const auto why = [&](const std::string& text, const std::string& key) { return why_not(import_text(text), key); };
    const std::string block = "megatron_lm_config.megatron_lm_";
    QCOMPARE(why(head + "megatron_lm_tp_degree: two", block + "tp_degree"),
             std::string("megatron.tp_degree takes a whole number from 1 to 1024"));
    QCOMPARE(why(head + "megatron_lm_tp_degree: 0", block + "tp_degree"),
             std::string("megatron.tp_degree takes a whole number from 1 to 1024"));
    QCOMPARE(why(head + "megatron_lm_tp_degre: 2", block + "tp_degre"),
             std::string("it is no field of MegatronLMPlugin; near is tp_degree"));
    QCOMPARE(why(head + "megatron_lm_tp_degree: 3\nnum_processes: 4", "num_processes"),
             std::string("it is no multiple of tp_degree x pp_degree = 3; the spec has 3 ranks"));
    QCOMPARE(why("distributed_type: 'NO'\nnum_processes: -1", "num_processes"),
             std::string("the number of ranks must be known: parallel.data; the spec has 1 rank"));
    QCOMPARE(why("debug: no\nspeed: 9", "speed"), std::string("it is no key of Accelerate 1.15"));
    QCOMPARE(why("compute_environment: AMAZON_SAGEMAKER", "compute_environment"),
             std::string("runs are started on this machine, not in a cloud"));
  }

  void the_ranks_are_those_that_accelerate_starts_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("cuda");
    QTest::addColumn<QString>("key");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* name, const char* text, int ranks, bool cuda, const char* key = "",
                        const char* said = "") { QTest::newRow(name) << text << ranks << cuda << key << said; };
    const char* const one = "with distributed_type NO Accelerate starts one process; the spec has 1 rank";
    row("one process", "distributed_type: 'NO'\nnum_processes: 8\nuse_cpu: true", 1, false, "num_processes", one);
    row("one process, spelt as YAML's false", "distributed_type: no\nnum_processes: 8", 1, true, "num_processes", one);
    row("one process on a device", "distributed_type: 'NO'\nnum_processes: 1\nuse_cpu: false", 1, true);
    row("one process, octal", "distributed_type: MULTI_CPU\nnum_processes: 010\nuse_cpu: true", 8, false);
    row("hexadecimal", "distributed_type: MULTI_CPU\nnum_processes: 0x10", 16, false);
    row("digits in groups", "distributed_type: MULTI_CPU\nnum_processes: 1_0", 10, false);
    row("a quoted number is decimal", "distributed_type: MULTI_CPU\nnum_processes: '010'", 10, false);
    row("byte-order mark",
        "\xef\xbb\xbf"
        "distributed_type: MULTI_GPU\nnum_processes: 2",
        2, true);
    row("sharded", "distributed_type: FSDP\nnum_processes: 4\nuse_cpu: false", 4, true, "distributed_type",
        "launch.device is \"cuda\", and parameters are not sharded over replicas; parallel.zero = 1 shards the "
        "optimizer's state");
    row("sharded on the CPU", "distributed_type: FSDP\nnum_processes: 4\nuse_cpu: true", 4, false, "distributed_type",
        "the ranks compute on the CPU, and parameters are not sharded over replicas; parallel.zero = 1 shards the "
        "optimizer's state");
    const char* const other = "launch.device is cpu or cuda; the ranks of this spec compute on the CPU";
    for (const char* type : {"XLA", "TPU", "MPS", "MULTI_NPU", "MULTI_HPU", "MULTI_XPU"}) {
      const std::string text = std::string("distributed_type: ") + type + "\nnum_processes: 4";
      row(type, text.c_str(), 4, false, "distributed_type", other);
    }
    row("tensor ranks",
        "distributed_type: FSDP\nnum_processes: 8\nparallelism_config:\n  parallelism_config_tp_size: 2\n"
        "  parallelism_config_dp_shard_size: 4",
        8, true);
    row("ranks that share positions",
        "distributed_type: FSDP\nnum_processes: 8\nparallelism_config:\n"
        "  parallelism_config_cp_size: 2",
        4, true, "parallelism_config.parallelism_config_cp_size",
        "ranks do not share the positions of a sample; parallel.data has as many fewer");
    row("older: dynamo is off", "distributed_type: MULTI_CPU\ndynamo_backend: 'NO'\nnum_processes: 2", 2, false,
        "dynamo_backend", "");
    row("older: dynamo is on", "distributed_type: MULTI_CPU\ndynamo_backend: INDUCTOR\nnum_processes: 2", 2, false,
        "dynamo_backend", "models are not compiled");
  }
  void the_ranks_are_those_that_accelerate_starts() {
    QFETCH(QString, text);
    QFETCH(QString, said);
    QFETCH(QString, key);
    const AccelerateImport import = import_text(text.toStdString());
    const ParallelSpec& parallel = import.spec.parallel;
    QTEST(static_cast<int>(parallel.data * parallel.tensor), "ranks");
    QTEST(import.spec.launch.device == DeviceKind::cuda, "cuda");
    if (!key.isEmpty()) QCOMPARE(why_not(import, key.toStdString()), said.isEmpty() ? "taken" : said.toStdString());
    const QStringList apart{"gradient_accumulation_steps", "[model] and [data]", "distributed_type", key};
    for (const ConfigNote& note : import.notes)
      QVERIFY2(note.use != ConfigUse::not_taken || apart.contains(QString::fromStdString(note.key)), note.why.c_str());
  }

  void a_deepspeed_file_goes_before_the_configuration() {
    const char* const config =
        "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 2\ndeepspeed_config:\n"
        "  deepspeed_config_file: ds.json\n  gradient_clipping: 2.0\n";
    QCOMPARE(deepspeed_file_of(yaml_entries(config, "x").value()), std::string("ds.json"));
    const auto with = [&](const char* json) {
      return import_text(config, DeepSpeedFile{"ds.json", yaml_entries(json, "ds.json").value(), {}});
    };
    const AccelerateImport import = with(
        "{\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 8,\n\t\"gradient_clipping\": 0.5,\n"
        "\"zero_optimization\": {\"stage\": 1, \"offload_param\": {\"device\": \"cpu\"}}, \"bf16\": {\"enabled\": "
        "true},\n"
        "\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"lr\": 0.1}}, \"zero_allow_untested_optimizer\": true}\n");
    QCOMPARE(import.spec.accumulation.steps, 8);
    QCOMPARE(import.spec.accumulation.micro_batch, 4);
    QCOMPARE(import.spec.parallel.zero, 1);
    QCOMPARE(import.spec.optimizer.clip_norm, 0.5);
    QCOMPARE(import.spec.model.dtype, Dtype::bfloat16);
    QCOMPARE(QString::fromStdString(import_report(import, "a.yaml")),
             QString("a.yaml:3: num_processes = 2: sets parallel.data = 2\n"
                     "a.yaml:6: deepspeed_config.gradient_clipping = 2.0: not taken: deepspeed_config_file holds it; "
                     "Accelerate refuses both\n"
                     "ds.json:3: zero_optimization.offload_param: not taken: DeepSpeed is not used; its stage 1 is "
                     "parallel.zero\n"
                     "ds.json:4: optimizer.type = Lamb: not taken: set it in [optimizer]\n"
                     "ds.json:4: optimizer.params: not taken: set it in [optimizer]\n"
                     "ds.json:4: zero_allow_untested_optimizer = true: not taken: DeepSpeed is not used; its stage 1 "
                     "is parallel.zero\n"
                     "a.yaml: [model] and [data]: not taken: they stand in the program and not in this file; add them "
                     "to the spec\n"));
    // Values that Accelerate takes from the program, and its defaults.
    const AccelerateImport automatic = with(
        R"({"gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "train_micro_batch_size_per_gpu": "auto",
            "zero_optimization": {"stage": 3}, "fp16": {"enabled": true}})");
    QCOMPARE(automatic.spec.accumulation.steps, 1);
    QCOMPARE(why_not(automatic, "gradient_accumulation_steps"), "the program sets it; accumulation.steps is 1");
    QCOMPARE(why_not(automatic, "gradient_clipping"), "the program sets it; set optimizer.clip_norm");
    QCOMPARE(why_not(automatic, "train_micro_batch_size_per_gpu"), "the program sets it; set accumulation.micro_batch");
    QCOMPARE(why_not(automatic, "zero_optimization.stage"),
             "parallel.zero has the stages 0 and 1: gradients and parameters are not sharded");
    QCOMPARE(why_not(automatic, "fp16.enabled"), "model.dtype is bfloat16 already");
    QCOMPARE(why_not(with(R"({"zero_optimization": {"stage": 0}})"), "gradient_accumulation_steps"), "taken");
    const auto batch = [&](const char* json) { return why_not(with(json), "train_batch_size"); };
    QCOMPARE(
        batch(R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})"),
        "taken");
    QCOMPARE(batch(R"({"train_batch_size": "auto"})"), "taken");
    QCOMPARE(batch(R"({"train_batch_size": 64, "gradient_accumulation_steps": 2})"),
             "an update of the spec has 16 samples: accumulation.micro_batch x accumulation.steps x parallel.data");
  }

  void a_deepspeed_file_that_is_not_read_is_said_to_hold_the_steps() {
    const char* const config =
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nnum_processes: 2\n";
    const std::string holds = "; what it holds, gradient_accumulation_steps too, is not in the spec";
    QCOMPARE(why_not(import_text(config), "deepspeed_config.deepspeed_config_file"), "it is not read" + holds);
    const AccelerateImport missing = import_text(config, DeepSpeedFile{"ds.json", {}, "ds.json: there is none"});
    QCOMPARE(why_not(missing, "deepspeed_config.deepspeed_config_file"), "ds.json: there is none" + holds);
    QCOMPARE(why_not(missing, "gradient_accumulation_steps"), "taken");  // nothing else is said of the steps
    QCOMPARE(deepspeed_file_of(yaml_entries("deepspeed_config:\n  deepspeed_config_file: none\n", "x").value()), "");
  }

  void a_file_without_a_key_of_accelerate_is_refused() {
    for (const char* text :
         {"services:\n  - name: default\n    role: web\nreplicas: 3\n", "{}\n", "mixed_precisio: fp16\n"}) {
      const auto import = import_accelerate(yaml_entries(text, "x").value());
      QVERIFY2(!import, text);
      QCOMPARE(import.error().code, ErrorCode::config);
      QVERIFY(import.error().text().find("no key of Accelerate") != std::string::npos);
    }
  }

  void a_plug_in_without_a_field_stays_a_plug_in() {
    const auto entries = yaml_entries(
        "distributed_type: MEGATRON_LM\nmegatron_lm_config: {}\nuse_cpu: true\nnum_processes: 2\ntpu_env: []\n"
        "megatron_lm_confg:\n  megatron_lm_tp_degree: 2\n",
        "x");
    const AccelerateImport import = import_accelerate(*entries).value();
    QCOMPARE(import.spec.megatron.tp_degree, std::optional<std::int64_t>(1));
    QCOMPARE(import.spec.launch.device, DeviceKind::cpu);
    QCOMPARE(QString::fromStdString(import_report(import, "a.yaml")),
             QString("a.yaml:4: num_processes = 2: sets parallel.data = 2\n"
                     "a.yaml:7: megatron_lm_confg.megatron_lm_tp_degree = 2: not taken: it is no key of Accelerate "
                     "1.15; near is megatron_lm_config\n"
                     "a.yaml: [model] and [data]: not taken: they stand in the program and not in this file; add them "
                     "to the spec\n"
                     "\n"
                     "a.yaml:2: megatron_lm_config: changes nothing: it is empty\n"
                     "a.yaml:5: tpu_env: changes nothing: it is empty\n"));
  }

  void another_number_of_ranks_is_said_first() {
    const auto entries = yaml_entries(
        "debug: false\nmixed_precision: fp8\nnum_processes: 3\ndistributed_type: MEGATRON_LM\nmegatron_lm_config:\n"
        "  megatron_lm_tp_degree: 2\n",
        "x");
    QCOMPARE(QString::fromStdString(import_report(import_accelerate(*entries).value(), "a.yaml")),
             QString("a.yaml:3: num_processes = 3: not taken: it is no multiple of tp_degree x pp_degree = 2; the spec "
                     "has 2 ranks\n"
                     "a.yaml:2: mixed_precision = fp8: not taken: model.dtype has float32, float64, bfloat16 and "
                     "float16\n"
                     "a.yaml: [model] and [data]: not taken: they stand in the program and not in this file; add them "
                     "to the spec\n"
                     "\n"
                     "a.yaml:1: debug = false: changes nothing: it is switched off\n"));
  }

  void damaged_files_are_refused_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* name, QByteArray text, const char* said) { QTest::newRow(name) << text << said; };
    row("empty", "", "empty");
    row("comment", "# nothing\n", "empty");
    row("scalar", "hello", "does not consist of keys and values");
    row("list", "- a\n- b\n", "does not consist of keys and values");
    row("twice", "a: 1\na: 2\n", "the key a is given twice");
    row("twice in a block", "b:\n  a: 1\n  a: 2\n", "b.a is given twice");
    row("alias", "a: &x 1\nb: *x\n", "an anchor is not taken");
    row("bare alias", "b: *x\n", "an alias is not taken");
    row("bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "an anchor is not taken");
    row("tag", "a: !!python/object/apply:os.system ['true']\n", "a tag is not taken");
    row("documents", "a: 1\n---\nb: 2\n", "more than one document");
    row("deep", "a:\n  b: " + QByteArray(50, '[') + QByteArray(50, ']') + "\n", "nested too deeply");
    row("very deep", QByteArray("a: ") + QByteArray(20000, '[') + "\n", "");
    row("key", "? [a, b]\n: 1\n", "a key is not a word");
    row("tab", "a:\n\tb: 1\n", "not valid YAML");
    row("open", "a: \"b\n", "not valid YAML");
    row("bytes", QByteArray("a: \xff\xfe\n"), "not valid YAML");
    row("large", "a: " + QByteArray(70000, 'x') + "\n", "more than 65536 bytes");
  }
  void damaged_files_are_refused() {
    QFETCH(QByteArray, text);
    QFETCH(QString, said);
    const auto entries = yaml_entries(text.toStdString(), "file.yaml");
    QVERIFY(!entries);
    const QString problem = QString::fromStdString(entries.error().text());
    QVERIFY2(problem.contains(said), qPrintable(problem));
    QVERIFY2(problem.contains("file.yaml"), qPrintable(problem));
  }

  void a_missing_file_is_named() {
    const auto entries = cli::read_yaml_entries("/no/such/file.yaml");
    QVERIFY(!entries);
    QVERIFY(entries.error().text().find("/no/such/file.yaml") != std::string::npos);
  }

  // Damaged copies of the originals: each is read or refused, and what is read becomes a spec that can be written and
  // read.
  void damage_does_no_harm() {
    std::mt19937 random(12);
    std::vector<std::string> seeds;
    for (const char* name : {"megatron", "cpu", "deepspeed", "fsdp", "hosts"})
      seeds.push_back(text_of(name).toStdString());
    const std::string alphabet = ":-[]{}&*!|>'\"%@`#,?~ \n\t\\0aé\x01";
    int refused = 0;
    for (int i = 0; i < fuzz_inputs; ++i) {
      std::string text = seeds[random() % seeds.size()];
      const int changes = 1 + static_cast<int>(random() % 8);
      for (int change = 0; change < changes; ++change) {
        const std::size_t at = random() % (text.size() + 1);
        switch (random() % 4) {
          case 0:
            text.insert(at, 1, alphabet[random() % alphabet.size()]);
            break;
          case 1:
            text.erase(at, random() % 20);
            break;
          case 2:
            text.insert(at, text.substr(random() % text.size(), random() % 40));
            break;
          default:
            if (at < text.size()) text[at] = static_cast<char>(random());
        }
        if (text.empty()) text = "a";
      }
      const auto entries = yaml_entries(text, "damaged.yaml");
      if (!entries) {
        ++refused;
        QVERIFY(!entries.error().message.empty());
        continue;
      }
      const auto import = import_accelerate(*entries);
      if (!import) continue;
      const SpecReading read = parse_spec(write_spec(import->spec), "import");
      QVERIFY2(read.ok(), text.c_str());
      QVERIFY(read.spec == import->spec);
    }
    QVERIFY(refused > fuzz_inputs / 10);
    QVERIFY(refused < fuzz_inputs);
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestAccelerateConfig)

}  // namespace test_accelerate_config
#include "test_accelerate_config.moc"
