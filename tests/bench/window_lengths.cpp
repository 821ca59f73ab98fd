// SPDX-License-Identifier: Apache-2.0
// The cost and savings of longer windows: runs of the engine host with its rank processes that differ only in N and the
// micro-batch, so that every update has the same global batch. Prints tokens per second in interleaved rounds, as
// ratios to N = 1 of the same round, and the gradient bytes that a rank reduces per update, from the sync events. Fails
// if those bytes differ from the plan's: the same for every N, and N times as many if every micro-step reduces. Run it
// by hand:
//   window_lengths [rounds] [updates] [context] [layers] [width]
// A run's first update is warm-up; its rate is taken from the end of the first update to the end of the last. Other
// work on the machine spoils the ratios. It shows in the CPU share (the least of the runs of each N): near 1 on a quiet
// one.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "accrue/run/facts/host_facts.h"
#include "accrue/run/host/engine_host.h"
#include "accrue/run/preflight/preflight.h"

using namespace accrue;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t samples_per_rank = 16;  ///< of an update: N times the micro-batch
const std::vector<std::int64_t> lengths = {1, 4, 16};

struct Shape {
  std::int64_t updates = 2;
  std::int64_t context = 256;
  std::int64_t layers = 6;
  std::int64_t width = 384;
};

/// Measurements of one run.
struct Measured {
  double tokens_per_second = 0.0;
  std::int64_t bytes_per_update = 0;
  double loss = 0.0;  ///< of the last update
  double cpu_share =
      0.0;  ///< processor time of the ranks over their wall time; little where others keep the machine busy
};

RunSpec spec_of(const Shape& shape, std::int64_t ranks, std::int64_t length, ReduceWhen when) {
  RunSpec spec;
  spec.model.layers = shape.layers;
  spec.model.width = shape.width;
  spec.model.heads = 6;
  spec.model.context = shape.context;
  spec.data.kind = DataKind::synthetic;
  spec.data.samples = samples_per_rank * ranks * shape.updates;
  spec.accumulation.steps = length;
  spec.accumulation.micro_batch = samples_per_rank / length;
  spec.accumulation.knobs.reduce_when = when;
  spec.parallel.data = ranks;
  spec.launch.threads_per_rank = 1;
  spec.run.updates = shape.updates;
  return spec;
}

/// All events of a run, once it has ended.
std::vector<RunEvent> hosted(RunPlan plan, const fs::path& folder) {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
  EngineHost host({.rank_program = ACCRUE_BENCH_RANK});
  host.set_wakeup([&] {
    const std::lock_guard lock(mutex);
    woken = true;
    changed.notify_all();
  });
  if (const auto started = host.start({std::move(plan), folder}); !started)
    throw std::runtime_error(started.error().text());
  std::vector<RunEvent> events;
  for (bool ended = false; !ended;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return woken; });
      woken = false;
    }
    for (RunEvent& event : host.events().drain()) {
      const auto* finished = std::get_if<RunFinished>(&event.body);
      if (finished != nullptr && finished->exit_status != 0)
        throw std::runtime_error("the run ended as " + finished->outcome + ": " + finished->reason);
      ended = ended || finished != nullptr;
      events.push_back(std::move(event));
    }
  }
  host.set_wakeup({});
  return events;
}

/// Bytes that rank 0 reduced of its gradients, by update.
std::map<std::int64_t, std::int64_t> reduced_bytes(const std::vector<RunEvent>& events) {
  std::map<std::int64_t, std::int64_t> bytes;
  for (const RunEvent& event : events) {
    const auto* sync = std::get_if<Sync>(&event.body);
    if (sync == nullptr || event.rank != 0) continue;
    for (std::size_t i = 0; i < sync->op.size(); ++i)
      if (reduces_gradients(sync->purpose[i], sync->axis[i], sync->op[i])) bytes[sync->update[i]] += sync->bytes[i];
  }
  return bytes;
}

Measured read(const std::vector<RunEvent>& events) {
  std::vector<Update> updates;
  for (const RunEvent& event : events)
    if (const auto* update = std::get_if<Update>(&event.body); update != nullptr && event.rank == 0)
      updates.push_back(*update);
  if (updates.empty()) throw std::runtime_error("a run without an update");
  Measured measured;
  measured.loss = updates.back().loss;
  const Update& first = updates.front();
  if (updates.size() > 1)
    measured.tokens_per_second =
        static_cast<double>(updates.back().tokens - first.tokens) / (updates.back().seconds - first.seconds);
  const auto bytes = reduced_bytes(events);
  if (!bytes.empty()) measured.bytes_per_update = bytes.begin()->second;
  for (const auto& [update, each] : bytes)
    if (each != measured.bytes_per_update) throw std::runtime_error("updates of one run reduce different bytes");
  return measured;
}

/// Processor seconds of all children that have ended.
double children_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Measured measure(const RunSpec& spec) {
  const auto folder = fs::temp_directory_path() / ("accrue-window-lengths-" + std::to_string(::getpid()));
  const auto checked = preflight_files(spec, local_facts(), fs::temp_directory_path());
  for (const Finding& finding : checked.findings)
    if (finding.severity == Severity::error) throw std::runtime_error(finding.text());
  const auto begin = std::chrono::steady_clock::now();
  const double before = children_seconds();
  Measured measured = read(hosted(*checked.plan, folder));
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  measured.cpu_share = (children_seconds() - before) / (wall.count() * static_cast<double>(spec.parallel.data));
  fs::remove_all(folder);
  return measured;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

/// By N, one entry per round. Each round starts with a different N, so that a drifting clock rate favours none.
using Rounds = std::map<std::int64_t, std::vector<Measured>>;

Rounds run_rounds(const Shape& shape, std::int64_t ranks, std::int64_t rounds) {
  Rounds measured;
  for (std::int64_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::int64_t length = lengths[(i + static_cast<std::size_t>(round)) % lengths.size()];
      measured[length].push_back(measure(spec_of(shape, ranks, length, ReduceWhen::boundary)));
    }
  return measured;
}

void print_rates(const Rounds& measured, std::int64_t ranks) {
  std::printf("\n%lld rank%s, %lld samples an update\n", static_cast<long long>(ranks), ranks > 1 ? "s" : "",
              static_cast<long long>(ranks * samples_per_rank));
  std::printf("   N  micro-batch  tokens/s (median)  to N = 1 (median)  CPU share  each round\n");
  const auto& ones = measured.at(1);
  for (const auto& [length, each] : measured) {
    std::vector<double> rates;
    std::vector<double> ratios;
    std::vector<double> shares;
    std::string rounds;
    for (std::size_t i = 0; i < each.size(); ++i) {
      rates.push_back(each[i].tokens_per_second);
      shares.push_back(each[i].cpu_share);
      ratios.push_back(each[i].tokens_per_second / ones[i].tokens_per_second);
      char text[16];
      std::snprintf(text, sizeof text, " %.4f", ratios.back());
      rounds += text;
    }
    std::printf("%4lld  %11lld  %17.1f  %17.4f  %9.2f %s\n", static_cast<long long>(length),
                static_cast<long long>(samples_per_rank / length), median(rates), median(ratios),
                *std::ranges::min_element(shares), rounds.c_str());
  }
  std::fflush(stdout);
}

/// Prints the bytes for each N beside those with a reduction in every micro-step; false if they differ from the plan's.
bool print_traffic(const Rounds& measured, Shape shape, std::int64_t ranks) {
  shape.updates = 1;
  const std::int64_t one = measured.at(1).front().bytes_per_update;
  bool right = one > 0;
  std::printf("\ngradient bytes a rank reduces per update, %lld ranks\n", static_cast<long long>(ranks));
  std::printf("   N      on boundary  every micro-step  times N = 1  loss of the last update\n");
  for (const auto& [length, each] : measured) {
    const std::int64_t every = measure(spec_of(shape, ranks, length, ReduceWhen::every_micro_step)).bytes_per_update;
    right = right && every == length * one;
    for (const Measured& round : each) right = right && round.bytes_per_update == one;
    std::printf("%4lld  %15lld  %16lld  %11.4f  %.7f\n", static_cast<long long>(length),
                static_cast<long long>(each.front().bytes_per_update), static_cast<long long>(every),
                static_cast<double>(every) / static_cast<double>(one), each.front().loss);
  }
  std::printf("%s\n",
              right ? "as planned: alike for every N, N times where every micro-step reduces" : "NOT AS PLANNED");
  std::fflush(stdout);
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto argument = [&](int i, std::int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const std::int64_t rounds = std::max<std::int64_t>(argument(1, 3), 1);
  Shape shape;
  shape.updates = std::max<std::int64_t>(argument(2, shape.updates), 2);
  shape.context = argument(3, shape.context);
  shape.layers = argument(4, shape.layers);
  shape.width = argument(5, shape.width);
  std::printf(
      "%lld layers, width %lld, context %lld, one thread a rank; %lld rounds of %lld updates, the first not timed\n",
      static_cast<long long>(shape.layers), static_cast<long long>(shape.width), static_cast<long long>(shape.context),
      static_cast<long long>(rounds), static_cast<long long>(shape.updates));
  std::fflush(stdout);
  const Rounds two = run_rounds(shape, 2, rounds);
  print_rates(two, 2);
  const bool right = print_traffic(two, shape, 2);
  print_rates(run_rounds(shape, 1, rounds), 1);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "window_lengths: %s\n", error.what());
  return 1;
}
