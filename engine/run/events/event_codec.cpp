// SPDX-License-Identifier: Apache-2.0
// Problem: every number that a rank reports passes here twice (rank to supervisor, supervisor to file), and NaN is the
// most important value, but JSON has no NaN. Solution: the writer appends text directly in field order with the
// shortest digits that read back the same. The reader checks size and depth on the bytes, then lets nlohmann-json build
// the line and walks the field list. Non-finite numbers are the strings "nan", "inf", "-inf". Cost: one DOM per line;
// arrays dominate it.
#include "accrue/run/events/event_codec.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "event_fields.h"
#include "json_number.h"
#include "json_text.h"

namespace accrue {
namespace {

// ------------------------------------------------------------------------------------------------------- writing

void put(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

void put(std::string& out, double value) {
  if (!std::isfinite(value)) {
    (out += '"').append(non_finite_name(value)) += '"';
  } else if (value == 0.0 && std::signbit(value)) {
    out += "-0.0";  // "-0" would be read as the integer 0
  } else {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
  }
}

bool is_plain(std::string_view text) {
  for (const unsigned char c : text)
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') return false;
  return true;
}

void put(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    // Log tails may contain anything: bytes that are not UTF-8 become U+FFFD.
    out += json_text(Json(text));
  }
}

void put(std::string& out, int value) {
  put(out, static_cast<std::int64_t>(value));
}

void put(std::string& out, bool value) {
  out += value ? "true" : "false";
}

/// Writes enums by name.
template <typename E>
requires std::is_enum_v<E>
void put(std::string& out, E value) {
  put(out, to_string(value));
}

template <typename T>
void put(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    put(out, values[i]);
  }
  out += ']';
}

/// Writes numbers by name, as an object.
void put(std::string& out, const NamedLosses& values) {
  out += '{';
  for (const auto& [name, value] : values) {
    if (out.back() != '{') out += ',';
    put(out, std::string_view(name));
    out += ':';
    put(out, value);
  }
  out += '}';
}

/// Writes embedded JSON on one line; anything that is not an object becomes {}.
std::string one_line_object(const std::string& text) {
  const Json object = parse_json(text, max_json_depth - 1);
  return object.is_object() ? json_text(object) : "{}";
}

template <typename Text>
void put(std::string& out, event_fields::RawJson<Text> json) {
  out += one_line_object(json.text);
}

struct Writer {
  std::string& out;

  template <typename T>
  void operator()(std::string_view key, const T& value, event_fields::Need) {
    out += ",\"";
    out += key;
    out += "\":";
    put(out, value);
  }
  template <typename T>
  void operator()(std::string_view key, const std::vector<T>& values, event_fields::Need need) {
    if (!values.empty() || need == event_fields::required) operator()<std::vector<T>>(key, values, need);
  }
  void operator()(std::string_view key, const NamedLosses& values, event_fields::Need need) {
    if (!values.empty()) operator()<NamedLosses>(key, values, need);
  }
  template <typename T>
  void operator()(std::string_view key, const std::optional<T>& value, event_fields::Need need) {
    if (value) operator()(key, *value, need);
  }
};

// ------------------------------------------------------------------------------------------------------- reading

bool read(const Json& json, std::int64_t& value) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{max_json_integer}) return false;
  const auto number = json.get<std::int64_t>();
  if (number > max_json_integer || number < -max_json_integer) return false;
  value = number;
  return true;
}

bool read(const Json& json, int& value) {
  std::int64_t wide = 0;
  if (!read(json, wide) || wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return false;
  value = static_cast<int>(wide);
  return true;
}

bool read(const Json& json, bool& value) {
  if (!json.is_boolean()) return false;
  value = json.get<bool>();
  return true;
}

bool read(const Json& json, double& value) {
  const std::optional<double> number = read_json_number(json);
  value = number.value_or(value);
  return number.has_value();
}

bool read(const Json& json, std::string& value) {
  if (!json.is_string()) return false;
  value = json.get_ref<const std::string&>();
  return true;
}

/// Reads one of the enum's values up to `last`.
template <typename E>
bool read_name(const Json& json, E& value, E last) {
  for (int i = 0; json.is_string() && i <= static_cast<int>(last); ++i) {
    if (json.get_ref<const std::string&>() != to_string(static_cast<E>(i))) continue;
    value = static_cast<E>(i);
    return true;
  }
  return false;
}

bool read(const Json& json, StepOutcome& value) {
  return read_name(json, value, StepOutcome::skipped_empty);
}

bool read(const Json& json, ComputeKind& value) {
  return read_name(json, value, ComputeKind::step);
}

bool read(const Json& json, CollectivePurpose& value) {
  // A later version may add purposes; those are not gradients.
  if (!read_name(json, value, CollectivePurpose::checkpoint)) value = CollectivePurpose::agreement;
  return json.is_string();
}

bool read(const Json& json, StepPhase& value) {
  return read_name(json, value, StepPhase::zero);
}

template <typename T>
bool read(const Json& json, std::vector<T>& values) {
  if (!json.is_array()) return false;
  values.resize(json.size());
  std::size_t i = 0;
  for (const auto& entry : json)
    if (!read(entry, values[i++])) return false;
  return true;
}

bool read(const Json& json, NamedLosses& values) {
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items())
    if (!read(value, values[name])) return false;
  return true;
}

template <typename T>
bool read(const Json& json, std::optional<T>& value) {
  return read(json, value.emplace());
}

template <typename Text>
bool read(const Json& json, event_fields::RawJson<Text> raw) {
  if (!json.is_object()) return false;
  raw.text = json_text(json);
  return true;
}

struct Reader {
  const Json& line;
  std::string problem;  ///< the first one
  std::optional<std::size_t> length;

  template <typename T>
  void take(std::string_view key, T&& value, event_fields::Need need) {
    if (!problem.empty()) return;
    const auto found = line.find(key);
    if (found == line.end()) {
      if (need == event_fields::required) problem = fmt::format("field \"{}\" is missing", key);
      return;
    }
    if (!read(*found, std::forward<T>(value)))
      problem = fmt::format("field \"{}\" is of the wrong type ({})", key, found->type_name());
  }
  template <typename T>
  void operator()(std::string_view key, T& value, event_fields::Need need) {
    take(key, value, need);
  }
  template <typename Text>
  void operator()(std::string_view key, event_fields::RawJson<Text> json, event_fields::Need need) {
    take(key, json, need);
  }
  template <typename T>
  void operator()(std::string_view key, std::vector<T>& values, event_fields::Need need) {
    take(key, values, need);
    if (!problem.empty() || need == event_fields::optional) return;
    if (need == event_fields::later && !line.contains(key)) return values.resize(length.value_or(0));
    if (length && *length != values.size())
      problem = fmt::format("array \"{}\" has {} entries where the others have {}", key, values.size(), *length);
    length = values.size();
  }
};

tl::unexpected<Error> damaged(std::string message) {
  return fail(ErrorCode::protocol, std::move(message), "event line");
}

/// Reads the line as a Body if that is its kind.
template <typename Body>
bool try_kind(const std::string& kind, const Json& line, RunEvent& event, std::string& problem) {
  if constexpr (std::is_same_v<Body, UnknownEvent>) {
    return false;
  } else {
    Body body;
    if (kind != event_fields::kind_of_body(body)) return false;
    Reader reader{line, {}, {}};
    event_fields::visit(reader, body);
    problem = std::move(reader.problem);
    event.body = std::move(body);
    return true;
  }
}

template <typename... Bodies>
bool read_body(const std::variant<Bodies...>&, const std::string& kind, const Json& line, RunEvent& event,
               std::string& problem) {
  return (try_kind<Bodies>(kind, line, event, problem) || ...);
}

tl::unexpected<Error> other_version(std::int64_t version) {
  return fail(ErrorCode::protocol,
              fmt::format("events of version {} cannot be read by this program, which reads version {}", version,
                          event_format_version),
              "event line",
              version < event_format_version ? "Open the run with the version of Accrue that wrote it"
                                             : "Open the run with the version of Accrue that wrote it, or a newer one");
}

Result<void> check_version(const Json& line) {
  const auto version = line.find("v");
  if (version == line.end() || !version->is_number_integer()) return damaged("field \"v\" (the version) is missing");
  if (*version == event_format_version) return {};
  return other_version(version->get<std::int64_t>());
}

}  // namespace

std::string encode_event(const RunEvent& event) {
  if (const auto* unknown = std::get_if<UnknownEvent>(&event.body); unknown && !unknown->json.empty())
    return unknown->json;
  std::string out;
  out.reserve(256);
  out += "{\"v\":";
  put(out, event_format_version);
  out += ",\"kind\":";
  put(out, kind_of(event.body));
  out += ",\"rank\":";
  put(out, event.rank);
  if (is_stored(event.body)) {
    out += ",\"seq\":";
    put(out, event.seq);
  }
  out += ",\"time_ns\":";
  put(out, event.time_ns);
  Writer writer{out};
  std::visit(
      [&writer](const auto& body) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(body)>, UnknownEvent>) event_fields::visit(writer, body);
      },
      event.body);
  out += '}';
  return out;
}

Result<RunEvent> decode_event(std::string_view text) {
  if (text.size() > max_event_bytes)
    return damaged(fmt::format("a line of {} bytes is longer than the {} allowed", text.size(), max_event_bytes));
  const Json line = parse_json(text);
  if (line.is_discarded() && json_depth(text) > max_json_depth)
    return damaged(fmt::format("brackets are nested deeper than the {} levels allowed", max_json_depth));
  if (line.is_discarded()) return damaged("not valid JSON");
  if (!line.is_object()) return damaged(fmt::format("expected an object, found {}", line.type_name()));
  if (auto version = check_version(line); !version) return tl::unexpected(version.error());

  RunEvent event;
  std::string kind;
  Reader header{line, {}, {}};
  header("kind", kind, event_fields::required);
  header("rank", event.rank, event_fields::required);
  header("time_ns", event.time_ns, event_fields::required);
  header("seq", event.seq, event_fields::optional);
  if (!header.problem.empty()) return damaged(std::move(header.problem));

  std::string problem;
  if (!read_body(event.body, kind, line, event, problem)) event.body = UnknownEvent{kind, std::string(text)};
  if (!problem.empty()) return damaged(fmt::format("{}: {}", kind, problem));
  if (is_stored(event.body) && !line.contains("seq")) return damaged(fmt::format("{}: field \"seq\" is missing", kind));
  return event;
}

}  // namespace accrue
