// SPDX-License-Identifier: Apache-2.0
// Two ways to start. Under the supervisor the process receives everything: plan.json, and the inherited channel and
// store. Under a foreign launcher (or alone) the environment gives the rank, and rank 0 makes the plan and sends it to
// the others. With a run folder (--out), rank 0's process keeps the run's record in it, and all ranks report to it as
// to a supervisor; without one events go to standard output. A folder with checkpoints is continued, so a launcher's
// restart continues too.
#include "rank/rank_run.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "accrue/megatron/plugin_library.h"
#include "accrue/run/base/counted.h"
#include "accrue/run/base/printable.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/base/version.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/record/run_store.h"
#include "rank/end_signals.h"
#include "rank/plan_exchange.h"
#include "rank/probe.h"
#include "rank/record_channels.h"
#include "rank/start_watch.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

/// Prints all findings, one per line. Errors (config): any of them is an error.
Result<void> report_findings(const std::vector<Finding>& findings, const fs::path& file) {
  for (const Finding& finding : findings) std::fprintf(stderr, "%s\n", printable(finding.text()).c_str());
  if (!has_errors(findings)) return {};
  return fail(ErrorCode::config, "the spec cannot be run", file.string(), "Fix the errors listed above.");
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000.0));
}

Result<void> check_world(std::int64_t planned, std::int64_t started) {
  if (planned == started) return {};
  return fail(ErrorCode::config,
              "the spec plans " + counted(planned, "rank") + ", the launcher started " + std::to_string(started),
              "parallel.data", "Set parallel.data = " + std::to_string(started) + ", or start as many as planned.");
}

Result<RunOrder> plan_order(const RankArguments& arguments) {
  const fs::path& spec_file = arguments.spec;
  std::vector<PluginFacts> libraries;
  for (const std::string& each : arguments.plugins) {
    megatron::Registry registry;
    libraries.push_back(megatron::load_plugin(fs::absolute(each).lexically_normal(), registry));
  }
  SpecReading reading = read_spec(spec_file);
  apply_sets(reading, {}, environment, libraries);
  if (auto reported = report_findings(reading.findings, spec_file); !reported) return tl::unexpected(reported.error());
  const Preflight checked =
      preflight_files(reading.spec, probe_facts(), fs::absolute(spec_file).parent_path(), libraries);
  if (auto reported = report_findings(checked.findings, spec_file); !reported) return tl::unexpected(reported.error());
  RunOrder order{.plan = *checked.plan, .run_id = new_run_id(), .run_dir = arguments.out};
  order.plugins = records_of(libraries);
  order.first_seq.assign(static_cast<std::size_t>(order.plan.grid.world()), 0);
  return order;
}

}  // namespace

Result<TrainOutcome> RankRun::run() {
  if (auto prepared = arguments_.supervised() ? prepare_supervised() : prepare_foreign(); !prepared)
    return tl::unexpected(prepared.error());
  megatron::Registry registry;
  if (auto loaded = megatron::load_plugins(order_.plugins, registry); !loaded) return tl::unexpected(loaded.error());
  auto outcome = train_run(order_, mesh_, identity_.local_rank, *channel_, registry);
  if (!outcome) return outcome;
  // The store is in rank 0's process: no rank leaves before all are done, however long rank 0 writes the final model.
  const auto untimed = mesh_.world().untimed();
  mesh_.world().barrier();
  return outcome;
}

Result<void> RankRun::prepare_supervised() {
  auto order = read_run_order(arguments_.plan);
  if (!order) return tl::unexpected(order.error());
  order_ = std::move(*order);
  identity_.rank = arguments_.rank;
  open_channel(arguments_.events_fd);
  auto identity = rank_identity(environment, arguments_.store_fd);
  if (!identity) return tl::unexpected(identity.error());
  identity_ = std::move(*identity);
  if (identity_.rank != arguments_.rank)
    return fail(ErrorCode::config,
                "--rank " + std::to_string(arguments_.rank) + " contradicts RANK=" + std::to_string(identity_.rank),
                "environment");
  if (auto checked = check_world(order_.plan.grid.world(), identity_.world); !checked) return checked;
  return meet(order_.plan.spec, order_.plan.backend, order_.run_id);
}

Result<void> RankRun::prepare_foreign() {
  block_end_signals();
  auto identity = rank_identity(environment);
  if (!identity) return tl::unexpected(identity.error());
  identity_ = std::move(*identity);
  if (!arguments_.plan.empty()) {
    auto order = read_run_order(arguments_.plan);
    if (!order) return tl::unexpected(order.error());
    order_ = std::move(*order);
    order_.run_dir = arguments_.out;
    order_.interactive = false;
    order_.paused = false;
    if (auto checked = check_world(order_.plan.grid.world(), identity_.world); !checked) return checked;
    if (auto met = meet(order_.plan.spec, order_.plan.backend, order_.run_id); !met) return met;
  } else {
    SpecReading reading = read_spec(arguments_.spec);
    apply_sets(reading, {}, environment);
    if (auto reported = report_findings(reading.findings, arguments_.spec); !reported) return reported;
    reading.spec = lower_megatron(reading.spec, environment).spec;
    if (auto checked = check_world(make_grid(reading.spec).world(), identity_.world); !checked) return checked;
    if (auto met =
            meet(reading.spec, reading.spec.parallel.backend, sha256_hex(write_spec(reading.spec)).substr(0, 16));
        !met)
      return met;
  }
  if (auto shared = make_shared_order(); !shared) return shared;
  if (!order_.run_dir.empty()) return keep_record();
  open_channel(STDOUT_FILENO);
  announce();
  return {};
}

/// Makes rank 0's process the writer of the record, with a channel to every rank. Collective: the world.
Result<void> RankRun::keep_record() {
  auto channels =
      open_record_channels(*rendezvous_, mesh_.world(), milliseconds(order_.plan.spec.launch.join_timeout_s));
  if (!channels) return tl::unexpected(channels.error());
  channel_fd_ = std::move(channels->own);
  if (identity_.rank == 0) {
    std::fprintf(stderr, "accrue-rank 0: the run is recorded in %s\n", order_.run_dir.c_str());
    keeper_ = std::make_unique<RunKeeper>(order_, std::move(folder_->writer), folder_->continues,
                                          std::move(channels->of_ranks), [](const RunFinished& end) {
                                            std::fprintf(stderr, "accrue-rank 0: %s\n", end.reason.c_str());
                                            ::_exit(end.exit_status);
                                          });
    folder_.reset();
  }
  open_channel(channel_fd_.get());
  return {};
}

/// Rank 0 makes or completes the order and locks the run folder; the others receive the order. Collective: the world.
Result<void> RankRun::make_shared_order() {
  Result<RunOrder> made = order_;
  if (identity_.rank == 0) {
    if (arguments_.plan.empty()) made = plan_order(arguments_);
    if (made) {
      made->origin_ns = monotonic_ns();
      made->first_seq.clear();
    }
    if (made && !made->run_dir.empty()) {
      if (auto claimed = claim_run_folder(*made))
        folder_ = std::move(*claimed);
      else
        made = tl::unexpected(claimed.error());
    }
  }
  auto shared = share_order(mesh_.world(), made);
  if (!shared) return tl::unexpected(shared.error());
  order_ = std::move(*shared);
  return {};
}

Result<void> RankRun::meet(const RunSpec& spec, BackendKind backend, const std::string& run_id) {
  const CommOptions options{.backend = backend,
                            .timeout = milliseconds(spec.launch.collective_timeout_s),
                            .join_timeout = milliseconds(spec.launch.join_timeout_s),
                            .run_id = run_id,
                            .timeout_option = "launch.collective_timeout_s",
                            .join_timeout_option = "launch.join_timeout_s"};
  std::optional<StartWatch> watch;
  if (!arguments_.supervised()) watch.emplace(identity_.rank, options.join_timeout);
  auto met = Rendezvous::join(identity_, options);
  if (!met) return tl::unexpected(met.error());
  rendezvous_ = std::move(*met);
  if (!arguments_.supervised() && identity_.rank == 0 && identity_.world > 1)
    std::fprintf(stderr, "accrue-rank 0: the ranks meet %s\n", rendezvous_->meeting_place().c_str());
  auto mesh = Mesh::build(*rendezvous_, make_grid(spec));
  if (!mesh) return tl::unexpected(mesh.error());
  mesh_ = std::move(*mesh);
  return {};
}

void RankRun::open_channel(int fd) {
  const auto rank = static_cast<std::size_t>(identity_.rank);
  std::function<void()> end_now = [] {
    std::fputs("accrue-rank: told by rank 0 to end\n", stderr);
    ::_exit(exit_status(ErrorCode::peer_lost));
  };
  if (keeper_) end_now = [fd] { ::shutdown(fd, SHUT_RDWR); };  // this process stays until it has recorded the end
  channel_ = std::make_unique<ProcessChannel>(
      ChannelOptions{.fd = fd,
                     .commands = fd != STDOUT_FILENO,
                     .end_signals = !arguments_.supervised(),
                     .rank = identity_.rank,
                     .origin_ns = order_.origin_ns,
                     .first_seq = rank < order_.first_seq.size() ? order_.first_seq[rank] : 0,
                     .on_orphan_deadline = {},
                     .on_end_now = end_now});
}

/// Sends the event that a supervisor would have written first.
void RankRun::announce() {
  if (identity_.rank != 0) return;
  channel_->send(RunStarted{.run = order_.run_id,
                            .spec_sha256 = sha256_hex(write_spec(order_.plan.spec)),
                            .plan_json = plan_summary_json(order_.plan),
                            .versions_json = std::string("{\"accrue\":\"") + version() + "\"}",
                            .host_json = to_json(local_facts()),
                            .started_at = {},
                            .resumed = !order_.resume_from.empty(),
                            .resumed_update = 0});
}

int RankRun::end(const Result<TrainOutcome>& result) {
  int status = 0;
  if (!result) {
    const Error& error = result.error();
    status = exit_status(error.code);
    if (!arguments_.supervised() || !channel_)  // the supervisor shows received errors, and this stream too
      std::fprintf(stderr, "accrue-rank %lld: %s\n", static_cast<long long>(identity_.rank),
                   printable(error.text()).c_str());
    if (channel_)
      channel_->send(RankFailed{.class_name = to_string(error.code),
                                .message = error.where.empty() ? error.message : error.where + ": " + error.message,
                                .what_to_do = error.hint,
                                .exit_status = status});
  } else if (!arguments_.supervised() && result->outcome == "stopped") {
    status = exit_status(ErrorCode::cancelled);
  }
  if (channel_fd_ && (result || status == exit_status(ErrorCode::cancelled)))
    channel_->send(Heartbeat{.phase = std::string(farewell_phase)});
  if (channel_) channel_->close();
  channel_fd_.reset();
  keeper_.reset();
  return status;
}

}  // namespace accrue
