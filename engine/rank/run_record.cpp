// SPDX-License-Identifier: Apache-2.0
// A recorded program has the same parts as accrue-rank: each rank has a channel, and rank 0 also keeps the record. The
// loop supplies the facts that a plan would contain.
#include "accrue/rank/run_record.h"

#include <ATen/ops/empty.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/host/run_keeper.h"
#include "accrue/run/record/run_store.h"
#include "rank/plan_exchange.h"
#include "rank/process_channel.h"
#include "rank/record_channels.h"

namespace accrue {
namespace {

std::filesystem::path chosen_dir(const RunRecordOptions& options) {
  if (!options.dir.empty()) return options.dir;
  const char* launched = std::getenv("ACCRUE_RUN_DIR");
  return launched == nullptr ? "" : launched;
}

RunOrder order_of(const RunRecordOptions& options, std::int64_t world) {
  constexpr std::int64_t without_end = std::int64_t{1} << 40;
  RunOrder order;
  RunPlan& plan = order.plan;
  plan.spec.run.name = options.name;
  plan.spec.parallel.data = world;
  plan.spec.accumulation.steps = options.steps;
  plan.spec.accumulation.micro_batch = options.micro_batch;
  if (options.updates > 0) plan.spec.run.updates = options.updates;
  plan.grid = make_grid(plan.spec);
  plan.window.steps = options.steps;
  plan.window.world = world;
  plan.window.batches_per_epoch = without_end;
  plan.window.max_micro_steps = without_end;
  plan.totals.updates = options.updates;
  return order;
}

/// Scope in which the record's threads start with blocked signals, so that a program's handlers run in the same threads
/// as before.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeldBack() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

struct RunRecord::Impl {
  RunRecordOptions options;
  Communicator& world;
  std::filesystem::path dir;
  std::int64_t origin_ns = 0;
  std::int64_t begun_ns = monotonic_ns();
  std::unique_ptr<RunKeeper> keeper;  ///< rank 0
  OwnedFd channel_fd;
  std::unique_ptr<ProcessChannel> channel;  ///< null: nothing is recorded
  std::vector<Communicator*> observed;

  std::int64_t updates = 0;
  std::int64_t micro_step = 0;  ///< current, or last completed
  std::int64_t samples = 0;     ///< over all ranks
  std::int64_t items = 0;
  double loss = 0.0;  ///< of the last update with an item
  std::int64_t empty_windows = 0;
  std::int64_t overflowed_windows = 0;
  double compute_seconds = 0.0;
  bool stopped = false;

  // State of the open window on this rank.
  std::int64_t position = 0;
  std::int64_t compute_ns = 0;  ///< of the micro-step
  std::int64_t end_ns = 0;
  double loss_sum = 0.0;
  double window_items = 0.0;
  double window_samples = 0.0;
  NamedLosses scalars;

  Impl(RunRecordOptions chosen, Communicator& all)
      : options(std::move(chosen)),
        world(all),
        updates(options.updates_done),
        micro_step(options.micro_steps_done),
        samples(options.samples_done) {}
  ~Impl() {
    for (Communicator* each : observed) {
      each->set_observer({});
      each->set_begin_observer({});
    }
    if (channel) channel->close();
    channel.reset();
    channel_fd.reset();  // its keeper waits for the close
    keeper.reset();
  }

  Result<void> connect(Rendezvous& meeting);
  Result<void> begin(RunOrder order, std::optional<ClaimedFolder> claimed, RecordChannels channels,
                     std::int64_t first_seq);
  void span(ComputeKind kind, std::int64_t begin, std::int64_t end);
  void from_first(EventBody body) {
    if (world.rank() == 0) channel->send(std::move(body));
  }
};

Result<void> RunRecord::Impl::connect(Rendezvous& meeting) {
  constexpr std::chrono::seconds patience(60);
  RunOrder order = order_of(options, world.size());
  std::optional<ClaimedFolder> claimed;
  Result<std::string> news;  // the folder, the clock's origin and the number of each rank's first event
  if (world.rank() == 0 && !chosen_dir(options).empty()) {
    order.run_dir = chosen_dir(options);
    auto taken = claim_loop_folder(order);
    if (taken) claimed = std::move(*taken);
    std::ostringstream text;
    text << order.origin_ns;
    for (const std::int64_t seq : order.first_seq) text << ' ' << seq;
    text << '\n' << order.run_dir.string();
    news = taken ? Result<std::string>(text.str()) : tl::unexpected(taken.error());
  }
  if (world.rank() == 0 && news && news->empty()) news = "-";
  news = share_text(world, news);
  if (!news) return tl::unexpected(news.error());
  if (*news == "-") return {};
  std::istringstream text(*news);
  std::vector<std::int64_t> first_seq(static_cast<std::size_t>(world.size()));
  text >> origin_ns;
  for (std::int64_t& seq : first_seq) text >> seq;
  std::string line;
  std::getline(text, line);
  std::getline(text, line);
  dir = line;
  origin_ns = origin_here(world, origin_ns);

  auto channels = open_record_channels(meeting, world, patience);
  if (!channels) return tl::unexpected(channels.error());
  const auto begun = begin(std::move(order), std::move(claimed), std::move(*channels),
                           first_seq[static_cast<std::size_t>(world.rank())]);
  // All or none: the others' record would wait for a rank without a channel.
  at::Tensor failed = at::empty({1}, at::kDouble);
  *failed.mutable_data_ptr<double>() = begun ? -1.0 : static_cast<double>(world.rank());
  world.all_reduce(failed, Reduce::max, CollectivePurpose::agreement);
  const auto rank = static_cast<std::int64_t>(*failed.const_data_ptr<double>());
  if (!begun || rank < 0) return begun;
  return fail(ErrorCode::device, "rank " + std::to_string(rank) + " could not start its part of the record", {},
              "Its own message says why");
}

/// Starts the threads.
Result<void> RunRecord::Impl::begin(RunOrder order, std::optional<ClaimedFolder> claimed, RecordChannels channels,
                                    std::int64_t first_seq) try {
  channel_fd = std::move(channels.own);
  const SignalsHeldBack held_back;
  std::function<void()> end_now;
  if (claimed && claimed->continues)
    if (const auto before = read_run(dir)) {
      begun_ns -= static_cast<std::int64_t>(before->seconds * 1e9);
      empty_windows = before->empty_windows;
      overflowed_windows = before->overflowed_windows;
      if (before->updates == options.updates_done) items = before->tokens;
    }
  if (claimed) {
    keeper = std::make_unique<RunKeeper>(
        std::move(order), std::move(claimed->writer), claimed->continues, std::move(channels.of_ranks),
        [](const RunFinished& end) { ::_exit(end.exit_status); }, options.updates_done);
    end_now = [fd = channel_fd.get()] { ::shutdown(fd, SHUT_RDWR); };
  }
  channel = std::make_unique<ProcessChannel>(
      ChannelOptions{.fd = channel_fd.get(),
                     .rank = world.rank(),
                     .origin_ns = origin_ns,
                     .first_seq = first_seq,
                     .on_orphan_deadline = [] {},  // the program decides how it ends without rank 0
                     .on_end_now = end_now ? end_now : [] { ::_exit(exit_status(ErrorCode::peer_lost)); }});
  channel->send(RankReady{.data = world.rank(), .device = "cpu", .pid = ::getpid(), .backend = world.backend()});
  return {};
} catch (const std::system_error& error) {
  return fail(ErrorCode::device, "a thread of the record cannot be started: " + error.code().message(),
              "rank " + std::to_string(world.rank()),
              "Raise the limit on processes and threads (ulimit -u, or that of the container)");
}

void RunRecord::Impl::span(ComputeKind kind, std::int64_t begin, std::int64_t end) {
  compute_ns += end - begin;
  end_ns = end;
  compute_seconds += static_cast<double>(end - begin) * 1e-9;
  if (!channel) return;
  channel->send(Operations{.kind = {kind},
                           .micro_step = {micro_step},
                           .chunk = {0},
                           .begin_ns = {begin - origin_ns},
                           .end_ns = {end - origin_ns}});
}

RunRecord::RunRecord(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<RunRecord>> RunRecord::open(Rendezvous& meeting, Communicator& world,
                                                   const RunRecordOptions& options) {
  auto impl = std::make_unique<Impl>(options, world);
  if (auto connected = impl->connect(meeting); !connected) return tl::unexpected(connected.error());
  return std::unique_ptr<RunRecord>(new RunRecord(std::move(impl)));
}

RunRecord::~RunRecord() {
  if (!active()) return;
  impl_->channel->send(RankFailed{.class_name = std::string(to_string(ErrorCode::internal)),
                                  .message = "the program left its loop before the record was finished",
                                  .what_to_do = "See what it printed",
                                  .exit_status = exit_status(ErrorCode::internal)});
}

bool RunRecord::active() const {
  return impl_->channel != nullptr;
}

const std::filesystem::path& RunRecord::dir() const {
  return impl_->dir;
}

bool RunRecord::begin_micro_step() {
  Impl& own = *impl_;
  if (own.stopped) return false;
  ++own.micro_step;
  own.compute_ns = 0;
  own.end_ns = monotonic_ns();
  if (!active()) return true;
  own.stopped = own.channel->before_micro_step(own.micro_step, [] {}).stop;
  if (own.stopped)
    --own.micro_step;
  else
    own.channel->progress("forward", own.updates + 1, own.micro_step);
  return !own.stopped;
}

RunRecord::Span RunRecord::computes(ComputeKind kind) {
  return {*impl_, kind};
}

RunRecord::Span::Span(Impl& record, ComputeKind kind) : record_(record), kind_(kind), begin_ns_(monotonic_ns()) {
  if (record_.channel) record_.channel->progress(to_string(kind_).data(), record_.updates + 1, record_.micro_step);
}

RunRecord::Span::~Span() {
  record_.span(kind_, begin_ns_, monotonic_ns());
}

void RunRecord::end_micro_step(double loss, std::int64_t samples, std::int64_t items) {
  Impl& own = *impl_;
  if (items == 0) items = samples;
  ++own.position;
  own.loss_sum += loss * static_cast<double>(items);
  own.window_items += static_cast<double>(items);
  own.window_samples += static_cast<double>(samples);
  if (!active()) return;
  own.channel->send(MicroSteps{.micro_step = {own.micro_step},
                               .update = {own.updates + 1},
                               .position = {own.position},
                               .size = {std::max(own.position, own.options.steps)},
                               .epoch = {0},
                               .batch = {own.micro_step - 1},
                               .loss = {loss},
                               .tokens = {items},
                               .samples = {samples},
                               .end_ns = {own.end_ns - own.origin_ns},
                               .compute_ns = {own.compute_ns}});
}

LoopRequests RunRecord::end_update(const UpdateReport& report) {
  Impl& own = *impl_;
  LoopRequests asked;
  double loss = 0.0;
  if (active()) {
    own.channel->progress("reduce", own.updates + 1, own.micro_step);
    const BoundaryRequests mine = own.channel->boundary_requests();
    at::Tensor sums = at::empty({5}, at::kDouble);
    double* const sum = sums.mutable_data_ptr<double>();
    sum[0] = own.loss_sum;
    sum[1] = own.window_items;
    sum[2] = own.window_samples;
    sum[3] = mine.checkpoint ? 1.0 : 0.0;
    sum[4] = mine.stop ? 1.0 : 0.0;
    own.world.all_reduce(sums);
    asked = {sum[3] > 0.0, sum[4] > 0.0};
    loss = sum[1] > 0.0 ? sum[0] / sum[1] : 0.0;
    if (sum[1] > 0.0) own.loss = loss;
    own.items += static_cast<std::int64_t>(sum[1]);
    own.samples += static_cast<std::int64_t>(sum[2]);
  }
  ++own.updates;
  if (report.outcome == StepOutcome::skipped_empty) ++own.empty_windows;
  if (report.outcome == StepOutcome::skipped_overflow) ++own.overflowed_windows;
  own.stopped = own.stopped || asked.stop;
  if (active())
    own.from_first(Update{.update = own.updates,
                          .micro_step = own.micro_step,
                          .samples = own.samples,
                          .tokens = own.items,
                          .epoch = report.epoch,
                          .loss = loss,
                          .lr = report.lr,
                          .grad_norm = report.grad_norm,
                          .outcome = report.outcome,
                          .seconds = static_cast<double>(monotonic_ns() - own.begun_ns) * 1e-9,
                          .compute_seconds = own.compute_seconds,
                          .reason = "full",
                          .steps = own.position,
                          .scalars = std::exchange(own.scalars, {}),
                          .empty_windows = own.empty_windows,
                          .overflowed_windows = own.overflowed_windows});
  own.position = 0;
  own.loss_sum = own.window_items = own.window_samples = 0.0;
  return asked;
}

void RunRecord::scalar(const std::string& name, double value) {
  impl_->scalars[name] = value;
}

void RunRecord::evaluation(double loss, std::int64_t batches, std::int64_t items) {
  if (active())
    impl_->from_first(Evaluation{.update = impl_->updates,
                                 .loss = loss,
                                 .batches = batches,
                                 .tokens = items,
                                 .scalars = std::exchange(impl_->scalars, {})});
}

void RunRecord::warn(std::string message, std::string what_to_do) {
  if (active()) impl_->from_first(Warning{"program", std::move(message), std::move(what_to_do), impl_->updates});
}

void RunRecord::observe(Communicator& communicator) {
  if (!active()) return;
  Impl& own = *impl_;
  own.observed.push_back(&communicator);
  communicator.set_begin_observer([&own] { own.channel->collective_begun(); });
  communicator.set_observer([&own](const CollectiveRecord& record) {
    own.channel->send(Sync{.update = {own.updates + 1},
                           .micro_step = {own.micro_step},
                           .axis = {record.axis},
                           .op = {record.op},
                           .purpose = {record.purpose},
                           .bytes = {record.bytes},
                           .begin_ns = {record.begin_ns - own.origin_ns},
                           .end_ns = {record.end_ns - own.origin_ns}});
  });
}

void RunRecord::finish() {
  if (!active()) return;
  Impl& own = *impl_;
  own.from_first(RunFinished{.outcome = own.stopped ? "stopped" : "finished",
                             .updates = own.updates,
                             .loss = own.loss,
                             .seconds = static_cast<double>(monotonic_ns() - own.begun_ns) * 1e-9});
  own.channel->send(Heartbeat{.phase = std::string(farewell_phase)});
  std::filesystem::path dir = own.dir;
  impl_ = std::make_unique<Impl>(own.options, own.world);  // which ends the previous record
  impl_->dir = std::move(dir);
}

}  // namespace accrue
