// SPDX-License-Identifier: Apache-2.0
// Tests that are a rank body each: the table names what it shows, in words, and makes the rows of one test function.
//
//   const RankCases cases = {{"the mean divides by the ranks", means_over_ranks}, ...};
//   ...
//   void on_ranks_data() { rank_rows(cases); }
//   void on_ranks() { run_rank_row(); }
//   ...
//   ACCRUE_RANK_TEST_MAIN(TestDataParallel, (bodies_of(cases)))
#pragma once

#include <QString>
#include <QTest>
#include <string>
#include <vector>

#include "support/rank_harness.h"

namespace accrue::test {

struct RankCase {
  const char* words;
  RankBody body;
  std::vector<std::string> arguments = {""};  ///< one run with each; may be of several words
  std::vector<int> worlds = {2};              ///< and in each
};
using RankCases = std::vector<RankCase>;

/// `bodies`: those of other test functions.
inline std::vector<NamedRankBody> bodies_of(const RankCases& cases, std::vector<NamedRankBody> bodies = {}) {
  for (const RankCase& each : cases) bodies.push_back({each.words, each.body});
  return bodies;
}

inline void rank_rows(const RankCases& cases) {
  QTest::addColumn<QString>("body");
  QTest::addColumn<int>("world");
  QTest::addColumn<QString>("argument");
  for (const RankCase& each : cases)
    for (const int world : each.worlds)
      for (const std::string& argument : each.arguments)
        QTest::addRow("%s (%d ranks%s%s)", each.words, world, argument.empty() ? "" : ", ", argument.c_str())
            << QString::fromUtf8(each.words) << world << QString::fromStdString(argument);
}

/// All ranks end well and report the same.
inline void run_rank_row() {
  QFETCH(QString, body);
  QFETCH(int, world);
  QFETCH(QString, argument);
  std::vector<std::string> arguments;
  for (const QString& word : argument.split(u' ', Qt::SkipEmptyParts)) arguments.push_back(word.toStdString());
  const auto outcomes = RankGroup(body.toStdString(), world, {.arguments = arguments}).finish(90s);
  ACCRUE_ALL_RANKS_OK(outcomes);
  for (const RankOutcome& each : outcomes) QCOMPARE(each.lines, outcomes[0].lines);
}

}  // namespace accrue::test
