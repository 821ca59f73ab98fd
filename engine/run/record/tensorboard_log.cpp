// SPDX-License-Identifier: Apache-2.0
// Source: the TFRecord framing and the messages Event, Summary and TensorProto of TensorFlow's documentation.
#include "accrue/run/tensorboard_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "accrue/run/mapped_file.h"
#include "accrue/run/tensorboard_file.h"

namespace accrue {

namespace {

constexpr std::size_t most_tags = 10'000;
constexpr std::size_t most_scalars = 20'000'000;
constexpr std::size_t longest_tag = 4096;
constexpr std::size_t most_files = 1000;

std::uint64_t fixed(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// One field of a message: a number, or a stretch of bytes.
struct Field {
  std::uint64_t number = 0;
  unsigned wire = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  /// The next field; none at the end, and none after something that is no message.
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

/// The number of a tensor that holds one. DT_FLOAT is 1, DT_DOUBLE 2.
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

/// A value of a summary that is one number; none where it is a picture, a histogram or a text.
std::optional<NamedScalar> scalar_of(std::string_view bytes) {
  NamedScalar scalar;
  std::optional<double> number;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->wire == 2) scalar.tag = field->bytes;
    if (field->number == 2 && field->wire == 5) number = as_float(field->value);
    if (field->number == 8 && field->wire == 2) number = number_of_tensor(field->bytes);
  }
  if (!number || !message.whole() || scalar.tag.empty() || scalar.tag.size() > longest_tag) return std::nullopt;
  scalar.value = *number;
  return scalar;
}

class Collector {
 public:
  explicit Collector(TensorboardLog& log) : log_(log) {
    for (const auto& [tag, values] : log.scalars) count_ += values.size();
  }

  /// False where the record is no event.
  bool take(std::string_view bytes) {
    LoggedScalar at;
    std::vector<std::string_view> summaries;
    Message event(bytes);
    while (const auto field = event.next()) {
      if (field->number == 1 && field->wire == 1) at.wall_time = std::bit_cast<double>(field->value);
      if (field->number == 2 && field->wire == 0) at.step = static_cast<std::int64_t>(field->value);
      if (field->number == 5 && field->wire == 2) summaries.push_back(field->bytes);
    }
    if (!event.whole()) return false;
    for (const std::string_view summary : summaries) {
      Message values(summary);
      while (const auto field = values.next())
        if (field->number == 1 && field->wire == 2) add(field->bytes, at);
      if (!values.whole()) return false;
    }
    return true;
  }
  bool full() const { return full_; }

 private:
  void add(std::string_view value, LoggedScalar at) {
    const auto scalar = scalar_of(value);
    if (!scalar || at.step < 0) return;
    const bool known = log_.scalars.contains(scalar->tag);
    if (count_ >= most_scalars || (!known && log_.scalars.size() >= most_tags)) {
      full_ = true;
      return;
    }
    at.value = scalar->value;
    log_.scalars[scalar->tag].push_back(at);
    ++count_;
  }

  TensorboardLog& log_;
  std::size_t count_ = 0;
  bool full_ = false;
};

/// A folder's event files in the order of their names, which begin with the time.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_regular_file(error) && entry.path().filename().string().find("tfevents") != std::string::npos)
      files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.size() > most_files) files.resize(most_files);
  return files;
}

/// A program that was started again tells its steps once more: what it said later counts.
void settle(std::vector<LoggedScalar>& values) {
  std::ranges::stable_sort(values, {}, &LoggedScalar::step);
  std::vector<LoggedScalar> kept;
  for (const LoggedScalar& value : values) {
    if (!kept.empty() && kept.back().step == value.step)
      kept.back() = value;
    else
      kept.push_back(value);
  }
  values = std::move(kept);
}

}  // namespace

void read_tensorboard_records(std::string_view bytes, const std::string& name, TensorboardLog& log,
                              const std::function<bool()>& go_on) {
  constexpr std::int64_t asked_every = 1024;
  constexpr std::size_t frame = 8 + 4 + 4;
  Collector collector(log);
  std::size_t at = 0;
  for (std::int64_t record = 1; at < bytes.size(); ++record) {
    if (go_on && record % asked_every == 0 && !go_on()) return;
    const std::string_view rest = bytes.substr(at);
    const auto problem = [&](std::string_view what) {
      log.problems.push_back(
          fmt::format("{}: record {} at byte {} {}; what follows it is not read", name, record, at, what));
    };
    if (rest.size() < frame) return problem("is cut short");
    if (fixed(rest.substr(8, 4)) != masked_crc32c(rest.substr(0, 8))) return problem("is damaged (its length)");
    const std::uint64_t size = fixed(rest.substr(0, 8));
    if (size > rest.size() - frame) return problem("is cut short");
    const std::string_view event = rest.substr(12, static_cast<std::size_t>(size));
    if (fixed(rest.substr(12 + event.size(), 4)) != masked_crc32c(event)) return problem("is damaged (its contents)");
    if (!collector.take(event)) return problem("is no event of TensorBoard");
    if (collector.full()) return problem(fmt::format("goes beyond {} scalars or {} tags", most_scalars, most_tags));
    at += frame + event.size();
  }
}

Result<TensorboardLog> read_tensorboard(const std::filesystem::path& path, const std::function<bool()>& go_on) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  if (!folder && !std::filesystem::exists(path, error))
    return fail(ErrorCode::config, "does not exist", path.string(), "Check the path.");
  const auto files = folder ? event_files(path) : std::vector<std::filesystem::path>{path};
  if (files.empty())
    return fail(ErrorCode::config, "holds no event file of TensorBoard", path.string(),
                "Their names have \"tfevents\" in them. Give the folder that holds them itself.");
  TensorboardLog log;
  for (const auto& file : files) {
    const auto mapped = MappedFile::open(file);
    if (!mapped) return tl::unexpected(mapped.error());
    const auto* const data = reinterpret_cast<const char*>(mapped->data());
    read_tensorboard_records({data, static_cast<std::size_t>(mapped->size())}, file.filename().string(), log, go_on);
    if (go_on && !go_on()) return fail(ErrorCode::cancelled, "the import was given up");
  }
  for (auto& [tag, values] : log.scalars) settle(values);
  if (log.scalars.empty())
    return fail(ErrorCode::config,
                "holds no scalar" + (log.problems.empty() ? std::string() : ": " + log.problems.front()), path.string(),
                "Give a log that TensorBoard shows curves of, or a table in *.csv");
  return log;
}

}  // namespace accrue
