// SPDX-License-Identifier: Apache-2.0
// Saving takes three rounds: rank 0 names the folder; every rank writes its shard and reports the result; rank 0
// commits and reports the result. Opening takes two rounds for each candidate: rank 0 names it, every rank accepts or
// refuses it. Each round is one small collective, so all ranks get the same answer. A disk that fails on one rank stops
// none of them: training continues.
#include "accrue/checkpoint/checkpoint.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/empty.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "accrue/run/record/leftovers.h"
#include "checkpoint/checkpoint_folders.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_file.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

/// One rank's report in a round. Fixed size, plain bytes: it is sent as a tensor.
struct Statement {
  std::int64_t ok = 0;
  std::int64_t code = 0;  ///< of an error
  std::int64_t bytes = 0;
  std::array<char, 33> hash{};
  std::array<char, 600> message{};
  std::array<char, 600> where{};
  std::array<char, 300> hint{};

  void set_error(const Error& error) {
    code = static_cast<std::int64_t>(error.code);
    put(message, error.message);
    put(where, error.where);
    put(hint, error.hint);
  }
  Error error() const { return {static_cast<ErrorCode>(code), message.data(), where.data(), hint.data()}; }

  template <std::size_t N>
  static void put(std::array<char, N>& to, const std::string& text) {
    to.fill('\0');
    std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
  }
};

constexpr auto statement_bytes = static_cast<std::int64_t>(sizeof(Statement));

at::Tensor as_tensor(const Statement& statement) {
  at::Tensor bytes = at::empty({statement_bytes}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), &statement, sizeof statement);
  return bytes;
}

Statement from_rank_0(Communicator& axis, const Statement& mine) {
  at::Tensor bytes = as_tensor(mine);
  axis.broadcast(bytes, 0);
  Statement statement;
  std::memcpy(&statement, bytes.const_data_ptr(), sizeof statement);
  return statement;
}

std::vector<Statement> from_all(Communicator& axis, const Statement& mine) {
  at::Tensor all = at::empty({axis.size(), statement_bytes}, at::kByte);
  axis.all_gather(all, as_tensor(mine));
  std::vector<Statement> statements(static_cast<std::size_t>(axis.size()));
  std::memcpy(statements.data(), all.const_data_ptr(), statements.size() * sizeof(Statement));
  return statements;
}

/// Round 1: the folder, by name below checkpoints/.
Statement propose_folder(const fs::path& run_dir, const CheckpointMark& mark, bool first) {
  Statement statement;
  if (!first) return statement;
  const auto part = make_part_folder(run_dir, mark);
  statement.ok = part ? 1 : 0;
  if (part)
    Statement::put(statement.where, part->filename().string());
  else
    statement.set_error(part.error());
  return statement;
}

/// Round 2: this rank's shard.
Statement write_own(const fs::path& part, const CheckpointContent& content, std::int64_t rank) {
  Statement statement;
  const auto written = write_shard(part / shard_name(rank), content.tensors);
  statement.ok = written ? 1 : 0;
  if (!written) {
    statement.set_error(written.error());
    return statement;
  }
  statement.bytes = written->bytes;
  Statement::put(statement.hash, written->xxh3);
  return statement;
}

/// Round 3, rank 0 alone: the manifest and the commit.
Result<void> commit(const fs::path& part, const Manifest& manifest) {
  if (auto written = write_synced(part / "manifest.json", to_json(manifest)); !written) return written;
  return commit_folder(part, checkpoint_name(manifest.cursor.mark()));
}

/// Returns the first error among the statements, with its rank.
std::optional<Error> first_error(const std::vector<Statement>& statements) {
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    if (statements[rank].ok) continue;
    Error error = statements[rank].error();
    if (statements.size() > 1) error.message = "rank " + std::to_string(rank) + ": " + error.message;
    return error;
  }
  return std::nullopt;
}

Manifest manifest_of(const CheckpointContent& content, const CheckpointIdentity& identity,
                     const std::vector<Statement>& shards) {
  Manifest manifest{.cursor = content.cursor, .identity = identity, .files = {}};
  manifest.identity.world = static_cast<std::int64_t>(shards.size());
  for (std::size_t rank = 0; rank < shards.size(); ++rank)
    manifest.files.push_back(
        {shard_name(static_cast<std::int64_t>(rank)), shards[rank].bytes, shards[rank].hash.data()});
  return manifest;
}

// ---- opening

/// Returns the checkpoints that rank 0 sees, newest first, up to a limit.
Result<std::vector<std::string>> candidates(const fs::path& run_dir, const CheckpointMark& limit, bool first) {
  if (!first) return {};
  auto names = committed_checkpoints(run_dir);
  if (names) std::erase_if(*names, [&limit](const std::string& name) { return checkpoint_mark(name) > limit; });
  return names;
}

/// Returns rank 0's next candidate, by name; not ok if there is none, with an error if the folder cannot be read.
Statement propose_candidate(const Result<std::vector<std::string>>& names, std::size_t next) {
  Statement statement;
  if (!names) statement.set_error(names.error());
  if (!names || next >= names->size()) return statement;
  statement.ok = 1;
  Statement::put(statement.where, (*names)[next]);
  return statement;
}

/// This rank's verdict on a candidate. Errors: as CheckpointFits.
Result<CheckpointReader> open_candidate(const fs::path& run_dir, const std::string& name,
                                        const CheckpointIdentity& identity, const CheckpointFits& fits,
                                        const Communicator& world) {
  const fs::path folder = checkpoints_dir(run_dir) / name;
  auto reader = open_reader(folder, name);
  if (!reader) return reader;
  if (auto verified = verify_share(folder, world.rank(), world.size()); !verified)
    return tl::unexpected(verified.error());
  if (!identity.data_fingerprint.empty() && reader->identity().data_fingerprint != identity.data_fingerprint)
    return fail(ErrorCode::data,
                "the data changed since " + name + " was saved: its content hash is " + identity.data_fingerprint +
                    ", the checkpoint says " + reader->identity().data_fingerprint,
                name, "Restore the data, or start a new run.");
  if (auto fit = fits(*reader); !fit) return tl::unexpected(fit.error());
  return reader;
}

bool only_refuses(const Error& error) {
  return error.code == ErrorCode::protocol || error.code == ErrorCode::disk;
}

/// Returns the first error that ends the search, else the first that refuses the candidate.
std::optional<Error> verdict(const std::vector<Statement>& statements) {
  std::vector<Statement> final_ones = statements;
  for (Statement& statement : final_ones)
    if (!statement.ok && only_refuses(statement.error())) statement.ok = 1;
  if (auto ending = first_error(final_ones)) return ending;
  return first_error(statements);
}

void compare(std::vector<std::string>& differences, const char* what, const std::string& saved,
             const std::string& now) {
  if (saved != now) differences.push_back(std::string(what) + " (saved with " + saved + ", now " + now + ")");
}

std::vector<std::string> differences(const CheckpointIdentity& saved, const CheckpointIdentity& now) {
  std::vector<std::string> different;
  compare(different, "number of ranks", std::to_string(saved.world), std::to_string(now.world));
  compare(different, "threads per rank", std::to_string(saved.threads_per_rank), std::to_string(now.threads_per_rank));
  compare(different, "LibTorch version", saved.torch_version, now.torch_version);
  compare(different, "CPU capability", saved.cpu_capability, now.cpu_capability);
  if (saved.spec_sha256 != now.spec_sha256) different.push_back("spec");
  return different;
}

Result<CommittedCheckpoint> write_and_commit(const fs::path& run_dir, const CheckpointContent& content,
                                             const CheckpointIdentity& identity, std::int64_t keep,
                                             Communicator& world) {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t rank = world.rank();
  const Statement folder = from_rank_0(world, propose_folder(run_dir, content.cursor.mark(), rank == 0));
  if (!folder.ok) return tl::unexpected(folder.error());
  const fs::path part = checkpoints_dir(run_dir) / folder.where.data();

  const std::vector<Statement> shards = from_all(world, write_own(part, content, rank));
  Statement outcome{.ok = 1};
  if (const auto failed = first_error(shards)) {
    outcome.ok = 0;
    outcome.set_error(*failed);
  } else if (rank == 0) {
    const auto committed = commit(part, manifest_of(content, identity, shards));
    outcome.ok = committed ? 1 : 0;
    if (!committed) outcome.set_error(committed.error());
  }
  outcome = from_rank_0(world, outcome);
  if (!outcome.ok) {
    std::error_code ignored;
    if (rank == 0) fs::remove_all(part, ignored);
    return tl::unexpected(outcome.error());
  }
  CommittedCheckpoint committed{.name = checkpoint_name(content.cursor.mark())};
  for (const Statement& shard : shards) committed.bytes += shard.bytes;
  if (rank == 0)
    if (const auto retained = retain_checkpoints(run_dir, keep); !retained) committed.retention = retained.error();
  committed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return committed;
}

}  // namespace

CheckpointIdentity machine_identity(const Mesh& mesh) {
  return {.world = mesh.world().size(),
          .replicas = mesh.data().size(),
          .threads_per_rank = at::get_num_threads(),
          .torch_version = TORCH_VERSION,
          .cpu_capability = at::get_cpu_capability()};
}

Result<CommittedCheckpoint> save_checkpoint(const fs::path& run_dir, const CheckpointContent& content,
                                            const CheckpointIdentity& identity, std::int64_t keep,
                                            Communicator& world) {
  const auto untimed = world.untimed();  // the ranks wait for each other's disks
  auto committed = write_and_commit(run_dir, content, identity, keep, world);
  world.barrier();  // rank 0 removes old checkpoints last; the others wait here without a limit
  return committed;
}

Result<OpenedCheckpoint> open_checkpoint(const fs::path& run_dir, const std::string& name,
                                         const CheckpointIdentity& identity, const CheckpointFits& fits,
                                         Communicator& world) {
  const CheckpointMark limit = name == "newest" ? CheckpointMark{INT64_MAX} : checkpoint_mark(name);
  if (!limit.valid())
    return fail(ErrorCode::config, "\"" + name + "\" is not the name of a checkpoint", run_dir.string(),
                "Say newest, step-N, or step-N+K for one inside a window.");
  const auto names = candidates(run_dir, limit, world.rank() == 0);
  OpenedCheckpoint opened;
  for (std::size_t next = 0;; ++next) {
    const Statement proposal = from_rank_0(world, propose_candidate(names, next));
    if (!proposal.ok && proposal.error().code != ErrorCode::unset) return tl::unexpected(proposal.error());
    if (!proposal.ok) return opened;  // none is left
    const std::string candidate = proposal.where.data();

    auto reader = open_candidate(run_dir, candidate, identity, fits, world);
    Statement mine{.ok = reader ? 1 : 0};
    if (!reader) mine.set_error(reader.error());
    const auto problem = verdict(from_all(world, mine));
    if (!problem) {
      opened.not_bit_exact = differences(reader->identity(), identity);
      opened.checkpoint = std::move(*reader);
      return opened;
    }
    // A rank whose own error ends the search returns its full text; the statement may hold a shortened one.
    if (!only_refuses(*problem))
      return tl::unexpected(reader || only_refuses(reader.error()) ? *problem : reader.error());
    opened.refused.push_back(candidate + " was refused: " + problem->where + ": " + problem->message);
  }
}

void tidy_checkpoints(const fs::path& run_dir) {
  clear_leftovers_in(checkpoints_dir(run_dir));
}

}  // namespace accrue
