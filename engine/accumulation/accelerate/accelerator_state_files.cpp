// SPDX-License-Identifier: Apache-2.0
// save_state() and load_state(). What all ranks share (parameters, optimizers, schedules, scaler, step) rank 0 writes
// once; what is a rank's own (RNG, the gradients of an open window, where its loaders stand) each writes itself. Files
// are named-tensor archives: no code, no object graph. They are written into a folder beside the one named, which takes
// its place by one rename once every rank has written its part, so the folder is always that of one save. A load reads
// and checks everything on every rank before it changes anything.
//
// The original keeps the step without the gradients; so does this by default, and then clears what load_state() finds,
// as a fresh process has none. N is not loaded: the program set it, perhaps anew for other hardware, and a window that
// was open goes on until its step divides by the N in force. With the N that was saved that is where it would have
// ended.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <vector>

#include "accelerator_impl.h"
#include "accrue/checkpoint/tensor_archive.h"

namespace accrue::accelerate {

namespace fs = std::filesystem;

/// Collects and hands back an Accelerator's state.
struct StateFiles {
  static StateDict models(Accelerator::Impl& impl);
  static StateDict shared(Accelerator::Impl& impl);
  static StateDict own(Accelerator::Impl& impl, const SaveStateOptions& options);
  static void check_models(Accelerator::Impl& impl, const StateDict& state);
  static void check_own(Accelerator::Impl& impl, const StateDict& state);
  static void load_models(Accelerator::Impl& impl, const StateDict& state);
  static void load_shared(Accelerator::Impl& impl, const StateDict& state);
  static void load_own(Accelerator::Impl& impl, const StateDict& state);
  static void put_back(Accelerator::Impl& impl, const StateDict& before, const std::optional<SharedScaler>& scaler);
  static Result<void> write_part(Accelerator::Impl& impl, const fs::path& part, const SaveStateOptions& options);
  static Result<void> save(Accelerator::Impl& impl, const fs::path& folder, const SaveStateOptions& options);
  static Result<void> load(Accelerator::Impl& impl, const fs::path& folder);
};

namespace {

std::string numbered(const char* what, std::size_t i) {
  return std::string(what) + "." + std::to_string(i);
}

const at::Tensor& entry(const StateDict& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end()) return found->second;
  throw std::invalid_argument("there is no entry \"" + name + "\"");
}

void check_fits(const at::Tensor& target, const at::Tensor& saved, const std::string& name) {
  if (target.sizes() != saved.sizes())
    throw std::invalid_argument("the shape of \"" + name + "\" is not that of what was prepared");
  if (target.is_floating_point() != saved.is_floating_point())
    throw std::invalid_argument("the type of \"" + name + "\" is not that of what was prepared");
}

constexpr const char* model_file = "model.safetensors";
constexpr const char* shared_file = "state.safetensors";

fs::path rank_file(const fs::path& folder, std::int64_t rank) {
  return folder / ("rank-" + std::to_string(rank) + ".safetensors");
}

/// Runs `work`; what it throws becomes an error that names the file.
template <typename Work>
Result<void> guarded(const fs::path& file, const char* hint, Work&& work) {
  try {
    const at::NoGradGuard no_grad;
    return work();
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& failure) {
    return fail(ErrorCode::protocol, failure.what(), file.string(), hint);
  }
}

Result<void> write(const fs::path& file, const std::function<StateDict()>& state) {
  return guarded(file, "", [&]() -> Result<void> {
    NamedTensors tensors;
    for (const auto& [name, tensor] : state()) tensors.emplace_back(name, tensor.detach().cpu().contiguous());
    if (const auto written = write_archive(file, tensors); !written) return tl::unexpected(written.error());
    return {};
  });
}

Result<StateDict> read(const fs::path& file) {
  auto archive = read_archive(file);
  if (!archive) return tl::unexpected(archive.error());
  StateDict state;
  for (auto& [name, tensor] : archive->tensors) state.emplace(name, tensor);
  return state;
}

/// The first error of any rank: this rank's own, or a word about the others.
Result<void> agreed(Result<void> mine, Communicator& axis, const fs::path& folder) {
  at::Tensor failed = at::full({1}, mine ? 0.0 : 1.0, at::kDouble);
  axis.all_reduce(failed);
  if (mine && failed.item<double>() > 0)
    return fail(ErrorCode::disk, "another rank failed on its part of the state", folder.string());
  return mine;
}

Result<void> disk_failure(const fs::path& path, const std::string& what, int error) {
  return fail(ErrorCode::disk, what + ": " + std::error_code(error, std::generic_category()).message(), path.string());
}

Result<void> sync(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int failed = fd >= 0 && ::fsync(fd) == 0 ? 0 : errno;
  if (fd >= 0) ::close(fd);
  if (failed != 0) return disk_failure(folder, "the folder could not be synced", failed);
  return {};
}

fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

/// A folder beside the one that is saved to, so that a rename can put it there.
fs::path beside(const fs::path& folder, const char* ending) {
  const fs::path whole = without_slash(folder);
  return whole.parent_path() / ("." + whole.filename().string() + ending);
}

bool is_ours(const std::string& name) {
  return name == model_file || name == shared_file || (name.starts_with("rank-") && name.ends_with(".safetensors"));
}

/// Removes a folder that is none any more, after what the program itself had put into it has gone over to the one that
/// has its name.
Result<void> remove_after(const fs::path& old, const fs::path& target) {
  std::error_code failure;
  std::vector<fs::path> others;
  for (fs::directory_iterator at(old, failure), end; !failure && at != end; at.increment(failure))
    if (!is_ours(at->path().filename().string())) others.push_back(at->path().filename());
  if (!failure && !others.empty()) fs::create_directories(target, failure);  // it may have been removed since
  for (const fs::path& name : others)
    if (!failure && !fs::exists(target / name, failure)) fs::rename(old / name, target / name, failure);
  if (!failure) fs::remove_all(old, failure);
  if (failure)
    return disk_failure(old, "the state is whole, but what it has replaced could not be cleared", failure.value());
  return {};
}

/// A save that was killed between its two renames: the folder gets its name back.
Result<void> give_name_back(const fs::path& folder) {
  const fs::path target = without_slash(folder);
  const fs::path replaced = beside(folder, ".replaced");
  std::error_code failure;
  if (!fs::exists(target, failure) && fs::exists(replaced, failure)) fs::rename(replaced, target, failure);
  if (failure) return disk_failure(replaced, "the state could not be given its name back", failure.value());
  return {};
}

/// Removes what a save leaves beside the folder.
Result<void> clear_beside(const fs::path& folder) {
  std::error_code failure;
  for (const fs::path& old : {beside(folder, ".replaced"), beside(folder, ".part")})
    if (fs::exists(old, failure))
      if (auto removed = remove_after(old, without_slash(folder)); !removed) return removed;
  return {};
}

Result<void> make_part(const fs::path& folder) {
  if (auto given = give_name_back(folder); !given) return given;
  if (auto cleared = clear_beside(folder); !cleared) return cleared;
  const fs::path part = beside(folder, ".part");
  std::error_code failure;
  fs::create_directories(part, failure);
  if (failure) return disk_failure(part, "the folder could not be made", failure.value());
  return {};
}

/// False where renaming failed; errno says how. A file system that knows no exchange (NFS, some of FUSE) takes two
/// renames; a kill between them is what give_name_back() mends.
bool put_in_place(const fs::path& part, const fs::path& target, const fs::path& replaced) {
  std::error_code ignored;
  if (!fs::exists(target, ignored)) return ::rename(part.c_str(), target.c_str()) == 0;
  if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::rename(target.c_str(), replaced.c_str()) != 0) return false;
  if (::rename(part.c_str(), target.c_str()) == 0) return true;
  const int failed = errno;
  ::rename(replaced.c_str(), target.c_str());
  errno = failed;
  return false;
}

/// The part folder takes the other's place. Files of the program's own in that one stay.
Result<void> commit(const fs::path& folder) {
  const fs::path target = without_slash(folder);
  const fs::path part = beside(folder, ".part");
  if (auto synced = sync(part); !synced) return synced;
  if (!put_in_place(part, target, beside(folder, ".replaced")))
    return disk_failure(target, "the state could not be put in place", errno);
  if (auto synced = sync(target.has_parent_path() ? target.parent_path() : fs::path(".")); !synced) return synced;
  return clear_beside(folder);
}

}  // namespace

StateDict StateFiles::models(Accelerator::Impl& impl) {
  StateDict state;
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    for (const auto& each : impl.models[i]->module->named_parameters())
      state[numbered("model", i) + "." + each.key()] = each.value();
    for (const auto& each : impl.models[i]->module->named_buffers())
      state[numbered("model", i) + "." + each.key()] = each.value();
  }
  return state;
}

StateDict StateFiles::shared(Accelerator::Impl& impl) {
  StateDict state;
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
    put_under(state, numbered("optimizer", i), impl.optimizers[i]->state_dict());
  for (std::size_t i = 0; i < impl.schedulers.size(); ++i)
    put_under(state, numbered("scheduler", i), impl.schedulers[i]->state_dict());
  if (impl.scaler) put_under(state, "scaler", impl.scaler->scaler.state_dict());
  put_under(state, "window", window_state(impl.state.window().position()));
  return state;
}

StateDict StateFiles::own(Accelerator::Impl& impl, const SaveStateOptions& options) {
  StateDict state;
  impl.look();
  {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::scoped_lock lock(generator.mutex());
    state["rng"] = generator.get_state();
  }
  for (std::size_t i = 0; options.gradients && i < impl.models.size(); ++i) {
    const auto& parameters = impl.models[i]->ddp->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (parameters[p].grad().defined())
        state[numbered("gradient", i) + "." + std::to_string(p)] = parameters[p].grad();
    if (impl.models[i]->unreduced) state[numbered("unreduced", i)] = state_number(std::int64_t{1});
  }
  for (std::size_t i = 0; options.gradients && i < impl.optimizers.size(); ++i)
    if (impl.optimizers[i]->waits()) state[numbered("waits", i)] = state_number(std::int64_t{1});
  for (std::size_t i = 0; options.loaders && i < impl.state.loaders().size(); ++i) {
    const PreparedLoaderBase& loader = *impl.state.loaders()[i];
    state[numbered("loader", i) + ".epoch"] = state_number(loader.epoch());
    state[numbered("loader", i) + ".position"] = state_number(loader.position());
  }
  return state;
}

void StateFiles::check_models(Accelerator::Impl& impl, const StateDict& state) {
  for (auto& [name, tensor] : models(impl)) check_fits(tensor, entry(state, name), name);
}

void StateFiles::load_models(Accelerator::Impl& impl, const StateDict& state) {
  for (auto& [name, tensor] : models(impl)) tensor.copy_(entry(state, name));
}

void StateFiles::check_own(Accelerator::Impl& impl, const StateDict& state) {
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    const auto& parameters = impl.models[i]->ddp->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::string name = numbered("gradient", i) + "." + std::to_string(p);
      if (state.contains(name)) check_fits(parameters[p], state.at(name), name);
    }
  }
  for (std::size_t i = 0; i < impl.state.loaders().size(); ++i) {
    const std::string name = numbered("loader", i);
    if (!state.contains(name + ".epoch")) continue;
    static_cast<void>(count_of(state, name + ".epoch") + count_of(state, name + ".position"));
  }
  at::Generator probe = at::detail::getDefaultCPUGenerator().clone();
  probe.set_state(entry(state, "rng"));
}

void StateFiles::load_shared(Accelerator::Impl& impl, const StateDict& state) {
  // N is the program's.
  const WindowPosition position =
      window_position(take_under(state, "window")).with_steps_of(impl.state.window().position());
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
    impl.optimizers[i]->load_state_dict(take_under(state, numbered("optimizer", i)));
  for (std::size_t i = 0; i < impl.schedulers.size(); ++i)
    impl.schedulers[i]->load_state_dict(take_under(state, numbered("scheduler", i)));
  if (impl.scaler) impl.scaler->begin_anew();
  if (impl.scaler) impl.scaler->scaler.load_state_dict(take_under(state, "scaler"));
  impl.state.window().restore(position);
}

/// Undoes load_shared(). One that refuses has kept what it had.
void StateFiles::put_back(Accelerator::Impl& impl, const StateDict& before, const std::optional<SharedScaler>& scaler) {
  const auto each = [&](auto& loadable, const std::string& name) {
    try {
      loadable.load_state_dict(take_under(before, name));
    } catch (const std::invalid_argument&) {
    }
  };
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i) each(*impl.optimizers[i], numbered("optimizer", i));
  for (std::size_t i = 0; i < impl.schedulers.size(); ++i) each(*impl.schedulers[i], numbered("scheduler", i));
  if (scaler) *impl.scaler = *scaler;  // with what it knew of the gradients
  impl.state.window().restore(window_position(take_under(before, "window")));
}

void StateFiles::load_own(Accelerator::Impl& impl, const StateDict& state) {
  for (std::size_t i = 0; i < impl.models.size(); ++i) {
    impl.models[i]->ddp->leave_local();  // a window that was open before the load is given up
    impl.models[i]->ddp->zero_grad();
    const auto& parameters = impl.models[i]->ddp->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::string name = numbered("gradient", i) + "." + std::to_string(p);
      if (!state.contains(name)) continue;
      parameters[p].mutable_grad() = at::empty_like(parameters[p].detach(), state.at(name).options());
      parameters[p].grad().copy_(state.at(name));
    }
    static_cast<void>(impl.models[i]->moved());
    impl.models[i]->unreduced = state.contains(numbered("unreduced", i));
  }
  for (std::size_t i = 0; i < impl.optimizers.size(); ++i)
    impl.optimizers[i]->set_waits(state.contains(numbered("waits", i)));
  for (std::size_t i = 0; i < impl.state.loaders().size(); ++i) {
    const std::string name = numbered("loader", i);
    if (!state.contains(name + ".epoch")) continue;
    impl.state.loaders()[i]->set_epoch(integer_of(state, name + ".epoch"));
    impl.state.loaders()[i]->skip_first_batches(integer_of(state, name + ".position"));
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(entry(state, "rng"));
}

Result<void> StateFiles::write_part(Accelerator::Impl& impl, const fs::path& part, const SaveStateOptions& options) {
  if (impl.axis.rank() == 0) {
    if (auto done = write(part / model_file, [&] { return models(impl); }); !done) return done;
    if (auto done = write(part / shared_file, [&] { return shared(impl); }); !done) return done;
  }
  return write(rank_file(part, impl.axis.rank()), [&] { return own(impl, options); });
}

Result<void> StateFiles::save(Accelerator::Impl& impl, const fs::path& folder, const SaveStateOptions& options) {
  if (impl.scaler) impl.scaler->settle();  // before any rank writes gradients: they belong to the scale that is saved
  const bool first = impl.axis.rank() == 0;
  auto done = agreed(first ? make_part(folder) : Result<void>(), impl.axis, folder);
  if (!done) return done;
  done = agreed(write_part(impl, beside(folder, ".part"), options), impl.axis, folder);
  if (!done) return done;
  return agreed(first ? commit(folder) : Result<void>(), impl.axis, folder);
}

Result<void> StateFiles::load(Accelerator::Impl& impl, const fs::path& folder) {
  constexpr const char* hint =
      "prepare the same models, optimizers and schedulers in the same order before load_state()";
  const fs::path own_file = rank_file(folder, impl.axis.rank());
  if (auto given = agreed(impl.axis.rank() == 0 ? give_name_back(folder) : Result<void>(), impl.axis, folder); !given)
    return given;
  const auto model = read(folder / model_file);
  const auto common = read(folder / shared_file);
  const auto mine = read(own_file);
  Result<void> done;
  for (const auto* each : {&model, &common, &mine})
    if (done && !*each) done = tl::unexpected(each->error());
  const auto step = [&](const fs::path& file, auto&& work) {
    if (!done) return;
    done = guarded(file, hint, [&]() -> Result<void> {
      work();
      return {};
    });
  };
  step(folder / model_file, [&] { check_models(impl, *model); });
  step(own_file, [&] { check_own(impl, *mine); });
  // What optimizers and schedules can take only they know: they are loaded first, and put back where any rank fails.
  const StateDict before = shared(impl);
  const auto scaler = impl.scaler ? std::optional(*impl.scaler) : std::nullopt;
  step(folder / shared_file, [&] { load_shared(impl, *common); });
  done = agreed(std::move(done), impl.axis, folder);
  if (!done) {
    put_back(impl, before, scaler);
    return done;
  }
  const at::NoGradGuard no_grad;
  load_models(impl, *model);
  load_own(impl, *mine);
  return {};
}

Result<void> Accelerator::save_state(const std::filesystem::path& folder, SaveStateOptions options) {
  return StateFiles::save(*impl_, folder, options);
}

Result<void> Accelerator::load_state(const std::filesystem::path& folder) {
  return StateFiles::load(*impl_, folder);
}

}  // namespace accrue::accelerate
