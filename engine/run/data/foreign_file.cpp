// SPDX-License-Identifier: Apache-2.0
#include "foreign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace accrue {
namespace {

struct ForeignFormat {
  std::string_view begin;  ///< its first bytes; ? matches any byte
  std::string_view what;
  std::string_view way;  ///< {} is replaced by the path
};

using namespace std::string_view_literals;

constexpr std::string_view as_lines = "Write its texts as JSON lines, or its numbers as CSV, for example with pandas";
constexpr std::string_view unzip = "Unpack it and give what lies in it, or save the sheet of a workbook as CSV";
constexpr std::string_view to_utf8 = "Convert it: iconv -f {} -t UTF-8 '{}' > utf8.txt";

/// A longer beginning comes before a shorter one that it starts with.
constexpr ForeignFormat foreign_formats[] = {
    {"\x1F\x8B"sv, "a gzip file", "Unpack it: gzip -dk '{}'"},
    {"\x28\xB5\x2F\xFD"sv, "a Zstandard file", "Unpack it: zstd -d '{}'"},
    {"\xFD"
     "7zXZ\0"sv,
     "an xz file", "Unpack it: xz -dk '{}'"},
    {"BZh?1AY&SY"sv, "a bzip2 file", "Unpack it: bzip2 -dk '{}'"},
    {"PK\x03\x04"sv, "a zip archive, as .npz, .xlsx and .docx are", unzip},
    {"PAR1"sv, "a Parquet file", as_lines},
    {"ARROW1"sv, "an Arrow file", as_lines},
    {"Obj\x01"sv, "an Avro file", as_lines},
    {"\x89HDF\r\n"sv, "an HDF5 file", as_lines},
    {"SQLite format 3\0"sv, "an SQLite database", as_lines},
    {"\x93NUMPY"sv, "a NumPy array", "Save it as CSV with numpy.savetxt, or token numbers with array.tofile"},
    {"MMIDIDX\0\0"sv, "the index of an indexed dataset", "Set data.kind = \"indexed\" and name it without .idx"},
    {"%PDF-"sv, "a PDF", "Write its text into a file: pdftotext '{}'"},
    {"\x89PNG\r\n"sv, "a picture", ""},
    {"\xFF\xD8\xFF"sv, "a picture", ""},
};

bool begins_with(std::string_view head, std::string_view begin) {
  return std::ranges::equal(begin, head.substr(0, begin.size()), [](char a, char b) { return a == '?' || a == b; });
}

}  // namespace

// UTF-16 and UTF-32 begin with a mark; without one, every other byte of a text in a Latin script is zero.
std::string_view wide_encoding(std::string_view head) {
  if (head.starts_with("\xFF\xFE\0\0"sv) || head.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (head.starts_with("\xFF\xFE"sv) || head.starts_with("\xFE\xFF"sv)) return "UTF-16";
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < head.size(); ++i) zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  const std::size_t pairs = head.size() / 2;
  if (pairs < 2 || std::max(zeros[0], zeros[1]) < pairs * 3 / 4 || std::min(zeros[0], zeros[1]) > pairs / 100)
    return {};
  return zeros[0] > zeros[1] ? "UTF-16BE" : "UTF-16LE";
}

std::optional<ForeignFile> foreign_file(std::string_view head, const std::filesystem::path& path) {
  const auto found =
      std::ranges::find_if(foreign_formats, [&](const auto& format) { return begins_with(head, format.begin); });
  if (found == std::end(foreign_formats)) return std::nullopt;
  return ForeignFile{found->what, fmt::format(fmt::runtime(found->way), path.string())};
}

Result<void> check_is_text(std::string_view head, const std::filesystem::path& path, std::string_view wanted) {
  const auto refuse = [&](std::string_view what, std::string way) {
    return fail(ErrorCode::data, fmt::format("this is no {}: it is {}", wanted, what), path.string(), std::move(way));
  };
  if (auto foreign = foreign_file(head, path)) return refuse(foreign->what, std::move(foreign->way));
  if (const auto encoding = wide_encoding(head); !encoding.empty())
    return refuse(fmt::format("a text in {}", encoding), fmt::format(fmt::runtime(to_utf8), encoding, path.string()));
  if (head.find('\0') != std::string_view::npos)
    return refuse("a binary file, with bytes of zero", "Give a text in UTF-8");
  return {};
}

}  // namespace accrue
