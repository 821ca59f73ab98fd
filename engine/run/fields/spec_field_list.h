// SPDX-License-Identifier: Apache-2.0
// Notation of a row of the field table: list.add(ACCRUE_FIELD(member), label, help).range(...), and list.advanced for a
// field that the form hides by default. The member determines the key, the field's type, its choices and whether it is
// optional, so none of them can contradict the struct.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue::field_detail {

using IntegerRows = std::vector<std::vector<std::int64_t>>;

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
constexpr FieldType type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return FieldType::boolean;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return FieldType::integer;
  else if constexpr (std::is_same_v<T, double>)
    return FieldType::real;
  else if constexpr (std::is_same_v<T, std::string>)
    return FieldType::text;
  else if constexpr (std::is_enum_v<T>)
    return FieldType::choice;
  else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    return FieldType::integers;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return FieldType::reals;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return FieldType::texts;
  else
    return FieldType::matrix;
}

inline double as_real(const SpecValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

template <typename T>
SpecValue to_value(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(to_name(member));
  } else if constexpr (std::is_same_v<T, IntegerRows>) {
    Matrix rows;
    for (const auto& row : member) rows.emplace_back(row.begin(), row.end());
    return rows;
  } else if constexpr (std::is_same_v<T, std::vector<LengthChange>>) {
    Matrix rows;
    for (const LengthChange& change : member)
      rows.push_back({static_cast<double>(change.from), static_cast<double>(change.steps)});
    return rows;
  } else {
    return member;
  }
}

/// Converts values that do not fit (a fraction among labels, a row that is not a pair) to near ones. The reader then
/// notices that get() differs from the value that it set.
template <typename T>
void from_value(T& member, const SpecValue& value) {
  if constexpr (std::is_enum_v<T>) {
    if (const auto choice = from_name<T>(std::get<std::string>(value))) member = *choice;
  } else if constexpr (std::is_same_v<T, double>) {
    member = as_real(value);
  } else if constexpr (std::is_same_v<T, IntegerRows>) {
    member.clear();
    for (const auto& row : std::get<Matrix>(value)) {
      auto& labels = member.emplace_back();
      for (const double number : row) labels.push_back(static_cast<std::int64_t>(std::clamp(number, -1e15, 1e15)));
    }
  } else if constexpr (std::is_same_v<T, std::vector<LengthChange>>) {
    member.clear();
    for (const auto& row : std::get<Matrix>(value)) {
      if (row.size() != 2) continue;
      member.push_back({static_cast<std::int64_t>(std::clamp(row[0], 0.0, 1e15)),
                        static_cast<std::int64_t>(std::clamp(row[1], 1.0, 1e15))});
    }
  } else {
    member = std::get<T>(value);
  }
}

/// The row that was added last, to be refined.
class FieldRow {
 public:
  explicit FieldRow(SpecField& field) : field_(field) {}
  /// Sets inclusive bounds; in a list they apply to every element.
  FieldRow& range(double minimum, double maximum, std::string_view unit = {}) {
    field_.minimum = minimum;
    field_.maximum = maximum;
    field_.unit = unit;
    return *this;
  }
  FieldRow& above(double minimum, double maximum, std::string_view unit = {}) {
    return field_.open_minimum = true, range(minimum, maximum, unit);
  }
  /// Makes a text member a choice of names.
  FieldRow& one_of(std::span<const std::string_view> names) {
    field_.type = FieldType::choice;
    field_.choices = names;
    return *this;
  }
  /// Makes a list of texts a list of such names.
  FieldRow& each_of(std::span<const std::string_view> names) { return field_.choices = names, *this; }
  /// Sets one note per choice, in order.
  FieldRow& notes(std::span<const std::string_view> notes) { return field_.choice_notes = notes, *this; }
  FieldRow& rows(std::string_view rows) { return field_.rows = rows, *this; }
  /// Sets the names in other tools: "system: name, name; system: name".
  FieldRow& elsewhere(std::string_view names) {
    const auto take = [](std::string_view& rest, std::string_view end) {
      const auto at = std::min(rest.find(end), rest.size());
      const std::string_view first = rest.substr(0, at);
      rest.remove_prefix(std::min(at + end.size(), rest.size()));
      return first;
    };
    while (!names.empty()) {
      std::string_view list = take(names, "; ");
      const std::string_view system = take(list, ": ");
      while (!list.empty()) field_.aliases.push_back({system, take(list, ", ")});
    }
    return *this;
  }
  /// Restricts the field to one dialect.
  FieldRow& of(Dialect dialect) {
    field_.dialect = dialect;
    return when([dialect](const RunSpec& spec) { return spec.accumulation.dialect == dialect; });
  }
  FieldRow& when(std::function<bool(const RunSpec&)> applies) { return field_.applies = std::move(applies), *this; }

 private:
  SpecField& field_;
};

const RunSpec& default_spec();

/// Returns the place of a member in a spec.
using MemberPlace = void* (*)(RunSpec&);

/// Access to a member of that type: reads and sets it. Most fields share it, which keeps the code per field small.
template <typename Member>
struct MemberAccess {
  MemberPlace place;

  static constexpr bool is_optional = IsOptional<Member>::value;

  Member& of(RunSpec& spec) const { return *static_cast<Member*>(place(spec)); }
  const Member& of(const RunSpec& spec) const { return of(const_cast<RunSpec&>(spec)); }

  SpecValue get(const RunSpec& spec) const {
    const Member& member = of(spec);
    if constexpr (is_optional)
      return member ? to_value(*member) : SpecValue();
    else
      return to_value(member);
  }
  void set(RunSpec& spec, const SpecValue& value) const {
    Member& member = of(spec);
    const bool left_out = std::holds_alternative<std::monostate>(value);
    if constexpr (is_optional) {
      if (left_out) return member.reset();
      from_value(member.emplace(), value);
    } else {
      if (left_out)
        member = of(default_spec());
      else
        from_value(member, value);
    }
  }
};

class FieldList {
 public:
  template <typename Access>
  FieldRow advanced(std::string_view key, Access access, std::string_view label, std::string_view help) {
    FieldRow row = add(key, access, label, help);
    fields.back().advanced = true;
    return row;
  }

  template <typename Access>
  FieldRow add(std::string_view key, Access access, std::string_view label, std::string_view help) {
    using Member = std::decay_t<decltype(access(std::declval<RunSpec&>()))>;
    SpecField& field = fields.emplace_back();
    field.key = key;
    field.label = label;
    field.help = help;
    fill<Member>(field, [](RunSpec& spec) -> void* { return &Access{}(spec); });
    return FieldRow(field);
  }

  std::vector<SpecField> fields;

 private:
  template <typename Member>
  static void fill(SpecField& field, MemberPlace place) {
    const MemberAccess<Member> access{place};
    field.applies = [](const RunSpec&) { return true; };
    field.get = [access](const RunSpec& spec) { return access.get(spec); };
    field.set = [access](RunSpec& spec, const SpecValue& value) { access.set(spec, value); };
    if constexpr (IsOptional<Member>::value) {
      field.optional = true;
      fill_type<typename Member::value_type>(field);
    } else {
      fill_type<Member>(field);
    }
  }

  template <typename T>
  static void fill_type(SpecField& field) {
    field.type = type_of<T>();
    if constexpr (std::is_enum_v<T>) field.choices = choice_names<T>();
  }
};

void add_model_fields(FieldList& list);
void add_data_fields(FieldList& list);
void add_optimizer_fields(FieldList& list);
void add_schedule_fields(FieldList& list);
void add_accumulation_fields(FieldList& list);
void add_knob_fields(FieldList& list);
void add_dialect_fields(FieldList& list);
/// Adds the fields of [parallel] to [teaching].
void add_run_fields(FieldList& list);
void add_megatron_fields(FieldList& list);

}  // namespace accrue::field_detail

/// A key and the member of RunSpec that it sets; const if the spec is.
#define ACCRUE_KEY(key, path)    \
  key, [](auto& spec) -> auto& { \
    return spec.path;            \
  }
#define ACCRUE_FIELD(path) ACCRUE_KEY(#path, path)
#define ACCRUE_KNOB_FIELD(name) ACCRUE_KEY("accumulation." #name, accumulation.knobs.name)
