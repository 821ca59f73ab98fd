// SPDX-License-Identifier: Apache-2.0
// The cost of a reduction: all-reduce over shared memory against Gloo on loopback, and what DistributedDataParallel
// adds to forward and backward. Two ranks as processes run the same benchmarks with fixed iteration counts, side by
// side; rank 0 prints. Each backend has processes of its own.
//
//   bench_comm [--benchmark_filter=...] [--benchmark_repetitions=5]
#include <ATen/Parallel.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <torch/nn/module.h>

#include <QCoreApplication>
#include <cstdio>

#include "accrue/parallel/distributed_data_parallel.h"
#include "support/joined_rank.h"

using namespace accrue;
using namespace accrue::test;

namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

/// Both ranks begin each timed iteration together, so that no start-up difference is counted.
void all_reduce(benchmark::State& state, Communicator& axis, std::int64_t bytes, bool shared) {
  at::Tensor flat = shared ? axis.shared_buffer(bytes / 4, at::kFloat) : at::zeros({bytes / 4}, at::kFloat);
  axis.all_reduce(flat);
  for (auto _ : state) {
    state.PauseTiming();
    axis.barrier();
    state.ResumeTiming();
    axis.all_reduce(flat);
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

struct Layers : torch::nn::Module {
  Layers(std::int64_t layers, std::int64_t width) {
    for (std::int64_t i = 0; i < layers; ++i) {
      weights.push_back(register_parameter("w" + std::to_string(i), at::randn({width, width}) * 0.02));
      biases.push_back(register_parameter("b" + std::to_string(i), at::zeros({width})));
    }
  }
  at::Tensor loss(at::Tensor x_BD) {
    for (std::size_t i = 0; i < weights.size(); ++i) x_BD = at::tanh(at::linear(x_BD, weights[i], biases[i]));
    return x_BD.sum();
  }
  std::vector<at::Tensor> weights, biases;
};

enum class Wrapping { none, quiet, at_finish, when_ready };

/// 6.5 million parameters (26 MB): forward and backward of 64 rows alone, wrapped without a reduction, and reduced.
void train(benchmark::State& state, Communicator& axis, Wrapping wrapping) {
  Layers net(40, 404);
  const at::Tensor x = at::randn({64, 404});
  std::unique_ptr<DistributedDataParallel> ddp;
  const auto launch = wrapping == Wrapping::when_ready ? LaunchBuckets::when_ready : LaunchBuckets::at_finish;
  const DataParallelOptions options{.bucket_bytes = 5 << 20, .launch = launch};
  if (wrapping != Wrapping::none) ddp = std::make_unique<DistributedDataParallel>(net, axis, options);
  if (ddp && wrapping == Wrapping::quiet) ddp->set_sync_enabled(false);
  net.loss(x).backward();
  if (ddp) ddp->finish();
  for (auto _ : state) {
    state.PauseTiming();
    axis.barrier();
    state.ResumeTiming();
    net.loss(x).backward();
    if (ddp) ddp->finish();
  }
}

void register_for(Communicator& axis, const std::string& name) {
  const auto add = [&](const std::string& what, int iterations, auto&& body) {
    benchmark::RegisterBenchmark((name + "/" + what).c_str(), body)
        ->Iterations(iterations)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  Communicator* on = &axis;
  add("barrier", 2000, [on](benchmark::State& state) {
    for (auto _ : state) on->barrier();
  });
  add("all_reduce/8B", 2000, [on](benchmark::State& state) { all_reduce(state, *on, 8, false); });
  add("all_reduce/1MiB", 200, [on](benchmark::State& state) { all_reduce(state, *on, kMebibyte, false); });
  add("all_reduce/26MB", 20, [on](benchmark::State& state) { all_reduce(state, *on, 26000000, false); });
  if (name == "shm") {
    add("all_reduce/1MiB shared", 200, [on](benchmark::State& state) { all_reduce(state, *on, kMebibyte, true); });
    add("all_reduce/26MB shared", 20, [on](benchmark::State& state) { all_reduce(state, *on, 26000000, true); });
  }
  add("step/bare", 10, [on](benchmark::State& state) { train(state, *on, Wrapping::none); });
  add("step/no_sync", 10, [on](benchmark::State& state) { train(state, *on, Wrapping::quiet); });
  add("step/at_finish", 10, [on](benchmark::State& state) { train(state, *on, Wrapping::at_finish); });
  add("step/when_ready", 10, [on](benchmark::State& state) { train(state, *on, Wrapping::when_ready); });
}

class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

int bench_rank(RankContext& rank) {
  at::set_num_threads(1);
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  register_for(*joined.data, rank.arguments.at(0));

  std::vector<char*> arguments = {const_cast<char*>("bench_comm")};
  for (std::size_t i = 1; i < rank.arguments.size(); ++i) arguments.push_back(rank.arguments[i].data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (rank.rank == 0) {
    benchmark::RunSpecifiedBenchmarks();
  } else {
    SilentReporter silent;
    benchmark::RunSpecifiedBenchmarks(&silent);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  start_rank_forker({{"bench_rank", bench_rank}});
  for (const char* backend : {"shm", "gloo"}) {
    std::vector<std::string> arguments = {backend};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    const auto outcomes = RankGroup("bench_rank", 2, {.arguments = arguments}).finish(std::chrono::minutes(8));
    std::fputs(outcomes[0].errors.c_str(), stdout);
    const std::string failure = first_failure(outcomes);
    if (failure.empty()) continue;
    std::fprintf(stderr, "%s\n", failure.c_str());
    return 1;
  }
  return 0;
}
