// SPDX-License-Identifier: Apache-2.0
// Source: the TFRecord framing and the messages Event, Summary and TensorProto of TensorFlow's documentation.
#include "tensorboard_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "accrue/run/base/counted.h"
#include "accrue/run/record/tensorboard_file.h"
#include "log_text.h"

namespace accrue {

namespace {

constexpr std::size_t most_tags = 10'000;
constexpr std::size_t most_scalars = 20'000'000;
constexpr std::size_t longest_tag = 4096;

std::uint64_t fixed(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// One field of a message: a number, or a range of bytes.
struct Field {
  std::uint64_t number = 0;
  unsigned wire = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  /// Returns the next field; none at the end, or after malformed data.
  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    Field field;
    std::uint64_t key = 0;
    if (!varint(key)) return broken();
    field.number = key >> 3U;
    field.wire = static_cast<unsigned>(key & 7U);
    if (field.number == 0) return broken();
    if (field.wire == 0) return varint(field.value) ? std::optional(field) : broken();
    std::uint64_t size = field.wire == 1 ? 8 : field.wire == 5 ? 4 : 0;
    if (field.wire == 2 && !varint(size)) return broken();
    if ((field.wire != 1 && field.wire != 2 && field.wire != 5) || size > rest_.size()) return broken();
    field.bytes = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    if (field.wire != 2) field.value = fixed(field.bytes);
    return field;
  }
  bool whole() const { return whole_; }

 private:
  std::optional<Field> broken() {
    whole_ = false;
    rest_ = {};
    return std::nullopt;
  }

  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return true;
    }
    return false;
  }

  std::string_view rest_;
  bool whole_ = true;
};

double as_float(std::uint64_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

/// Returns the number of a tensor that holds one. DT_FLOAT is 1, DT_DOUBLE 2.
std::optional<double> number_of_tensor(std::string_view bytes) {
  std::uint64_t type = 0;
  std::optional<double> number;
  std::string_view content;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->wire == 0) type = field->value;
    if (field->number == 4 && field->wire == 2) content = field->bytes;
    if (field->number == 5 && field->wire == 5) number = as_float(field->value);
    if (field->number == 5 && field->wire == 2 && field->bytes.size() == 4) number = as_float(fixed(field->bytes));
    if (field->number == 6 && field->wire == 1) number = std::bit_cast<double>(field->value);
    if (field->number == 6 && field->wire == 2 && field->bytes.size() == 8)
      number = std::bit_cast<double>(fixed(field->bytes));
  }
  if (type == 1 && content.size() == 4) return as_float(fixed(content));
  if (type == 2 && content.size() == 8) return std::bit_cast<double>(fixed(content));
  return type == 1 || type == 2 ? number : std::nullopt;
}

struct NamedScalar {
  std::string tag;
  double value = 0.0;
};

/// Returns a summary's value that is one number; none for a picture, a histogram or a text.
std::optional<NamedScalar> scalar_of(std::string_view bytes) {
  NamedScalar scalar;
  std::optional<double> number;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->wire == 2) scalar.tag = as_utf8(std::string(field->bytes));
    if (field->number == 2 && field->wire == 5) number = as_float(field->value);
    if (field->number == 8 && field->wire == 2) number = number_of_tensor(field->bytes);
  }
  if (!number || !message.whole() || scalar.tag.empty() || scalar.tag.size() > longest_tag) return std::nullopt;
  scalar.value = *number;
  return scalar;
}

/// An event without its values.
struct Event {
  LoggedScalar at;
  std::vector<std::string_view> summaries;
  bool versioned = false;
  bool starts_session = false;
};

/// Whether a SessionLog's status is START.
bool is_start(std::string_view bytes) {
  Message message(bytes);
  std::uint64_t status = 0;
  while (const auto field = message.next())
    if (field->number == 1 && field->wire == 0) status = field->value;
  return status == 1;
}

/// Whether the file marks session starts: "brain.Event:2" and later do.
bool is_versioned(std::string_view version) {
  const auto colon = version.rfind(':');
  return colon != std::string_view::npos && version.substr(colon + 1) >= "2";
}

/// None if the record is not an event.
std::optional<Event> event_of(std::string_view bytes) {
  Event event;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->wire == 1) event.at.wall_time = std::bit_cast<double>(field->value);
    if (field->number == 2 && field->wire == 0) event.at.step = static_cast<std::int64_t>(field->value);
    if (field->number == 3 && field->wire == 2) event.versioned = is_versioned(field->bytes);
    if (field->number == 5 && field->wire == 2) event.summaries.push_back(field->bytes);
    if (field->number == 7 && field->wire == 2) event.starts_session = is_start(field->bytes);
  }
  return message.whole() ? std::optional(std::move(event)) : std::nullopt;
}

/// Values of a summary; none if it is malformed.
std::optional<std::vector<std::string_view>> values_of(std::string_view summary) {
  std::vector<std::string_view> values;
  Message message(summary);
  while (const auto field = message.next())
    if (field->number == 1 && field->wire == 2) values.push_back(field->bytes);
  return message.whole() ? std::optional(std::move(values)) : std::nullopt;
}

}  // namespace

bool TensorboardReader::take(std::string_view bytes) {
  const auto event = event_of(bytes);
  if (!event) return false;
  versioned_ = versioned_ || event->versioned;
  if (versioned_ && event->starts_session) purge(event->at.step, {});
  std::vector<std::string_view> values;
  for (const std::string_view summary : event->summaries) {
    const auto more = values_of(summary);
    if (!more) return false;
    values.insert(values.end(), more->begin(), more->end());
  }
  const bool goes_back = event->at.step < last_step_ && !event->summaries.empty();
  if (!versioned_ && goes_back) {
    std::vector<std::string> tags;
    for (const std::string_view value : values)
      if (auto scalar = scalar_of(value)) tags.push_back(std::move(scalar->tag));
    if (!tags.empty()) purge(event->at.step, tags);
  }
  if (!goes_back) last_step_ = event->at.step;
  for (const std::string_view value : values) add(value, event->at);
  return true;
}

void TensorboardReader::add(std::string_view value, LoggedScalar at) {
  const auto scalar = scalar_of(value);
  if (!scalar) return;
  if (at.step < 0) {
    ++negative_;
    return;
  }
  const bool known = log_.scalars.contains(scalar->tag);
  if (count_ >= most_scalars || (!known && log_.scalars.size() >= most_tags)) {
    full_ = true;
    return;
  }
  at.value = scalar->value;
  log_.scalars[scalar->tag].push_back(at);
  ++count_;
}

/// Drops values of all tags if none is named.
void TensorboardReader::purge(std::int64_t from, const std::vector<std::string>& tags) {
  for (auto& [tag, values] : log_.scalars)
    if (tags.empty() || std::ranges::find(tags, tag) != tags.end())
      count_ -= std::erase_if(values, [from](const LoggedScalar& value) { return value.step >= from; });
}

void TensorboardReader::read(std::string_view bytes, const std::string& name, const std::function<bool()>& go_on) {
  constexpr std::size_t frame = 8 + 4 + 4;
  std::size_t at = 0;
  for (std::int64_t record = 1; at < bytes.size(); ++record) {
    if (is_given_up(go_on, record)) return;
    const std::string_view rest = bytes.substr(at);
    const auto problem = [&](std::string_view what) {
      log_.problems.push_back(
          fmt::format("{}: record {} at byte {} {}; what follows it is not read", name, record, at, what));
    };
    if (rest.size() < frame) return problem("is cut short");
    if (fixed(rest.substr(8, 4)) != masked_crc32c(rest.substr(0, 8))) return problem("is damaged (its length)");
    const std::uint64_t size = fixed(rest.substr(0, 8));
    if (size > rest.size() - frame) return problem("is cut short");
    const std::string_view event = rest.substr(12, static_cast<std::size_t>(size));
    if (fixed(rest.substr(12 + event.size(), 4)) != masked_crc32c(event)) return problem("is damaged (its contents)");
    if (!take(event)) return problem("is no event of TensorBoard");
    if (full_) return problem(fmt::format("goes beyond {} scalars or {} tags", most_scalars, most_tags));
    at += frame + event.size();
  }
}

/// If a program repeats its steps, the later values count.
RunLog TensorboardReader::log() && {
  std::size_t repeated = 0;
  for (auto& [tag, values] : log_.scalars) {
    std::ranges::stable_sort(values, {}, &LoggedScalar::step);
    std::vector<LoggedScalar> kept;
    for (const LoggedScalar& value : values) {
      if (!kept.empty() && kept.back().step == value.step)
        kept.back() = value;
      else
        kept.push_back(value);
    }
    if (!tag.ends_with(samples_twin)) repeated += values.size() - kept.size();  // an update may train on no samples
    values = std::move(kept);
  }
  std::erase_if(log_.scalars, [](const auto& tag) { return tag.second.empty(); });
  if (repeated > 0)
    log_.problems.push_back(fmt::format("{} left out: a later one has the same tag and step",
                                        counted(static_cast<std::int64_t>(repeated), "value")));
  if (negative_ > 0)
    log_.problems.push_back(
        fmt::format("{} at a step below 0 left out", counted(static_cast<std::int64_t>(negative_), "value")));
  return std::move(log_);
}

bool looks_like_events(std::string_view bytes) {
  return bytes.size() >= 12 && fixed(bytes.substr(8, 4)) == masked_crc32c(bytes.substr(0, 8));
}

}  // namespace accrue
