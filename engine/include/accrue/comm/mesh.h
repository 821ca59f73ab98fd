// SPDX-License-Identifier: Apache-2.0
// A rank's place among all ranks, and the communicators of every group it is in. What is decided once per run is made
// on the rank that speaks and told to the world. Thread: as communicators.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "accrue/comm/rendezvous.h"
#include "accrue/run/rank_grid.h"

namespace accrue {

class Mesh {
 public:
  /// A world of one rank.
  Mesh();
  /// Builds the groups of all axes, in one order on all ranks. Axes with equal groups share a communicator, which bears
  /// the first's name: where only data is split, the world is the data axis. Collective: the world. Errors: as
  /// Rendezvous::communicator().
  static Result<Mesh> build(Rendezvous& rendezvous, const RankGrid& grid);

  const RankGrid& grid() const { return grid_; }
  std::int64_t rank() const { return rank_; }  ///< in the world
  GridCoordinate at() const { return grid_.coordinate(rank_); }

  /// Errors: std::logic_error where this rank is in no group of the axis (see has()).
  Communicator& along(Axis axis) const;
  Communicator& world() const { return along(Axis::world); }
  Communicator& data() const { return along(Axis::data); }
  Communicator& tensor() const { return along(Axis::tensor); }
  Communicator& pipeline() const { return along(Axis::pipeline); }
  Communicator& model() const { return along(Axis::model); }
  Communicator& context() const { return along(Axis::context); }
  /// False only for the embedding groups, on the stages that they leave out.
  bool has(Axis axis) const { return communicator_of(axis) != nullptr; }
  /// Each communicator once, in the order in which they were built.
  std::vector<Communicator*> communicators() const;

  bool first_of(Axis axis) const { return along(axis).rank() == 0; }
  bool first_stage() const { return at().pipeline == 0; }
  bool last_stage() const { return at().pipeline == grid_.pipeline - 1; }
  /// One rank decides and reports for the run: the world's first.
  bool speaks() const { return rank_ == 0; }
  /// State that is replicated along data is written by data rank 0.
  bool writes() const { return first_of(Axis::data); }

 private:
  static constexpr std::size_t kAxes = 8;
  Communicator* communicator_of(Axis axis) const { return communicators_[static_cast<std::size_t>(axis)].get(); }

  RankGrid grid_;
  std::int64_t rank_ = 0;
  std::array<std::shared_ptr<Communicator>, kAxes> communicators_;  ///< by axis
};

}  // namespace accrue
