// SPDX-License-Identifier: Apache-2.0
// Micro-steps of the GPT, fused and in plain operators, alternating, in two processes pinned to one core each: the
// reference for every change to engine/models and engine/kernels. Prints one line per variant: seconds per micro-step
// (least, median), tokens per second of all processes together, and the peak memory of a process.
//
//   bench_blocks [--processes 2] [--rounds 6] [--batch 4] [--length 256] [--layers 6] [--width 384] [--heads 6]
//                [--vocabulary 256] [--only fused|plain] [--accumulate 4]
#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros_like.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "models/buffer_pool.h"
#include "models/gpt_model.h"

using namespace accrue;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::map<std::string, std::string> given;
  std::int64_t number(const std::string& name, std::int64_t standard) const {
    const auto found = given.find("--" + name);
    return found == given.end() ? standard : std::stoll(found->second);
  }
};

struct Took {
  double seconds;
  double processor;  // seconds of this process: steadier than wall time on a shared machine
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Took micro_step(GptModel& model, const Batch& batch) {
  const auto start = Clock::now();
  const double processor = processor_seconds();
  model.whole_loss(batch).sum.backward();
  return {std::chrono::duration<double>(Clock::now() - start).count(), processor_seconds() - processor};
}

void report(const char* name, const std::vector<Took>& steps, std::int64_t tokens, std::int64_t processes,
            int process) {
  std::vector<double> seconds, processor;
  for (const Took& took : steps) {
    seconds.push_back(took.seconds);
    processor.push_back(took.processor);
  }
  std::sort(seconds.begin(), seconds.end());
  std::sort(processor.begin(), processor.end());
  const double median = seconds[seconds.size() / 2];
  std::printf(
      "process %d  %-5s  least %.4f s  median %.4f s  (processor %.4f, %.4f)  %.0f tokens/s for %lld processes\n",
      process, name, seconds.front(), median, processor.front(), processor[processor.size() / 2],
      static_cast<double>(tokens * processes) / median, static_cast<long long>(processes));
}

int run(const Options& options, int process) {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(process, &core);
  sched_setaffinity(0, sizeof core, &core);
  at::set_num_threads(1);
  const ModelSpec spec{.kind = ModelKind::gpt,
                       .layers = options.number("layers", 6),
                       .width = options.number("width", 384),
                       .heads = options.number("heads", 6),
                       .context = options.number("length", 256),
                       .vocabulary = options.number("vocabulary", 256)};
  WeightSource source(0);
  GptModel model(spec, source);
  for (at::Tensor& parameter : model.parameters()) parameter.mutable_grad() = at::zeros_like(parameter);
  const std::int64_t rows = options.number("batch", 4), length = options.number("length", 256);
  const Batch batch{at::randint(spec.vocabulary, {rows, length}, at::kLong),
                    at::randint(spec.vocabulary, {rows, length}, at::kLong), rows, rows * length};
  const auto only = options.given.find("--only");
  std::map<std::string, std::vector<Took>> seconds;
  for (std::int64_t round = 0; round < options.number("rounds", 6); ++round) {
    for (const char* variant : {"plain", "fused"}) {
      if (only != options.given.end() && only->second != variant) continue;
      model.use_plain_operators(std::string(variant) == "plain");
      for (std::int64_t step = 0; step < options.number("accumulate", 4); ++step) {
        const Took took = micro_step(model, batch);
        if (round > 0) seconds[variant].push_back(took);
      }
    }
  }
  for (const auto& [variant, list] : seconds) {
    report(variant.c_str(), list, rows * length, options.number("processes", 2), process);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("process %d  peak resident %.0f MB, activation pool %.0f MB in %lld mappings\n", process,
              static_cast<double>(usage.ru_maxrss) / 1024.0,
              static_cast<double>(activation_pool().mapped_bytes()) / 1048576.0,
              static_cast<long long>(activation_pool().mappings()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) options.given[argv[i]] = argv[i + 1];
  const auto processes = static_cast<int>(options.number("processes", 2));
  for (int process = 0; process < processes; ++process) {
    if (fork() == 0) return run(options, process);
  }
  int failures = 0, status = 0;
  while (wait(&status) > 0) failures += status == 0 ? 0 : 1;
  return failures;
}
