// SPDX-License-Identifier: GPL-3.0-or-later
// What runs are called where several are shown: by name, and where names agree by what differs ("Demo, N = 16").
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue::ui {

/// A run as far as its name goes.
struct NamedSpec {
  QString name;
  const accrue::RunSpec* spec = nullptr;  ///< nullptr where it is not known
  QString kept{};                         ///< what it was called before among others; empty: not yet
};

/// One name for each, in their order. Runs whose names agree get settings in which they differ, as few as tell them
/// apart and three at most, the seed last; a run's own settings only: what it leaves out, its name does. Where these
/// agree, too, a number: "Demo (2)". What a run was called before it stays, unless an earlier run is called so, or it
/// is such a number and settings tell the run apart by now.
QStringList distinctNames(const std::vector<NamedSpec>& runs);

/// Dotted keys in which the specs differ, in the order of a spec file; the run's name is none of them.
std::vector<std::string> differingKeys(const std::vector<const accrue::RunSpec*>& specs);
/// A setting's value as text, whole; where the spec leaves it out, what follows from others. Empty for an unknown key.
QString settingValue(const accrue::RunSpec& spec, const std::string& key);
/// "N = 16", "learning rate = 0.001": a setting of a spec in a name or a caption; empty for an unknown key.
QString settingText(const accrue::RunSpec& spec, const std::string& key);

/// In which settings runs differ and in what: "N = 4, 16; learning rate = 0.001, 0.01". Of one run what it is: its N,
/// micro-batch and ranks.
QString differencesText(const std::vector<NamedSpec>& runs);

}  // namespace accrue::ui
