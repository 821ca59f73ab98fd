// SPDX-License-Identifier: Apache-2.0
// What preflight refuses or warns of, in its words, and that the fix it offers mends it.
#include <QTemporaryDir>
#include <QtTest>

#include <sys/resource.h>

#include "accrue/run/data_facts.h"
#include "accrue/run/dialect_comparison.h"
#include "accrue/run/inside_windows.h"
#include "accrue/run/preflight.h"
#include "accrue/run/spec_io.h"

using namespace accrue;

namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

HostFacts plain_host() {
  HostFacts host;
  host.cores = 4;
  host.memory_bytes = 16 * gib;
  host.torch_version = "2.11.0";
  host.backends = {"shm", "gloo"};
  host.cuda_error = "no driver";
  return host;
}

HostFacts gpu_host() {
  HostFacts host = plain_host();
  host.backends.push_back("nccl");
  host.cuda_devices = {{"GPU", 80 * gib}};
  return host;
}

// A spec from lines of --set.
RunSpec spec_of(const QString& settings) {
  RunSpec spec;
  for (const QString& line : settings.split(';', Qt::SkipEmptyParts)) {
    std::vector<Finding> findings;
    set_field(spec, line.toStdString(), findings);
    if (!findings.empty()) qFatal("%s", findings.front().text().c_str());
  }
  return spec;
}

QString texts(const std::vector<Finding>& findings) {
  QStringList lines;
  for (const Finding& finding : findings) lines << QString::fromStdString(finding.text());
  return lines.join('\n');
}

const QString linear = "model.kind=linear;data.kind=inline;data.x=[[1],[2],[3],[4]];data.y=[[1],[2],[3],[4]];";
const QString ragged =
    "model.kind=linear;model.loss=cross_entropy;model.outputs=2;data.kind=inline;"
    "accumulation.micro_batch=1;data.sequences=[[1],[1,2],[1,2,3]];data.labels=[[1],[1,0],[1,0,1]];";

}  // namespace

class TestPreflight : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_plan_costs_nothing_of_what_it_plans_data() {
    QTest::addColumn<QString>("settings");
    const auto row = [](const char* name, const char* settings) { QTest::newRow(name) << settings; };
    row("short epochs, llm",
        "data.samples=40;accumulation.micro_batch=1;accumulation.steps=7;run.samples=100000000;"
        "accumulation.dialect=llm");
    row("short epochs, mmengine",
        "data.samples=40;accumulation.micro_batch=1;accumulation.steps=7;"
        "run.samples=100000000;accumulation.dialect=mmengine;schedule.kind=cosine;schedule.warmup=90000000");
    row("one batch an epoch",
        "data.samples=1;accumulation.micro_batch=1;accumulation.steps=999983;"
        "accumulation.tail=carry;run.samples=100000000");
    row("epochs that are filled up",
        "data.samples=41;accumulation.micro_batch=2;accumulation.steps=1048576;"
        "accumulation.tail=pad_repeat;run.samples=80000000");
    row("epochs that are dropped",
        "data.samples=41;accumulation.micro_batch=1;accumulation.steps=1048576;"
        "accumulation.dialect=colossalai;run.epochs=1000000");
    row("ranks whose batches differ",
        "data.samples=1000003;accumulation.micro_batch=1;parallel.data=7;"
        "accumulation.dialect=accelerate;schedule.kind=linear;schedule.total=10;run.samples=100000000");
    row("windows that grow",
        "data.samples=40;accumulation.micro_batch=1;accumulation.group_length=by_update;"
        "accumulation.length_schedule=[[1, 2], [1000000, 3]];run.updates=30000000");
    row("a search for what fits",
        "accumulation.group_length=memory_search;accumulation.memory_limit=128;"
        "accumulation.micro_batch=1000000;accumulation.steps=1000000;data.samples=1000000;model.dropout=0;"
        "run.updates=10");
    row("the widest mlp", "model.kind=mlp;model.inputs=915752;model.hidden=[524288];model.outputs=1;run.updates=3");
    row("the deepest gpt",
        "model.layers=1000;model.width=65536;model.heads=1024;model.vocabulary=4194304;run.updates=3");
  }
  void a_plan_costs_nothing_of_what_it_plans() {
    QFETCH(QString, settings);
    const auto used = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return usage;
    };
    const auto seconds = [](const rusage& usage) {
      return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
    };
    HostFacts host = plain_host();
    host.memory_bytes = 0;  // not known: nothing is refused for it
    const rusage before = used();
    const RunSpec spec = spec_of(settings);
    const Preflight result = preflight_files(spec, host, ".");
    if (result.plan) QVERIFY(!plan_report(*result.plan).empty());
    compare_dialects(spec, host, *scan_data(spec, "."), ".", 48);
    const rusage after = used();
    const double took = seconds(after) - seconds(before);
    QVERIFY2(took < 1.0, QByteArray::number(took));
    QVERIFY2(after.ru_maxrss - before.ru_maxrss < 64 * 1024, "KiB");
  }

  void the_defaults_can_run() {
    const Preflight result = preflight_files(RunSpec(), plain_host(), ".");
    QCOMPARE(texts(result.findings), QString());
    QVERIFY(result.plan.has_value());
  }

  void refuses_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("expected");
    QTest::addColumn<QString>("fix");
    const auto row = [](const char* name, const QString& settings, const char* expected, const char* fix) {
      QTest::newRow(name) << settings << QString(expected) << QString(fix);
    };
    row("windows that never close",
        "accumulation.dialect=llm;accumulation.counter_reset=epoch_end;data.samples=12;accumulation.micro_batch=4;"
        "run.updates=2",
        "error: accumulation.steps: after update 0 no window is ever full again, so the run would never end (found "
        "4, "
        "expected windows that fill, or run.epochs as the limit)",
        "-");
    row("ranks that drop all there is",
        "data.samples=10;accumulation.micro_batch=6;parallel.data=2;accumulation.uneven_ranks=drop",
        "error: accumulation.micro_batch: the data do not fill one micro-step on every rank, and incomplete ones are "
        "dropped "
        "(found 6 x 2 ranks, expected at most 10 samples)",
        "5");
    row("heads do not divide the width", "model.heads=3",
        "error: model.heads: does not divide model.width (found 3, expected a divisor of 128)", "2");
    row("a GPT with a loss of distances", "model.loss=mse",
        "error: model.loss: does not fit a GPT, which predicts classes (found \"mse\", expected "
        "\"cross_entropy\")",
        "cross_entropy");
    row("tensor-parallel ranks that do not divide the heads", "parallel.tensor=3",
        "error: parallel.tensor: cannot divide this model: model.heads 4 is not a multiple of parallel.tensor 3 (found "
        "3, expected 2)",
        "2");
    row("tensor-parallel ranks of a small model", "model.kind=mlp;parallel.tensor=2",
        "error: parallel.tensor: cannot divide this model: model.kind \"mlp\" is not divided: only \"gpt\" is (found "
        "2, expected 1)",
        "1");
    row("stages that do not divide the layers", "model.layers=4;parallel.pipeline=3",
        "error: parallel.pipeline: cannot divide this model: model.layers 4 is not a multiple of parallel.pipeline x "
        "parallel.virtual_pipeline 3 (found 3, expected 2)",
        "2");
    row("chunks without stages", "parallel.virtual_pipeline=2",
        "error: parallel.virtual_pipeline: needs several pipeline stages (found 2, expected 1)", "1");
    row("chunks in windows that do not fill their groups",
        "model.layers=4;parallel.pipeline=2;parallel.virtual_pipeline=2;accumulation.steps=3",
        "error: accumulation.steps: does not fit parallel.virtual_pipeline: the interleaved schedule needs groups of "
        "at "
        "least as many micro-steps as there are stages (2), in the last group of a window too; this window has 3 in "
        "groups of 2 (found 3, expected a multiple of parallel.pipeline)",
        "4");
    row("weights of a divided model",
        "model.layers=1;model.width=4;model.heads=2;model.vocabulary=16;model.context=8;parallel.tensor=2;"
        "run.record_weights=true",
        "error: run.record_weights: needs an undivided model: parallel.tensor and parallel.pipeline must be 1 (found "
        "true, expected false)",
        "false");
    row("exactness of a divided model", "parallel.pipeline=2;evaluate.exactness_every=5",
        "error: evaluate.exactness_every: needs an undivided model: parallel.tensor and parallel.pipeline must be 1 "
        "(found 5, expected 0)",
        "0");
    row("a bug in a divided model", "parallel.tensor=2;teaching.bug=no_division",
        "error: teaching.bug: needs an undivided model: parallel.tensor and parallel.pipeline must be 1 (found "
        "\"no_division\", expected none)",
        "none");
    row("partial sums of a divided model that are clipped",
        "parallel.tensor=2;accumulation.clip_stage=every_micro_step;optimizer.clip_norm=1",
        "error: accumulation.clip_stage: needs an undivided model: parallel.tensor and parallel.pipeline must be 1 "
        "(found "
        "\"every_micro_step\", expected in_update)",
        "in_update");
    row("positions that do not divide", "model.context=65;parallel.tensor=2;parallel.sequence=true",
        "error: parallel.sequence: divides the positions of a sequence: model.context must be a multiple of "
        "parallel.tensor (found 65 positions, 2 ranks, expected false)",
        "false");
    row("exactness of a sharded gradient", "parallel.zero=1;evaluate.exactness_every=5",
        "error: evaluate.exactness_every: needs the whole gradient on every rank: parallel.zero must be 0 (found 5, "
        "expected 0)",
        "0");
    row("a sharded sum in every micro-step", "parallel.zero=1;accumulation.reduce_when=every_micro_step",
        "error: accumulation.reduce_when: needs the whole gradient on every rank: parallel.zero must be 0 (found "
        "\"every_micro_step\", expected boundary)",
        "boundary");
    row("a memory limit that nothing asks for", "accumulation.memory_limit=100",
        "error: accumulation.memory_limit: has an effect only with group_length memory_search (expected "
        "accumulation.group_length = \"memory_search\")",
        "");
    row("a defect that the dialect's original does not have", "accumulation.replay=[\"drain_early\"]",
        "error: accumulation.replay: the original of this dialect has no such defect (found \"drain_early\" with "
        "dialect accrue, expected another dialect, or a list without it)",
        "-");
    row("Accelerate's name and the knob behind it of two minds",
        "accumulation.dialect=accelerate;accumulation.sync_with_dataloader=false;accumulation.tail=flush",
        "error: accumulation.tail: contradicts accumulation.sync_with_dataloader (found \"flush\", expected "
        "\"carry\", or only one of the two keys)",
        "carry");
    row("another such name",
        "accumulation.dialect=accelerate;accumulation.step_scheduler_with_optimizer=false;accumulation.schedule_clock="
        "update",
        "error: accumulation.schedule_clock: contradicts accumulation.step_scheduler_with_optimizer (found "
        "\"update\", expected \"external\", or only one of the two keys)",
        "external");
    row("a way of epoch's end and Accelerate's run tail of two minds",
        "accumulation.dialect=accelerate;accumulation.sync_with_dataloader=false;accumulation.run_tail=flush",
        "error: accumulation.run_tail: contradicts accumulation.sync_with_dataloader (found \"flush\", "
        "expected "
        "\"discard\", or only one of the two keys)",
        "discard");
    row("exchanges asked for and asked not",
        "accumulation.dialect=accelerate;accumulation.sync_each_batch=false;accumulation.reduce_when=every_micro_step",
        "error: accumulation.reduce_when: contradicts accumulation.sync_each_batch (found "
        "\"every_micro_step\", expected \"boundary\", or only one of the two keys)",
        "boundary");
    row("a scheduler inside and outside",
        "accumulation.dialect=accelerate;accumulation.step_scheduler_with_optimizer=true;accumulation.schedule_clock="
        "external",
        "error: accumulation.schedule_clock: contradicts accumulation.step_scheduler_with_optimizer (found "
        "\"external\", expected \"update_times_world\", or only one of the two keys)",
        "update_times_world");
    row("whole batches on one rank's clock",
        "accumulation.dialect=accelerate;accumulation.split_batches=false;accumulation.schedule_clock=update",
        "error: accumulation.schedule_clock: contradicts accumulation.split_batches (found \"update\", "
        "expected "
        "\"update_times_world\", or only one of the two keys)",
        "update_times_world");
    row("a drained loader that flushes",
        "accumulation.dialect=colossalai;accumulation.replay=[\"drain_early\"];accumulation.tail=flush",
        "error: accumulation.tail: contradicts accumulation.replay = [\"drain_early\"] (found \"flush\", "
        "expected \"carry\", or only one of the two keys)",
        "carry");
    row("a defect of clipping without clipping",
        "accumulation.dialect=colossalai;accumulation.replay=[\"clip_partial_sums\"];accumulation.clip_stage=none",
        "error: accumulation.clip_stage: contradicts accumulation.replay = [\"clip_partial_sums\"] (found "
        "\"none\", expected \"every_micro_step\", or only one of the two keys)",
        "every_micro_step");
    row("a defect of exchanges without exchanges",
        "accumulation.dialect=llm;accumulation.replay=[\"narrow_no_sync\"];accumulation.reduce_when=never",
        "error: accumulation.reduce_when: contradicts accumulation.replay = [\"narrow_no_sync\"] (found "
        "\"never\", expected \"every_micro_step\", or only one of the two keys)",
        "every_micro_step");
    row("partial sums bound before they are divided",
        "accumulation.clip_stage=every_micro_step;accumulation.normalize_when=deferred;optimizer.clip_norm=1",
        "error: accumulation.normalize_when: divides at the boundary, but clip_stage = \"every_micro_step\" clips sums "
        "that are not divided yet (found \"deferred\", expected \"eager\")",
        "eager");
    row("a class that the model does not have", linear + "model.loss=cross_entropy;model.outputs=2",
        "error: model.outputs: a label is not a class of the model (found 2, expected 0 to 1, or -100)", "5");
    row("a memory limit that nothing fits into", "accumulation.group_length=memory_search;accumulation.memory_limit=1",
        "error: accumulation.memory_limit: is less than a rank needs even with the smallest micro-batch that "
        "divides a window (found 1.0 MiB, expected at least 128 MiB)",
        "-");
    row("an overflow on a rank that is not there", "teaching.overflow_rank=1",
        "error: teaching.overflow_rank: there is no such rank (found 1, expected less than parallel.data = 1)", "-");
    row("no CUDA device", "launch.device=cuda",
        "error: launch.device: this host has no CUDA device: no driver (found \"cuda\", expected \"cpu\")", "cpu");
    row("NCCL without CUDA", "parallel.backend=nccl",
        "error: parallel.backend: exchanges CUDA tensors only (found \"nccl\", expected \"auto\", or launch.device = "
        "\"cuda\")",
        "auto");
    row("a GPT on a table", "data.kind=csv",
        "error: data.kind: does not give the tokens that a GPT is trained on (found \"csv\", expected \"text\", "
        "\"tokens\" or \"synthetic\")",
        "synthetic");
    row("a linear model on text", "model.kind=linear;data.kind=text",
        "error: data.kind: gives tokens, and this model takes numbers (found \"text\", expected \"csv\", \"inline\" or "
        "\"synthetic\"; or model.kind = \"gpt\")",
        "synthetic");
    row("inputs that are not the data's", linear + "model.inputs=3",
        "error: model.inputs: does not fit the data (found 3, expected 1, the columns of x)", "1");
    row("outputs that are not the data's", linear + "model.outputs=2",
        "error: model.outputs: does not fit the data (found 2, expected 1, the columns of y)", "1");
    row("too few given weights", linear + "model.init=values;model.values=[1]",
        "error: model.values: does not have one number for each parameter (found 1, expected 2 numbers)", "-");
    row("sequences with a loss of distances", QString(ragged).replace("cross_entropy", "mse"),
        "error: model.loss: the labels of sequences are classes, which need cross-entropy (found \"mse\", expected "
        "\"cross_entropy\")",
        "cross_entropy");
    row("sequences for two inputs", ragged + "model.inputs=2",
        "error: model.inputs: each number of a sequence is one position (found 2, expected 1)", "1");
    row("a label that is no class", ragged + "data.labels=[[1],[1,0],[1,0,5]]",
        "error: model.outputs: a label is not a class of the model (found 5, expected 0 to 1, or -100)", "6");
    row("recorded weights of a large model", "run.record_weights=true",
        "error: run.record_weights: is for small models only (found 842496 parameters, expected under 1000)", "false");
    row("two lengths of one run", "run.updates=5;run.epochs=1",
        "error: run.epochs: only one key may limit a run (found run.epochs beside run.updates, expected one of "
        "updates, "
        "epochs, samples and tokens)",
        "");
    row("lowest rate above the highest", "schedule.kind=cosine;schedule.min_lr=0.5",
        "error: schedule.min_lr: is above the learning rate (found 0.5, expected at most optimizer.lr = 0.001)",
        "0.001");
    row("a name of Accelerate under another dialect", "accumulation.split_batches=true",
        "error: accumulation.split_batches: has a meaning only in the dialect accelerate (found dialect accrue, "
        "expected accumulation.dialect = \"accelerate\")",
        "");
    row("a name of MMEngine under another dialect", "accumulation.max_iters=50",
        "error: accumulation.max_iters: has a meaning only in the dialect mmengine (found dialect accrue, expected "
        "accumulation.dialect = \"mmengine\")",
        "");
    row("a run beyond max_iters", "accumulation.dialect=mmengine;accumulation.max_iters=10;run.updates=5",
        "error: accumulation.max_iters: ends the run's last window, but the run continues beyond it (found 10, "
        "expected 20, the "
        "micro-steps of the run)",
        "20");
    row("a global batch that does not divide",
        "accumulation.group_length=global_batch;accumulation.global_batch=30;parallel.data=2",
        "error: accumulation.global_batch: is not a multiple of micro_batch x ranks (found 30, expected a multiple of "
        "4 x "
        "2 = 8)",
        "24");
    row("a global batch that is not used", "accumulation.global_batch=32",
        "error: accumulation.global_batch: has an effect only with group_length global_batch (expected "
        "accumulation.group_length = \"global_batch\")",
        "");
    row("a length schedule out of order",
        "accumulation.group_length=by_update;accumulation.length_schedule=[[5,2],[0,4]]",
        "error: accumulation.length_schedule: is not in rising order of its first numbers (expected each row to begin "
        "later than the one before)",
        "-");
    row("a length schedule that is missing", "accumulation.group_length=by_epoch",
        "error: accumulation.length_schedule: is missing, and group_length needs it (expected a list of rows "
        "[from, steps])",
        "-");
    row("a run longer than anyone's patience", "run.updates=100000000",
        "error: run.updates: the run is too long (found up to 400000000 micro-steps, expected at most 100000000)", "-");
    row("data that are not there", "data.kind=text;data.path=no-such-file",
        "error: data.path: the file does not exist; name an existing file in data.path (found ./no-such-file)", "-");
    row("no file named", "data.kind=text", "error: data.path: no file is named; set data.path to the training data",
        "-");
    row("a context longer than the text", "data.kind=text;data.path=short.txt",
        "error: data.path: the file has 20 bytes, too few for one sample of 129; lower model.context, or name a longer "
        "file "
        "(found ./short.txt)",
        "-");
    row("a model that memory cannot hold", "model.width=16384;model.heads=16;model.layers=48",
        "error: model.width: the run does not fit into memory (found 2.3 TiB for all ranks, expected at most 16.0 GiB)",
        "-");
  }
  void refuses() {
    QFETCH(QString, settings);
    QFETCH(QString, expected);
    QFETCH(QString, fix);
    QTemporaryDir dir;
    QFile text(dir.filePath("short.txt"));
    QVERIFY(text.open(QIODevice::WriteOnly));
    text.write("twenty letters of it");
    text.close();
    const RunSpec spec = spec_of(settings);
    const Preflight result = preflight_files(spec, plain_host(), dir.path().toStdString());
    QVERIFY(!result.plan);
    QStringList errors;
    const Finding* error = nullptr;
    for (const Finding& finding : result.findings) {
      if (finding.severity != Severity::error) continue;
      errors << QString::fromStdString(finding.text()).replace(dir.path(), ".");
      error = &finding;
    }
    QCOMPARE(errors.join('\n'), expected);
    QCOMPARE(error->fix_value ? QString::fromStdString(*error->fix_value) : QString("-"), fix);
    if (!error->fix_value) return;
    // The offered value mends it, or at least leaves another problem to speak of.
    RunSpec mended = spec;
    std::vector<Finding> findings;
    set_field(mended, error->key + "=" + *error->fix_value, findings);
    QCOMPARE(texts(findings), QString());
    const Preflight again = preflight_files(mended, plain_host(), dir.path().toStdString());
    QVERIFY2(!texts(again.findings).contains(errors.front()), qPrintable(texts(again.findings)));
  }

  void warns_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* name, const QString& settings, const char* expected) {
      QTest::newRow(name) << settings << QString(expected);
    };
    row("windows longer than an epoch", "data.samples=8;accumulation.micro_batch=4;run.updates=3",
        "warning: accumulation.steps: a window is longer than an epoch, so windows are never full (found 4 "
        "micro-steps, expected at most 2, the micro-steps of an epoch)");
    row("carried windows longer than an epoch",
        "data.samples=8;accumulation.micro_batch=4;run.updates=3;accumulation.tail=carry",
        "warning: accumulation.steps: a window is longer than an epoch, so updates see samples more than once (found 4 "
        "micro-steps, expected at most 2, the micro-steps of an epoch)");
    row("a micro-batch larger than the data", "data.samples=10;accumulation.micro_batch=12;run.epochs=1",
        "warning: accumulation.micro_batch: is larger than the data (found 12, expected at most 10 samples)\n"
        "warning: accumulation.steps: a window is longer than an epoch, so windows are never full (found 4 "
        "micro-steps, expected at most 1, the micro-steps of an epoch)");
    row("ranks that do not fill", "data.samples=6;accumulation.micro_batch=4;parallel.data=2;accumulation.steps=1",
        "warning: accumulation.micro_batch: one micro-step over all ranks is larger than the data (found 4 x 2 ranks, "
        "expected at most 6 samples)");
    row("BatchNorm within windows", linear + "model.kind=mlp;model.batch_norm=true;run.updates=1",
        "warning: model.batch_norm: takes its statistics from each micro-batch, so an update differs from that of one "
        "large batch (found 4 micro-steps of 4 samples, expected false, or accumulation.steps = 1)\n"
        "warning: accumulation.steps: a window is longer than an epoch, so windows are never full (found 4 "
        "micro-steps, expected at most 1, the micro-steps of an epoch)");
    row("a sum of what ranks have divided",
        "parallel.data=2;accumulation.dialect=accelerate;accumulation.reduce_op=sum",
        "warning: accumulation.reduce_op: adds gradients that each rank has divided already, so the update is 2 "
        "times as large as on one rank (found \"sum\", expected \"mean\")");
    row("more threads than cores", "parallel.data=2;launch.threads_per_rank=3",
        "warning: launch.threads_per_rank: there are more threads than cores, so ranks wait for each other (found 2 "
        "ranks x 3 threads, expected 4 cores)");
    row("more ranks than cores", "parallel.data=8",
        "warning: parallel.data: there are more threads than cores, so ranks wait for each other (found 8 ranks x 1 "
        "thread, expected 4 cores)");
    row("bfloat16 on this CPU", "model.dtype=bfloat16",
        "warning: model.dtype: is far slower than float32 on this CPU, which has no AVX512 BF16 (found "
        "\"bfloat16\", expected \"float32\")");
    row("float16 on a CPU", "model.dtype=float16",
        "warning: model.dtype: is far slower than float32 on a CPU (found \"float16\", expected "
        "\"float32\")");
    row("no window gets full",
        "accumulation.dialect=colossalai;data.samples=10;accumulation.micro_batch=1;accumulation.steps=16",
        "warning: accumulation.steps: no window is ever full, so nothing is learned (found 16, expected at most 10)");
    row("a bug on purpose", "teaching.bug=no_division",
        "warning: teaching.bug: this run has a deliberate bug, which its record names (found "
        "\"no_division\", expected \"none\" for a real run)");
    row("a defect on purpose", "accumulation.dialect=accelerate;accumulation.replay=[\"zero_before_backward\"]",
        "note: accumulation.replay: reproduces a defect of the original: zero_before_backward");
    row("a global batch that is rounded",
        "accumulation.group_length=global_batch;accumulation.global_batch=30;accumulation.batch_rounding=fill",
        "note: accumulation.global_batch: is not a multiple of micro_batch x ranks = 4, and is rounded to one that is");
    row("warm-up longer than the run", "schedule.warmup=300;run.updates=100",
        "warning: schedule.warmup: the warm-up is longer than the run, so the rate never reaches its peak (found 300 "
        "positions, expected at most 100)");
    row("schedule that ends early", "schedule.kind=linear;schedule.total=50;run.updates=100",
        "warning: schedule.total: the schedule ends before the run, which continues at the lowest rate (found 50 "
        "positions, expected 100)");
    row("schedule that does not end", "schedule.kind=cosine;schedule.total=500;run.updates=100",
        "warning: schedule.total: the run ends before the schedule, so the rate does not come down (found 500 "
        "positions, expected 100)");
    row("nothing to evaluate on", "evaluate.every_updates=5",
        "warning: evaluate.every_updates: there is nothing to evaluate on, since no samples are set aside for it "
        "(found 5, "
        "expected 0, or data.validation_fraction above 0)");
    row("nothing to evaluate on inside a window", "evaluate.every_micro_steps=3",
        "warning: evaluate.every_micro_steps: there is nothing to evaluate on, since no samples are set aside for it "
        "(found "
        "3, expected 0, or data.validation_fraction above 0)");
    row("clipping that MMEngine's wrapper leaves out", "accumulation.dialect=mmengine;optimizer.clip_norm=1",
        "warning: optimizer.clip_norm: is not applied: the dialect mmengine does not clip by itself (found "
        "1.0, expected 0, or accumulation.clip_stage = \"in_update\")");
    row("ranks that never meet", "parallel.data=2;accumulation.reduce_when=never",
        "warning: accumulation.reduce_when: the ranks never exchange gradients and train models of their own (found "
        "\"never\" with 2 ranks, expected \"boundary\")");
    row("ranks that count for themselves", "parallel.data=2;accumulation.normalizer_scope=rank",
        "warning: accumulation.normalizer_scope: each rank divides by its own count, so ranks with fewer items weigh "
        "more (found \"rank\", expected \"data_parallel\")\nnote: accumulation.normalize_when: the count of a window "
        "is known only at its end, so its batches are fetched and counted before its first micro-step");
    row("inline numbers beside other data", "data.x=[[1]]",
        "warning: data.x: is not used, since data.kind is not \"inline\" (found \"synthetic\", expected data.kind = "
        "\"inline\")");
    row("Colossal-AI's clipping", "accumulation.dialect=colossalai;optimizer.clip_norm=1",
        "note: optimizer.clip_norm: is applied at the boundary, as Colossal-AI's first version did; its later one "
        "clips in every micro-step");
    row("a knob without effect", "accumulation.dialect=accelerate;accumulation.adjust_scheduler=false",
        "note: accumulation.adjust_scheduler: has no effect, here as in Accelerate");
    row("windows that cross epochs", "accumulation.dialect=llm;data.samples=40;accumulation.micro_batch=4;run.epochs=2",
        "note: accumulation.dialect: windows cross epochs: an update of the second epoch uses 2 micro-steps of the "
        "first");
    row("dropped tails", "accumulation.dialect=colossalai;data.samples=40;run.epochs=2",
        "note: accumulation.steps: the run drops 4 micro-steps at the ends of its epochs");
    row("gradients that are never used", "accumulation.dialect=llm;data.samples=40;run.epochs=1",
        "note: accumulation.steps: the run ends with 2 micro-steps whose gradients are never used in an update");
    row("a schedule that ticks at every call",
        "accumulation.dialect=accelerate;accumulation.step_scheduler_with_optimizer=false;schedule.kind=linear",
        "note: accumulation.schedule_clock: the schedule ticks at every call, which is once a micro-step, whatever the "
        "window does");
    row("a kind of clipping without a bound", "accumulation.clip_kind=value",
        "note: accumulation.clip_kind: changes nothing here: optimizer.clip_norm is 0, so nothing is clipped");
    row("a reduction on one rank", "accumulation.reduce_op=sum",
        "note: accumulation.reduce_op: changes nothing here: there is only one rank");
    row("a scope of no count", "accumulation.normalizer=steps;accumulation.normalizer_scope=rank;parallel.data=2",
        "note: accumulation.normalizer_scope: changes nothing here: the normalizer counts neither samples nor tokens");
    row("an overflow rule that goes before the general one", "accumulation.overflow=hold",
        "note: run.on_non_finite: is overridden by accumulation.overflow = \"hold\", which skips windows with a "
        "non-finite gradient");
    row("an overflow on purpose that ends the run", "teaching.overflow_at=[2]",
        "warning: teaching.overflow_at: losses are deliberately made infinite (found 1 micro-step, expected [] for a "
        "real run)\nnote: teaching.overflow_at: ends or pauses the run, as run.on_non_finite says; to skip the window "
        "instead, set accumulation.overflow to \"hold\" or \"advance\"");
    row("a bug that nothing can go wrong with", "teaching.bug=pipeline_sync",
        "note: teaching.bug: \"pipeline_sync\" changes nothing in this run: there is only one rank\n"
        "warning: teaching.bug: this run has a deliberate bug, which its record names (found "
        "\"pipeline_sync\", expected \"none\" for a real run)");
    row("traffic of the windows that there are",
        "accumulation.group_length=global_batch;accumulation.global_batch=16;accumulation.reduce_when=every_micro_step;"
        "parallel.data=2",
        "note: accumulation.reduce_when: gives the same result as \"boundary\" for 2 times the traffic");
    row("traffic in every micro-step",
        "accumulation.dialect=accelerate;accumulation.sync_each_batch=true;parallel.data=2",
        "note: accumulation.reduce_when: gives the same result as \"boundary\" for 4 times the traffic");
  }
  void warns() {
    QFETCH(QString, settings);
    QFETCH(QString, expected);
    const Preflight result = preflight_files(spec_of(settings), plain_host(), ".");
    QCOMPARE(texts(result.findings), expected);
    QVERIFY(result.plan.has_value());
  }

  void a_gpu_is_taken_where_there_is_one() {
    const Preflight one = preflight_files(spec_of("launch.device=cuda"), gpu_host(), ".");
    QCOMPARE(texts(one.findings), QString());
    QVERIFY(one.plan->backend == BackendKind::nccl);
    const Preflight two = preflight_files(spec_of("launch.device=cuda;parallel.data=2"), gpu_host(), ".");
    QCOMPARE(
        texts(two.findings),
        QString("error: parallel.data: there are more ranks than CUDA devices (found 2 ranks, expected at most 1)"));
    const Preflight shm = preflight_files(spec_of("launch.device=cuda;parallel.backend=shm"), gpu_host(), ".");
    QVERIFY(texts(shm.findings).startsWith("error: parallel.backend: exchanges CPU tensors only"));
    HostFacts without = plain_host();
    without.backends = {"shm"};
    const Preflight gloo = preflight_files(spec_of("parallel.backend=gloo"), without, ".");
    QVERIFY(texts(gloo.findings).startsWith("error: parallel.backend: is not in this build of accrue-rank"));
  }

  void memory_that_is_nearly_full_is_a_warning_with_a_smaller_micro_batch() {
    HostFacts host = plain_host();
    RunSpec spec = spec_of("accumulation.micro_batch=64");
    const auto whole = preflight_files(spec, host, ".").plan->memory.total();
    host.memory_bytes = whole * 10 / 9;
    const Preflight tight = preflight_files(spec, host, ".");
    QVERIFY(tight.plan.has_value());
    QVERIFY2(texts(tight.findings).startsWith("warning: accumulation.micro_batch: the run leaves little memory"),
             qPrintable(texts(tight.findings)));
    std::vector<Finding> findings;
    set_field(spec, "accumulation.micro_batch=" + *tight.findings[0].fix_value, findings);
    QCOMPARE(texts(preflight_files(spec, host, ".").findings), QString());
    host.memory_bytes = whole / 2;
    QVERIFY(!preflight_files(spec_of("accumulation.micro_batch=64"), host, ".").plan);
  }

  void a_search_for_memory_stops_where_the_warning_about_memory_does() {
    HostFacts host = plain_host();
    const QString searched = "accumulation.group_length=memory_search;accumulation.micro_batch=64;parallel.data=3";
    const auto whole = preflight_files(spec_of("accumulation.micro_batch=64"), host, ".").plan->memory.total();
    for (std::int64_t bytes = 3 * whole; bytes < 3 * whole * 13 / 10; bytes += whole / 50 + 1) {
      host.memory_bytes = bytes;
      const QString said = texts(preflight_files(spec_of(searched), host, ".").findings);
      QVERIFY2(!said.contains("memory"), qPrintable(said));
    }
  }

  void a_pipeline_waits_for_the_ends_of_windows_and_says_so() {
    const RunSpec spec = spec_of("parallel.pipeline=2;checkpoint.every_micro_steps=3;evaluate.every_micro_steps=5");
    const QString found = texts(preflight_files(spec, plain_host(), ".").findings);
    for (const char* key : {"checkpoint", "evaluate"})
      QVERIFY2(found.contains(QString("note: %1.every_micro_steps: waits for the end of a window").arg(key)),
               qPrintable(found));
    // The plan says so, too, once it is not refused any more.
    RunPlan plan = *preflight_files(spec_of("checkpoint.every_micro_steps=3"), plain_host(), ".").plan;
    const QString words = "Pausing, single steps, evaluation and checkpoints wait for the end of a window";
    QVERIFY(!QString::fromStdString(plan_report(plan)).contains(words));
    plan.spec.parallel.pipeline = 2;
    QVERIFY(QString::fromStdString(plan_report(plan)).contains(words));
  }

  void what_is_due_inside_a_window_of_a_pipeline_is_due_at_its_end() {
    RunSpec spec;
    WindowShape shape;
    shape.steps = 4;
    shape.batches_per_epoch = 100;
    shape.max_micro_steps = 16;
    const auto due = [&](std::int64_t every) {
      QStringList at;
      for (const MicroPlan& micro : preview_windows(shape, 16))
        if (due_after(spec, micro, every)) at << QString::number(micro.micro_step);
      return at.join(' ');
    };
    QCOMPARE(due(0), QString());
    QCOMPARE(due(3), QString("3 6 9 12 15"));
    spec.parallel.pipeline = 2;
    QCOMPARE(due(0), QString());
    QCOMPARE(due(3), QString("4 8 12 16"));
    QCOMPARE(due(6), QString("8 12"));
    QCOMPARE(due(1), QString("4 8 12 16"));
  }

  void everything_is_reported_at_once() {
    const Preflight result = preflight_files(
        spec_of(
            "model.heads=3;parallel.virtual_pipeline=2;launch.device=cuda;run.updates=1;run.epochs=1;data.kind=text"),
        plain_host(), ".");
    QStringList keys;
    for (const Finding& finding : result.findings) keys << QString::fromStdString(finding.key);
    QCOMPARE(keys,
             QStringList({"model.heads", "run.epochs", "parallel.virtual_pipeline", "launch.device", "data.path"}));
  }

  void values_that_a_form_could_set_are_checked_too() {
    RunSpec spec;
    spec.accumulation.steps = 0;
    spec.parallel.data = -3;
    spec.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
    const Preflight result = preflight(spec, plain_host(), DataFacts(), ".");
    QVERIFY(!result.plan);
    QStringList keys;
    for (const Finding& finding : result.findings) keys << QString::fromStdString(finding.key);
    QCOMPARE(keys, QStringList({"optimizer.lr", "accumulation.steps", "parallel.data"}));
  }

  void threads_share_the_cores() {
    QCOMPARE(preflight_files(spec_of(""), plain_host(), ".").plan->threads_per_rank, 4);
    QCOMPARE(preflight_files(spec_of("parallel.data=3"), plain_host(), ".").plan->threads_per_rank, 1);
    QCOMPARE(preflight_files(spec_of("launch.threads_per_rank=2"), plain_host(), ".").plan->threads_per_rank, 2);
  }
};

QTEST_GUILESS_MAIN(TestPreflight)
#include "test_preflight.moc"
