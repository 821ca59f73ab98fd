// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/run_name.h"

#include <QCoreApplication>
#include <QHash>
#include <algorithm>
#include <set>

#include "accrue/run/spec_fields.h"

namespace accrue::ui {

namespace {

/// More settings would be a table, which the runs table is.
constexpr std::size_t mostSettings = 3;
constexpr qsizetype longestValue = 24;

QString tr(const char* text) {
  return QCoreApplication::translate("RunName", text);
}

QString utf8(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// "Learning rate" within a sentence; "ZeRO" stays.
QString withinSentence(QString label) {
  if (label.size() > 1 && label[1].isLower()) label[0] = label[0].toLower();
  return label;
}

QString shortened(const QString& value) {
  return value.size() > longestValue ? value.left(longestValue - 1) + QStringLiteral("…") : value;
}

QString equation(const accrue::SpecField& field, const QString& value) {
  const QString label = field.key == "accumulation.steps" ? QStringLiteral("N") : withinSentence(utf8(field.label));
  //: A setting and its value: "N = 16"
  return tr("%1 = %2").arg(label, value);
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
  QString value = utf8(accrue::format_value(field->get(spec)));
  value.remove(QLatin1Char('"'));
  return value.isEmpty() ? tr("left out") : value;
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
  QHash<QString, std::vector<const accrue::RunSpec*>> specs;
  QHash<QString, int> count;
  for (const NamedSpec& run : runs) {
    specs[run.name].push_back(run.spec);
    ++count[run.name];
  }
  QStringList names;
  for (const NamedSpec& run : runs) {
    QStringList parts{run.name};
    if (count[run.name] > 1 && run.spec != nullptr) {
      const std::vector<std::string> keys = differingKeys(specs[run.name]);
      for (std::size_t i = 0; i < std::min(keys.size(), mostSettings); ++i) parts << settingText(*run.spec, keys[i]);
    }
    names << parts.join(QStringLiteral(", "));
  }
  QHash<QString, int> seen;
  QStringList distinct;
  for (const QString& name : names) {
    const int number = ++seen[name];
    //: A run's name, and a number where several have it
    distinct << (number == 1 ? name : tr("%1 (%2)").arg(name).arg(number));
  }
  return distinct;
}

}  // namespace accrue::ui
