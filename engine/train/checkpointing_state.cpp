// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "accrue/parallel/random_streams.h"
#include "accrue/run/base/counted.h"
#include "train/checkpointing.h"
#include "train/model_axis.h"
#include "train/step_reports.h"
#include "update/model_sums.h"

namespace accrue {
namespace {

constexpr std::int64_t tally_numbers = std::tuple_size_v<TallyRow> + 2;
/// Indices of a tally's counts, which are integers and exact as doubles. The others are losses.
constexpr std::array<std::size_t, 6> tally_counts{0, 1, 2, 6, tally_numbers - 2, tally_numbers - 1};
constexpr double max_count = 9007199254740992.0;  // 2^53

std::string rank_name(const Training& training, const std::string& what) {
  return "rank." + std::to_string(training.mesh.rank()) + "." + what;
}

std::string replica_name(const Training& training, const std::string& what) {
  return "replica." + std::to_string(training.mesh.data().rank()) + "." + what;
}

/// The first of the tensor-parallel ranks writes tensors that all of them hold.
bool writes(const Training& training, std::size_t i) {
  const ParameterShare& share = training.model.shares()[i];
  return counts_here(share.shared, share.divided, training.tensor.rank());
}

/// Adds a stretch of a parameter without padding. `values`: its part of any tensor of the layout.
void add_stretch(std::vector<PlacedTensor>& tensors, const Training& training, const std::string& prefix, std::size_t i,
                 const FlatRange& stretch, const at::Tensor& values) {
  const ParameterShare& share = training.model.shares()[i];
  if (auto placed = placed_stretch(prefix + share.name, slice_of(share), stretch, values))
    tensors.push_back(*std::move(placed));
}

/// Adds a whole parameter, from a tensor of the flat layout.
void add_parameter(std::vector<PlacedTensor>& tensors, const Training& training, const std::string& prefix,
                   std::size_t i, const at::Tensor& flat) {
  const at::Tensor values = training.model.slice(flat, i);
  add_stretch(tensors, training, prefix, i, {.offset = 0, .size = values.numel()}, values);
}

/// Adds a tensor of the flat layout as one tensor per parameter.
void add_by_parameter(std::vector<PlacedTensor>& tensors, const Training& training, Purpose purpose,
                      const std::string& prefix, const at::Tensor& flat) {
  for (std::size_t i = 0; i < training.model.names().size(); ++i)
    if (purpose == Purpose::read || writes(training, i)) add_parameter(tensors, training, prefix, i, flat);
}

/// Adds this rank's shard of each parameter, from a packed tensor.
void add_by_part(std::vector<PlacedTensor>& tensors, const Training& training, Purpose purpose,
                 const std::string& prefix, const at::Tensor& packed) {
  for (const UpdateShard::Part& part : training.shard->parts())
    if (purpose == Purpose::read || writes(training, part.parameter))
      add_stretch(tensors, training, prefix, part.parameter, part.of_parameter,
                  packed.narrow(0, part.packed.offset, part.packed.size));
}

/// Adds each parameter's number of updates; the rank with its first element writes it.
void add_steps(std::vector<PlacedTensor>& tensors, Training& training, Purpose purpose) {
  const at::Tensor steps = training.optimizer->segment_steps();
  const auto& segments = training.optimizer->segments();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool first = !training.shard || training.shard->parts()[i].of_parameter.offset == 0;
    if (purpose == Purpose::write && (!first || segments[i].shared || training.tensor.rank() > 0)) continue;
    tensors.push_back(
        whole_tensor("optimizer.step." + segments[i].name, steps.narrow(0, static_cast<std::int64_t>(i), 1)));
  }
}

/// Adds buffers of a user's model. Such a model is undivided, and at the end of a window all replicas hold the same
/// buffers.
void add_buffers(std::vector<PlacedTensor>& tensors, const Training& training) {
  for (const auto& [name, buffer] : training.model.buffers())
    tensors.push_back(whole_tensor("buffers." + name, buffer));
}

/// Inside a window each replica has its own, except for frozen parameters, which never change.
void add_replicas_buffers(std::vector<PlacedTensor>& tensors, const Training& training) {
  const std::string prefix = replica_name(training, "buffers.");
  const auto is_frozen = [&training](const std::string& name) {
    return std::ranges::find(training.model.frozen(), name, &NamedTensors::value_type::first) !=
           training.model.frozen().end();
  };
  for (const auto& [name, buffer] : training.model.buffers())
    if (!is_frozen(name)) tensors.push_back(whole_tensor(prefix + name, buffer));
}

/// Adds a window's sums, which belong to this replica; sums over the tensor axis that are still to be made belong to
/// this rank.
void add_sums(std::vector<PlacedTensor>& tensors, const Training& training, Purpose purpose, const std::string& what,
              const at::Tensor& flat) {
  for (std::size_t i = 0; i < training.model.names().size(); ++i) {
    const bool ranks_own = summed_over_tensor(training, i);
    if (training.model.shares()[i].shared) continue;  // the two uses are summed at the boundary
    if (purpose == Purpose::write && !ranks_own && !writes(training, i)) continue;
    add_parameter(tensors, training, ranks_own ? rank_name(training, what) : replica_name(training, what), i, flat);
  }
}

/// Returns "parameters.", "buffers." or "optimizer.<state>." if a stored name begins with it.
std::string prefix_of(const std::string& name) {
  for (const char* const prefix : {"parameters.", "buffers."})
    if (name.starts_with(prefix)) return prefix;
  if (!name.starts_with("optimizer.")) return {};
  return name.substr(0, name.find('.', std::string_view("optimizer.").size()) + 1);
}

/// Returns all differences between the checkpoint's shared tensors and the model's. Other ranks may hold parameters, or
/// parts of them, that this one does not.
std::string mismatches(const Training& training, const std::vector<PlacedTensor>& live,
                       const CheckpointReader& checkpoint) {
  std::string text;
  const auto note = [&text](const std::string& what) {
    if (!what.empty()) text += (text.empty() ? "" : "; ") + what;
  };
  std::set<std::string> parameters(training.model.names().begin(), training.model.names().end());
  for (const ParameterShape& shape : parameter_shapes(training.spec().model)) parameters.insert(shape.name);
  std::set<std::string> known;  ///< whole names
  for (const auto& [name, buffer] : training.model.buffers()) known.insert("buffers." + name);
  std::set<std::string> prefixes{"parameters.", "optimizer.step."};
  for (const auto& [state, values] : training.optimizer->state()) prefixes.insert("optimizer." + state + ".");
  if (training.half()) prefixes.insert("optimizer.master.");
  for (const PlacedTensor& tensor : live) note(checkpoint.mismatch(tensor));
  for (const std::string& name : checkpoint.tensor_names())
    if (const std::string prefix = prefix_of(name);
        !prefix.empty() && !known.contains(name) &&
        !(prefixes.contains(prefix) && parameters.contains(name.substr(prefix.size()))))
      note(name + " is not in the model");
  return text;
}

/// Early checkpoints had no buffers; a model would silently continue wrongly without them.
Result<void> check_has_buffers(const Training& training, const CheckpointReader& checkpoint) {
  const NamedTensors buffers = training.model.buffers();
  const auto is_buffer = [](const std::string& name) { return name.starts_with("buffers."); };
  if (buffers.empty() || std::ranges::any_of(checkpoint.tensor_names(), is_buffer)) return {};
  return fail(ErrorCode::config,
              "the checkpoint has none of the " + counted(std::ssize(buffers), "buffer") + " of the model (" +
                  buffers.front().first + "): it was taken by a version of Accrue that did not keep them",
              checkpoint.name(), "Train the run again from its start.");
}

Result<void> check_model(Training& training, const CheckpointReader& checkpoint, bool same_spec) {
  if (auto has = check_has_buffers(training, checkpoint); !has) return has;
  const std::string differing = mismatches(training, shared_tensors(training, Purpose::read), checkpoint);
  if (differing.empty()) return {};
  // With the same spec the tensors must match, or the file was damaged.
  if (same_spec) return fail(ErrorCode::protocol, differing, "tensors");
  return fail(ErrorCode::config, "the checkpoint is of another model: " + differing, checkpoint.name(),
              "Resume with the spec that the run was started with.");
}

/// Checks that a stored tensor has this one's shape and type.
Result<void> check_like(const CheckpointReader& checkpoint, const PlacedTensor& expected) {
  const std::string differing = checkpoint.mismatch(expected);
  if (!differing.empty()) return fail(ErrorCode::protocol, differing, "tensors");
  return {};
}

/// Checks the number of updates of one parameter, including those of other ranks: never more than the total.
Result<void> check_step_counts(const Training& training, const CheckpointReader& checkpoint) {
  for (const std::string& parameter : training.model.names()) {
    const std::string name = "optimizer.step." + parameter;
    if (auto like = check_like(checkpoint, whole_tensor(name, at::empty({1}, at::kLong))); !like) return like;
    const auto steps = checkpoint.read(name);
    if (!steps) return tl::unexpected(steps.error());
    const std::int64_t count = steps->item<std::int64_t>();
    if (count < 0 || count > checkpoint.cursor().optimizer_steps)
      return fail(ErrorCode::protocol,
                  name + " is " + std::to_string(count) + " after " +
                      std::to_string(checkpoint.cursor().optimizer_steps) + " optimizer steps",
                  "tensors");
  }
  return {};
}

Result<void> check_generator(const Training& training, const CheckpointReader& checkpoint) {
  const PlacedTensor now = generator_tensor(training);
  if (!checkpoint.find(now.name)) return {};  // more ranks than before
  if (auto like = check_like(checkpoint, now); !like) return like;
  const auto state = checkpoint.read(now.name);
  if (!state) return tl::unexpected(state.error());
  try {
    at::make_generator<at::CPUGeneratorImpl>().set_state(*state);
  } catch (const std::exception&) {
    return fail(ErrorCode::protocol, now.name + " is no state of the generator", "tensors");
  }
  return {};
}

Result<void> check_tally(const Training& training, const CheckpointReader& checkpoint) {
  const std::string name = replica_name(training, "tally");
  const CheckpointReader::Stored& stored = *checkpoint.find(name);
  if (auto like = check_like(checkpoint, whole_tensor(name, at::empty({tally_numbers}, at::kDouble))); !like) {
    if (stored.shape.size() != 1 || stored.dtype != at::kDouble) return like;
    // A tally's contents grow from version to version. Only the message of a refusal is shown, because it contains the
    // advice.
    return fail(ErrorCode::protocol,
                "the checkpoint was taken inside a window by another version of Accrue (" + like.error().message +
                    "). Resume from a checkpoint between two windows (step-N).",
                "tensors");
  }
  const auto tally = checkpoint.read(name);
  if (!tally) return tl::unexpected(tally.error());
  for (const std::size_t i : tally_counts) {
    const double count = tally->const_data_ptr<double>()[i];
    if (!(count >= 0.0 && count <= max_count && count == std::floor(count)))
      return fail(ErrorCode::protocol, name + " counts " + std::to_string(count), "tensors");
  }
  return {};
}

/// Returns which parameters the window's micro-steps have reached on this rank, if the checkpoint contains it.
Result<std::optional<std::vector<bool>>> stored_reached(const Training& training, const CheckpointReader& checkpoint) {
  const std::string name = rank_name(training, "reached");
  if (!checkpoint.find(name)) return std::nullopt;
  const std::int64_t parameters = std::ssize(training.model.names());
  if (auto like = check_like(checkpoint, whole_tensor(name, at::empty({parameters}, at::kByte))); !like)
    return tl::unexpected(like.error());
  const auto stored = checkpoint.read(name);
  if (!stored) return tl::unexpected(stored.error());
  const auto* bytes = stored->const_data_ptr<std::uint8_t>();
  return std::vector<bool>(bytes, bytes + parameters);
}

/// Returns the window's reports of a train step on this rank; empty if the checkpoint has none.
Result<std::string> stored_reports(const Training& training, const CheckpointReader& checkpoint) {
  const std::string name = rank_name(training, "reports");
  if (!checkpoint.find(name)) return std::string();
  auto text = checkpoint.read_text(name);
  if (!text || (!text->empty() && StepReports().restore(*text))) return text;
  return fail(ErrorCode::protocol, name + " is not what a train step reports", "tensors");
}

/// A checkpoint from inside a window belongs to the replicas that took it: each holds its part of the sum.
Result<void> check_open_window(Training& training, const CheckpointReader& checkpoint, bool same_spec) {
  if (checkpoint.cursor().window.position() == 0) return {};
  const std::int64_t replicas = checkpoint.identity().replicas;
  if (replicas != training.mesh.data().size())
    return fail(ErrorCode::config,
                "the checkpoint was taken inside a window by " + counted(replicas, "rank") + ", and there are " +
                    std::to_string(training.mesh.data().size()) + " now",
                checkpoint.name(), "Resume with as many ranks, or from a checkpoint between two windows (step-N).");
  // A rank's sum of the window is not divided again.
  if (checkpoint.identity().world != training.mesh.world().size())
    return fail(ErrorCode::config,
                "the checkpoint was taken inside a window by " + counted(checkpoint.identity().world, "rank") +
                    " in another layout",
                checkpoint.name(), "Resume in the same layout, or from a checkpoint between two windows (step-N).");
  const bool keeps = same_spec && training.plan().knobs.checkpoint_scope == CheckpointScope::anywhere;
  if (!has_open_window(training, checkpoint)) {
    if (!keeps) return {};
    return fail(ErrorCode::protocol, replica_name(training, "tally") + " is not in the checkpoint", "tensors");
  }
  for (const PlacedTensor& live : window_tensors(training, Purpose::read))
    if (const std::string differing = checkpoint.mismatch(live); !differing.empty())
      return same_spec ? fail(ErrorCode::protocol, differing, "tensors")
                       : fail(ErrorCode::config,
                              "the checkpoint was taken inside a window of another layout or model: " + differing,
                              checkpoint.name(),
                              "Resume in the same layout, or from a checkpoint between two windows (step-N).");
  if (auto tally = check_tally(training, checkpoint); !tally) return tally;
  if (const auto reached = stored_reached(training, checkpoint); !reached) return tl::unexpected(reached.error());
  if (const auto reports = stored_reports(training, checkpoint); !reports) return tl::unexpected(reports.error());
  return {};
}

OpenWindow open_window(const at::Tensor& tensor) {
  const double* const values = tensor.const_data_ptr<double>();
  TallyRow tally;
  std::copy_n(values, tally.size(), tally.begin());
  const double* const counted = values + tally.size();
  return {.tally = tally_of(tally),
          .counted = {static_cast<std::int64_t>(counted[0]), static_cast<std::int64_t>(counted[1])}};
}

}  // namespace

std::vector<PlacedTensor> shared_tensors(Training& training, Purpose purpose) {
  std::vector<PlacedTensor> tensors;
  const bool writes_whole = purpose == Purpose::read || training.mesh.writes();
  if (writes_whole) {
    add_by_parameter(tensors, training, purpose, "parameters.", training.model.flat());
    add_buffers(tensors, training);
  }
  if (!writes_whole && !training.shard) return tensors;
  const auto add = [&](const std::string& prefix, const at::Tensor& state) {
    training.shard ? add_by_part(tensors, training, purpose, prefix, state)
                   : add_by_parameter(tensors, training, purpose, prefix, state);
  };
  for (const auto& [state, flat] : training.optimizer->state()) add("optimizer." + state + ".", flat);
  if (training.half()) add("optimizer.master.", training.masters.values());
  add_steps(tensors, training, purpose);
  return tensors;
}

std::vector<PlacedTensor> window_tensors(Training& training, Purpose purpose) {
  std::vector<PlacedTensor> tensors;
  add_sums(tensors, training, purpose, "gradients.", training.reducer.flat_gradients());
  if (const at::Tensor lost = training.reducer.flat_compensation(); lost.defined())
    add_sums(tensors, training, purpose, "compensation.", lost);
  add_replicas_buffers(tensors, training);
  return tensors;
}

PlacedTensor tally_tensor(const Training& training, const OpenWindow& open) {
  const TallyRow tally = row_of(open.tally);
  at::Tensor tensor = at::empty({tally_numbers}, at::kDouble);
  double* const counted = std::ranges::copy(tally, tensor.mutable_data_ptr<double>()).out;
  counted[0] = static_cast<double>(open.counted.items);
  counted[1] = static_cast<double>(open.counted.samples);
  return whole_tensor(replica_name(training, "tally"), std::move(tensor));
}

std::vector<PlacedTensor> library_tensors(const Training& training) {
  if (!training.hooks.any()) return {};
  const std::vector<bool> reached = training.reducer.reached();
  std::vector<PlacedTensor> tensors{
      text_tensor(rank_name(training, "reached"), std::string(reached.begin(), reached.end()))};
  if (const std::string text = training.hooks.open_reports(); !text.empty())
    tensors.push_back(text_tensor(rank_name(training, "reports"), text));
  return tensors;
}

PlacedTensor generator_tensor(const Training& training) {
  return whole_tensor(rank_name(training, "rng.cpu"), generator_state(at::detail::getDefaultCPUGenerator()));
}

bool has_open_window(const Training& training, const CheckpointReader& checkpoint) {
  return checkpoint.find(replica_name(training, "tally")) != nullptr;
}

Result<void> check_state(Training& training, const CheckpointReader& checkpoint) {
  const bool same_spec = checkpoint.identity().spec_sha256 == identity_of(training).spec_sha256;
  if (auto fits = check_model(training, checkpoint, same_spec); !fits) return fits;
  if (auto fits = check_step_counts(training, checkpoint); !fits) return fits;
  if (auto fits = check_generator(training, checkpoint); !fits) return fits;
  return check_open_window(training, checkpoint, same_spec);
}

Result<void> restore_state(Training& training, const CheckpointReader& checkpoint) {
  for (const PlacedTensor& live : shared_tensors(training, Purpose::read))
    if (auto read = checkpoint.read(live); !read) return read;
  if (training.shard && !training.half()) training.masters.take();
  training.optimizer->set_steps(checkpoint.cursor().optimizer_steps);
  if (const std::string name = rank_name(training, "rng.cpu"); checkpoint.find(name)) {
    const auto state = checkpoint.read(name);
    if (!state) return tl::unexpected(state.error());
    set_generator_state(at::detail::getDefaultCPUGenerator(), *state);
  }
  if (checkpoint.cursor().window.position() == 0 || !has_open_window(training, checkpoint)) return {};
  for (const PlacedTensor& live : window_tensors(training, Purpose::read))
    if (auto read = checkpoint.read(live); !read) return read;
  const auto tally = checkpoint.read(replica_name(training, "tally"));
  if (!tally) return tl::unexpected(tally.error());
  training.open = open_window(*tally);
  const auto reports = stored_reports(training, checkpoint);
  if (!reports) return tl::unexpected(reports.error());
  training.hooks.restore_reports(*reports);
  const auto reached = stored_reached(training, checkpoint);
  if (!reached) return tl::unexpected(reached.error());
  // The loss of a micro-step reaches every parameter of a spec's models.
  const bool learned = training.open.tally.micro_steps > 0;
  training.reducer.set_reached(reached->value_or(std::vector<bool>(training.model.names().size(), learned)));
  return {};
}

}  // namespace accrue
