// SPDX-License-Identifier: Apache-2.0
// Any layout of ranks reads what any other wrote: replicas, rows or columns of a tensor over ranks, a fused tensor of
// which each rank holds three boxes, and optimizer shards that cut across all of them.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <QTemporaryDir>
#include <QTest>
#include <filesystem>
#include <map>

#include "accrue/checkpoint/checkpoint.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"
#include "support/window_positions.h"

namespace test_checkpoint_layouts {

using namespace accrue;
using namespace accrue::test;

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> layouts{"replicas", "rows", "columns", "fused", "shards", "shards of halves"};

/// Returns the tensors of the whole run, regardless of the ranks that hold them.
std::map<std::string, at::Tensor> model() {
  return {{"parameters.w", at::arange(24 * 8, at::kFloat).view({24, 8})},
          {"optimizer.exp_avg.w", at::arange(24 * 8, at::kDouble).view({24, 8}).mul(0.5)},
          {"parameters.b", at::arange(8, at::kFloat).sub(3.0)},
          {"optimizer.step.w", at::arange(1, at::kLong).add(11)},
          {"parameters.none", at::zeros({0, 4})}};
}

/// A box of a tensor and the values in it.
PlacedTensor box(const std::string& name, const at::Tensor& whole, std::size_t dim, std::int64_t offset,
                 std::int64_t extent) {
  TensorSlice slice = whole_slice(whole.sizes().vec());
  slice.offset[dim] = offset;
  slice.extent[dim] = extent;
  const at::Tensor values = whole.narrow(static_cast<std::int64_t>(dim), offset, extent);
  slice.range = {0, values.numel()};
  return {name, slice, values};
}

/// A range of a box's elements.
PlacedTensor shard(const PlacedTensor& part, std::int64_t rank, std::int64_t world) {
  PlacedTensor cut = part;
  cut.slice.range = shard_range(part.values.numel(), rank, world);
  cut.values = part.values.contiguous().view({-1}).narrow(0, cut.slice.range.offset, cut.slice.range.size);
  return cut;
}

/// Returns a rank's parts of one tensor. All ranks hold tensors that a layout does not cut; `owns`: this rank writes
/// them.
std::vector<PlacedTensor> held(const std::string& layout, const std::string& name, const at::Tensor& whole,
                               std::int64_t rank, std::int64_t world) {
  const PlacedTensor all = whole_tensor(name, whole);
  if (layout == "shards") return {shard(all, rank, world)};
  if (whole.dim() != 2 || whole.numel() == 0 || layout == "replicas") return {all};
  if (layout == "rows") return {box(name, whole, 0, rank * 24 / world, 24 / world)};
  if (layout == "columns") return {box(name, whole, 1, rank * 8 / world, 8 / world)};
  std::vector<PlacedTensor> parts;
  if (layout == "fused")  // three matrices of 8 rows in one, each split by rows
    for (std::int64_t third = 0; third < 3; ++third)
      parts.push_back(box(name, whole, 0, third * 8 + rank * 8 / world, 8 / world));
  if (layout == "shards of halves") {  // two tensor ranks, and their optimizer state over the others
    const std::int64_t tensor = std::min<std::int64_t>(world, 2);
    const PlacedTensor half = box(name, whole, 1, rank % tensor * 8 / tensor, 8 / tensor);
    parts.push_back(shard(half, rank / tensor, world / tensor));
  }
  return parts;
}

/// Whether every rank holds all of it.
bool is_replicated(const std::string& layout, const std::string& name, const at::Tensor& whole, std::int64_t world) {
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const auto parts = held(layout, name, whole, rank, world);
    if (parts.size() != 1 || !parts[0].slice.is_whole()) return false;
  }
  return true;
}

CheckpointContent content(const std::string& layout, std::int64_t rank, std::int64_t world) {
  CheckpointContent content;
  content.cursor.window = made_position({{"micro_step", 4}, {"updates", 1}, {"steps", 4}});
  std::int64_t owner = 0;
  for (const auto& [name, whole] : model()) {
    if (is_replicated(layout, name, whole, world) && owner++ % world != rank) continue;  // any rank may be the owner
    for (PlacedTensor& part : held(layout, name, whole, rank, world)) content.tensors.push_back(std::move(part));
  }
  return content;
}

CheckpointIdentity identity() {
  return {.spec_sha256 = "s", .data_fingerprint = "d", .torch_version = "2", .cpu_capability = "AVX2"};
}

std::string folder_of(const std::string& root, int world, const std::string& layout) {
  return root + "/" + std::to_string(world) + " " + layout;
}

int save_layouts(RankContext& rank) {
  const auto joined = join_ranks(rank);
  for (const std::string& layout : layouts) {
    const auto saved = save_checkpoint(folder_of(rank.arguments.at(0), rank.world, layout),
                                       content(layout, rank.rank, rank.world), identity(), 2, *joined.data);
    if (!saved) throw std::runtime_error(layout + ": " + saved.error().text());
  }
  return 0;
}

/// Reads a tensor into memory that lies scattered in a larger one, as a column of a fused tensor may.
at::Tensor scattered(const at::Tensor& like) {
  std::vector<std::int64_t> wide = like.sizes().vec();
  if (wide.empty()) return at::zeros(wide, like.options());
  const std::int64_t last = wide.back();
  wide.back() = last * 2;
  return at::zeros(wide, like.options()).narrow(static_cast<std::int64_t>(wide.size()) - 1, last, last);
}

void read_layout(const CheckpointReader& checkpoint, const std::string& layout, const RankContext& rank) {
  for (const auto& [name, whole] : model()) {
    for (const PlacedTensor& part : held(layout, name, whole, rank.rank, rank.world)) {
      for (const at::Tensor& memory : {at::zeros(part.values.sizes(), part.values.options()), scattered(part.values)}) {
        if (auto read = checkpoint.read({part.name, part.slice, memory}); !read)
          throw std::runtime_error(name + " as " + layout + ": " + read.error().text());
        if (!at::equal(memory, part.values)) throw std::runtime_error(name + " as " + layout + " has other values");
      }
    }
  }
}

int read_layouts(RankContext& rank) {
  const auto joined = join_ranks(rank);
  for (const int writers : {1, 2, 4}) {
    for (const std::string& written : layouts) {
      const auto opened = open_checkpoint(
          folder_of(rank.arguments.at(0), writers, written), "newest", identity(),
          [](const CheckpointReader&) { return Result<void>(); }, *joined.data);
      if (!opened) throw std::runtime_error(opened.error().text());
      if (!opened->checkpoint) throw std::runtime_error(opened->refused.empty() ? "none" : opened->refused.front());
      for (const std::string& layout : layouts) read_layout(*opened->checkpoint, layout, rank);
    }
  }
  return 0;
}

/// Both ranks write the same tensor: a mistake of a layout, which the reader finds.
int save_twice(RankContext& rank) {
  const auto joined = join_ranks(rank);
  const auto saved = save_checkpoint(rank.arguments.at(0), content("replicas", 0, 1), identity(), 2, *joined.data);
  DEMAND(saved.has_value());
  const auto opened = open_checkpoint(
      rank.arguments.at(0), "newest", identity(), [](const CheckpointReader&) { return Result<void>(); }, *joined.data);
  DEMAND(opened.has_value() && !opened->checkpoint && opened->refused.size() == 1);
  rank.report(opened->refused.front());
  return 0;
}

/// Only rank 1 rejects the newest, so no rank uses it.
int one_refuses(RankContext& rank) {
  const auto joined = join_ranks(rank);
  CheckpointContent content_1 = content("rows", rank.rank, rank.world);
  CheckpointContent content_2 = content_1;
  content_2.cursor.window = made_position({{"micro_step", 4}, {"updates", 2}, {"steps", 4}});
  DEMAND(save_checkpoint(rank.arguments.at(0), content_1, identity(), 2, *joined.data).has_value());
  DEMAND(save_checkpoint(rank.arguments.at(0), content_2, identity(), 2, *joined.data).has_value());
  const auto fits = [&rank](const CheckpointReader& checkpoint) -> Result<void> {
    if (rank.rank == 0 || checkpoint.cursor().update() == 1) return {};
    return fail(ErrorCode::protocol, "not for me", "tensors");
  };
  const auto opened = open_checkpoint(rank.arguments.at(0), "newest", identity(), fits, *joined.data);
  DEMAND(opened.has_value() && opened->checkpoint && opened->checkpoint->name() == "step-1");
  DEMAND(opened->refused.size() == 1);
  rank.report(opened->refused.front());
  return 0;
}

void run(const std::string& body, int world, const QTemporaryDir& folder, std::vector<std::string>* said = nullptr) {
  RankGroup ranks(body, world, {.arguments = {folder.path().toStdString()}});
  const auto outcomes = ranks.finish();
  const std::string failure = first_failure(outcomes);
  QVERIFY2(failure.empty(), failure.c_str());
  if (said)
    for (const RankOutcome& outcome : outcomes) said->push_back(outcome.lines.empty() ? "" : outcome.lines.front());
}

}  // namespace

class TestCheckpointLayouts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void any_layout_of_1_2_or_4_ranks_reads_any_other() {
    QTemporaryDir folder;
    for (const int world : {1, 2, 4}) run("save_layouts", world, folder);
    if (QTest::currentTestFailed()) return;
    for (const int world : {1, 2, 4}) run("read_layouts", world, folder);
  }

  void a_tensor_that_two_ranks_wrote_is_refused_by_name() {
    QTemporaryDir folder;
    std::vector<std::string> said;
    run("save_twice", 2, folder, &said);
    for (const std::string& refused : said) {
      QVERIFY2(refused.find("its parts overlap") != std::string::npos, refused.c_str());
      QVERIFY2(refused.find("optimizer.exp_avg.w") != std::string::npos, refused.c_str());
    }
  }

  void what_one_rank_refuses_no_rank_uses() {
    QTemporaryDir folder;
    std::vector<std::string> said;
    run("one_refuses", 2, folder, &said);
    QCOMPARE(said.size(), std::size_t{2});
    QCOMPARE(said[0], said[1]);
    QCOMPARE(said[0], std::string("step-2 was refused: tensors: rank 1: not for me"));
  }
};

ACCRUE_RANK_TEST_MAIN(TestCheckpointLayouts,
                      {RANK_BODY(save_layouts), RANK_BODY(read_layouts), RANK_BODY(save_twice), RANK_BODY(one_refuses)})

}  // namespace test_checkpoint_layouts
#include "test_checkpoint_layouts.moc"
