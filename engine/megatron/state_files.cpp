// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state(): checkpoints like a run's, under the same names (train/checkpointing_state.h). In
// addition:
//
//   accelerator.<fact>      texts: the settings that a load compares, the schedule, and the layout of the generators
//   accelerator.counters    steps whose loss was not finite, samples used for validation
//   part.<i>.<p>            instead of <p>: a parameter that only one of several parts of the model knows
//   part.<i>.tensor.<t>.<p>   the same, if each tensor rank has its own
//
// A load reads everything into memory beside the model, on every rank, before anything is changed.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/parallel/random_streams.h"
#include "accrue/run/base/mix64.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/leftovers.h"
#include "accrue/run/weights/archive_file.h"
#include "accumulation/accelerate/state_folder.h"
#include "accumulation/optimizer_state.h"
#include "checkpoint/archive_types.h"
#include "megatron/accelerator_impl.h"

namespace accrue::megatron {
namespace {

namespace fs = std::filesystem;
using Texts = std::map<std::string, std::string>;

constexpr std::int64_t states_kept = 2;
constexpr const char* fact_prefix = "accelerator.";
constexpr const char* size_fact = "parameters";
constexpr const char* counters_name = "accelerator.counters";
constexpr const char* hint = "Prepare the same model, optimizer and loaders before load_state().";

std::string layout_of(const RankGrid& grid) {
  return "data " + std::to_string(grid.data) + ", pipeline " + std::to_string(grid.pipeline) + ", tensor " +
         std::to_string(grid.tensor);
}

/// Settings, besides the schedule, that must equal those of the saved state.
Texts facts_of(const AcceleratorImpl& impl) {
  Texts facts{{"global_batch_size", std::to_string(impl.global_batch)},
              {"optimizer", impl.optimizer->carrier().name()}};
  for (const auto& [name, option] : take_under(optimizer_options(impl.optimizer->optimizer()), "group.0")) {
    if (name == "parameters" || name == "lr" || name == "weight_decay") continue;  // the schedule's
    std::string& text = facts["optimizer's " + name];
    for (const at::Tensor& number : option.reshape({-1}).unbind())
      text += (text.empty() ? "" : ", ") + format_value(number.item<double>());
  }
  return facts;
}

/// Returns the number of samples of each loader of indexed data. A run of another length has another index, and reads
/// in another order.
Texts sizes_of_data(const AcceleratorImpl& impl) {
  constexpr const char* names[] = {"training", "validation", "test"};
  Texts sizes;
  for (const auto& [which, samples] : impl.indexed_samples)
    sizes[std::string("samples of the ") + names[which] + " data"] = std::to_string(samples);
  return sizes;
}

std::string generator_name(const AcceleratorImpl& impl, std::size_t i) {
  return "rank." + std::to_string(impl.mesh.rank()) + ".rng.cpu" + (i == 0 ? "" : "." + std::to_string(i));
}

std::vector<PlacedTensor> buffers_of(const AcceleratorImpl& impl) {
  std::vector<PlacedTensor> buffers;
  for (std::size_t chunk = 0; chunk < impl.chunks.size(); ++chunk)
    for (const auto& each : impl.chunks[chunk]->named_buffers())
      buffers.push_back(
          whole_tensor("buffers." + impl.name_in_state(chunk, each.key(), impl.axis.split()), each.value()));
  return buffers;
}

TrainingCursor cursor_of(const AcceleratorImpl& impl) {
  TrainingCursor cursor;
  cursor.window = impl.driver->window().position();
  cursor.optimizer_steps = impl.progress.iteration - impl.progress.skipped;
  cursor.samples = impl.progress.consumed_train_samples;
  cursor.finite = std::isfinite(impl.optimizer->parameter_norm());
  cursor.loss_scale = impl.loss_scale.scale;
  cursor.scale_growth = impl.loss_scale.growth;
  cursor.scale_overflows = impl.loss_scale.overflows;
  cursor.overflowed_windows = impl.progress.skipped;
  return cursor;
}

/// Returns the content that this rank writes. The last rank has the losses and reports.
std::vector<PlacedTensor> tensors_of(const AcceleratorImpl& impl) {
  std::vector<PlacedTensor> tensors = impl.optimizer->tensors();
  if (impl.mesh.writes() && (impl.axis.split() || impl.axis.rank() == 0))
    for (PlacedTensor& buffer : buffers_of(impl)) tensors.push_back(std::move(buffer));
  const auto generators = random_streams().state(at::kCPU);
  for (std::size_t i = 0; i < generators.size(); ++i)
    tensors.push_back(whole_tensor(generator_name(impl, i), generators[i].second));
  if (impl.mesh.rank() + 1 != impl.mesh.grid().world()) return tensors;
  tensors.push_back(
      whole_tensor(counters_name, at::tensor({impl.progress.nan, impl.progress.consumed_valid_samples}, at::kLong)));
  Texts texts = texts_of(impl.schedule);
  texts.merge(facts_of(impl));
  texts.merge(sizes_of_data(impl));
  texts["layout"] = layout_of(impl.mesh.grid());
  texts[size_fact] = std::to_string(impl.optimizer->elements());
  for (const auto& [name, text] : texts) tensors.push_back(text_tensor(fact_prefix + name, text));
  return tensors;
}

Texts texts_in(const CheckpointReader& from) {
  Texts texts;
  for (const std::string& name : from.tensor_names())
    if (name.starts_with(fact_prefix) && name != counters_name)
      texts[name.substr(std::string_view(fact_prefix).size())] = from.read_text(name).value();
  return texts;
}

void check(const AcceleratorImpl& impl, const Texts& saved, const TrainingCursor& cursor) {
  if (saved.empty()) throw std::invalid_argument("it is a run's checkpoint, which no Accelerator saved");
  const auto compare = [&saved](const Texts& here, const std::string& subject, const char* verb, const char* why) {
    for (const auto& [key, value] : here) {
      const auto found = saved.find(key);
      const std::string then = found == saved.end() ? "nothing" : found->second;
      if (then != value)
        throw std::invalid_argument(subject + key + verb + value + " here; the state was saved with " + then + why);
    }
  };
  compare(facts_of(impl), "", " is ", "");
  compare(sizes_of_data(impl), "the ", " are ",
          ": indexed data are shuffled for the length of a run, so train_iters or train_samples must be what it was");
  if (const auto& given = impl.plugin().consumed_samples; given && !given->empty() && given->front() != cursor.samples)
    throw std::invalid_argument("consumed_samples begins with " + std::to_string(given->front()) +
                                " here; the state was saved after " + std::to_string(cursor.samples) +
                                ": leave the field out, loaders go on where the state was saved");
}

/// Compares the numbers of parameters, because a deeper model's state contains everything that a shallower model reads.
void check_size(const AcceleratorImpl& impl, const Texts& saved) {
  const auto found = saved.find(size_fact);
  const std::string then = found == saved.end() ? "another number" : found->second;
  if (const std::string now = std::to_string(impl.optimizer->elements()); then != now)
    throw std::invalid_argument("the model has " + now + " parameters here; the state was saved with " + then);
}

/// Returns this rank's generators; none for a state of another layout, in which the ranks of a stage would not draw the
/// same masks.
RandomStreams::State generators_in(const AcceleratorImpl& impl, const CheckpointReader& from, const Texts& saved) {
  RandomStreams::State generators;
  if (saved.at("layout") != layout_of(impl.mesh.grid())) return generators;
  const auto now = random_streams().state(at::kCPU);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string name = generator_name(impl, i);
    if (from.find(name) == nullptr) continue;
    generators.emplace_back(now[i].first, from.read(name).value());
    at::make_generator<at::CPUGeneratorImpl>().set_state(generators.back().second);  // throws if it is not a state
  }
  return generators;
}

void put_counters(AcceleratorImpl& impl, const TrainingCursor& cursor, const at::Tensor& counters) {
  if (impl.loss_scale.growth_factor > 1.0 && cursor.loss_scale > 0.0) {  // otherwise loss_scale sets it
    impl.loss_scale.scale = cursor.loss_scale;
    impl.loss_scale.growth = cursor.scale_growth;
    impl.loss_scale.overflows = cursor.scale_overflows;
  }
  // Micro-steps are counted by the current num_micro_batches.
  impl.driver->window().seek(cursor.update() * impl.num_micro_batches, cursor.schedule_position());
  // consumed_samples of the first start: an update has B samples then and now, skipped or not.
  impl.samples_before = cursor.samples - cursor.update() * impl.global_batch;
  impl.note_progress();
  impl.progress.skipped = cursor.overflowed_windows;
  impl.progress.nan = counters[0].item<std::int64_t>();
  impl.progress.consumed_valid_samples = counters[1].item<std::int64_t>();
  auto& loaders = impl.prepared->loaders;
  loaders[0].continue_after(impl.progress.consumed_train_samples);
  if (loaders.size() > 1) loaders[1].continue_after(impl.progress.consumed_valid_samples);
}

/// Reads a state; the returned function installs it.
std::function<void()> read_state(AcceleratorImpl& impl, const CheckpointReader& from) {
  const Texts saved = texts_in(from);
  check(impl, saved, from.cursor());
  const Schedule schedule = schedule_after_load(impl.schedule, saved, impl.resolved);
  const auto parameters = impl.optimizer->read(from);
  check_size(impl, saved);
  const std::vector<PlacedTensor> live = buffers_of(impl);
  std::vector<PlacedTensor> buffers = live;
  for (PlacedTensor& each : buffers) read_fitting(from, each = whole_tensor(each.name, at::empty_like(each.values)));
  const at::Tensor counters = at::zeros({2}, at::kLong);
  read_fitting(from, whole_tensor(counters_name, counters));
  if (counters.lt(0).any().item<bool>()) throw std::invalid_argument(std::string(counters_name) + " are negative");
  const auto generators = generators_in(impl, from, saved);
  return [=, &impl, cursor = from.cursor()] {
    impl.ddp->zero_grad();
    impl.schedule = schedule;
    parameters();
    for (std::size_t i = 0; i < live.size(); ++i) live[i].values.copy_(buffers[i].values);
    put_counters(impl, cursor, counters);
    for (const auto& [generator, state] : generators) set_generator_state(generator, state);
    if (generators.empty())
      impl.seed_generators(mix64(impl.options.seed, 0, static_cast<std::uint64_t>(cursor.update())));
  };
}

/// Sets later states aside: they belong to a continuation that is abandoned now. Rank 0 only.
Result<void> make_way(const fs::path& folder, const CheckpointMark& mark) {
  tidy_checkpoints(folder);
  const auto moved = set_aside_after(folder, mark, "abandoned");
  if (!moved) return tl::unexpected(moved.error());
  return {};
}

tl::unexpected<Error> no_state(const fs::path& folder, const std::vector<std::string>& refused) {
  if (!refused.empty())
    return fail(ErrorCode::protocol, "no state can be used: " + joined(refused, "; "), folder.string(),
                "Put one back from a copy.");
  const auto old = ArchiveFile::open(accelerate::StateFolder::rank_file(folder, 0));
  const auto format = old ? old->header.metadata.find("format") : Texts::const_iterator();
  if (old && format != old->header.metadata.end())
    return fail(
        ErrorCode::config,
        "the state is of the format \"" + format->second + "\", which Accrue wrote before states were checkpoints",
        folder.string(), "Load it with the version that wrote it, or train again.");
  std::error_code none;
  for (const fs::directory_entry& each : fs::directory_iterator(folder / "checkpoints", none))
    if (each.path().filename().string().starts_with("abandoned-"))
      return fail(ErrorCode::protocol, "there is no state but abandoned ones", folder.string(),
                  "Rename one to take it: " + each.path().filename().string() + " to " +
                      each.path().filename().string().substr(std::string_view("abandoned-").size()) + ".");
  return fail(ErrorCode::protocol, "there is no state", folder.string(), "save_state() writes one.");
}

void warn(const AcceleratorImpl& impl, const std::string& text) {
  if (impl.mesh.speaks()) std::fprintf(stderr, "MegatronLMPlugin: %s\n", text.c_str());
}

}  // namespace

Result<void> Accelerator::save_state(const fs::path& folder) {
  AcceleratorImpl& impl = *impl_;
  if (!impl.prepared) return fail(ErrorCode::config, "nothing is prepared that could be saved", folder.string());
  Communicator& world = impl.mesh.world();
  CheckpointContent content{.cursor = cursor_of(impl), .tensors = {}};
  auto ready = accelerate::guarded(folder, "", [&]() -> Result<void> {
    content.tensors = tensors_of(impl);
    return impl.mesh.speaks() ? make_way(folder, content.cursor.mark()) : Result<void>();
  });
  if (ready = accelerate::agreed(std::move(ready), world, folder); !ready) return ready;
  const auto saved = save_checkpoint(folder, content, machine_identity(impl.mesh), states_kept, world);
  if (!saved) return tl::unexpected(saved.error());
  if (saved->retention) warn(impl, "older states were left in place: " + saved->retention->text());
  return {};
}

Result<void> Accelerator::load_state(const fs::path& folder) {
  AcceleratorImpl& impl = *impl_;
  if (!impl.prepared) return fail(ErrorCode::config, "prepare() comes before load_state()", folder.string());
  std::function<void()> put;
  const auto fits = [&](const CheckpointReader& from) -> Result<void> {
    try {
      put = read_state(impl, from);
      return {};
    } catch (const ResultError& failure) {
      return tl::unexpected(failure.error);
    } catch (const std::exception& misfit) {
      return fail(ErrorCode::config, misfit.what(), (folder / "checkpoints" / from.name()).string(), hint);
    }
  };
  const auto untimed = impl.mesh.world().untimed();  // a slow disk is not a lost peer
  const auto opened = open_checkpoint(folder, "newest", machine_identity(impl.mesh), fits, impl.mesh.world());
  if (!opened) return tl::unexpected(opened.error());
  if (!opened->checkpoint) return no_state(folder, opened->refused);
  for (const std::string& refused : opened->refused)
    warn(impl, refused + ". The state goes on from " + opened->checkpoint->name() + ".");
  const at::NoGradGuard no_grad;
  put();
  return {};
}

}  // namespace accrue::megatron
