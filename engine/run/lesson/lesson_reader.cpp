// SPDX-License-Identifier: Apache-2.0
// TOML -> Lesson. As with a spec, every problem is reported at once, with its place; a key with a problem keeps its
// default.
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>

#include "accrue/run/base/number_text.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/lesson/lesson.h"
#include "toml_parser.h"
#include "toml_prescan.h"

namespace accrue {

namespace {

constexpr std::size_t max_lesson_bytes = std::size_t{128} * 1024;
constexpr std::array panels = {"window", "ranks", "data", "runs", "pipeline", "planner"};
constexpr std::array clocks = {"micro_step", "update", "sample", "token", "epoch", "seconds", "compute_seconds"};
constexpr std::array lights = {"exact", "close", "not exact"};

struct Kind {
  CheckKind kind;
  std::string_view name;
};
constexpr Kind kinds[] = {{CheckKind::weights, "weights"},
                          {CheckKind::updates, "updates"},
                          {CheckKind::loss, "loss"},
                          {CheckKind::rates, "rates"},
                          {CheckKind::lamp, "lamp"},
                          {CheckKind::reductions, "reductions"},
                          {CheckKind::activations, "activations"},
                          {CheckKind::coincide, "coincide"},
                          {CheckKind::part, "part"},
                          {CheckKind::same_weights, "same_weights"},
                          {CheckKind::sha256, "sha256"},
                          {CheckKind::clock, "clock"}};

template <typename Names>
std::string one_of(const Names& names) {
  return "one of " + joined(names);
}

class Reader {
 public:
  explicit Reader(LessonReading& reading, std::string file) : reading_(reading), file_(std::move(file)) {}

  void read(const toml::table& root) {
    Lesson& lesson = reading_.lesson;
    const auto* version = root.get("accrue_lesson");
    if (!version)
      return add(root.source(), "accrue_lesson", "is missing, so this is no lesson",
                 "accrue_lesson = 1 in the first line");
    if (version->value_exact<std::int64_t>() != 1)
      return add(version->source(), "accrue_lesson", "is not a format version of a lesson", "1, in the first line");
    allow(root, "",
          {"accrue_lesson", "number", "title", "teaches", "minutes", "printed_on", "notes", "spec", "layout", "locked",
           "step"});
    take(root, "title", lesson.title, true);
    take(root, "teaches", lesson.teaches);
    take(root, "notes", lesson.notes);
    take(root, "printed_on", lesson.printed_on);
    take(root, "number", lesson.number);
    take(root, "minutes", lesson.minutes);
    read_spec_text(root);
    read_layout(root);
    read_locked(root);
    const toml::array* steps = root.get_as<toml::array>("step");
    if (!steps || steps->empty()) return add(root.source(), "step", "is missing", "a [[step]] at least");
    for (const toml::node& step : *steps) {
      if (const toml::table* table = step.as_table())
        read_step(*table);
      else
        add(step.source(), "step", "is not a section", "[[step]]");
    }
  }

 private:
  void add(const toml::source_region& place, std::string key, std::string message, std::string expected = {},
           std::string found = {}) {
    reading_.findings.push_back({.key = std::move(key),
                                 .message = std::move(message),
                                 .found = std::move(found),
                                 .expected = std::move(expected),
                                 .file = file_,
                                 .line = static_cast<int>(place.begin.line),
                                 .column = static_cast<int>(place.begin.column)});
  }

  void allow(const toml::table& table, const std::string& where, std::initializer_list<std::string_view> names) {
    for (const auto& [key, node] : table)
      if (std::ranges::find(names, key.str()) == names.end())
        add(key.source(), where + std::string(key.str()), "is not a key of a lesson", one_of(names));
  }

  template <typename T>
  void take(const toml::table& table, std::string_view name, T& target, bool needed = false) {
    const toml::node* node = table.get(name);
    if (!node) {
      if (needed) add(table.source(), std::string(name), "is missing", "a text");
      return;
    }
    if (auto value = node->value_exact<T>())
      target = std::move(*value);
    else
      add(node->source(), std::string(name), "has the wrong type",
          std::is_same_v<T, std::string> ? "a text"
          : std::is_same_v<T, bool>      ? "true or false"
                                         : "a whole number");
  }

  /// Also accepts an integer.
  void take_real(const toml::table& table, std::string_view name, double& target) {
    const toml::node* node = table.get(name);
    if (!node) return;
    const auto value = node->value<double>();
    if (value && *value >= 0.0)
      target = *value;
    else
      add(node->source(), std::string(name), "is not a number from 0 up");
  }

  std::vector<std::string> texts(const toml::node& node, const std::string& key) {
    std::vector<std::string> list;
    const toml::array* array = node.as_array();
    const auto refuse = [&] { add(node.source(), key, "has the wrong type", "a list of texts"); };
    if (!array) return refuse(), list;
    for (const toml::node& element : *array) {
      const auto text = element.value_exact<std::string>();
      if (!text) return refuse(), list;
      list.push_back(*text);
    }
    return list;
  }

  std::vector<std::string> texts_of(const toml::table& table, std::string_view name) {
    const toml::node* node = table.get(name);
    return node ? texts(*node, std::string(name)) : std::vector<std::string>();
  }

  /// Reads settings as for --set, each of which must fit the lesson's spec.
  std::vector<std::string> settings(const toml::node& node, const std::string& key) {
    auto list = texts(node, key);
    for (const std::string& setting : list) {
      std::vector<Finding> findings;
      RunSpec scratch = reading_.lesson.spec;
      set_field(scratch, setting, findings);
      for (const Finding& finding : findings)
        add(node.source(), finding.key, finding.message, finding.expected, finding.found);
    }
    return list;
  }

  std::vector<std::string> settings_of(const toml::table& table, std::string_view name) {
    const toml::node* node = table.get(name);
    return node ? settings(*node, std::string(name)) : std::vector<std::string>();
  }

  /// Adds the spec's own findings at their places in the lesson's file: its first line follows the quotes.
  void read_spec_text(const toml::table& root) {
    const toml::node* node = root.get("spec");
    const auto text = node ? node->value_exact<std::string>() : std::nullopt;
    if (!text)
      return add(node ? node->source() : root.source(), "spec", "is missing or no text", "a spec between ''' and '''");
    SpecReading spec = parse_spec(*text, file_);
    for (Finding& finding : spec.findings) {
      if (finding.line > 0) finding.line += static_cast<int>(node->source().begin.line);
      reading_.findings.push_back(std::move(finding));
    }
    reading_.lesson.spec = std::move(spec.spec);
  }

  void check_key(const toml::source_region& place, std::string_view key) {
    if (!find_field(key))
      add(place, std::string(key), "is not a key of a spec", std::string(nearest_key(key)), std::string(key));
  }

  void read_layout(const toml::table& root) {
    const toml::table* layout = root.get_as<toml::table>("layout");
    if (!layout) return;
    allow(*layout, "layout.", {"fields", "panels", "clock"});
    Lesson& lesson = reading_.lesson;
    lesson.fields = texts_of(*layout, "fields");
    for (const std::string& key : lesson.fields) check_key(layout->get("fields")->source(), key);
    lesson.panels = texts_of(*layout, "panels");
    for (const std::string& panel : lesson.panels)
      if (std::ranges::find(panels, panel) == panels.end())
        add(layout->get("panels")->source(), "layout.panels", "names no panel", one_of(panels), panel);
    take(*layout, "clock", lesson.clock);
    if (!lesson.clock.empty() && std::ranges::find(clocks, lesson.clock) == clocks.end())
      add(layout->get("clock")->source(), "layout.clock", "is no clock", one_of(clocks), lesson.clock);
  }

  void read_locked(const toml::table& root) {
    const toml::table* locked = root.get_as<toml::table>("locked");
    if (!locked) return;
    for (const auto& [key, node] : *locked) {
      check_key(key.source(), key.str());
      const auto why = node.value_exact<std::string>();
      if (!why || why->empty()) add(node.source(), std::string(key.str()), "does not say why it is locked", "a text");
      reading_.lesson.locked[std::string(key.str())] = why.value_or("");
    }
  }

  /// A requested run must be possible for the learner.
  void check_answer(const toml::source_region& place, const LessonStep& step) {
    const RunSpec before = spec_of(reading_.lesson, step);
    for (const SpecDifference& change : diff_specs(before, answered(before, step.answer.back())))
      if (reading_.lesson.locked.contains(change.key))
        add(place, "answer", "changes a locked key", "settings that leave it as it is", change.key);
  }

  void read_step(const toml::table& table) {
    allow(table, "step.", {"title", "text", "hint", "notes", "set", "answer", "check"});
    LessonStep step;
    take(table, "title", step.title, true);
    take(table, "text", step.text, true);
    take(table, "hint", step.hint);
    take(table, "notes", step.notes);
    step.set = settings_of(table, "set");
    if (const toml::node* answer = table.get("answer")) {
      if (const toml::array* runs = answer->as_array())
        for (const toml::node& run : *runs) {
          step.answer.push_back(settings(run, "answer"));
          check_answer(run.source(), step);
        }
      else
        add(answer->source(), "answer", "has the wrong type", "a list of settings for each run");
    }
    if (const toml::array* checks = table.get_as<toml::array>("check"))
      for (const toml::node& check : *checks) {
        if (const toml::table* entry = check.as_table())
          read_check(*entry, step);
        else
          add(check.source(), "check", "is not a section", "[[step.check]]");
      }
    reading_.lesson.steps.push_back(std::move(step));
  }

  void read_check(const toml::table& table, LessonStep& step) {
    LessonCheck check;
    const Kind* kind = nullptr;
    for (const auto& [key, node] : table) {
      const auto* at = std::ranges::find(kinds, key.str(), &Kind::name);
      if (at == std::end(kinds)) {
        static constexpr std::array others = {"says", "where", "reason", "within"};
        if (std::ranges::find(others, key.str()) == others.end())
          add(key.source(), "check." + std::string(key.str()), "is not a check", one_of_kinds());
      } else if (kind) {
        add(key.source(), "check." + std::string(key.str()), "is a second check in one section",
            "[[step.check]] for each");
      } else {
        kind = at;
        check.kind = at->kind;
        read_wanted(node, table, check);
      }
    }
    if (!kind) return add(table.source(), "check", "asks for nothing", one_of_kinds());
    take(table, "says", check.says, true);
    take(table, "reason", check.reason);
    take_real(table, "within", check.within);
    check.where = settings_of(table, "where");
    step.checks.push_back(std::move(check));
  }

  void read_wanted(const toml::node& node, const toml::table& table, LessonCheck& check) {
    switch (check.kind) {
      case CheckKind::weights:
      case CheckKind::rates:
        check.printed = texts(node, "check");
        break;
      case CheckKind::loss:
      case CheckKind::sha256:
      case CheckKind::lamp:
      case CheckKind::clock:
        if (const auto text = node.value_exact<std::string>()) check.printed = {*text};
        break;
      case CheckKind::activations:
        take_real(table, "activations", check.part);
        return;
      default:
        check.count = node.value_exact<std::int64_t>().value_or(-1);
        if (check.count < 0) add(node.source(), "check", "is not a whole number from 0 up");
        return;
    }
    if (check.printed.empty()) return add(node.source(), "check", "has the wrong type", "texts: numbers as they print");
    if (check.kind == CheckKind::lamp && std::ranges::find(lights, check.printed.front()) == lights.end())
      add(node.source(), "check.lamp", "is no light", one_of(lights), check.printed.front());
    if (check.kind == CheckKind::clock && std::ranges::find(clocks, check.printed.front()) == clocks.end())
      add(node.source(), "check.clock", "is no clock", one_of(clocks), check.printed.front());
  }

  static std::string one_of_kinds() {
    std::vector<std::string_view> names;
    for (const Kind& kind : kinds) names.push_back(kind.name);
    return one_of(names);
  }

  LessonReading& reading_;
  std::string file_;
};

LessonReading refused(const std::string& file, std::string message, std::string found = {}, std::string expected = {}) {
  LessonReading reading;
  reading.findings.push_back(
      {.message = std::move(message), .found = std::move(found), .expected = std::move(expected), .file = file});
  return reading;
}

}  // namespace

LessonReading parse_lesson(std::string_view toml, std::string file_name) {
  if (toml.size() > max_lesson_bytes)
    return refused(file_name, "the lesson is too large", std::to_string(toml.size()) + " bytes",
                   "at most " + std::to_string(max_lesson_bytes) + " bytes");
  if (auto deep = spec_detail::prescan_toml(toml)) {
    deep->file = file_name;
    return {.lesson = {}, .findings = {std::move(*deep)}};
  }
  const toml::parse_result parsed = toml::parse(toml, std::string_view(file_name));
  if (!parsed) {
    const std::string words = spec_detail::toml_words(std::string(parsed.error().description()));
    auto reading = refused(file_name, "the lesson is not valid TOML: " + words);
    reading.findings.front().line = static_cast<int>(parsed.error().source().begin.line);
    reading.findings.front().column = static_cast<int>(parsed.error().source().begin.column);
    return reading;
  }
  LessonReading reading;
  Reader(reading, std::move(file_name)).read(parsed.table());
  std::ranges::stable_sort(reading.findings, {}, &Finding::line);
  return reading;
}

LessonReading read_lesson(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    return refused(file.string(), "the lesson does not exist or is not a file", {}, "a *.accrue-lesson file");
  std::ifstream stream(file, std::ios::binary);
  std::string text(max_lesson_bytes + 1, '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(text.size())) && !stream.eof())
    return refused(file.string(), "the lesson cannot be read", {}, "a readable file");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_lesson(text, file.string());
}

RunSpec answered(RunSpec spec, const std::vector<std::string>& settings) {
  std::vector<Finding> checked_by_the_reader;
  for (const std::string& setting : settings) set_field(spec, setting, checked_by_the_reader);
  return spec;
}

RunSpec spec_of(const Lesson& lesson, const LessonStep& step) {
  return answered(lesson.spec, step.set);
}

}  // namespace accrue
