// SPDX-License-Identifier: Apache-2.0
// A rank's place among all ranks, and the communicators of its groups. Decisions made once per run are made on the rank
// that speaks, and broadcast to the world. Thread: as communicators.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "accrue/comm/rendezvous.h"
#include "accrue/run/cost/rank_grid.h"

namespace accrue {

class Mesh {
 public:
  /// Makes a world of one rank.
  Mesh();
  /// Builds the groups of all axes, in the same order on all ranks. Axes with equal groups share a communicator, which
  /// has the first one's name: with data parallelism alone, the world is the data axis. Collective: the world. Errors:
  /// as Rendezvous::communicator().
  static Result<Mesh> build(Rendezvous& rendezvous, const RankGrid& grid);

  const RankGrid& grid() const { return grid_; }
  std::int64_t rank() const { return rank_; }  ///< in the world
  GridCoordinate at() const { return grid_.coordinate(rank_); }

  /// Errors: std::logic_error if this rank is in no group of the axis (see has()).
  Communicator& along(Axis axis) const;
  Communicator& world() const { return along(Axis::world); }
  Communicator& data() const { return along(Axis::data); }
  Communicator& tensor() const { return along(Axis::tensor); }
  Communicator& pipeline() const { return along(Axis::pipeline); }
  Communicator& model() const { return along(Axis::model); }
  Communicator& context() const { return along(Axis::context); }
  /// Whether this rank is in a group of the axis; false only for the embedding groups, on the stages that they leave
  /// out.
  bool has(Axis axis) const { return communicator_of(axis) != nullptr; }
  /// Returns each communicator once, in the order of their construction.
  std::vector<Communicator*> communicators() const;

  bool first_of(Axis axis) const { return along(axis).rank() == 0; }
  bool first_stage() const { return at().pipeline == 0; }
  bool last_stage() const { return at().pipeline == grid_.pipeline - 1; }
  /// Whether this rank decides and reports for the run: the world's first.
  bool speaks() const { return rank_ == 0; }
  /// Whether this rank writes state that is replicated along data: data rank 0.
  bool writes() const { return first_of(Axis::data); }

 private:
  static constexpr std::size_t kAxes = 8;
  Communicator* communicator_of(Axis axis) const { return communicators_[static_cast<std::size_t>(axis)].get(); }

  RankGrid grid_;
  std::int64_t rank_ = 0;
  std::array<std::shared_ptr<Communicator>, kAxes> communicators_;  ///< by axis
};

}  // namespace accrue
