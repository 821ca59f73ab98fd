// SPDX-License-Identifier: Apache-2.0
// Two processes and a loader of torch::data with workers: each rank trains on its share, epochs may be left early, and
// sources that differ are refused on both.
#include <QTest>

#include "support/accelerate_cases.h"
#include "support/joined_rank.h"
#include "support/rank_cases.h"
#include "support/rank_checks.h"
#include "support/refusals.h"
#include "support/squares.h"

namespace test_prepared_sources_ranks {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

/// Nine squares by two: five batches, of which the last one lacks a sample and the last round a batch.
int shared_epochs(RankContext& rank) {
  auto axis = join_ranks(rank);
  Accelerator accelerator({}, *axis.data);
  auto data = squares_loader(9);
  auto source = source_of(*data);
  auto loader = accelerator.prepare(source);
  for (const int left_after : {1, 2, 99}) {
    std::vector<int> seen;
    for (const auto& batch : loader) {
      seen.insert(seen.end(), batch.begin(), batch.end());
      if (std::ssize(seen) == 2 * left_after) break;
    }
    std::vector<int> mine =
        rank.rank == 0 ? std::vector<int>{0, 1, 16, 25, 64, 0} : std::vector<int>{4, 9, 36, 49, 1, 4};
    mine.resize(std::min<std::size_t>(mine.size(), 2 * static_cast<std::size_t>(left_after)));
    DEMAND(seen == mine);
  }
  return 0;
}

int different_sources(RankContext& rank) {
  auto axis = join_ranks(rank);
  Accelerator accelerator({}, *axis.data);
  auto data = squares_loader(rank.rank == 0 ? 8 : 4);
  auto source = source_of(*data);
  auto loader = accelerator.prepare(source);
  DEMAND(contains(refused([&] {
                    for (const auto& batch : loader) DEMAND(!batch.empty());
                    return 0;
                  }),
                  "set already_sharded"));
  return 0;
}

/// Each rank its own source: the shorter one continues with empty batches, cut from its last; one without any cannot.
int sharded_sources(RankContext& rank) {
  auto axis = join_ranks(rank);
  Accelerator accelerator({}, *axis.data);
  for (const int of_rank_1 : {3, 0}) {
    std::vector<std::vector<int>> batches(rank.rank == 0 ? 4 : of_rank_1, std::vector<int>{7, 8});
    auto source = source_of(batches);
    auto loader = accelerator.prepare(source, {.already_sharded = true});
    std::vector<std::size_t> sizes;
    const std::string error = refused([&] {
      for (const auto& batch : loader) sizes.push_back(batch.size());
    });
    if (of_rank_1 == 0) DEMAND(contains(error, "no empty batch"));
    if (of_rank_1 == 3) DEMAND((sizes == std::vector<std::size_t>{2, 2, 2, rank.rank == 0 ? 2U : 0U}));
  }
  // Continued where the shorter one has nothing left: what it passed over says what an empty batch is.
  std::vector<std::vector<int>> batches(rank.rank == 0 ? 4 : 3, std::vector<int>{7, 8});
  auto source = source_of(batches);
  auto pieces = accrue::accelerate::own_pieces(source, *axis.data, false, 3);
  const auto piece = pieces();
  DEMAND(piece && piece->batch && piece->batch->size() == (rank.rank == 0 ? 2U : 0U));
  DEMAND(!pieces());
  return 0;
}

const RankCases cases = {{"a loader of LibTorch is shared, and may be left early", shared_epochs},
                         {"a shorter source of a rank's own ends in empty batches", sharded_sources},
                         {"ranks with different sources are told on both", different_sources}};

}  // namespace

class TestPreparedSourcesRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void on_ranks_data() { rank_rows(cases); }
  void on_ranks() { run_rank_row(); }
};

ACCRUE_RANK_TEST_MAIN(TestPreparedSourcesRanks, (bodies_of(cases)))

}  // namespace test_prepared_sources_ranks
#include "test_prepared_sources_ranks.moc"
