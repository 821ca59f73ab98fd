// SPDX-License-Identifier: GPL-3.0-or-later
// Runs in groups: those that differ by their seed alone, or those that share the value of a key. A group has a mean and
// a spread of its final losses.
#pragma once

#include <QList>
#include <QString>
#include <QStringList>
#include <vector>

#include "accrue/run/sample_spread.h"

namespace accrue::ui {

class RunSeries;

struct RunGroup {
  QString name;  ///< the key's value, or what tells the group from the others
  QList<RunSeries*> runs;
  SampleSpread spread;  ///< of the losses of their last updates
};

/// Of runs that have finished. Without a key, runs that differ by their seed alone are a group; the same seed trained
/// again is no further sample.
std::vector<RunGroup> runGroups(const QList<RunSeries*>& runs, const QString& key = {});
/// The keys, apart from name and seed, in which the runs differ.
QStringList groupKeys(const QList<RunSeries*>& runs);
/// "Is this difference noise?", answered with its numbers.
QString noiseSentence(const RunGroup& first, const RunGroup& second);

}  // namespace accrue::ui
