// SPDX-License-Identifier: Apache-2.0
// BatchRows: the samples of a batch, counted, cut and joined, so that a loader can share what it did not make. Known
// are tensors (dim 0), vectors (one sample each), pairs, tuples and torch::data's Example of such; a batch type of
// one's own says it by specialising this with the same three functions. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace accrue::accelerate {

template <typename Batch>
struct BatchRows;

/// Batches that can be cut.
template <typename Batch>
concept HasRows = requires(const Batch& batch, std::int64_t n) {
  { BatchRows<Batch>::count(batch) } -> std::same_as<std::optional<std::int64_t>>;
  { BatchRows<Batch>::range(batch, n, n) } -> std::convertible_to<Batch>;
  { BatchRows<Batch>::joined(batch, batch) } -> std::same_as<std::optional<Batch>>;
};

template <>
struct BatchRows<at::Tensor> {
  /// Nothing where the batch has no rows, as a tensor without dims.
  static std::optional<std::int64_t> count(const at::Tensor& batch) {
    return batch.defined() && batch.dim() > 0 ? std::optional(batch.size(0)) : std::nullopt;
  }
  /// The rows [begin, begin + rows).
  static at::Tensor range(const at::Tensor& batch, std::int64_t begin, std::int64_t rows) {
    return batch.narrow(0, begin, rows);
  }
  /// The rows of both; nothing where they do not fit together.
  static std::optional<at::Tensor> joined(const at::Tensor& first, const at::Tensor& second) {
    const bool alike = count(first) && count(second) && first.sizes().slice(1) == second.sizes().slice(1) &&
                       first.options().type_equal(second.options()) && first.device() == second.device();
    return alike ? std::optional(at::cat({first, second})) : std::nullopt;
  }
};

template <std::copy_constructible Sample>
struct BatchRows<std::vector<Sample>> {
  using Batch = std::vector<Sample>;
  static std::optional<std::int64_t> count(const Batch& batch) { return static_cast<std::int64_t>(batch.size()); }
  static Batch range(const Batch& batch, std::int64_t begin, std::int64_t rows) {
    return Batch(batch.begin() + begin, batch.begin() + begin + rows);
  }
  static std::optional<Batch> joined(const Batch& first, const Batch& second) {
    Batch both = first;
    both.insert(both.end(), second.begin(), second.end());
    return both;
  }
};

template <HasRows... Parts>
requires(sizeof...(Parts) > 0) struct BatchRows<std::tuple<Parts...>> {
  using Batch = std::tuple<Parts...>;
  static std::optional<std::int64_t> count(const Batch& batch) {
    return std::apply(
        [](const auto& first, const auto&... others) {
          const auto rows = BatchRows<std::decay_t<decltype(first)>>::count(first);
          const bool alike = (true && ... && (BatchRows<std::decay_t<decltype(others)>>::count(others) == rows));
          return alike ? rows : std::nullopt;
        },
        batch);
  }
  static Batch range(const Batch& batch, std::int64_t begin, std::int64_t rows) {
    return std::apply([=](const Parts&... parts) { return Batch(BatchRows<Parts>::range(parts, begin, rows)...); },
                      batch);
  }
  static std::optional<Batch> joined(const Batch& first, const Batch& second) {
    return joined(first, second, std::index_sequence_for<Parts...>{});
  }

 private:
  template <std::size_t... I>
  static std::optional<Batch> joined(const Batch& first, const Batch& second, std::index_sequence<I...>) {
    auto parts = std::tuple(BatchRows<Parts>::joined(std::get<I>(first), std::get<I>(second))...);
    if (!(std::get<I>(parts) && ...)) return std::nullopt;
    return Batch(std::move(*std::get<I>(parts))...);
  }
};

/// A batch that is a tuple by another name: `parts` and `whole` go there and back.
template <typename Batch, typename Tuple, auto parts, auto whole>
struct RowsOfParts {
  using Rows = BatchRows<Tuple>;
  static std::optional<std::int64_t> count(const Batch& batch) { return Rows::count(parts(batch)); }
  static Batch range(const Batch& batch, std::int64_t begin, std::int64_t rows) {
    return whole(Rows::range(parts(batch), begin, rows));
  }
  static std::optional<Batch> joined(const Batch& first, const Batch& second) {
    auto both = Rows::joined(parts(first), parts(second));
    return both ? std::optional<Batch>(whole(std::move(*both))) : std::nullopt;
  }
};

template <HasRows First, HasRows Second>
struct BatchRows<std::pair<First, Second>>
    : RowsOfParts<std::pair<First, Second>, std::tuple<First, Second>,
                  [](const std::pair<First, Second>& batch) { return std::tuple(batch.first, batch.second); },
                  [](std::tuple<First, Second> both) {
                    return std::pair(std::get<0>(std::move(both)), std::get<1>(std::move(both)));
                  }> {};

/// torch::data::Example, with a target and without.
template <typename Example>
requires HasRows<decltype(Example::data)> && HasRows<decltype(Example::target)>
struct BatchRows<Example>
    : RowsOfParts<Example, std::tuple<decltype(Example::data), decltype(Example::target)>,
                  [](const Example& batch) { return std::tuple(batch.data, batch.target); },
                  [](auto both) { return Example(std::get<0>(std::move(both)), std::get<1>(std::move(both))); }> {
};

template <typename Example>
requires(HasRows<decltype(Example::data)> && !requires(Example batch) { batch.target; }) struct BatchRows<Example>
    : RowsOfParts<Example, std::tuple<decltype(Example::data)>,
                  [](const Example& batch) { return std::tuple(batch.data); },
                  [](auto one) { return Example(std::get<0>(std::move(one))); }> {
};

/// Moves the tensors of a batch: of tensors, of pairs, tuples and vectors of such, and of anything with data and
/// target. What it does not know stays where it is.
template <typename Batch>
void move_to(Batch& batch, at::Device device) {
  if constexpr (std::same_as<Batch, at::Tensor>) {
    if (batch.defined()) batch = batch.to(device);
  } else if constexpr (requires { std::tuple_size<Batch>::value; }) {
    std::apply([device](auto&... parts) { (move_to(parts, device), ...); }, batch);
  } else if constexpr (requires { move_to(batch.data, device); }) {
    move_to(batch.data, device);
    if constexpr (requires { move_to(batch.target, device); }) move_to(batch.target, device);
  } else if constexpr (
      requires { typename Batch::value_type; } && requires { batch.begin(); }) {
    if constexpr (std::is_class_v<typename Batch::value_type>)
      for (auto& each : batch) move_to(each, device);
  }
}

/// What a loader asks of any batch; of one that cannot be cut it learns nothing.
template <typename Batch>
std::optional<std::int64_t> rows_of(const Batch& batch) {
  if constexpr (HasRows<Batch>)
    return BatchRows<Batch>::count(batch);
  else
    return std::nullopt;
}

}  // namespace accrue::accelerate
