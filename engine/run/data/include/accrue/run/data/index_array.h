// SPDX-License-Identifier: Apache-2.0
// A row or a table of integers in NumPy's storage width. It is made in memory, or mapped from a .npy file (format 1.0,
// C order). A mapped index costs no memory of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

class IndexArray {
 public:
  enum class Type { int16, int32, int64, uint32 };

  IndexArray() = default;
  /// A row; with `columns`, a table in row-major order.
  explicit IndexArray(std::vector<std::int16_t> values) : IndexArray(Type::int16, std::move(values), 0) {}
  explicit IndexArray(std::vector<std::uint32_t> values, std::int64_t columns = 0)
      : IndexArray(Type::uint32, std::move(values), columns) {}
  explicit IndexArray(std::vector<std::int32_t> values, std::int64_t columns = 0)
      : IndexArray(Type::int32, std::move(values), columns) {}
  explicit IndexArray(std::vector<std::int64_t> values, std::int64_t columns = 0)
      : IndexArray(Type::int64, std::move(values), columns) {}

  /// Errors: data if the file is missing; protocol for other formats, types and shapes, and for a damaged file.
  static Result<IndexArray> load(const std::filesystem::path& path);
  /// Writes the same bytes as numpy.save, atomically. Errors: disk.
  Result<void> save(const std::filesystem::path& path) const;

  Type type() const { return type_; }
  /// Numbers of a row, or rows of a table.
  std::int64_t size() const { return rows_; }
  /// 0: a row.
  std::int64_t columns() const { return columns_; }
  /// Requires an index below size() and a column below columns().
  std::int64_t at(std::int64_t index, std::int64_t column = 0) const;
  /// The numbers as stored in a file.
  std::span<const std::byte> bytes() const;

 private:
  template <typename T>
  IndexArray(Type type, std::vector<T> values, std::int64_t columns)
      : type_(type),
        rows_(static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(columns, 1)),
        columns_(columns) {
    const auto owner = std::make_shared<std::vector<T>>(std::move(values));
    data_ = std::shared_ptr<const std::byte>(owner, reinterpret_cast<const std::byte*>(owner->data()));
  }

  Type type_ = Type::int64;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::shared_ptr<const std::byte> data_;  ///< owns the vector or the mapped file
};

}  // namespace accrue
