// SPDX-License-Identifier: Apache-2.0
// Accelerate's documented comparison: a language model on samples of variable size, trained in four configurations
// whose batches are all of 32 samples. The losses are the same up to the end of the first epoch; from then on they
// differ slightly, because two ranks repeat samples to fill their last round, and how many depends on the
// configuration.
//   constant_batch_32 [--csv FILE] [--svg FILE]
// It starts the ranks it needs itself. Source: Hugging Face Accelerate, "Gradient accumulation on training samples of
// variable size", and its example for autoregressive models.
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "accrue/accumulation/accelerate/accelerator.h"
#include "loss_plot.h"
#include "ranks.h"

using namespace accrue;
using namespace accrue::accelerate;

constexpr std::int64_t effective_batch = 32, samples = 630, epochs = 2, words = 12;

struct Configuration {
  std::int64_t batch_size, steps;
  int ranks;
};
constexpr Configuration configurations[] = {{32, 1, 1}, {8, 4, 1}, {16, 1, 2}, {4, 4, 2}};

/// Table of scores that predicts the next word from the last one.
struct Bigrams : torch::nn::Module {
  Bigrams() { scores = register_parameter("scores", at::zeros({words, words}, at::kDouble)); }
  at::Tensor forward(const at::Tensor& last) { return at::embedding(scores, last); }
  at::Tensor scores;
};

struct Batch {
  at::Tensor last, next;  // [tokens]
};

/// Makes a sentence of 2 to 12 words, each slightly above the previous one: a function of the sample's index.
Batch sentences(const std::vector<std::int64_t>& indices) {
  std::vector<std::int64_t> last, next;
  for (const std::int64_t index : indices) {
    auto state = static_cast<std::uint64_t>(index) * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto draw = [&state](std::uint64_t below) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<std::int64_t>((state >> 33) % below);
    };
    const std::int64_t length = 2 + draw(11);
    std::int64_t word = draw(words);
    for (std::int64_t i = 0; i < length; ++i) {
      last.push_back(word);
      word = (word + 1 + draw(2) * draw(3)) % words;
      next.push_back(word);
    }
  }
  return {at::tensor(last, at::kLong), at::tensor(next, at::kLong)};
}

/// Trains one configuration; returns the loss per token of every update, over all ranks.
std::vector<double> train(const Configuration& how, Communicator& axis) {
  Bigrams model;
  torch::optim::SGD sgd(model.parameters(), 2.0);
  Accelerator accelerator({.gradient_accumulation_steps = how.steps, .seed = 1}, axis);
  accelerator.prepare(model);
  auto& optimizer = accelerator.prepare(sgd);
  auto loader = accelerator.prepare(map_loader(samples, sentences, {.batch_size = how.batch_size, .shuffle = true}));
  const double share = static_cast<double>(how.steps * accelerator.num_processes());
  std::vector<double> losses;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    auto batch = loader.begin();
    while (batch != loader.end()) {
      std::vector<Batch> group;
      for (; batch != loader.end() && std::ssize(group) < how.steps; ++batch) group.push_back(*batch);
      std::int64_t tokens = 0;
      for (const Batch& each : group) tokens += each.next.numel();
      const at::Tensor items = accelerator.gather(at::full({}, static_cast<double>(tokens), at::kDouble)).sum();
      at::Tensor logged = at::zeros({}, at::kDouble);
      for (std::size_t i = 0; i < group.size(); ++i) {
        std::optional<accelerate::NoSyncScope> quiet;
        if (i + 1 < group.size()) quiet.emplace(accelerator.no_sync(model));
        const at::Tensor sum =
            at::cross_entropy_loss(model.forward(group[i].last), group[i].next, {}, at::Reduction::Sum);
        accelerator.backward(sum * share / items);
        logged += sum.detach() / items;
      }
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(accelerator.reduce(logged).item<double>());
    }
  }
  return losses;
}

std::string name_of(const Configuration& how) {
  return std::to_string(how.batch_size) + " samples x " + std::to_string(how.steps) +
         (how.steps == 1 ? " step x " : " steps x ") + std::to_string(how.ranks) +
         (how.ranks == 1 ? " rank" : " ranks");
}

/// Rank 0 passes the losses to its parent program in a file of hexadecimal numbers, which lose no digits.
void write_losses(const std::string& file, const std::vector<double>& losses) {
  std::ofstream out(file);
  out << std::hexfloat;
  for (const double loss : losses) out << loss << '\n';
}

std::vector<double> read_losses(const std::string& file) {
  std::ifstream in(file);
  std::vector<double> losses;
  for (std::string line; std::getline(in, line);) losses.push_back(std::stod(line));
  return losses;
}

std::vector<double> run(std::size_t index) {
  const Configuration& how = configurations[index];
  if (how.ranks == 1) return train(how, *single_communicator());
  const auto file = std::filesystem::temp_directory_path() /
                    ("constant_batch_32." + std::to_string(::getpid()) + "." + std::to_string(index));
  const int status = examples::launch(how.ranks, {"--configuration", std::to_string(index), "--losses", file.string()});
  std::vector<double> losses = read_losses(file.string());
  std::filesystem::remove(file);
  if (status != 0) throw std::runtime_error("a rank of " + name_of(how) + " failed");
  return losses;
}

double spread(const std::vector<examples::Curve>& curves, std::size_t begin, std::size_t end) {
  double largest = 0.0;
  for (std::size_t update = begin; update < end; ++update)
    for (const auto& each : curves)
      largest = std::max(largest, std::abs(each.loss.at(update) - curves[0].loss.at(update)));
  return largest;
}

void write_csv(const std::string& file, const std::vector<examples::Curve>& curves) {
  std::ofstream out(file);
  out << "samples";
  for (const auto& each : curves) out << ',' << each.name;
  out.precision(17);
  for (std::size_t update = 0; update < curves[0].loss.size(); ++update) {
    out << '\n' << (update + 1) * effective_batch;
    for (const auto& each : curves) out << ',' << each.loss.at(update);
  }
  out << '\n';
}

void print_table(const std::vector<examples::Curve>& curves) {
  std::printf("%8s", "samples");
  for (const auto& each : curves) std::printf("  %28s", each.name.c_str());
  for (std::size_t update = 0; update < curves[0].loss.size(); ++update) {
    std::printf("\n%8ld", static_cast<long>((update + 1) * effective_batch));
    for (const auto& each : curves) std::printf("  %28.12f", each.loss.at(update));
  }
  std::printf("\n");
}

int compare(int argc, char** argv) {
  std::vector<examples::Curve> curves;
  for (std::size_t i = 0; i < std::size(configurations); ++i) curves.push_back({name_of(configurations[i]), run(i)});
  print_table(curves);
  const std::size_t full = samples / effective_batch;  // updates before the last of the first epoch
  for (const Configuration& how : configurations) {
    SampleOrder order{.samples = samples, .micro_batch = how.batch_size, .world = how.ranks};
    order.uneven = UnevenRanks::repeat;
    std::printf("%s: %ld samples repeated an epoch\n", name_of(how).c_str(),
                static_cast<long>(order.repeated_per_epoch()));
  }
  std::printf("updates 1 to %zu: the losses differ by %.1e at most\n", full, spread(curves, 0, full));
  std::printf("from update %zu on: by %.1e\n", full + 1, spread(curves, full, curves[0].loss.size()));
  const bool same = spread(curves, 0, full) < 1e-12;
  std::printf("%s\n", same ? "one curve until the first epoch ends" : "the curves differ too early");
  if (const auto file = examples::option(argc, argv, "--csv")) write_csv(*file, curves);
  if (const auto file = examples::option(argc, argv, "--svg"))
    if (!examples::write_loss_plot(*file, curves, effective_batch)) throw std::runtime_error(*file + ": not written");
  return same ? 0 : 1;
}

int main(int argc, char** argv) try {
  const auto index = examples::option(argc, argv, "--configuration");
  if (!index) return compare(argc, argv);
  const examples::Ranks ranks = examples::join(argc, argv);
  const auto losses = train(configurations[std::stoul(*index)], *ranks.data);
  if (ranks.data->rank() == 0) write_losses(examples::option(argc, argv, "--losses").value(), losses);
  ranks.data->barrier();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "constant_batch_32: %s\n", error.what());
  return 1;
}
