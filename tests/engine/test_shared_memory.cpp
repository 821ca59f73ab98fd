// SPDX-License-Identifier: Apache-2.0
// The pieces of the shared-memory backend in one process, with threads as ranks: the arithmetic for many ranks and
// dtypes, the segment, and the barrier under contention.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/BFloat16.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <QDir>
#include <QTest>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "comm/shared_segment.h"
#include "comm/shm_backend.h"
#include "comm/shm_sum.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_shared_memory {

using namespace accrue;

namespace {

/// A store for threads.
class LocalExchange final : public Exchange {
 public:
  void publish(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::optional<std::string> fetch(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.count(key) != 0; })) return std::nullopt;
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

CommGroup group_of_threads(std::int64_t rank, std::int64_t ranks) {
  CommGroup group;
  group.rank = rank;
  group.timeout = std::chrono::seconds(20);
  group.join_timeout = std::chrono::seconds(20);
  for (std::int64_t r = 0; r < ranks; ++r) group.members.push_back({r, ::getpid()});
  return group;
}

/// Runs body(axis) in `ranks` threads; the first error text, or empty.
template <typename Body>
std::string with_threads(std::int64_t ranks, Body&& body) {
  LocalExchange exchange;
  std::mutex mutex;
  std::string failure;
  {
    std::vector<std::jthread> threads;
    for (std::int64_t r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        try {
          auto axis = make_shm_communicator(group_of_threads(r, ranks), exchange);
          if (!axis) throw std::runtime_error(axis.error().text());
          body(**axis);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          if (failure.empty()) failure = "rank " + std::to_string(r) + ": " + error.what();
        }
      });
    }
  }
  return failure;
}

template <typename T>
std::vector<T> summed(const std::vector<std::vector<T>>& sources, at::ScalarType dtype, Reduce op, std::int64_t begin,
                      std::int64_t count) {
  std::vector<const std::byte*> from;
  for (const auto& each : sources) from.push_back(reinterpret_cast<const std::byte*>(each.data()));
  std::vector<T> result(sources[0].size(), T(-7));
  std::byte* const to[] = {reinterpret_cast<std::byte*>(result.data())};
  reduce_elements(dtype, op, from, to, begin, count);
  return result;
}

}  // namespace

class TestSharedMemory : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// ((a + b) + c) + d in float32 for values whose sum depends on the order.
  void adds_in_rank_order() {
    for (const std::size_t ranks : {1U, 2U, 3U, 4U, 7U}) {
      std::vector<std::vector<float>> sources(ranks, std::vector<float>(5003));
      for (std::size_t r = 0; r < ranks; ++r) {
        for (std::size_t i = 0; i < sources[r].size(); ++i) {
          sources[r][i] = (r % 2 == 0 ? 1.0F : -1.0F) * (1e7F + static_cast<float>(i)) + static_cast<float>(r) * 0.37F;
        }
      }
      const auto result = summed(sources, at::kFloat, Reduce::sum, 3, 4990);
      for (std::size_t i = 0; i < result.size(); ++i) {
        float expected = sources[0][i];
        for (std::size_t r = 1; r < ranks; ++r) expected += sources[r][i];
        QCOMPARE(result[i], i < 3 || i >= 4993 ? -7.0F : expected);
      }
    }
  }

  void adds_short_floats_in_float32_and_rounds_once() {
    // 256 + 1 + 1: bfloat16 has 8 bits, so rounding in between would lose both ones.
    const std::vector<std::vector<c10::BFloat16>> sources = {
        {c10::BFloat16(256.0F)}, {c10::BFloat16(1.0F)}, {c10::BFloat16(1.0F)}};
    QCOMPARE(static_cast<float>(summed(sources, at::kBFloat16, Reduce::sum, 0, 1)[0]), 258.0F);
  }

  void integers_do_not_pass_through_floats() {
    const std::int64_t large = (std::int64_t{1} << 60) + 1;
    const std::vector<std::vector<std::int64_t>> sources = {{large}, {2}, {-5}};
    QCOMPARE(summed(sources, at::kLong, Reduce::sum, 0, 1)[0], large - 3);
    QCOMPARE(summed(sources, at::kLong, Reduce::max, 0, 1)[0], large);
  }

  void the_maximum_keeps_a_nan_from_any_rank() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<std::vector<double>> sources = {{1, nan, 3, 4}, {2, 2, nan, 1}, {0, 9, 9, 9}};
    const auto result = summed(sources, at::kDouble, Reduce::max, 0, 4);
    QCOMPARE(result[0], 2.0);
    QVERIFY(result[1] != result[1]);
    QVERIFY(result[2] != result[2]);
    QCOMPARE(result[3], 9.0);
  }

  void a_segment_is_shared_and_outlives_its_descriptor() {
    const auto made = SharedSegment::create(10000);
    QVERIFY(made);
    const auto opened = SharedSegment::open(::getpid(), (*made)->descriptor(), 10000);
    QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
    (*made)->close_descriptor();
    (*made)->data()[9999] = std::byte{42};
    QVERIFY((*opened)->data()[9999] == std::byte{42});
    QVERIFY((*opened)->data()[0] == std::byte{0});
  }

  void too_large_a_segment_says_what_there_is_and_what_to_do() {
    const auto made = SharedSegment::create(std::size_t{1} << 50);
    QVERIFY(!made);
    QCOMPARE(made.error().code, ErrorCode::out_of_memory);
    const std::string text = made.error().text();
    QVERIFY2(text.find("1125899906842624 bytes") != std::string::npos, text.c_str());
    QVERIFY2(text.find(" are available") != std::string::npos, text.c_str());
    QVERIFY2(text.find("parallel.backend = \"gloo\"") != std::string::npos, text.c_str());
  }

  /// The kernel refuses the reservation: an error then, not a bus error in the middle of training.
  void a_refused_reservation_is_an_error() {
    rlimit before{};
    QCOMPARE(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 1 << 20;
    QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto made = SharedSegment::create(std::size_t{1} << 22);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
    QVERIFY(!made);
    QCOMPARE(made.error().code, ErrorCode::device);
    const std::string text = made.error().text();
    QVERIFY2(text.find("a file may hold at most 1.0 MiB (ulimit -f)") != std::string::npos, text.c_str());
    QVERIFY2(text.find("4194304 bytes") != std::string::npos && text.find("gloo") == std::string::npos, text.c_str());
  }

  void a_segment_is_checked_before_it_is_mapped_data() {
    QTest::addColumn<QString>("what");
    QTest::addColumn<QString>("says");
    QTest::newRow("gone") << QStringLiteral("gone") << QStringLiteral("No such file");
    QTest::newRow("a file") << QStringLiteral("file") << QStringLiteral("no memory made by memfd_create");
    QTest::newRow("a size that can change") << QStringLiteral("unsealed") << QStringLiteral("not sealed");
    QTest::newRow("another user's") << QStringLiteral("another user's sealed")
                                    << QStringLiteral("belongs to user 65534");
    QTest::newRow("another size") << QStringLiteral("sealed") << QStringLiteral("4096 bytes instead of 8192");
  }
  void a_segment_is_checked_before_it_is_mapped() {
    QFETCH(QString, what);
    QFETCH(QString, says);
    int fd = 999;
    if (what.endsWith(QStringLiteral("sealed"))) fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (what.endsWith(QStringLiteral("sealed"))) QCOMPARE(::ftruncate(fd, 4096), 0);
    if (what == QStringLiteral("another user's sealed")) {
      if (::geteuid() != 0) QSKIP("only root can give memory away");
      QCOMPARE(::fchown(fd, 65534, 65534), 0);
    }
    if (what == QStringLiteral("sealed")) QCOMPARE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    if (what == QStringLiteral("file")) {
      fd = ::open(QDir::tempPath().toLocal8Bit().constData(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
      QVERIFY(fd >= 0);
    }
    const auto opened = SharedSegment::open(::getpid(), fd, 8192);
    if (fd != 999) ::close(fd);
    VERIFY_FAILS(opened, ErrorCode::device, says.toStdString());
  }

  /// More ranks than cores, thousands of barriers: each rank sees every other at the same count.
  void the_barrier_holds_under_contention() {
    constexpr std::int64_t ranks = 6;
    std::array<std::atomic<int>, ranks> counts{};
    const std::string failure = with_threads(ranks, [&](Communicator& axis) {
      for (int round = 1; round <= 2000; ++round) {
        counts[static_cast<std::size_t>(axis.rank())].store(round);
        axis.barrier();
        for (const auto& each : counts) {
          if (each.load() < round) throw std::runtime_error("a rank was left behind in round " + std::to_string(round));
        }
        axis.barrier();
      }
    });
    QVERIFY2(failure.empty(), failure.c_str());
  }

  /// Small and large, in shared buffers and out, in one stream of calls: the staging halves never mix.
  void mixed_calls_do_not_disturb_each_other() {
    const std::string failure = with_threads(3, [&](Communicator& axis) {
      at::Tensor shared = axis.shared_buffer(70001, at::kFloat);
      for (int round = 0; round < 60; ++round) {
        const auto mine = static_cast<double>(axis.rank() + round);
        const double sum = 3.0 * round + 3;
        at::Tensor small = at::full({5}, mine, at::kDouble);
        at::Tensor large = at::full({400003}, mine, at::kFloat);
        shared.fill_(mine);
        at::Tensor sent = at::full({300000}, mine, at::kDouble);
        at::Tensor gathered = at::empty({3, 5}, at::kDouble);
        axis.all_gather(gathered, small);
        axis.all_reduce(small);
        axis.broadcast(sent, round % 3);
        axis.all_reduce(large);
        axis.all_reduce(shared);
        if (small.min().item<double>() != sum || large.min().item<double>() != sum ||
            large.max().item<double>() != sum || shared.min().item<double>() != sum ||
            shared.max().item<double>() != sum || sent.min().item<double>() != round % 3 + round ||
            sent.max().item<double>() != round % 3 + round || gathered.sum().item<double>() != 5 * sum) {
          throw std::runtime_error("wrong in round " + std::to_string(round));
        }
      }
    });
    QVERIFY2(failure.empty(), failure.c_str());
  }

  /// Every rank to every other at once, large and small, while collectives go on: nothing is mixed up or stuck.
  void messages_of_all_pairs_cross_each_other() {
    constexpr std::int64_t ranks = 4;
    const std::string failure = with_threads(ranks, [](Communicator& axis) {
      for (int round = 0; round < 20; ++round) {
        std::vector<at::Tensor> out, in;
        std::vector<Work> works;
        for (std::int64_t peer = 0; peer < ranks; ++peer) {
          const std::int64_t numel = round % 3 == 0 ? 300000 : peer + axis.rank() + 1;  // alike on both sides
          out.push_back(at::full({numel}, static_cast<double>(100 * axis.rank() + peer + round), at::kDouble));
          in.push_back(at::empty({numel}, at::kDouble));
          if (peer == axis.rank()) continue;
          works.push_back(axis.start_send(out.back(), peer));
          works.push_back(axis.start_receive(in.back(), peer));
        }
        at::Tensor sum = at::full({3}, 1.0, at::kDouble);
        axis.all_reduce(sum);
        for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
        for (std::int64_t peer = 0; peer < ranks; ++peer) {
          const auto expected = static_cast<double>(100 * peer + axis.rank() + round);
          const auto& got = in[static_cast<std::size_t>(peer)];
          if (peer != axis.rank() && (got.min().item<double>() != expected || got.max().item<double>() != expected))
            throw std::runtime_error("wrong from rank " + std::to_string(peer) + " in round " + std::to_string(round));
        }
        if (sum.max().item<double>() != ranks) throw std::runtime_error("wrong sum");
      }
    });
    QVERIFY2(failure.empty(), failure.c_str());
  }

  void a_shared_buffer_that_does_not_fit_fails_on_every_rank() {
    std::atomic<int> refused = 0;
    const std::string failure = with_threads(3, [&](Communicator& axis) {
      try {
        axis.shared_buffer(std::int64_t{1} << 46, at::kFloat);
      } catch (const CommError& error) {
        if (std::string(error.what()).find("gloo") != std::string::npos) ++refused;
      }
      at::Tensor value = at::full({1}, 1.0, at::kDouble);
      axis.all_reduce(value);  // the group is still good
      if (value.item<double>() != 3) throw std::runtime_error("the group is broken");
    });
    QVERIFY2(failure.empty(), failure.c_str());
    QCOMPARE(refused.load(), 3);
  }

  void a_member_that_never_comes_is_named() {
    LocalExchange exchange;
    CommGroup group = group_of_threads(0, 2);
    group.join_timeout = std::chrono::milliseconds(100);
    const auto axis = make_shm_communicator(group, exchange);
    VERIFY_FAILS(axis, ErrorCode::rendezvous, "rank 1");
  }
};

ACCRUE_TEST_MAIN(TestSharedMemory)

}  // namespace test_shared_memory
#include "test_shared_memory.moc"
