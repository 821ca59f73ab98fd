// SPDX-License-Identifier: Apache-2.0
// The 43 fields of the plug-in: defaults, environment, other_megatron_args, what follows from other fields, rules.
// If the original can be constructed without Megatron-LM, the values are its own: accelerate 1.9.0, MegatronLMPlugin().
#include <QTest>
#include <map>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_fields.h"
#include "support/test_program.h"

namespace test_megatron_fields {

using namespace accrue;

namespace {

using Variables = std::map<std::string, std::string>;
using Arguments = std::vector<std::string>;

MegatronEnvironment environment_of(Variables variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

ResolvedMegatron resolve(const MegatronSpec& given, const MegatronFacts& facts = {}) {
  return resolve_megatron_fields(given, empty_environment(), facts);
}

QString text_of(const MegatronValue& value) {
  return QString::fromStdString(format_value(value.value));
}

QString errors_of(const ResolvedMegatron& resolved) {
  QString text;
  for (const Finding& finding : resolved.findings)
    if (finding.severity == Severity::error) text += QString::fromStdString(finding.text()) + "\n";
  return text;
}

/// Assignments of fields, as --set takes them.
MegatronSpec fields(const std::vector<std::string>& assignments) {
  RunSpec spec;
  std::vector<Finding> findings;
  for (const std::string& assignment : assignments) set_field(spec, "megatron." + assignment, findings);
  for (const Finding& finding : findings) qWarning("%s", finding.text().c_str());
  return spec.megatron;
}

const MegatronFacts gpt{
    .model = ModelKind::gpt, .world = 8, .layers = 8, .width = 64, .heads = 4, .positions = 128, .lr = 1e-3};
/// Eight ranks divide the heads, but not the width.
const MegatronFacts eight_heads_of_60{.model = ModelKind::gpt, .layers = 8, .width = 60, .heads = 8};
const MegatronFacts t5{.model = ModelKind::t5, .layers = 4, .width = 64, .heads = 4};

}  // namespace

class TestMegatronFields : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void defaults_are_the_originals_data() {
    QTest::addColumn<QString>("value");
    const std::map<std::string, std::string> set{{"tp_degree", "1"},
                                                 {"pp_degree", "1"},
                                                 {"num_micro_batches", "1"},
                                                 {"gradient_clipping", "1.0"},
                                                 {"sequence_parallelism", "false"},
                                                 {"recompute_activations", "false"},
                                                 {"use_distributed_optimizer", "false"},
                                                 {"is_train_batch_min", "true"},
                                                 {"weight_decay_incr_style", "\"constant\""},
                                                 {"lr_decay_style", "\"linear\""},
                                                 {"min_lr", "0.0"},
                                                 {"lr_mult", "1.0"},
                                                 {"megatron_dataset_flag", "false"},
                                                 {"set_all_logging_options", "false"},
                                                 {"eval_iters", "100"},
                                                 {"eval_interval", "1000"},
                                                 {"return_logits", "false"}};
    for (const MegatronField& field : megatron_fields()) {
      const auto found = set.find(std::string(field.name));
      QTest::newRow(field.name.data()) << QString::fromStdString(found == set.end() ? "" : found->second);
    }
  }
  void defaults_are_the_originals() {
    QFETCH(QString, value);
    const ResolvedMegatron resolved = resolve({});
    QVERIFY(resolved.findings.empty());
    const MegatronValue& row = resolved[QTest::currentDataTag()];
    QCOMPARE(text_of(row), value);
    QCOMPARE(row.origin, FieldOrigin::fallback);
  }

  void there_are_43_in_the_order_of_the_signature() {
    QCOMPARE(megatron_fields().size(), std::size_t{43});
    QCOMPARE(std::string(megatron_fields().front().name), std::string("tp_degree"));
    QCOMPARE(std::string(megatron_fields()[22].name), std::string("consumed_samples"));
    QCOMPARE(std::string(megatron_fields().back().name), std::string("other_megatron_args"));
    std::size_t rows = 0;
    for (const SpecField& field : spec_fields()) rows += field.section() == "megatron" ? 1 : 0;
    QCOMPARE(rows, std::size_t{43});
    for (const MegatronField& field : megatron_fields()) {
      const SpecField* row = find_field(field.key);
      QVERIFY2(row != nullptr, field.name.data());
      QVERIFY2(row->optional, field.name.data());
      QCOMPARE(std::string(row->name()), std::string(field.name));
    }
  }

  // Frozen from the original with one variable set at a time.
  void variables_stand_for_seven_fields_data() {
    QTest::addColumn<QString>("field");
    QTest::addColumn<QString>("set");
    QTest::addColumn<QString>("value");
    QTest::newRow("TP_DEGREE") << "tp_degree"
                               << "4"
                               << "4";
    QTest::newRow("PP_DEGREE") << "pp_degree"
                               << "2"
                               << "2";
    QTest::newRow("NUM_MICRO_BATCHES") << "num_micro_batches"
                                       << "8"
                                       << "8";
    QTest::newRow("GRADIENT_CLIPPING") << "gradient_clipping"
                                       << "0.5"
                                       << "0.5";
    QTest::newRow("RECOMPUTE_ACTIVATIONS") << "recompute_activations"
                                           << "yes"
                                           << "true";
    QTest::newRow("USE_DISTRIBUTED_OPTIMIZER") << "use_distributed_optimizer"
                                               << "1"
                                               << "true";
    QTest::newRow("SEQUENCE_PARALLELISM") << "sequence_parallelism"
                                          << "True"
                                          << "true";
  }
  void variables_stand_for_seven_fields() {
    QFETCH(QString, field);
    QFETCH(QString, set);
    QFETCH(QString, value);
    const std::string variable = std::string("MEGATRON_LM_") + QTest::currentDataTag();
    const std::string name = field.toStdString();
    const auto environment = environment_of({{variable, set.toStdString()}});
    MegatronSpec given;
    if (name == "sequence_parallelism") given.tp_degree = 2;
    const ResolvedMegatron resolved = resolve_megatron_fields(given, environment);
    QCOMPARE(text_of(resolved[name]), value);
    QCOMPARE(resolved[name].origin, FieldOrigin::environment);
    QCOMPARE(resolved[name].from, variable);
    QCOMPARE(errors_of(resolved), QString());
    // A field that is given is not asked of the environment.
    const MegatronSpec own = fields({name + "=" + (value == "true" ? "false" : "3")});
    QCOMPARE(resolve_megatron_fields(own, environment)[name].origin, FieldOrigin::field);
  }

  void only_seven_fields_have_a_variable() {
    std::size_t count = 0;
    for (const MegatronField& field : megatron_fields()) count += field.environment.empty() ? 0 : 1;
    QCOMPARE(count, std::size_t{7});
  }

  void a_variable_that_does_not_fit_is_named_data() {
    QTest::addColumn<QString>("variable");
    QTest::addColumn<QString>("value");
    QTest::newRow("no number") << "TP_DEGREE"
                               << "two";
    QTest::newRow("a part") << "TP_DEGREE"
                            << "1.5";
    QTest::newRow("empty") << "GRADIENT_CLIPPING"
                           << "";
    QTest::newRow("no truth") << "RECOMPUTE_ACTIVATIONS"
                              << "maybe";
    QTest::newRow("out of range") << "PP_DEGREE"
                                  << "0";
    QTest::newRow("not finite") << "GRADIENT_CLIPPING"
                                << "inf";
  }
  void a_variable_that_does_not_fit_is_named() {
    QFETCH(QString, variable);
    QFETCH(QString, value);
    const std::string name = "MEGATRON_LM_" + variable.toStdString();
    const ResolvedMegatron resolved = resolve_megatron_fields({}, environment_of({{name, value.toStdString()}}));
    QCOMPARE(resolved.findings.size(), std::size_t{1});
    QVERIFY2(errors_of(resolved).contains(QString::fromStdString(name)), qPrintable(errors_of(resolved)));
  }

  void arguments_win_and_say_so() {
    const MegatronSpec given =
        fields({"tp_degree=2", "gradient_clipping=1.0",
                "other_megatron_args=[\"tensor_model_parallel_size = 4\", \"--clip-grad=0.0\"]"});
    const ResolvedMegatron resolved = resolve(given);
    QCOMPARE(text_of(resolved["tp_degree"]), QString("4"));
    QCOMPARE(resolved["tp_degree"].origin, FieldOrigin::other_megatron_args);
    QCOMPARE(resolved["tp_degree"].from, std::string("tensor_model_parallel_size"));
    QCOMPARE(text_of(resolved["gradient_clipping"]), QString("0.0"));
    QCOMPARE(resolved.findings.size(), std::size_t{2});
    QVERIFY(resolved.ok());
    QCOMPARE(QString::fromStdString(resolved.findings.front().text()),
             QString("warning: megatron.tp_degree: is overridden by tensor_model_parallel_size in other_megatron_args "
                     "(found 2, expected 4)"));
  }

  void a_granularity_decides_recomputation() {
    const auto how = [](const char* granularity) {
      return resolve(fields({"recompute_activations=true",
                             std::string("other_megatron_args=[\"recompute_granularity=") + granularity + "\"]"}));
    };
    QCOMPARE(text_of(how("full")["recompute_activations"]), QString("false"));
    QCOMPARE(text_of(how("selective")["recompute_activations"]), QString("true"));
    QVERIFY(errors_of(how("some")).contains("full or selective"));
  }

  void arguments_are_refused_by_name_data() {
    QTest::addColumn<QString>("argument");
    QTest::addColumn<QString>("said");
    QTest::newRow("unknown") << "clip_gard = 1.0"
                             << "expected clip_grad";
    QTest::newRow("far") << "zzz = 1"
                         << "spec --megatron";
    QTest::newRow("a field") << "tp_degree = 2"
                             << "expected megatron.tp_degree";
    QTest::newRow("no value") << "clip_grad"
                              << "name = value";
    QTest::newRow("type") << "clip_grad = high"
                          << "a number";
    QTest::newRow("truth") << "bf16 = 2"
                           << "true or false";
    QTest::newRow("context") << "context_parallel_size = 2"
                             << "no rank passes keys and values on";
    QTest::newRow("experts") << "num_experts = 8"
                             << "no model has layers of experts";
    QTest::newRow("rotary") << "use_rotary_position_embeddings = true"
                            << "positions are learned";
    QTest::newRow("alibi") << "position_embedding_type = alibi"
                           << "positions are learned";
    QTest::newRow("multi-query") << "attention_head_type = multiquery"
                                 << "every head has keys and values of its own";
    QTest::newRow("tokenizer") << "vocab_file = vocab.json"
                               << "says what made its tokens";
    QTest::newRow("merges") << "merge_file = merges.txt"
                            << "says what made its tokens";
    QTest::newRow("uneven") << "decoder_last_pipeline_num_layers = 3"
                            << "pp_degree must divide them";
    QTest::newRow("offload") << "optimizer_cpu_offload = true"
                             << "use_precision_aware_optimizer";
    QTest::newRow("experts' ranks") << "expert_model_parallel_size = 2"
                                    << "no model has layers of experts";
    QTest::newRow("experts' tensor ranks") << "expert_tensor_parallel_size = 2"
                                           << "no model has layers of experts";
    QTest::newRow("kernels") << "attention_backend = flash"
                             << "there is one implementation of the attention";
    QTest::newRow("softmax") << "attention_softmax_in_fp32 = false"
                             << "computed in float32";
    QTest::newRow("narrow states") << "use_precision_aware_optimizer = true"
                                   << "the optimizer's state is float32";
    QTest::newRow("copies") << "overlap_cpu_optimizer_d2h_h2d = true"
                            << "no optimizer_cpu_offload";
    QTest::newRow("sharded parameters") << "use_custom_fsdp = true"
                                        << "use_distributed_optimizer shards the state";
    QTest::newRow("half a load") << "no_load_optim = true"
                                 << "read as a whole";
    QTest::newRow("half a save") << "no_save_optim = true"
                                 << "read as a whole";
    QTest::newRow("readers") << "num_workers = 2"
                             << "has no processes that read ahead";
    QTest::newRow("steps of the batch size") << "step_batch_size_schedule = 0:768 250B:1536"
                                             << "accumulation.length_schedule";
    QTest::newRow("out of range") << "tensor_model_parallel_size = 0"
                                  << "out of range";
    QTest::newRow("no finite number") << "lr = nan"
                                      << "a number";
  }
  void arguments_are_refused_by_name() {
    QFETCH(QString, argument);
    QFETCH(QString, said);
    MegatronSpec given;
    given.other_megatron_args = {argument.toStdString()};
    const QString errors = errors_of(resolve(given));
    QVERIFY2(errors.contains(said), qPrintable(errors));
    QVERIFY2(errors.contains(argument.section(' ', 0, 0)) || said == "out of range", qPrintable(errors));
  }

  void arguments_are_given_once() {
    MegatronSpec given;
    given.other_megatron_args = {"clip_grad = 1", "--clip-grad = 2"};
    QVERIFY(errors_of(resolve(given)).contains("clip_grad twice"));
  }

  void newer_fields_are_taken_where_they_ask_for_what_is_so() {
    MegatronSpec given;
    given.other_megatron_args = {"use_custom_fsdp = false",
                                 "context_parallel_size = 1",
                                 "attention_backend = auto",
                                 "attention_head_type = multihead",
                                 "position_embedding_type = absolute",
                                 "eod_mask_loss = true",
                                 "recompute_granularity = full",
                                 "recompute_method = block",
                                 "recompute_num_layers = 2",
                                 "hidden_dropout = 0.1",
                                 "calculate_per_token_loss = true",
                                 "use_rotary_position_embeddings = False",
                                 "no_load_optim = false"};
    const ResolvedMegatron resolved = resolve(given);
    QCOMPARE(errors_of(resolved), QString());
    QCOMPARE(resolved.arguments.size(), given.other_megatron_args->size());
  }

  void every_argument_names_something_that_exists() {
    for (const MegatronArgument& argument : megatron_arguments()) {
      const int ways =
          (argument.field.empty() ? 0 : 1) + (argument.key.empty() ? 0 : 1) + (argument.only.empty() ? 0 : 1);
      QVERIFY2(ways == 1 || (ways == 0 && !argument.why.empty()), argument.name.data());
      QVERIFY2(argument.field.empty() || find_megatron_field(argument.field) != nullptr, argument.name.data());
      QVERIFY2(argument.only.empty() || !argument.why.empty(), argument.name.data());
      QCOMPARE(find_megatron_argument(argument.name), &argument);
    }
  }

  void lengths_follow_one_another() {
    const ResolvedMegatron resolved = resolve(fields({"train_iters=100"}));
    QCOMPARE(text_of(resolved["lr_decay_iters"]), QString("100"));
    QCOMPARE(resolved["lr_decay_iters"].origin, FieldOrigin::derived);
    QCOMPARE(resolved["lr_decay_iters"].from, std::string("train_iters"));
    QCOMPARE(text_of(resolve(fields({"train_samples=640"}))["lr_decay_samples"]), QString("640"));
    QCOMPARE(text_of(resolve(fields({"train_iters=100", "lr_decay_iters=50"}))["lr_decay_iters"]), QString("50"));
  }

  // The original pads in the same way: [10] gives [10, 0, 0], [10, 5] gives [10, 5, 0].
  void consumed_samples_are_three() {
    QCOMPARE(text_of(resolve(fields({"consumed_samples=[10]"}))["consumed_samples"]), QString("[10, 0, 0]"));
    QCOMPARE(text_of(resolve(fields({"consumed_samples=[10, 5]"}))["consumed_samples"]), QString("[10, 5, 0]"));
    QVERIFY(errors_of(resolve(fields({"consumed_samples=[1,2,3,4]"}))).contains("one to three"));
  }

  void seq_length_takes_the_length_of_the_model() {
    const auto of = [](ModelKind kind, const char* field) {
      return resolve(fields({field}), {.model = kind})["seq_length"];
    };
    QCOMPARE(text_of(of(ModelKind::gpt, "decoder_seq_length=64")), QString("64"));
    QCOMPARE(of(ModelKind::gpt, "decoder_seq_length=64").from, std::string("decoder_seq_length"));
    QCOMPARE(text_of(of(ModelKind::bert, "encoder_seq_length=32")), QString("32"));
    QCOMPARE(text_of(of(ModelKind::t5, "encoder_seq_length=32")), QString("32"));
    QCOMPARE(text_of(of(ModelKind::gpt, "encoder_seq_length=64")), QString());
    // seq_length alone stays, which the original replaces by None.
    QCOMPARE(text_of(of(ModelKind::gpt, "seq_length=48")), QString("48"));
  }

  void sequence_parallelism_needs_tensor_ranks() {
    const ResolvedMegatron resolved = resolve(fields({"sequence_parallelism=true"}));
    QCOMPARE(*resolved.effective.sequence_parallelism, false);
    QCOMPARE(resolved["sequence_parallelism"].origin, FieldOrigin::derived);
    QCOMPARE(resolved.findings.size(), std::size_t{1});
    QCOMPARE(resolved.findings.front().severity, Severity::warning);
  }

  // Each rule is broken, and the finding names both sides; the same fields without the second are fine.
  void rules_data() {
    QTest::addColumn<QString>("facts");
    QTest::addColumn<QStringList>("set");
    QTest::addColumn<QString>("key");
    QTest::addColumn<QString>("other");
    const auto row = [](const char* name, const char* facts, QStringList set, const char* key, const char* other) {
      QTest::newRow(name) << facts << set << key << other;
    };
    row("heads", "gpt", {"tp_degree=8"}, "tp_degree", "attention heads");
    row("width", "eight heads of 60", {"tp_degree=8"}, "tp_degree", "the width of the model");
    row("world", "gpt", {"tp_degree=2", "pp_degree=8"}, "tp_degree", "ranks of the run");
    row("layers", "gpt", {"pp_degree=3"}, "pp_degree", "layers");
    row("split of a GPT", "gpt", {"pp_degree=4", "pipeline_model_parallel_split_rank=2"},
        "pipeline_model_parallel_split_rank", "encoder and a decoder");
    row("split beyond", "t5", {"pp_degree=2", "pipeline_model_parallel_split_rank=2"},
        "pipeline_model_parallel_split_rank", "pp_degree");
    row("split and chunks", "t5",
        {"pp_degree=2", "pipeline_model_parallel_split_rank=1", "num_layers_per_virtual_pipeline_stage=1"},
        "num_layers_per_virtual_pipeline_stage", "pipeline_model_parallel_split_rank");
    row("chunks without stages", "gpt", {"num_layers_per_virtual_pipeline_stage=2"},
        "num_layers_per_virtual_pipeline_stage", "pp_degree");
    row("chunks", "gpt", {"pp_degree=2", "num_micro_batches=2", "num_layers_per_virtual_pipeline_stage=3"},
        "num_layers_per_virtual_pipeline_stage", "divided by pp_degree");
    row("interleaved", "gpt", {"pp_degree=2", "num_micro_batches=3", "num_layers_per_virtual_pipeline_stage=2"},
        "num_micro_batches", "pp_degree");
    row("iters and samples", "gpt", {"train_iters=10", "train_samples=100"}, "train_iters", "train_samples");
    row("iters and decay", "gpt", {"train_iters=10", "lr_decay_samples=100"}, "train_iters", "lr_decay_samples");
    row("iters and warm-up", "gpt", {"train_iters=10", "lr_warmup_samples=5"}, "train_iters", "lr_warmup_samples");
    row("samples and decay", "gpt", {"train_samples=10", "lr_decay_iters=5"}, "train_samples", "lr_decay_iters");
    row("samples and warm-up", "gpt", {"train_samples=10", "lr_warmup_iters=5"}, "train_samples", "lr_warmup_iters");
    row("iters and ramp-up", "gpt", {"train_iters=10", "other_megatron_args=[\"rampup_batch_size=4 4 40\"]"},
        "train_iters", "rampup_batch_size");
    row("fraction and iters", "gpt", {"lr_warmup_fraction=0.1", "lr_warmup_iters=5"}, "lr_warmup_fraction",
        "lr_warmup_iters");
    row("fraction and samples", "gpt", {"lr_warmup_fraction=0.1", "lr_warmup_samples=5"}, "lr_warmup_fraction",
        "lr_warmup_samples");
    row("two decays", "gpt", {"lr_decay_iters=5", "lr_decay_samples=50"}, "lr_decay_iters", "lr_decay_samples");
    row("two warm-ups", "gpt", {"lr_warmup_iters=5", "lr_warmup_samples=50"}, "lr_warmup_iters", "lr_warmup_samples");
    row("decay and ramp-up", "gpt", {"lr_decay_iters=5", "other_megatron_args=[\"rampup_batch_size=4 4 40\"]"},
        "lr_decay_iters", "rampup_batch_size");
    row("warm-up and ramp-up", "gpt", {"lr_warmup_iters=5", "other_megatron_args=[\"rampup_batch_size=4 4 40\"]"},
        "lr_warmup_iters", "rampup_batch_size");
    row("warm-up beyond", "gpt", {"lr_warmup_iters=10", "lr_decay_iters=10"}, "lr_warmup_iters", "lr_decay_iters");
    row("min above", "gpt", {"min_lr=0.1"}, "min_lr", "peak of the rate");
    row("min above lr", "gpt", {"min_lr=0.1", "other_megatron_args=[\"lr=0.01\"]"}, "min_lr", "at most 0.01");
    row("constant and start", "gpt", {"start_weight_decay=0.1"}, "start_weight_decay", "weight_decay_incr_style");
    row("moving without end", "gpt", {"weight_decay_incr_style=linear", "start_weight_decay=0.1"}, "end_weight_decay",
        "weight_decay_incr_style");
    row("falling", "gpt", {"weight_decay_incr_style=linear", "start_weight_decay=0.1", "end_weight_decay=0.05"},
        "end_weight_decay", "start_weight_decay");
    row("two lengths", "gpt", {"seq_length=64", "decoder_seq_length=32"}, "seq_length", "decoder_seq_length");
    row("too long", "gpt", {"seq_length=256"}, "seq_length", "positions");
    row("undivided", "gpt", {"tp_degree=4", "sequence_parallelism=true", "seq_length=66"}, "seq_length", "tp_degree");
    row("logs", "gpt", {"set_all_logging_options=true"}, "set_all_logging_options", "tensorboard_dir");
    row("logits", "t5", {"return_logits=true"}, "return_logits", "GPT");
    row("prepare", "gpt", {"custom_prepare_model_function=p"}, "custom_prepare_model_function",
        "custom_model_provider_function");
    row("arguments of a step", "gpt", {"custom_train_step_kwargs=[\"a = 1\"]"}, "custom_train_step_kwargs",
        "custom_train_step_class");
    row("an argument of a step twice", "gpt",
        {"custom_train_step_class=s", "custom_train_step_kwargs=[\"a = 1\", \"a=2\"]"}, "custom_train_step_kwargs",
        "a twice");
    row("an argument of a step without a name", "gpt",
        {"custom_train_step_class=s", "custom_train_step_kwargs=[\" = 1\"]"}, "custom_train_step_kwargs",
        "name = value");
    row("method", "gpt", {"recompute_activations=true", "other_megatron_args=[\"recompute_method=block\"]"},
        "other_megatron_args", "recompute_granularity");
    row("layers of none", "gpt", {"other_megatron_args=[\"recompute_num_layers=2\"]"}, "other_megatron_args",
        "recompute_num_layers needs recompute_granularity = full");
    row("shared of none", "gpt", {"other_megatron_args=[\"distribute_saved_activations=true\"]"}, "other_megatron_args",
        "distribute_saved_activations needs recompute_granularity = full");
    row("shared", "gpt",
        {"tp_degree=2", "sequence_parallelism=true",
         "other_megatron_args=[\"recompute_granularity=full\", \"distribute_saved_activations=true\"]"},
        "sequence_parallelism", "distribute_saved_activations");
  }
  void rules() {
    QFETCH(QString, facts);
    QFETCH(QStringList, set);
    QFETCH(QString, key);
    QFETCH(QString, other);
    std::vector<std::string> assignments;
    for (const QString& assignment : set) assignments.push_back(assignment.toStdString());
    const MegatronFacts& of = facts == "gpt" ? gpt : facts == "t5" ? t5 : eight_heads_of_60;
    const ResolvedMegatron resolved = resolve(fields(assignments), of);
    bool found = false;
    for (const Finding& finding : resolved.findings)
      found = found || (finding.severity == Severity::error && finding.key == "megatron." + key.toStdString() &&
                        QString::fromStdString(finding.text()).contains(other));
    QVERIFY2(found, qPrintable(errors_of(resolved)));
  }

  void what_fits_is_not_refused() {
    QCOMPARE(errors_of(resolve(
                 fields({"tp_degree=4", "pp_degree=2", "num_micro_batches=4", "num_layers_per_virtual_pipeline_stage=2",
                         "sequence_parallelism=true", "seq_length=128", "train_iters=100", "lr_warmup_iters=10",
                         "weight_decay_incr_style=cosine", "start_weight_decay=0.0", "end_weight_decay=0.1",
                         "tensorboard_dir=logs", "set_all_logging_options=true", "return_logits=true"}),
                 gpt)),
             QString());
    QCOMPARE(errors_of(resolve(fields({"pp_degree=2", "pipeline_model_parallel_split_rank=1"}), t5)), QString());
    QCOMPARE(errors_of(resolve(fields({"train_samples=1000", "lr_decay_samples=900", "lr_warmup_samples=10",
                                       "other_megatron_args=[\"rampup_batch_size=[4, 4, 40]\"]"}),
                               gpt)),
             QString());
  }
};

ACCRUE_TEST_MAIN(TestMegatronFields)

}  // namespace test_megatron_fields
#include "test_megatron_fields.moc"
