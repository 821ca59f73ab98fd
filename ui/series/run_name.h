// SPDX-License-Identifier: GPL-3.0-or-later
// Names of runs in a list: by name, and for equal names by their differences ("Demo, N = 16").
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "accrue/run/fields/spec.h"

namespace accrue::ui {

/// Facts about a run for its name.
struct NamedSpec {
  QString name;
  const accrue::RunSpec* spec = nullptr;  ///< nullptr if unknown
  QString kept{};                         ///< earlier name among others; empty: none
};

/// Returns one name for each, in order. Runs with equal names get differing settings, as few as distinguish them and at
/// most three, the seed last. Only settings that a run's own spec sets are used. If these are equal too, a number is
/// added: "Demo (2)". A run keeps an earlier name, unless an earlier run has it, or it is a number and settings can now
/// distinguish the run.
QStringList distinctNames(const std::vector<NamedSpec>& runs);

/// Dotted keys in which the specs differ, in file order; without the run's name.
std::vector<std::string> differingKeys(const std::vector<const accrue::RunSpec*>& specs);
/// A setting's value as full text; if the spec omits it, the derived value. Empty for an unknown key.
QString settingValue(const accrue::RunSpec& spec, const std::string& key);
/// A setting of a spec in a name or a caption: "N = 16", "learning rate = 0.001"; empty for an unknown key.
QString settingText(const accrue::RunSpec& spec, const std::string& key);

/// Settings in which runs differ, with the values: "N = 4, 16; learning rate = 0.001, 0.01". For one run its N,
/// micro-batch and ranks.
QString differencesText(const std::vector<NamedSpec>& runs);

}  // namespace accrue::ui
