// SPDX-License-Identifier: Apache-2.0
#include "yaml_entries.h"

#include <yaml.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <set>
#include <system_error>

namespace accrue::cli {
namespace {

constexpr int deepest = 8;

/// Converts a plain integer of YAML 1.1 to decimal: 010 is 8, 0x10 is 16, 0b11 is 3, 1_000 is 1000. Other text is
/// unchanged.
std::string in_decimal(std::string text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x"))
    base = 16, digits.remove_prefix(2);
  else if (digits.starts_with("0b"))
    base = 2, digits.remove_prefix(2);
  else if (digits.starts_with('0') && digits.size() > 1)
    base = 8, digits.remove_prefix(1);
  else if (digits.find('_') == std::string_view::npos)
    return text;
  if (digits.starts_with('_') && base == 10) return text;
  std::string bare(negative ? "-" : "");
  for (const char c : digits)
    if (c != '_') bare += c;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(bare.data(), bare.data() + bare.size(), value, base);
  const bool whole = error == std::errc() && end == bare.data() + bare.size();
  return whole ? std::to_string(value) : text;
}

/// A parser over a text, and its last event.
class Events {
 public:
  explicit Events(std::string_view text) {
    ready_ = yaml_parser_initialize(&parser_) == 1;
    if (!ready_) return;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Events() {
    drop();
    if (ready_) yaml_parser_delete(&parser_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  bool next() {
    drop();
    held_ = ready_ && yaml_parser_parse(&parser_, &event_) == 1;
    return held_;
  }
  const yaml_event_t& event() const { return event_; }
  int line() const { return static_cast<int>(event_.start_mark.line) + 1; }
  std::string problem() const { return ready_ && parser_.problem != nullptr ? parser_.problem : "out of memory"; }
  int problem_line() const { return static_cast<int>(parser_.problem_mark.line) + 1; }

 private:
  void drop() {
    if (held_) yaml_event_delete(&event_);
    held_ = false;
  }

  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool ready_ = false;
  bool held_ = false;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : events_(text), file_(file) {}

  Result<std::vector<ConfigEntry>> read() {
    int documents = 0;
    while (events_.next()) {
      const yaml_event_type_t type = events_.event().type;
      if (type == YAML_STREAM_END_EVENT) {
        if (documents == 0) return refuse("the file is empty", 1, "Write one with accelerate config.");
        return std::move(entries_);
      }
      if (type == YAML_DOCUMENT_START_EVENT && ++documents > 1)
        return refuse("the file holds more than one document", events_.line());
      if (type == YAML_MAPPING_START_EVENT) {
        if (auto read = read_mapping(""); !read) return tl::unexpected(read.error());
      } else if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT || type == YAML_ALIAS_EVENT) {
        return refuse("the file does not consist of keys and values", events_.line());
      }
    }
    return broken();
  }

 private:
  tl::unexpected<Error> refuse(std::string message, int line, std::string hint = {}) const {
    return fail(ErrorCode::config, std::move(message), file_ + ":" + std::to_string(line), std::move(hint));
  }
  tl::unexpected<Error> broken() const {
    return refuse("the file is not valid YAML: " + events_.problem(), events_.problem_line());
  }

  /// Refuses features that no configuration file of Accelerate has, and that can make a small file expand.
  Result<void> check_plain() const {
    const yaml_event_t& event = events_.event();
    const yaml_char_t* anchor = nullptr;
    const yaml_char_t* tag = nullptr;
    if (event.type == YAML_ALIAS_EVENT) return refuse("an alias is not taken", events_.line(), "Write the value out.");
    if (event.type == YAML_SCALAR_EVENT) anchor = event.data.scalar.anchor, tag = event.data.scalar.tag;
    if (event.type == YAML_MAPPING_START_EVENT)
      anchor = event.data.mapping_start.anchor, tag = event.data.mapping_start.tag;
    if (event.type == YAML_SEQUENCE_START_EVENT)
      anchor = event.data.sequence_start.anchor, tag = event.data.sequence_start.tag;
    if (anchor != nullptr) return refuse("an anchor is not taken", events_.line(), "Write the value out.");
    if (tag != nullptr) return refuse("a tag is not taken", events_.line(), "Leave the !tag out.");
    return {};
  }

  static std::string text_of(const yaml_event_t& event) {
    return {reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length};
  }

  /// Skips a list or mapping in place of a value, and reports whether it was empty.
  Result<void> skip_nested(bool& any) {
    int depth = 1;
    while (depth > 0) {
      if (!events_.next()) return broken();
      if (auto plain = check_plain(); !plain) return plain;
      const yaml_event_type_t type = events_.event().type;
      any = any || (type != YAML_MAPPING_END_EVENT && type != YAML_SEQUENCE_END_EVENT);
      if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT) ++depth;
      if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT) --depth;
      if (depth > deepest) return refuse("the file is nested too deeply", events_.line());
    }
    return {};
  }

  /// Reads from after the start of a mapping. Blocks are mappings of the top level.
  Result<void> read_mapping(const std::string& block) {
    if (auto plain = check_plain(); !plain) return plain;
    while (true) {
      if (!events_.next()) return broken();
      if (events_.event().type == YAML_MAPPING_END_EVENT) return {};
      if (auto plain = check_plain(); !plain) return plain;
      if (events_.event().type != YAML_SCALAR_EVENT) return refuse("a key is not a word", events_.line());
      const std::string key = block + text_of(events_.event());
      const int line = events_.line();
      if (!seen_.insert(key).second) return refuse("the key " + key.substr(0, 60) + " is given twice", line);
      if (!events_.next()) return broken();
      if (auto plain = check_plain(); !plain) return plain;
      if (auto value = read_value(key, block, line); !value) return value;
    }
  }

  Result<void> read_value(const std::string& key, const std::string& block, int line) {
    const yaml_event_t& event = events_.event();
    if (event.type == YAML_SCALAR_EVENT) {
      const bool quoted = event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
      entries_.push_back({key, quoted ? text_of(event) : in_decimal(text_of(event)), false, quoted, line});
      return {};
    }
    if (event.type == YAML_MAPPING_START_EVENT && block.empty()) {
      const std::size_t before = entries_.size();
      if (auto read = read_mapping(key + "."); !read) return read;
      if (entries_.size() == before) entries_.push_back({key, "", false, false, line});
      return {};
    }
    bool any = false;
    if (auto skipped = skip_nested(any); !skipped) return skipped;
    entries_.push_back({key, "", any, false, line});  // an empty list means nothing, like an empty mapping
    return {};
  }

  Events events_;
  std::string file_;
  std::vector<ConfigEntry> entries_;
  std::set<std::string> seen_;
};

}  // namespace

Result<std::vector<ConfigEntry>> yaml_entries(std::string_view text, const std::string& file_name) {
  if (text.size() > max_yaml_bytes)
    return fail(ErrorCode::config, "the file has more than " + std::to_string(max_yaml_bytes) + " bytes", file_name,
                "A configuration file of Accelerate has about 1000.");
  return Reader(text, file_name).read();
}

Result<std::vector<ConfigEntry>> read_yaml_entries(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return fail(ErrorCode::config, "the file does not exist or is no file", file.string(),
                "accelerate config writes ~/.cache/huggingface/accelerate/default_config.yaml.");
  std::ifstream stream(file, std::ios::binary);
  std::string text(max_yaml_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream && !stream.eof()))
    return fail(ErrorCode::config, "the file cannot be read: " + std::generic_category().message(errno), file.string(),
                "");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return yaml_entries(text, file.string());
}

}  // namespace accrue::cli
