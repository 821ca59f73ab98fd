// SPDX-License-Identifier: Apache-2.0
// The three products of a linear layer (output, gradient of the input, gradient of the weight) on our tiles and on
// LibTorch's routine, alternating in one process: the measurement behind product_path() in engine/models/product.h.
// Prints billions of operations a second of the thread's processor time, the best of the rounds, and our rate over
// LibTorch's.
//
//   product_shapes [rounds, default 7]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>

#include "models/product.h"

using namespace accrue;

namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& call, int repetitions) {
  const double begin = processor_seconds();
  for (int i = 0; i < repetitions; ++i) call();
  return (processor_seconds() - begin) / repetitions;
}

struct Product {
  at::Tensor into, a, b;
  std::array<double, 2> best{1e9, 1e9};  // by ProductPath
};

void measure(at::ScalarType type, std::int64_t tokens, std::int64_t in, std::int64_t out, int rounds) {
  const at::Tensor x = at::randn({tokens, in}, type), weight = at::randn({out, in}, type),
                   dy = at::randn({tokens, out}, type);
  std::array<Product, 3> products{Product{at::empty({tokens, out}, type), x, weight.t()},
                                  Product{at::empty({tokens, in}, type), dy, weight},
                                  Product{at::empty({out, in}, type), dy.t(), x}};
  const double operations = 2.0 * static_cast<double>(tokens * in * out);
  const int repetitions = std::max(1, static_cast<int>(2e7 / operations));
  for (int round = 0; round < rounds; ++round) {
    for (Product& product : products) {
      for (const ProductPath path : {ProductPath::tiles, ProductPath::library}) {
        double& best = product.best[static_cast<std::size_t>(path)];
        best = std::min(best, seconds_of([&] { product_into(product.into, product.a, product.b, path); }, repetitions));
      }
    }
  }
  std::printf("%-6s tokens %5lld  in %4lld  out %4lld ", toString(type), static_cast<long long>(tokens),
              static_cast<long long>(in), static_cast<long long>(out));
  for (const Product& product : products) {
    std::printf("  %6.1f / %6.1f = %.2f", operations / product.best[1] * 1e-9, operations / product.best[0] * 1e-9,
                product.best[0] / product.best[1]);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  std::printf("%s; ours / LibTorch's = ratio: output, input gradient, weight gradient\n", name_of(instruction_set()));
  constexpr std::array<std::array<std::int64_t, 2>, 8> layers{
      {{32, 32}, {64, 64}, {64, 256}, {128, 384}, {256, 1024}, {384, 384}, {384, 1536}, {768, 3072}}};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const std::int64_t tokens : {16, 64, 96, 128, 256, 1024, 4096}) {
      for (const auto& [in, out] : layers) measure(type, tokens, in, out, argc > 1 ? std::atoi(argv[1]) : 7);
    }
  }
}
