// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_name.h"

#include <QHash>
#include <QRegularExpression>
#include <QSet>
#include <algorithm>
#include <map>
#include <set>

#include "accrue/run/fields/spec_fields.h"
#include "kit/text.h"
#include "run_text.h"

namespace accrue::ui {

namespace {

/// More settings belong in a table, such as the runs table.
constexpr std::size_t mostSettings = 3;
constexpr qsizetype longestValue = 24;

QString utf8(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// Adapts a label for the inside of a sentence: "Learning rate" loses its capital; "ZeRO" stays.
QString withinSentence(QString label) {
  if (label.size() > 1 && label[1].isLower()) label[0] = label[0].toLower();
  return label;
}

/// Number of elements of each list inside a written list, none if it holds no lists; and its own elements.
struct ListShape {
  qsizetype elements = 0;
  std::vector<qsizetype> lengths;
};

ListShape shapeOf(const QString& list) {
  ListShape shape;
  int depth = 0;
  for (const QChar c : list) {
    if (c == QLatin1Char('[') && ++depth == 2) shape.lengths.push_back(1);
    if (c == QLatin1Char(']')) --depth;
    if (c != QLatin1Char(',')) continue;
    if (depth == 1) ++shape.elements;
    if (depth == 2) ++shape.lengths.back();
  }
  ++shape.elements;
  return shape;
}

/// Describes a long list in words: "8 values", "lengths 1 to 8".
QString listText(const QString& list) {
  const auto [elements, lengths] = shapeOf(list);
  if (lengths.empty()) return tr("%1 values").arg(elements);
  const auto [least, most] = std::ranges::minmax(lengths);
  //: A list of lists: how many elements its shortest and its longest list have
  return least == most ? tr("%1 lists of %2").arg(elements).arg(most) : tr("lengths %1 to %2").arg(least).arg(most);
}

/// Keeps the end, in which paths differ.
QString shortened(const QString& value) {
  if (value.size() <= longestValue) return value;
  if (value.startsWith(QLatin1Char('['))) return listText(value);
  constexpr qsizetype half = (longestValue - 1) / 2;
  return value.left(half) + QStringLiteral("…") + value.right(half);
}

/// The value as a spec file writes it, without quotation marks; empty if the key is missing.
QString writtenValue(const accrue::RunSpec& spec, const std::string& key) {
  QString value = utf8(accrue::format_value(accrue::find_field(key)->get(spec)));
  return value.remove(QLatin1Char('"'));
}

QString equation(const accrue::SpecField& field, const QString& value) {
  const QString label = field.key == "accumulation.steps" ? QStringLiteral("N") : withinSentence(utf8(field.label));
  //: A setting and its value: "N = 16"
  return tr("%1 = %2").arg(label, inSwitchWords(&field, value));
}

using Members = std::vector<std::size_t>;

/// Groups runs by the text of a key in their names, in order of first appearance.
std::vector<Members> byValue(const std::vector<NamedSpec>& runs, const Members& members, const std::string& key) {
  std::vector<Members> groups;
  QHash<QString, std::size_t> place;
  for (const std::size_t member : members) {
    const QString value = shortened(settingValue(*runs[member].spec, key));
    if (!place.contains(value)) {
      place.insert(value, groups.size());
      groups.emplace_back();
    }
    groups[place.value(value)].push_back(member);
  }
  return groups;
}

QString numbered(const QString& name, int number) {
  //: A run's name, and a number where several have it
  return tr("%1 (%2)").arg(name).arg(number);
}

/// Whether the text is a numbered form, such as "Demo (2)" of "Demo".
bool isNumbered(const QString& text, const QString& name) {
  static const QRegularExpression number(QStringLiteral("^ \\(\\d+\\)$"));
  return text.startsWith(name) && number.match(text.mid(name.size())).hasMatch();
}

/// Adds to each member the settings that distinguish it from the others: first the key with the most values.
void tellApart(const std::vector<NamedSpec>& runs, Members members, std::size_t most,
               std::vector<QStringList>& settings) {
  std::erase_if(members, [&runs](std::size_t member) { return runs[member].spec == nullptr; });
  if (members.size() < 2 || most == 0) return;
  std::vector<const accrue::RunSpec*> specs;
  for (const std::size_t member : members) specs.push_back(runs[member].spec);
  std::string best;
  std::vector<Members> groups;
  for (const std::string& key : differingKeys(specs)) {
    std::vector<Members> candidate = byValue(runs, members, key);
    if (candidate.size() < 2) continue;
    if (!groups.empty() && best != "run.seed" && (key == "run.seed" || candidate.size() <= groups.size())) continue;
    best = key;
    groups = std::move(candidate);
  }
  for (const Members& group : groups) {
    // A run without the key adds nothing: the others' names have the difference.
    if (!writtenValue(*runs[group.front()].spec, best).isEmpty())
      for (const std::size_t member : group) settings[member] << settingText(*runs[member].spec, best);
    tellApart(runs, group, most - 1, settings);
  }
}

}  // namespace

std::vector<std::string> differingKeys(const std::vector<const accrue::RunSpec*>& specs) {
  std::set<std::string> keys;
  const accrue::RunSpec* first = nullptr;
  for (const accrue::RunSpec* spec : specs) {
    if (spec == nullptr) continue;
    if (first == nullptr)
      first = spec;
    else
      for (const accrue::SpecDifference& difference : accrue::diff_specs(*first, *spec)) keys.insert(difference.key);
  }
  keys.erase("run.name");
  std::vector<std::string> ordered;
  for (const accrue::SpecField& field : accrue::spec_fields())
    if (keys.contains(std::string(field.key))) ordered.emplace_back(field.key);
  return ordered;
}

QString settingValue(const accrue::RunSpec& spec, const std::string& key) {
  const accrue::SpecField* field = accrue::find_field(key);
  if (field == nullptr) return {};
  const QString value = writtenValue(spec, key);
  if (!value.isEmpty()) return value;
  // The value derived from the dialect or another key.
  const accrue::SpecValue derived = field->derived ? field->derived(spec) : accrue::SpecValue();
  if (std::holds_alternative<std::monostate>(derived)) return tr("not set");
  return utf8(accrue::format_value(derived)).remove(QLatin1Char('"'));
}

QString settingText(const accrue::RunSpec& spec, const std::string& key) {
  const accrue::SpecField* field = accrue::find_field(key);
  if (field == nullptr) return {};
  return equation(*field, shortened(settingValue(spec, key)));
}

QString differencesText(const std::vector<NamedSpec>& runs) {
  std::vector<const accrue::RunSpec*> specs;
  for (const NamedSpec& run : runs)
    if (run.spec != nullptr) specs.push_back(run.spec);
  if (specs.empty()) return {};
  QStringList parts;
  if (specs.size() == 1) {
    for (const char* key : {"accumulation.steps", "accumulation.micro_batch", "parallel.data"})
      parts << settingText(*specs.front(), key);
    return parts.join(QStringLiteral("; "));
  }
  for (const std::string& key : differingKeys(specs)) {
    QStringList values;
    for (const accrue::RunSpec* spec : specs)
      if (const QString value = shortened(settingValue(*spec, key)); !values.contains(value)) values << value;
    parts << equation(*accrue::find_field(key), values.join(QStringLiteral(", ")));
  }
  return parts.join(QStringLiteral("; "));
}

QStringList distinctNames(const std::vector<NamedSpec>& runs) {
  std::map<QString, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < runs.size(); ++i) alike[runs[i].name].push_back(i);
  std::vector<QStringList> settings(runs.size());
  for (const auto& [name, members] : alike) tellApart(runs, members, mostSettings, settings);
  QStringList distinct;
  QSet<QString> taken;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const NamedSpec& run = runs[i];
    // A number is not informative; settings that distinguish the run replace it, as for "Demo" itself.
    const bool stays = settings[i].isEmpty() || !isNumbered(run.kept, run.name);
    const QString kept = stays ? run.kept : QString();
    distinct << (taken.contains(kept) ? QString() : kept);
    if (!kept.isEmpty()) taken.insert(kept);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    QString& own = distinct[static_cast<qsizetype>(i)];
    if (!own.isEmpty()) continue;
    const QString name = (QStringList(runs[i].name) + settings[i]).join(QStringLiteral(", "));
    own = name;
    for (int number = 2; taken.contains(own); ++number) own = numbered(name, number);
    taken.insert(own);
  }
  return distinct;
}

}  // namespace accrue::ui
