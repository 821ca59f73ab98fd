// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <QDir>
#include <QFile>
#include <QSet>

#include "support/places.h"

namespace {

const QSet<QString> kDirectives = {"letters",    "updates",  "sizes",   "divisors", "schedule",  "lr",
                                   "arithmetic", "error",    "warning", "note",     "fix",       "weights",
                                   "losses",     "one_rank", "branch",  "learns",   "coincides", "parts"};

QString text_of(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(path));
  return QString::fromUtf8(file.readAll());
}

void load_file(const QString& path, QVector<ScenarioCase>& cases) {
  const QStringList lines = text_of(path).split('\n');
  QString spec, spec_file;
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
      spec_file.clear();
    } else if (word == "spec") {
      spec_file = accrue::test::sourcePath(qPrintable(rest));
      spec = text_of(spec_file);
    } else if (word == "case") {
      cases.push_back({QFileInfo(path).fileName(), rest, spec, spec_file, {}, {}});
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
