// SPDX-License-Identifier: Apache-2.0
// Configuration files of Accelerate. The files of tests/run/accelerate were written by accelerate 1.9.0's own
// ClusterConfig.to_yaml_file.
#include <QTest>
#include <random>

#include "accrue/run/spec_io.h"
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
  return import_accelerate(*entries);
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
           "steps = 1\n"
        << QStringList{"gradient_accumulation_steps", "[model] and [data]"};
    QTest::newRow("deepspeed") << "accrue = 1\n\n[model]\ndtype = \"bfloat16\"\n\n[optimizer]\nclip_norm = 1.0\n\n"
                                  "[accumulation]\ndialect = \"accelerate\"\nsteps = 8\n\n[parallel]\ndata = 4\n\n"
                                  "[launch]\ndevice = \"cuda\"\n"
                               << QStringList{"deepspeed_config.offload_param_device",
                                              "deepspeed_config.zero3_init_flag", "deepspeed_config.zero_stage",
                                              "[model] and [data]"};
    QTest::newRow("fsdp")
        << "accrue = 1\n\n[accumulation]\ndialect = \"accelerate\"\nsteps = 1\n\n[parallel]\ndata = 4\n"
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
    const auto import_text = [](const char* text) { return import_accelerate(*yaml_entries(text, "x")); };
    const std::string head = "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  ";
    const auto why = [&](const std::string& text, const std::string& key) {
      const AccelerateImport import = import_text(text.c_str());
      const ConfigNote* note = note_of(import, key);
      return note == nullptr || note->use != ConfigUse::not_taken ? std::string("taken") : note->why;
    };
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
    QCOMPARE(why("speed: 9", "speed"), std::string("it is no key of Accelerate 1.9"));
    QCOMPARE(why("compute_environment: AMAZON_SAGEMAKER", "compute_environment"),
             std::string("runs are started on this machine, not in a cloud"));
  }

  void a_plug_in_without_a_field_stays_a_plug_in() {
    const auto entries = yaml_entries(
        "distributed_type: MEGATRON_LM\nmegatron_lm_config: {}\nuse_cpu: true\nnum_processes: 2\ntpu_env: []\n"
        "megatron_lm_confg:\n  megatron_lm_tp_degree: 2\n",
        "x");
    const AccelerateImport import = import_accelerate(*entries);
    QCOMPARE(import.spec.megatron.tp_degree, std::optional<std::int64_t>(1));
    QCOMPARE(import.spec.launch.device, DeviceKind::cpu);
    QCOMPARE(QString::fromStdString(import_report(import, "a.yaml")),
             QString("a.yaml:4: num_processes = 2: sets parallel.data = 2\n"
                     "a.yaml:7: megatron_lm_confg.megatron_lm_tp_degree = 2: not taken: it is no key of Accelerate "
                     "1.9; near is megatron_lm_config\n"
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
    QCOMPARE(QString::fromStdString(import_report(import_accelerate(*entries), "a.yaml")),
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
      const AccelerateImport import = import_accelerate(*entries);
      const SpecReading read = parse_spec(write_spec(import.spec), "import");
      QVERIFY2(read.ok(), text.c_str());
      QVERIFY(read.spec == import.spec);
    }
    QVERIFY(refused > fuzz_inputs / 10);
    QVERIFY(refused < fuzz_inputs);
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestAccelerateConfig)

}  // namespace test_accelerate_config
#include "test_accelerate_config.moc"
