// SPDX-License-Identifier: Apache-2.0
// Corpora that are larger than memory should be: how much building one, opening it and planning with it take.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QTest>
#include <filesystem>
#include <fstream>

#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/process/child_process.h"
#include "support/places.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_large_corpora {

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr long most_growth_kib = 16 * 1024;

/// Returns the peak memory of accrue-run and its children, in KiB; -1 if it fails.
long peak_kib(const QStringList& arguments) {
  ProcessStart how{.what = "accrue-run", .command = {programPath("accrue-run").toStdString()}};
  for (const QString& each : arguments) how.command.push_back(each.toStdString());
  how.mute({STDOUT_FILENO});
  auto process = start_process(std::move(how));
  if (!process) return -1;
  int status = -1;
  rusage used{};
  const bool ended = ::wait4(process->pid(), &status, 0, &used) == process->pid();
  process->let_go();
  return ended && status == 0 ? used.ru_maxrss : -1;
}

rusage used_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

template <typename T>
void put(std::ofstream& file, T value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Five sequences of 2^30 tokens of two bytes, 10 GiB that take no room on the disk.
void write_sparse_corpus(const std::filesystem::path& prefix) {
  constexpr std::uint64_t sequences = 5;
  constexpr std::int32_t length = 1 << 30;
  std::ofstream(bin_path(prefix)).flush();
  std::filesystem::resize_file(bin_path(prefix), sequences * length * sizeof(std::uint16_t));
  std::ofstream index(idx_path(prefix), std::ios::binary);
  index.write("MMIDIDX\0\0", 9);
  put(index, std::uint64_t{1});
  put(index, std::uint8_t{8});  // uint16
  put(index, sequences);
  put(index, sequences + 1);
  for (std::uint64_t i = 0; i < sequences; ++i) put(index, length);
  for (std::uint64_t i = 0; i < sequences; ++i) put(index, static_cast<std::int64_t>(i * length * 2));
  for (std::uint64_t i = 0; i <= sequences; ++i) put(index, static_cast<std::int64_t>(i));
}

}  // namespace

class TestLargeCorpora : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;

  QString at(const char* name) const { return temporary_.filePath(QLatin1String(name)); }

 private Q_SLOTS:
  void a_longer_text_takes_no_more_memory_data() {
    const Rows<QStringList> row;
    row("bytes, a file", {});
    row("bytes, lines", {"--documents", "line"});
    row("word pieces", {"--tokenizer", "wordpiece:" + at("vocabulary.txt")});
  }
  void a_longer_text_takes_no_more_memory() {
#ifdef __SANITIZE_ADDRESS__
    QSKIP("what the sanitizer keeps is no memory of the program's");
#endif
    const auto [arguments] = current_row<QStringList>();
    std::ofstream(at("vocabulary.txt").toStdString())
        << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsaw\na\nmat\n.\n";
    std::string line;
    for (int i = 0; i < 30; ++i) line += "the cat saw a mat. ";
    line += '\n';
    std::vector<long> peaks;
    for (const std::size_t mib : {std::size_t{4}, std::size_t{64}}) {
      const QString name = QStringLiteral("%1-%2").arg(QTest::currentDataTag()).arg(mib);
      const QString text = temporary_.filePath(name + ".txt");
      {
        std::ofstream file(text.toStdString(), std::ios::binary);
        for (std::size_t written = 0; written < mib << 20; written += line.size()) file << line;
      }
      peaks.push_back(peak_kib(QStringList{"data", "build", text, "--out", temporary_.filePath(name)} + arguments));
      QVERIFY(peaks.back() > 0);
      QFile::remove(text);
    }
    QVERIFY2(peaks[1] - peaks[0] < most_growth_kib,
             qPrintable(QStringLiteral("%1, %2 KiB").arg(peaks[0]).arg(peaks[1])));
  }

  /// The file's pages would count as this process' memory, and each would be a fault.
  void ten_gibibytes_are_opened_and_planned_without_being_read() {
    const std::filesystem::path prefix = at("sparse").toStdString();
    write_sparse_corpus(prefix);
    RunSpec spec;
    spec.data.kind = DataKind::indexed;
    spec.data.paths = {prefix.string()};
    const rusage before = used_so_far();
    const auto dataset = IndexedDataset::open(prefix);
    QVERIFY2(dataset, dataset ? "" : dataset.error().text().c_str());
    QCOMPARE(dataset->tokens(), std::int64_t{5} << 30);
    const auto facts = scan_data(spec, temporary_.path().toStdString());
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QVERIFY(facts->bytes > std::int64_t{10} << 30);
    const rusage after = used_so_far();
    QVERIFY2(after.ru_maxrss - before.ru_maxrss < most_growth_kib, "KiB");
    QVERIFY2(after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt < 4096, "faults");

    const long shown = peak_kib({"data", "show", QString::fromStdString(prefix.string())});
    const long plain = peak_kib({"--version"});
    QVERIFY(plain > 0 && shown > 0);
    QVERIFY2(shown - plain < most_growth_kib, qPrintable(QString::number(shown)));
  }
};

ACCRUE_TEST_MAIN(TestLargeCorpora)

}  // namespace test_large_corpora
#include "test_large_corpora.moc"
