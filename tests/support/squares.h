// SPDX-License-Identifier: Apache-2.0
// A loader of torch::data over the squares 0, 1, 4, ..., two a batch.
#pragma once

#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/samplers/sequential.h>

#include <optional>

namespace accrue::test {

struct Squares : torch::data::datasets::Dataset<Squares, int> {
  explicit Squares(int size) : count(size) {}
  int get(std::size_t index) override { return static_cast<int>(index * index); }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(count); }
  int count;
};

inline auto squares_loader(int size, std::size_t workers = 2) {
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Squares(size), torch::data::DataLoaderOptions().batch_size(2).workers(workers));
}

}  // namespace accrue::test
