// SPDX-License-Identifier: Apache-2.0
#include "accrue/comm/mesh.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace accrue {
namespace {

constexpr Axis kInOrder[] = {Axis::data,  Axis::tensor, Axis::pipeline,  Axis::context,
                             Axis::model, Axis::world,  Axis::embedding, Axis::position_embedding};

}  // namespace

Mesh::Mesh() {
  communicators_.fill(single_communicator());
}

Result<Mesh> Mesh::build(Rendezvous& rendezvous, const RankGrid& grid) {
  Mesh mesh;
  mesh.grid_ = grid;
  mesh.rank_ = rendezvous.identity().rank;
  mesh.communicators_.fill(nullptr);
  std::vector<std::pair<std::vector<RankList>, Axis>> built;
  for (const Axis axis : kInOrder) {
    auto& place = mesh.communicators_[static_cast<std::size_t>(axis)];
    auto groups = grid.groups(axis);
    const auto same = std::ranges::find(built, groups, &std::pair<std::vector<RankList>, Axis>::first);
    if (same != built.end()) {
      place = mesh.communicators_[static_cast<std::size_t>(same->second)];
      continue;
    }
    auto made = rendezvous.communicator(grid, axis);
    if (!made) return tl::unexpected(made.error());
    place = std::move(*made);
    built.emplace_back(std::move(groups), axis);
  }
  return mesh;
}

Communicator& Mesh::along(Axis axis) const {
  if (Communicator* found = communicator_of(axis)) return *found;
  throw std::logic_error("rank " + std::to_string(rank_) + " is in no group of the " + std::string(to_string(axis)) +
                         " axis");
}

std::vector<Communicator*> Mesh::communicators() const {
  std::vector<Communicator*> all;
  for (const Axis axis : kInOrder) {
    Communicator* each = communicator_of(axis);
    bool seen = each == nullptr;
    for (const Communicator* other : all) seen |= other == each;
    if (!seen) all.push_back(each);
  }
  return all;
}

}  // namespace accrue
