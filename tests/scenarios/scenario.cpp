// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <QDir>
#include <QFile>
#include <QSet>

namespace {

const QSet<QString> kDirectives = {"letters", "updates",    "sizes",  "divisors", "schedule",
                                   "lr",      "arithmetic", "error",  "warning",  "note",
                                   "fix",     "weights",    "losses", "one_rank", "branch"};

void load_file(const QString& path, QVector<ScenarioCase>& cases) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(path));
  const QStringList lines = QString::fromUtf8(file.readAll()).split('\n');
  QString spec;
  bool in_spec = false;
  for (int number = 0; number < lines.size(); ++number) {
    const QString line = lines[number].trimmed();
    const QString word = line.section(' ', 0, 0);
    const QString rest = line.section(' ', 1).trimmed();
    if (in_spec) {
      in_spec = line != "end";
      if (in_spec) spec += lines[number] + '\n';
    } else if (line.isEmpty() || line.startsWith('#')) {
      continue;
    } else if (line == "spec") {
      in_spec = true;
      spec.clear();
    } else if (word == "case") {
      cases.push_back({QFileInfo(path).fileName(), rest, spec, {}, {}});
    } else if (word == "set" && !cases.isEmpty()) {
      cases.last().sets << rest;
    } else if (kDirectives.contains(word) && !cases.isEmpty()) {
      cases.last().expectations.push_back({word, rest});
    } else {
      qFatal("%s:%d: not a scenario line: %s", qPrintable(path), number + 1, qPrintable(line));
    }
  }
}

}  // namespace

QVector<ScenarioCase> load_scenarios(const QString& folder) {
  QVector<ScenarioCase> cases;
  const QDir dir(folder);
  for (const QString& name : dir.entryList({"*.run"}, QDir::Files, QDir::Name)) load_file(dir.filePath(name), cases);
  return cases;
}
