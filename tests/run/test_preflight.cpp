// SPDX-License-Identifier: Apache-2.0
// Findings of preflight with their words, and the effect of the fixes that they offer.
#include <QTest>

#include <sys/resource.h>

#include "accrue/run/facts/data_facts.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/whatif/dialect_comparison.h"
#include "accrue/run/window/inside_windows.h"
#include "support/long_plans.h"
#include "support/test_program.h"

namespace test_preflight {

using namespace accrue;
using accrue::test::addLongPlans;
using accrue::test::spec_of;

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

QString texts(const std::vector<Finding>& findings) {
  QStringList lines;
  for (const Finding& finding : findings) lines << QString::fromStdString(finding.text());
  return lines.join('\n');
}

}  // namespace

class TestPreflight : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_plan_costs_nothing_of_what_it_plans_data() { addLongPlans(); }
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

  void a_search_for_memory_says_what_it_found() {
    const QString spec = "accumulation.micro_batch=4;accumulation.steps=4;accumulation.group_length=memory_search;";
    const auto at = [](const QString& settings) {
      return static_cast<double>(preflight_files(spec_of(settings), plain_host(), ".").plan->memory.total()) / 1048576;
    };
    const double limit = (at("accumulation.micro_batch=1") + at("accumulation.micro_batch=2")) / 2;
    const auto said = [&](const QString& more) {
      return texts(preflight_files(spec_of(spec + more), plain_host(), ".").findings);
    };
    QCOMPARE(said(QString("accumulation.memory_limit=%1").arg(limit, 0, 'g', 17)),
             QString("note: accumulation.micro_batch: is more than a rank has room for: the run trains with "
                     "micro-batches of 1 sample and N = 16"));
    QCOMPARE(said(""), QString());
  }

  /// Nor is anything else said of the memory of a model that only a library knows.
  void a_librarys_model_is_not_searched_for_memory() {
    const PluginFacts library{
        "mine.so", "mine", std::string(64, '0'), {{"custom_model_provider_function", "slope"}}, {}};
    HostFacts host = plain_host();
    host.memory_bytes = 1 << 20;
    const auto said = [&](const QString& settings) {
      return texts(preflight_files(spec_of("megatron.custom_model_provider_function=slope;" + settings), host, ".",
                                   std::span(&library, 1))
                       .findings);
    };
    QCOMPARE(said(""), QString());
    QVERIFY2(said("accumulation.group_length=memory_search")
                 .contains("error: accumulation.group_length: searches by what a rank holds, which is not known of a "
                           "plug-in library's model"),
             qPrintable(said("accumulation.group_length=memory_search")));
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

ACCRUE_TEST_MAIN(TestPreflight)

}  // namespace test_preflight
#include "test_preflight.moc"
