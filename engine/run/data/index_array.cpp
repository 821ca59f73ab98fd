// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/index_array.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/data/mapped_file.h"
#include "index_layout.h"
#include "part_file.h"
#include "posix_file.h"

namespace accrue {
namespace {

/// In the order of Type.
constexpr std::string_view npy_types[] = {"<i2", "<i4", "<i8", "<u4"};
constexpr std::int64_t npy_widths[] = {2, 4, 8, 4};
constexpr std::string_view npy_magic{"\x93NUMPY\x01\x00", 8};
constexpr std::size_t npy_alignment = 64;

std::int64_t width_of(IndexArray::Type type) {
  return npy_widths[static_cast<std::size_t>(type)];
}

/// The dictionary of the header, with NumPy's spaces for a larger first number.
std::string npy_header(IndexArray::Type type, std::int64_t rows, std::int64_t columns) {
  const std::string shape = columns > 0 ? fmt::format("({}, {})", rows, columns) : fmt::format("({},)", rows);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                 npy_types[static_cast<std::size_t>(type)], shape);
  constexpr std::size_t digits = 21;
  text.append(digits - std::to_string(rows).size(), ' ');
  const std::size_t unpadded = npy_magic.size() + 2 + text.size() + 1;
  text.append(npy_alignment - unpadded % npy_alignment, ' ');
  text += '\n';
  std::string header(npy_magic);
  const auto length = static_cast<std::uint16_t>(text.size());
  header.append(reinterpret_cast<const char*>(&length), sizeof length);
  return header + text;
}

struct NpyShape {
  IndexArray::Type type;
  std::int64_t rows;
  std::int64_t columns;
};

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool take_count(std::string_view& text, std::int64_t& count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() && count >= 0 && count < std::int64_t{1} << 58;
}

/// Parses the only form of the dictionary that NumPy writes.
std::optional<NpyShape> read_npy_header(std::string_view text) {
  NpyShape shape{};
  if (!take(text, "{'descr': '")) return std::nullopt;
  const auto type = std::find(std::begin(npy_types), std::end(npy_types), text.substr(0, 3));
  if (type == std::end(npy_types)) return std::nullopt;
  shape.type = static_cast<IndexArray::Type>(type - std::begin(npy_types));
  text.remove_prefix(3);
  if (!take(text, "', 'fortran_order': False, 'shape': (") || !take_count(text, shape.rows)) return std::nullopt;
  if (!take(text, ",)") && !(take(text, ", ") && take_count(text, shape.columns) && take(text, ")")))
    return std::nullopt;
  if (!take(text, ", }") || text.find_first_not_of(" \n") != std::string_view::npos) return std::nullopt;
  return shape;
}

}  // namespace

Result<IndexArray> IndexArray::load(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto refused = [&](std::string why) {
    return fail(ErrorCode::protocol, std::move(why), path.string(), "Remove the file; it is then built again");
  };
  const std::string_view text(reinterpret_cast<const char*>(file->data()), static_cast<std::size_t>(file->size()));
  if (!text.starts_with(npy_magic) || text.size() < npy_magic.size() + 2)
    return refused("is not a .npy file of format 1.0");
  const std::size_t head = npy_magic.size() + 2 + accrue::load<std::uint16_t>(text.data() + npy_magic.size());
  const auto shape = head <= text.size()
                         ? read_npy_header(text.substr(npy_magic.size() + 2, head - npy_magic.size() - 2))
                         : std::nullopt;
  if (!shape || shape->columns > 64 || shape->rows > file->size())
    return refused("holds no row or table of whole numbers that an index has");
  const std::int64_t expected = shape->rows * std::max<std::int64_t>(shape->columns, 1) * width_of(shape->type);
  if (file->size() - static_cast<std::int64_t>(head) != expected)
    return refused(fmt::format("has {} bytes after its header, not those of {} rows",
                               file->size() - static_cast<std::int64_t>(head), shape->rows));
  IndexArray array;
  array.type_ = shape->type;
  array.rows_ = shape->rows;
  array.columns_ = shape->columns;
  const auto owner = std::make_shared<MappedFile>(*std::move(file));
  array.data_ = std::shared_ptr<const std::byte>(owner, reinterpret_cast<const std::byte*>(owner->data()) + head);
  return array;
}

Result<void> IndexArray::save(const std::filesystem::path& path) const {
  auto file = PartFile::create(part_of(path));
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->append(npy_header(type_, rows_, columns_)); !written) return written;
  if (auto written = file->append_values(bytes()); !written) return written;
  return file->commit(path);
}

std::int64_t IndexArray::at(std::int64_t index, std::int64_t column) const {
  const std::byte* from = data_.get() + (index * std::max<std::int64_t>(columns_, 1) + column) * width_of(type_);
  switch (type_) {
    case Type::int16:
      return accrue::load<std::int16_t>(from);
    case Type::int32:
      return accrue::load<std::int32_t>(from);
    case Type::int64:
      return accrue::load<std::int64_t>(from);
    case Type::uint32:
      break;
  }
  return accrue::load<std::uint32_t>(from);
}

std::span<const std::byte> IndexArray::bytes() const {
  return {data_.get(), static_cast<std::size_t>(rows_ * std::max<std::int64_t>(columns_, 1) * width_of(type_))};
}

}  // namespace accrue
