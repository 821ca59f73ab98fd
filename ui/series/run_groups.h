// SPDX-License-Identifier: GPL-3.0-or-later
// Groups of runs: those that differ only by seed, or those with the same value of a key. A group has a mean and a
// spread of its final losses.
#pragma once

#include <QList>
#include <QString>
#include <QStringList>
#include <vector>

#include "accrue/run/record/sample_spread.h"

namespace accrue::ui {

class RunSeries;

struct RunGroup {
  QString name;  ///< the key's value, or what distinguishes the group
  QList<RunSeries*> runs;
  SampleSpread spread;  ///< of the losses of the last updates
};

/// Groups finished runs. Without a key, runs that differ only by seed form a group; repeating a seed adds no sample.
std::vector<RunGroup> runGroups(const QList<RunSeries*>& runs, const QString& key = {});
/// Returns the keys, apart from name and seed, in which the runs differ.
QStringList groupKeys(const QList<RunSeries*>& runs);
/// Answers "Is this difference noise?" with its numbers.
QString noiseSentence(const RunGroup& first, const RunGroup& second);

}  // namespace accrue::ui
