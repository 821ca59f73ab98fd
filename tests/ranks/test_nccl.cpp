// SPDX-License-Identifier: Apache-2.0
// NCCL, if there are GPUs; otherwise only that requesting it ends in an error that says why. Skipped aloud without
// two CUDA devices.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <unistd.h>

#include <QDir>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "comm/device_loader.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"

namespace test_nccl {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Reports "<devices>" or why there are none.
int probe(RankContext& rank) {
  const auto backend = load_device_backend();
  rank.report(backend ? std::to_string((*backend)->device_count()) : "0 " + backend.error().text());
  return 0;
}

int asks_for_nccl(RankContext& rank) {
  const RankIdentity identity = taken(rank_identity(environment, rank.store_fd));
  const auto met = taken(
      Rendezvous::join(identity, CommOptions{.backend = BackendKind::nccl, .join_timeout = 20s, .run_id = "test"}));
  const auto axis = met->communicator(RankGrid{.data = rank.world}, Axis::data);
  if (axis) return 1;
  rank.report(axis.error().text());
  // Rank 0 holds the store that the other may still be reading: neither leaves before both have their answer.
  const QDir meeting(QString::fromStdString(rank.arguments.at(0)));
  QFile said(meeting.filePath(QString::number(rank.rank)));
  if (!said.open(QIODevice::WriteOnly)) return 3;
  const auto both = [&meeting] { return meeting.exists(QStringLiteral("0")) && meeting.exists(QStringLiteral("1")); };
  if (!QTest::qWaitFor(both, 20000)) return 4;
  return axis.error().code == ErrorCode::device ? 0 : 2;
}

int sums_on_the_gpu(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::nccl);
  Communicator& axis = *joined.data;
  at::Tensor shared = axis.shared_buffer(100000, at::kFloat);
  DEMAND(shared.is_cuda());
  shared.fill_(rank.rank + 1);
  axis.all_reduce_gradients(shared);
  DEMAND(shared.min().item<double>() == 3 && shared.max().item<double>() == 3);
  at::Tensor control = at::full({2}, rank.rank + 1, at::kDouble);
  axis.all_reduce(control, Reduce::max);
  DEMAND(control.min().item<double>() == 2);
  axis.broadcast(control, 1);
  control[0].fill_(rank.rank == 0 ? std::nan("") : 5.0);
  axis.all_reduce(control, Reduce::max);
  DEMAND(std::isnan(control[0].item<double>()));
  at::Tensor sum = at::full({4}, rank.rank + 1, shared.options());
  at::Tensor piece = at::zeros({2}, shared.options()), both = at::zeros({4}, shared.options());
  at::Tensor got = at::zeros({4}, shared.options());
  Work reduced = axis.start_reduce_scatter(piece, sum);
  reduced.wait();
  DEMAND(piece.min().item<double>() == 3);
  axis.all_gather(both, piece);
  DEMAND(both.min().item<double>() == 3);
  Work sent = axis.start_send(sum, 1 - rank.rank);
  Work received = axis.start_receive(got, 1 - rank.rank);
  sent.wait();
  received.wait();
  DEMAND(got.min().item<double>() == 2 - rank.rank);
  axis.barrier();
  return 0;
}

/// Pushed messages are sent without another call on the group.
int pushes_messages(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::nccl);
  Communicator& axis = *joined.data;
  const auto options = axis.shared_buffer(1, at::kFloat).options();
  at::Tensor there = at::full({1000}, 7.0, options), back = at::zeros({1000}, options);
  for (int round = 0; round < 3; ++round) {
    Work work = rank.rank == 0 ? axis.start_send(there, 1) : axis.start_receive(back, 0);
    axis.push();
    work.wait();
    Work answer = rank.rank == 0 ? axis.start_receive(back, 1) : axis.start_send(back + 1.0, 0);
    axis.push();
    answer.wait();
  }
  DEMAND(rank.rank == 1 || back.min().item<double>() == 8.0);
  return 0;
}

/// Rank 1 does not come: the other says so after its time-out, and ends by itself.
int waits_for_nobody(RankContext& rank) {
  const auto joined =
      join_ranks(rank, CommOptions{.backend = BackendKind::nccl, .timeout = 2s, .join_timeout = 20s, .run_id = "test"});
  if (rank.rank == 1) ::pause();  // until the test ends it
  at::Tensor control = at::full({2}, 1.0, at::kDouble);
  try {
    joined.data->all_reduce(control);
  } catch (const CommError& error) {
    rank.report(error.what());
  }
  return 0;
}

}  // namespace

class TestNccl : public QObject {
  Q_OBJECT

  std::string why_none_;
  int devices_ = 0;

 private Q_SLOTS:
  void initTestCase() {
    const auto outcomes = RankGroup("probe", 1).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    why_none_ = outcomes[0].lines.at(0);
    devices_ = std::stoi(why_none_);
  }

  void asking_for_nccl_without_a_device_says_why() {
    if (devices_ > 0) QSKIP("there is a CUDA device");
    const QTemporaryDir meeting;
    const auto outcomes = RankGroup("asks_for_nccl", 2, {.arguments = {meeting.path().toStdString()}}).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const auto& each : outcomes) {
      QVERIFY2(each.lines.at(0).find("CUDA") != std::string::npos, each.text().c_str());
      QVERIFY2(each.lines.at(0).find("launch.device = \"cpu\"") != std::string::npos, each.text().c_str());
    }
  }

  void two_gpus_sum_and_broadcast() {
    if (devices_ < 2) QSKIP(why());
    ACCRUE_ALL_RANKS_OK(RankGroup("sums_on_the_gpu", 2).finish(60s));
  }

  void messages_leave_when_they_are_pushed() {
    if (devices_ < 2) QSKIP(why());
    ACCRUE_ALL_RANKS_OK(RankGroup("pushes_messages", 2).finish(60s));
  }

  void a_rank_that_waits_for_another_in_vain_says_so() {
    if (devices_ < 2) QSKIP(why());
    RankGroup ranks("waits_for_nobody", 2);
    const std::string said = ranks.wait_for(0, "all_reduce on the data axis failed", 60s);
    QVERIFY(said.find("did not end within 2000 ms") != std::string::npos);
    QVERIFY(ranks.wait_for_end(0, 60s));
  }

 private:
  QByteArray why() const {
    if (devices_ > 0) return "NCCL needs a CUDA device per rank: there is one";
    return "no CUDA device: " +
           QByteArray::fromStdString(why_none_.size() > 2 ? why_none_.substr(2) : "the driver shows none");
  }
};

ACCRUE_RANK_TEST_MAIN(TestNccl, {{"probe", probe},
                                 {"asks_for_nccl", asks_for_nccl},
                                 {"sums_on_the_gpu", sums_on_the_gpu},
                                 RANK_BODY(pushes_messages),
                                 RANK_BODY(waits_for_nobody)})

}  // namespace test_nccl
#include "test_nccl.moc"
