// SPDX-License-Identifier: Apache-2.0
// A state machine over nlohmann's SAX events: no document tree is built, repeated keys are seen (a tree would hide
// them), and every number is checked as it arrives. Cost: one pass over at most 8 MB.
#include "accrue/run/weights/archive_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace accrue {

namespace {

using nlohmann::json;

constexpr std::size_t max_dimensions = 64;
constexpr std::uint64_t max_number = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 8> dtypes{
    {{"BOOL", 1}, {"U8", 1}, {"I32", 4}, {"I64", 8}, {"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}}};

tl::unexpected<Error> refuse(std::string message, std::string_view name = {}) {
  return fail(ErrorCode::protocol, std::move(message),
              name.empty() ? std::string{} : "tensor \"" + printable_name(name) + "\"");
}

/// SAX handler that collects the header; returns false (and keeps the reason) at the first unexpected value.
class HeaderSax final : public json::json_sax_t {
 public:
  ArchiveHeader header;
  std::string reason;
  std::string at_name;

  bool null() override { return reject("null has no place in the header"); }
  bool boolean(bool) override { return reject("true and false have no place in the header"); }
  bool number_integer(number_integer_t value) override {
    return reject("a negative number (" + std::to_string(value) + ")");
  }
  bool number_float(number_float_t, const string_t& text) override {
    return reject("\"" + printable_name(text) + "\" is not a whole number that fits 64 bits");
  }
  bool binary(binary_t&) override { return reject("binary values have no place in the header"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (value > max_number) return reject("number " + std::to_string(value) + " is out of range");
    if (place_ == Place::shape) {
      if (entry_.shape.size() == max_dimensions) return reject("more than 64 dimensions");
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_ == 2) return reject("data_offsets has more than two numbers");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return reject("a number where none belongs");
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      header.metadata[key_] = value;
      return true;
    }
    if (place_ == Place::dtype) {
      if (archive_dtype_bytes(value) == 0) return reject("dtype \"" + printable_name(value) + "\" is not supported");
      entry_.dtype = value;
      place_ = Place::entry;
      return true;
    }
    return reject("a text where none belongs");
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::start) return enter(Place::top);
    if (place_ == Place::entry_value) {
      entry_ = ArchiveEntry{.name = at_name};
      seen_fields_.clear();
      offsets_ = 0;
      return enter(Place::entry);
    }
    if (place_ == Place::metadata_value) return enter(Place::metadata);
    return reject("an object where none belongs");
  }

  bool key(string_t& name) override {
    if (place_ == Place::top) {
      at_name = name;
      if (!names_.insert(name).second) return reject("the name occurs twice");
      return enter(name == "__metadata__" ? Place::metadata_value : Place::entry_value);
    }
    if (place_ == Place::metadata) {
      key_ = name;
      return header.metadata.emplace(name, "").second || reject("a metadata key occurs twice");
    }
    if (!seen_fields_.insert(name).second) return reject("the field \"" + printable_name(name) + "\" occurs twice");
    if (name == "dtype") return enter(Place::dtype);
    if (name == "shape") return enter(Place::shape_value);
    if (name == "data_offsets") return enter(Place::offsets_value);
    return reject("unknown field \"" + printable_name(name) + "\"");
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      if (seen_fields_.size() != 3) return reject("dtype, shape or data_offsets is missing");
      header.entries.push_back(std::move(entry_));
    }
    return enter(place_ == Place::top ? Place::done : Place::top);
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape_value) return enter(Place::shape);
    if (place_ == Place::offsets_value) return enter(Place::offsets);
    return reject("a list where none belongs");
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) return reject("data_offsets needs two numbers");
    return enter(Place::entry);
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    at_name.clear();
    return reject("the header is not valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place {
    start,
    top,
    entry_value,
    entry,
    dtype,
    shape_value,
    shape,
    offsets_value,
    offsets,
    metadata_value,
    metadata,
    done
  };

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  bool reject(std::string why) {
    if (reason.empty()) reason = std::move(why);
    return false;
  }

  Place place_ = Place::start;
  ArchiveEntry entry_;
  int offsets_ = 0;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> seen_fields_;
};

/// Bytes that the shape and dtype need; false if they do not fit 63 bits.
bool needed_bytes(const ArchiveEntry& entry, std::uint64_t& bytes) {
  bytes = archive_dtype_bytes(entry.dtype);
  if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) {
    bytes = 0;
    return true;
  }
  for (const std::int64_t size : entry.shape) {
    if (bytes > max_number / static_cast<std::uint64_t>(size)) return false;
    bytes *= static_cast<std::uint64_t>(size);
  }
  return true;
}

Result<ArchiveHeader> check_tiling(ArchiveHeader header, std::uint64_t data_bytes) {
  auto& entries = header.entries;
  std::stable_sort(entries.begin(), entries.end(), [](const ArchiveEntry& a, const ArchiveEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t expected = 0;
  for (const ArchiveEntry& entry : entries) {
    std::uint64_t bytes = 0;
    if (entry.end < entry.begin) return refuse("data_offsets run backwards", entry.name);
    if (entry.end > data_bytes) {
      return refuse("ends at byte " + std::to_string(entry.end) + " of " + std::to_string(data_bytes), entry.name);
    }
    if (!needed_bytes(entry, bytes)) return refuse("the shape has more elements than any file", entry.name);
    if (bytes != entry.end - entry.begin) {
      return refuse("shape and dtype need " + std::to_string(bytes) + " bytes, data_offsets give " +
                        std::to_string(entry.end - entry.begin),
                    entry.name);
    }
    if (entry.begin < expected) return refuse("overlaps the tensor before it", entry.name);
    if (entry.begin > expected) {
      return refuse("is preceded by a hole of " + std::to_string(entry.begin - expected) + " bytes", entry.name);
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    return refuse(std::to_string(data_bytes - expected) + " bytes after the last tensor belong to none");
  }
  return header;
}

}  // namespace

std::uint64_t archive_dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : dtypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::string printable_name(std::string_view name) {
  constexpr std::size_t longest = 80;
  std::string text;
  for (const char c : name.substr(0, longest)) text += c >= ' ' && c <= '~' ? c : '?';
  return name.size() > longest ? text + "..." : text;
}

Result<ArchiveHeader> parse_archive_header(std::string_view json_text, std::uint64_t data_bytes) {
  if (json_text.empty() || json_text.front() != '{') return refuse("the header does not begin with {");
  HeaderSax sax;
  if (!json::sax_parse(json_text, &sax)) return refuse(sax.reason, sax.at_name);
  return check_tiling(std::move(sax.header), data_bytes);
}

std::string format_archive_header(const ArchiveHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
  for (const ArchiveEntry& entry : header.entries) {
    root[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = root.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace accrue
