// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_groups.h"

#include <QCoreApplication>
#include <algorithm>
#include <set>

#include "accrue/run/fields/spec_fields.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "run_series.h"

namespace accrue::ui {

namespace {

struct RunGroupsText {
  Q_DECLARE_TR_FUNCTIONS(RunGroups)
};

bool isName(const std::string& key) {
  return key == "run.name" || key == "run.seed";
}

QString keyValue(const RunSeries& run, const SpecField& field) {
  QString text = QString::fromStdString(format_value(field.get(*run.spec())));
  return text.remove(QLatin1Char('"'));
}

/// Two specs that differ only by name and seed give the same result.
RunSpec withoutSeed(RunSpec spec) {
  spec.run.name.clear();
  spec.run.seed = 0;
  return spec;
}

QList<RunSeries*> endedOf(const QList<RunSeries*>& runs) {
  QList<RunSeries*> ended;
  for (RunSeries* run : runs)
    if (run->spec() && !run->isLive() && run->outcome().outcome == QLatin1String("finished")) ended.append(run);
  return ended;
}

std::vector<std::string> differingKeysOf(const QList<RunSeries*>& runs) {
  std::set<std::string> keys;
  for (const RunSeries* run : runs)
    for (const SpecDifference& difference : diff_specs(*runs.first()->spec(), *run->spec()))
      if (!isName(difference.key)) keys.insert(difference.key);
  std::vector<std::string> ordered;
  for (const SpecField& field : spec_fields())
    if (keys.contains(std::string(field.key))) ordered.emplace_back(field.key);
  return ordered;
}

void measure(std::vector<RunGroup>& groups) {
  for (RunGroup& group : groups) {
    std::vector<double> losses;
    for (const RunSeries* run : group.runs) losses.push_back(run->last().loss);
    group.spread = spread_of(losses);
  }
}

std::vector<RunGroup> groupsByKey(const QList<RunSeries*>& runs, const SpecField& field) {
  std::vector<RunGroup> groups;
  for (RunSeries* run : runs) {
    const QString value = keyValue(*run, field);
    auto group = std::ranges::find(groups, value, &RunGroup::name);
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}, {}});
    group->runs.append(run);
  }
  for (RunGroup& group : groups)
    group.name = group.name.isEmpty() ? RunGroupsText::tr("%1 left out").arg(fromView(field.label))
                                      : QStringLiteral("%1 %2").arg(fromView(field.label), group.name);
  return groups;
}

std::vector<RunGroup> groupsBySpec(const QList<RunSeries*>& runs) {
  std::vector<RunGroup> groups;
  for (RunSeries* run : runs) {
    const auto same = [run](const RunGroup& group) {
      return withoutSeed(*group.runs.first()->spec()) == withoutSeed(*run->spec());
    };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(groups.end(), RunGroup{});
    const auto seed = [](const RunSeries* of) { return of->spec()->run.seed; };
    if (std::ranges::find(group->runs, seed(run), seed) == group->runs.end()) group->runs.append(run);
  }
  // Groups are named by their differences, so only those with several seeds are kept.
  std::erase_if(groups, [](const RunGroup& group) { return group.runs.size() < 2; });
  QList<RunSeries*> one_of_each;
  for (const RunGroup& group : groups) one_of_each.append(group.runs.first());
  const std::vector<std::string> keys =
      one_of_each.size() > 1 ? differingKeysOf(one_of_each) : std::vector<std::string>();
  for (RunGroup& group : groups) {
    QStringList parts;
    for (const std::string& key : keys) {
      const SpecField* field = find_field(key);
      parts << QStringLiteral("%1 %2").arg(fromView(field->label), keyValue(*group.runs.first(), *field));
    }
    group.name = parts.isEmpty() ? group.runs.first()->givenName().section(QStringLiteral(", "), 0, 0)
                                 : parts.join(QStringLiteral(", "));
  }
  return groups;
}

}  // namespace

QStringList groupKeys(const QList<RunSeries*>& runs) {
  const QList<RunSeries*> ended = endedOf(runs);
  QStringList keys;
  if (ended.isEmpty()) return keys;
  for (const std::string& key : differingKeysOf(ended)) keys << QString::fromStdString(key);
  return keys;
}

std::vector<RunGroup> runGroups(const QList<RunSeries*>& runs, const QString& key) {
  const QList<RunSeries*> ended = endedOf(runs);
  const SpecField* field = key.isEmpty() ? nullptr : find_field(key.toStdString());
  std::vector<RunGroup> groups = field ? groupsByKey(ended, *field) : groupsBySpec(ended);
  measure(groups);
  return groups;
}

QString noiseSentence(const RunGroup& first, const RunGroup& second) {
  const auto difference = difference_of(first.spread, second.spread);
  if (!difference) return RunGroupsText::tr("At least two runs of each are needed to tell a difference from noise.");
  const QString what = RunGroupsText::tr("%1 has a mean loss of %2, %3 one of %4: a difference of %5 \u00B1 %6.")
                           .arg(first.name, valueText(first.spread.mean), second.name, valueText(second.spread.mean),
                                valueText(difference->difference, 3), valueText(difference->standard_error, 2));
  const QString chance = difference->chance < 0.001
                             ? RunGroupsText::tr("less than 0.1 %")
                             : QString::number(100.0 * difference->chance, 'g', 2) + QStringLiteral(" %");
  const QString numbers = RunGroupsText::tr("(Welch's test, %1 and %2 runs)")
                              .arg(QString::number(first.spread.count), QString::number(second.spread.count));
  if (difference->chance < noise_chance)
    return RunGroupsText::tr("%1 It is not noise: a difference this large would occur by chance in %2 of cases %3.")
        .arg(what, chance, numbers);
  return RunGroupsText::tr("%1 It may be noise: a difference this large would occur by chance in %2 of cases %3.")
      .arg(what, chance, numbers);
}

}  // namespace accrue::ui
