// SPDX-License-Identifier: Apache-2.0
// The text scenarios as values: see README.md beside the *.run files.
#pragma once

#include <QString>
#include <QStringList>
#include <QVector>
#include <utility>

struct ScenarioCase {
  QString file;
  QString words;
  QString spec_toml;
  QString spec_file;  ///< file of the text; empty if the scenario contains it
  QStringList sets;
  QVector<std::pair<QString, QString>> expectations;  ///< directive, rest of the line
};

/// Every case of every *.run file in the folder. Fails the program with file and line if one does not parse.
QVector<ScenarioCase> load_scenarios(const QString& folder);
