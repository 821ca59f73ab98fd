// SPDX-License-Identifier: GPL-3.0-or-later
// Columns whose full chunks leave for a file: what was appended is read back bit for bit, whatever happens to the file.
#include <sys/resource.h>

#include <QDir>
#include <QSignalSpy>
#include <QStorageInfo>
#include <QTemporaryDir>
#include <QTest>
#include <atomic>
#include <bit>
#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <thread>

#include "points/chunked.h"
#include "points/series_store.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_chunked {

using namespace accrue::ui;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

constexpr int patience_ms = 30000;
constexpr std::size_t chunk = Chunked<double>::chunkSize;

/// The i-th of values without a pattern, among them those that are no number.
double irregular(std::size_t i) {
  std::uint64_t bits = (i + 1) * 0x9E3779B97F4A7C15ULL;
  bits ^= bits >> 29;
  if (i % 97 == 0) return std::numeric_limits<double>::quiet_NaN();
  if (i % 101 == 0) return -std::numeric_limits<double>::infinity();
  if (i % 103 == 0) return -0.0;
  return std::bit_cast<double>(bits);
}

/// Tests run in the build tree, which is on a disk; where temporary files go may be memory, which is refused.
QString onDisk() {
  return QDir::current().filePath(QStringLiteral("chunks-XXXXXX"));
}

void append(Chunked<double>& column, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) column.push(irregular(column.size()));
}

/// Index of the first element that is not as it was appended; the size if all are.
std::size_t firstWrong(const Chunked<double>& column) {
  std::size_t i = 0;
  while (i < column.size() && std::bit_cast<std::uint64_t>(column[i]) == std::bit_cast<std::uint64_t>(irregular(i)))
    ++i;
  return i;
}

/// No file of this process becomes larger than this while it lives.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LargestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LargestFile(const LargestFile&) = delete;
  LargestFile& operator=(const LargestFile&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

class TestChunked : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_was_appended_is_read_back_data() {
    const Rows<std::size_t> row;
    row("nothing", std::size_t{0});
    row("one", std::size_t{1});
    row("the first growth", std::size_t{65});
    row("a chunk but one", chunk - 1);
    row("a chunk", chunk);
    row("a chunk and one", chunk + 1);
    row("many chunks", 20 * chunk + 7);
  }

  void what_was_appended_is_read_back() {
    const auto [count] = current_row<std::size_t>();
    const QTemporaryDir folder(onDisk());
    ChunkFile file(folder.path(), 0);
    Chunked<double> column(file);
    append(column, count);
    QCOMPARE(column.size(), count);
    QCOMPARE(firstWrong(column), count);
    const std::size_t full = count == 0 ? 0 : (count - 1) / chunk;
    QTRY_COMPARE_WITH_TIMEOUT(file.storedBytes(), full * ChunkFile::chunkBytes, patience_ms);
    append(column, chunk);  // takes what is stored by now from the file
    QCOMPARE(firstWrong(column), count + chunk);
  }

  void a_file_is_not_seen_in_its_folder() {
    const QTemporaryDir folder(onDisk());
    ChunkFile file(folder.filePath(QStringLiteral("made/if/need/be")), 0);
    Chunked<double> column(file);
    append(column, 3 * chunk);
    QTRY_VERIFY_WITH_TIMEOUT(file.storedBytes() > 0, patience_ms);
    const QDir made(folder.filePath(QStringLiteral("made/if/need/be")));
    QVERIFY(made.exists());
    QVERIFY(made.isEmpty());
  }

  void a_column_can_be_cut_and_grown_again_data() {
    const Rows<std::size_t> row;
    row("to nothing", std::size_t{0});
    row("within the first chunk", std::size_t{5});
    row("between two chunks", 3 * chunk);
    row("within a stored chunk", 3 * chunk + 100);
    row("within the last", 6 * chunk + 1);
  }

  void a_column_can_be_cut_and_grown_again() {
    const auto [kept] = current_row<std::size_t>();
    const QTemporaryDir folder(onDisk());
    ChunkFile file(folder.path(), 0);
    Chunked<double> column(file);
    append(column, 6 * chunk + 50);
    QTRY_COMPARE_WITH_TIMEOUT(file.storedBytes(), 6 * ChunkFile::chunkBytes, patience_ms);
    append(column, chunk);
    const Chunked<double> before = column;
    column.truncate(kept);
    QCOMPARE(column.size(), kept);
    QCOMPARE(firstWrong(column), kept);
    if (kept > 0) {
      column.setBack(0.5);
      QCOMPARE(column.back(), 0.5);
      column.setBack(irregular(kept - 1));
    }
    append(column, 2 * chunk);
    QCOMPARE(firstWrong(column), kept + 2 * chunk);
    QCOMPARE(before.size(), 7 * chunk + 50);
    QCOMPARE(firstWrong(before), before.size());
  }

  void a_copy_is_read_by_another_thread_while_the_column_grows() {
    const QTemporaryDir folder(onDisk());
    ChunkFile file(folder.path(), 0);
    Chunked<double> column(file);
    append(column, chunk + 30);
    std::atomic<bool> wrong = false;
    for (int copy = 0; copy < 20; ++copy) {
      std::thread reader([snapshot = column, &wrong] {
        for (int pass = 0; pass < 3; ++pass)
          if (firstWrong(snapshot) != snapshot.size()) wrong = true;
      });
      append(column, chunk / 3);
      reader.join();
    }
    QVERIFY(!wrong);
    QCOMPARE(firstWrong(column), column.size());
  }

  void places_of_columns_that_are_gone_are_used_again() {
    const QTemporaryDir folder(onDisk());
    const LargestFile limit(rlim_t{1} << 24);
    ChunkFile file(folder.path(), 0);
    QSignalSpy failed(&file, &ChunkFile::failed);
    for (int run = 0; run < 8; ++run) {
      Chunked<double> column(file);
      append(column, 300 * chunk + 1);
      QTRY_COMPARE_WITH_TIMEOUT(file.storedBytes(), 300 * ChunkFile::chunkBytes, patience_ms);
      QCOMPARE(firstWrong(column), column.size());
    }
    QTRY_COMPARE_WITH_TIMEOUT(file.storedBytes(), std::uint64_t{0}, patience_ms);
    QCOMPARE(failed.count(), 0);
  }

  void a_full_disk_keeps_the_points_in_memory_and_is_said_once() {
    const QTemporaryDir folder(onDisk());
    ChunkFile file(folder.path(), std::numeric_limits<std::uint64_t>::max());
    QSignalSpy failed(&file, &ChunkFile::failed);
    Chunked<double> column(file);
    append(column, 10 * chunk + 1);
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    append(column, 10 * chunk);
    // Requests are tried in order.
    QVERIFY(!file.store(std::make_shared<std::byte>(), 1).get());
    QCOMPARE(failed.count(), 1);
    QVERIFY2(failed.front().front().toString().startsWith(folder.path()),
             qPrintable(failed.front().front().toString()));
    QVERIFY2(failed.front().front().toString().contains(QStringLiteral("would stay free")),
             qPrintable(failed.front().front().toString()));
    QCOMPARE(file.storedBytes(), std::uint64_t{0});
    QCOMPARE(firstWrong(column), 20 * chunk + 1);
  }

  void a_disk_that_becomes_full_loses_nothing() {
    const QTemporaryDir folder(onDisk());
    const LargestFile limit(rlim_t{1} << 24);
    ChunkFile file(folder.path(), 0);
    QSignalSpy failed(&file, &ChunkFile::failed);
    Chunked<double> column(file);
    append(column, 1100 * chunk + 1);
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    append(column, 100 * chunk);
    QCOMPARE(file.storedBytes(), std::uint64_t{1} << 24);
    QCOMPARE(firstWrong(column), 1200 * chunk + 1);
  }

  void a_folder_in_memory_is_refused_and_nothing_is_said() {
    const QString memory = QStringLiteral("/dev/shm");
    if (QStorageInfo(memory).fileSystemType() != "tmpfs" || !QFileInfo(memory).isWritable())
      QSKIP("there is no folder in memory");
    const QTemporaryDir folder(memory + QStringLiteral("/chunks-XXXXXX"));
    ChunkFile file(folder.path(), 0);
    QSignalSpy failed(&file, &ChunkFile::failed);
    QVERIFY(!file.store(std::make_shared<std::byte>(), 1).get());
    QCOMPARE(failed.count(), 0);
  }

  void a_folder_that_cannot_be_is_said() {
    ChunkFile file(QStringLiteral("/proc/nowhere"), 0);
    QSignalSpy failed(&file, &ChunkFile::failed);
    Chunked<double> column(file);
    append(column, 2 * chunk);
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    QCOMPARE(firstWrong(column), 2 * chunk);
  }

  /// Ranges, marks and positions also work in chunks that have left memory.
  void a_long_series_answers_as_a_short_one() {
    ClockTable clocks;
    SeriesStore store(clocks);
    std::vector<double> values;
    const std::size_t count = 300'000;
    for (std::size_t i = 0; i < count; ++i) {
      ClockPoint at;
      at.at.fill(static_cast<double>(i / 2));
      clocks.append(at);
      values.push_back(i % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : irregular(i));
      store.append(values.back());
    }
    std::mt19937 random(3);
    for (int ask = 0; ask < 200; ++ask) {
      const std::size_t first = random() % count;
      const std::size_t last = std::min(count, first + random() % (ask % 2 == 0 ? 100 : count));
      MinMax expected;
      for (std::size_t i = first; i < last; ++i) expected.add(i, values[i]);
      QVERIFY(store.range(first, last) == expected);
      const double x = static_cast<double>(first / 2);
      QCOMPARE(store.clock(Clock::sample).lowerBound(x), first / 2 * 2);
      QCOMPARE(store.clock(Clock::sample).upperBound(x), std::min(count, first / 2 * 2 + 2));
    }
    const auto notFinite = std::ranges::count_if(values, [](double value) { return !std::isfinite(value); });
    QCOMPARE(store.marks().size(), static_cast<std::size_t>(notFinite));
    QCOMPARE(store.marks()[0], (Mark{0, MarkKind::notANumber}));
    store.truncate(1000);
    QVERIFY(store.marks().back().index < 1000);
    QCOMPARE(store.range(0, 1000).lowAt, store.range(0, 5000).lowAt);
  }
};

ACCRUE_TEST_MAIN(TestChunked)

}  // namespace test_chunked
#include "test_chunked.moc"
