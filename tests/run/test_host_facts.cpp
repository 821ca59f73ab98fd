// SPDX-License-Identifier: Apache-2.0
// Facts of a host, read from made-up file systems, and the handling of a rank program's answer or silence.
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/base/version.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/host/probe_plugins.h"
#include "engine/run/facts/host_sources.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_host_facts {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

constexpr std::int64_t mib = 1024 * 1024;

HostFacts sample_facts() {
  HostFacts facts;
  facts.host_name = "h\"1";
  facts.cores = 3;
  facts.memory_bytes = 5;
  facts.cpu_name = "c";
  facts.avx2 = true;
  facts.torch_version = "2.11.0";
  facts.accrue_version = "9.9";
  facts.backends = {"shm", "gloo"};
  facts.cuda_devices = {{"G", 7}};
  facts.cuda_error = "none";
  return facts;
}

}  // namespace

class TestHostFacts : public QObject {
  Q_OBJECT
 private:
  void write(const QTemporaryDir& root, const char* path, const QByteArray& text) {
    QVERIFY(QDir(root.path()).mkpath(QFileInfo(path).path()));
    QFile file(root.filePath(path));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
  }
  // A program that does what the shell says.
  std::string program(const QTemporaryDir& dir, const QByteArray& script) {
    const QString path = dir.filePath("accrue-rank");
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\n" + script);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path.toStdString();
  }

 private Q_SLOTS:
  void this_host_has_something() {
    const HostFacts facts = local_facts();
    QVERIFY(facts.cores >= 1);
    QVERIFY(facts.memory_bytes > 64 * mib);
    QCOMPARE(facts.accrue_version, std::string(version()));
    QVERIFY(facts.backends == std::vector<std::string>({"shm"}));
    QVERIFY(facts.torch_version.empty());
  }

  void memory_is_the_least_limit_on_the_way_up_data() {
    const Rows<QByteArray, QList<QByteArray>, qint64> row;
    using Files = QList<QByteArray>;
    row("no groups", QByteArray(), Files(), qint64{8192} * mib);
    row("version 2", QByteArray("0::/a/b\n"), Files{"sys/fs/cgroup/a/b/memory.max", "1073741824\n"},
        qint64{1024} * mib);
    row("version 2, a parent is tighter", QByteArray("0::/a/b\n"),
        Files{"sys/fs/cgroup/a/b/memory.max", "max\n", "sys/fs/cgroup/a/memory.max", "536870912\n"}, qint64{512} * mib);
    row("version 1", QByteArray("4:cpu:/x\n3:hugetlb,memory:/c\n"),
        Files{"sys/fs/cgroup/memory/c/memory.limit_in_bytes", "268435456\n"}, qint64{256} * mib);
    row("version 1, no limit", QByteArray("3:memory:/c\n"),
        Files{"sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n"}, qint64{8192} * mib);
    row("a container that sees only its root", QByteArray("3:memory:/outside/view\n"),
        Files{"sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"}, qint64{128} * mib);
    row("nonsense", QByteArray("no colons\n:\n0::\n"), Files(), qint64{8192} * mib);
  }
  void memory_is_the_least_limit_on_the_way_up() {
    const auto [group, files, expected] = current_row<QByteArray, QList<QByteArray>, qint64>();
    QTemporaryDir root;
    write(root, "proc/meminfo", "MemFree: 1 kB\nMemTotal:        8388608 kB\n");
    write(root, "proc/self/cgroup", group);
    for (int i = 0; i + 1 < files.size(); i += 2) write(root, files[i].constData(), files[i + 1]);
    QCOMPARE(host_detail::usable_memory(root.path().toStdString()), expected);
  }

  void flags_are_whole_words() {
    QTemporaryDir root;
    write(root, "proc/cpuinfo",
          "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 avx512vl avx512_bf16x\n\n"
          "processor\t: 1\nflags\t\t: avx512f\n");
    HostFacts facts;
    host_detail::read_cpu(root.path().toStdString(), facts);
    QCOMPARE(facts.cpu_name, std::string("Some CPU"));
    QVERIFY(facts.avx2);
    QVERIFY(!facts.avx512);
    QVERIFY(!facts.avx512_bf16);
  }

  void facts_go_through_json_and_back() {
    const auto back = host_facts_from_json(to_json(sample_facts()));
    QVERIFY2(back, back ? "" : back.error().text().c_str());
    QVERIFY(*back == sample_facts());
    QVERIFY(!host_facts_from_json("{}"));
    QVERIFY(!host_facts_from_json("{\"cores\": \"three\"}"));
    QVERIFY(!host_facts_from_json(std::string(100'000, '[')));
  }

  void a_probe_adds_what_the_rank_program_knows() {
    QTemporaryDir dir;
    const auto facts =
        probe_host(program(dir, "test \"$1\" = --probe || exit 9\necho 'a library says something'\necho '" +
                                    QByteArray::fromStdString(to_json(sample_facts())) + "'\n"));
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QCOMPARE(facts->torch_version, std::string("2.11.0"));
    QCOMPARE(facts->cuda_devices.size(), 1u);
    QCOMPARE(facts->accrue_version, std::string("9.9"));
    QCOMPARE(facts->host_name, local_facts().host_name);  // what this process sees of the host is its own
    QCOMPARE(facts->cores, local_facts().cores);
  }

  void much_output_does_not_block_the_probe() {
    QTemporaryDir dir;
    const auto facts =
        probe_host(program(dir,
                           "head -c 300000 /dev/zero | tr '\\0' 'x' >&2\nhead -c 300000 /dev/zero | tr '\\0' 'x'\n"
                           "echo\necho '" +
                               QByteArray::fromStdString(to_json(sample_facts())) + "'\n"));
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
  }

  void says_how_a_probe_failed_data() {
    const Rows<QByteArray, QString> row;
    row("exit status", QByteArray("echo first >&2; echo 'libtorch is missing' >&2; exit 3\n"),
        "the rank program failed with exit status 3: libtorch is missing");
    row("signal", QByteArray("kill -SEGV $$\n"), "was ended by signal 11 (Segmentation fault)");
    row("no answer", QByteArray("exit 0\n"), "the rank program's answer cannot be read");
    row("not an answer", QByteArray("echo hello\n"), "the rank program's answer cannot be read");
  }
  void says_how_a_probe_failed() {
    const auto [script, words] = current_row<QByteArray, QString>();
    QTemporaryDir dir;
    const auto facts = probe_host(program(dir, script));
    VERIFY_FAILS(facts, ErrorCode::device, words.toStdString());
  }

  void a_missing_or_foreign_program_is_told() {
    const auto missing = probe_host("/no/such/accrue-rank");
    QVERIFY(!missing);
    QVERIFY(missing.error().message.find("there is no rank program") != std::string::npos);
    QTemporaryDir dir;
    QFile file(dir.filePath("data"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("not a program");
    file.close();
    const auto foreign = probe_host(file.fileName().toStdString());
    QVERIFY(!foreign);
    QVERIFY(foreign.error().message.find("cannot be started") != std::string::npos);
  }

  void a_probe_that_hangs_is_killed_at_the_deadline() {
    QTemporaryDir dir;
    QElapsedTimer timer;
    timer.start();
    const auto facts = probe_host(program(dir, "exec sleep 600\n"));
    QVERIFY(!facts);
    QVERIFY2(facts.error().message.find("did not answer within 10 s") != std::string::npos,
             facts.error().text().c_str());
    QVERIFY(timer.elapsed() < 20'000);
  }

  /// The effect of each library on the process that loads it is reported for that library alone.
  void each_plug_in_library_has_an_answer_of_its_own() {
    QTemporaryDir dir;
    const std::string asked = program(
        dir,
        "shift\nfor file in \"$@\"; do case $file in *bad.so) echo 'it is wild' >&2; kill -SEGV $$;; esac; done\n"
        "printf '['; comma=\nfor file in \"$@\"; do\n"
        "printf '%s{\"file\":\"%s\",\"name\":\"n\",\"sha256\":\"s\",\"entries\":[],\"error\":\"\"}' \"$comma\" "
        "\"$file\"; comma=,\n"
        "done\necho ']'\n");
    const auto facts = describe_plugins(asked, {"/a.so", "/bad.so", "/b.so", "/./a.so"});
    QCOMPARE(facts.size(), std::size_t{3});
    QCOMPARE(facts[0].file, std::string("/a.so"));
    QCOMPARE(facts[0].error, std::string());
    QCOMPARE(facts[1].file, std::string("/bad.so"));
    QVERIFY2(facts[1].error.find("Segmentation fault") != std::string::npos, facts[1].error.c_str());
    QVERIFY2(facts[1].error.find("it is wild") != std::string::npos, facts[1].error.c_str());
    QCOMPARE(facts[2].file, std::string("/b.so"));
    QVERIFY(describe_plugins(asked, {}).empty());
  }
};

ACCRUE_TEST_MAIN(TestHostFacts)

}  // namespace test_host_facts
#include "test_host_facts.moc"
