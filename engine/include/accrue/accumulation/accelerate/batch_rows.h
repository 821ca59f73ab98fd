// SPDX-License-Identifier: Apache-2.0
// BatchRows: counts, cuts and joins the samples of a batch, so that a loader can share batches that it did not make.
// Supports tensors (dim 0), vectors (one sample per element), and pairs, tuples and torch::data's Example of these.
// Specialise it with the same three functions for another batch type. Thread: any.
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
  /// None if the batch has no rows, for example a tensor without dims.
  static std::optional<std::int64_t> count(const at::Tensor& batch) {
    return batch.defined() && batch.dim() > 0 ? std::optional(batch.size(0)) : std::nullopt;
  }
  /// Returns the rows [begin, begin + rows).
  static at::Tensor range(const at::Tensor& batch, std::int64_t begin, std::int64_t rows) {
    return batch.narrow(0, begin, rows);
  }
  /// Returns the rows of both; none if they do not match.
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

/// A batch of several parts: a pair, a tuple, or torch::data's Example, with or without a target.
template <typename Batch>
concept HasParts = requires {
  std::tuple_size<Batch>::value;
}
|| requires(Batch& batch) {
  Batch(batch.data, batch.target);
}
|| requires(Batch& batch) {
  Batch(batch.data);
};

/// Returns references to the parts.
template <typename Batch>
requires HasParts<std::remove_const_t<Batch>>
auto parts_of(Batch& batch) {
  if constexpr (requires { std::tuple_size<Batch>::value; })
    return std::apply([](auto&... parts) { return std::tie(parts...); }, batch);
  else if constexpr (requires { batch.target; })
    return std::tie(batch.data, batch.target);
  else
    return std::tie(batch.data);
}

template <typename Batch>
inline constexpr bool parts_have_rows = false;
template <typename... Parts>
inline constexpr bool parts_have_rows<std::tuple<Parts&...>> = sizeof...(Parts) > 0 && (HasRows<Parts> && ...);

template <HasParts Batch>
requires parts_have_rows<decltype(parts_of(std::declval<Batch&>()))>
struct BatchRows<Batch> {
  /// None if the parts have different numbers of rows.
  static std::optional<std::int64_t> count(const Batch& batch) {
    return std::apply(
        [](const auto& first, const auto&... others) {
          const auto rows = Of<decltype(first)>::count(first);
          const bool alike = (true && ... && (Of<decltype(others)>::count(others) == rows));
          return alike ? rows : std::nullopt;
        },
        parts_of(batch));
  }
  static Batch range(const Batch& batch, std::int64_t begin, std::int64_t rows) {
    return std::apply([=](const auto&... parts) { return Batch(Of<decltype(parts)>::range(parts, begin, rows)...); },
                      parts_of(batch));
  }
  static std::optional<Batch> joined(const Batch& first, const Batch& second) {
    const auto whole = [](auto&&... parts) -> std::optional<Batch> {
      if (!(parts && ...)) return std::nullopt;
      return Batch(std::move(*parts)...);
    };
    const auto pairs = [&]<std::size_t... I>(std::index_sequence<I...>, const auto& a, const auto& b) {
      return whole(Of<decltype(std::get<I>(a))>::joined(std::get<I>(a), std::get<I>(b))...);
    };
    const auto parts = parts_of(first);
    return pairs(std::make_index_sequence<std::tuple_size_v<decltype(parts)>>(), parts, parts_of(second));
  }

 private:
  template <typename Part>
  using Of = BatchRows<std::remove_cvref_t<Part>>;
};

/// Moves the tensors of a batch: tensors, pairs, tuples and vectors of them, and anything with data and target. Other
/// parts stay where they are.
template <typename Batch>
void move_to(Batch& batch, at::Device device) {
  if constexpr (std::same_as<Batch, at::Tensor>) {
    if (batch.defined()) batch = batch.to(device);
  } else if constexpr (HasParts<Batch>) {
    std::apply([device](auto&... parts) { (move_to(parts, device), ...); }, parts_of(batch));
  } else if constexpr (
      requires { typename Batch::value_type; } && requires { batch.begin(); }) {
    if constexpr (std::is_class_v<typename Batch::value_type>)
      for (auto& each : batch) move_to(each, device);
  }
}

/// Properties of any batch; unknown for one that cannot be cut.
template <typename Batch>
std::optional<std::int64_t> rows_of(const Batch& batch) {
  if constexpr (HasRows<Batch>)
    return BatchRows<Batch>::count(batch);
  else
    return std::nullopt;
}

}  // namespace accrue::accelerate
