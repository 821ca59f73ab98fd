// SPDX-License-Identifier: Apache-2.0
// Specs whose runs are long or large, as rows of settings: what is said of them before they begin must cost no more
// than for a small one.
#pragma once

#include <QTest>
#include <vector>

#include "accrue/run/fields/spec_io.h"

namespace accrue::test {

/// A spec from lines of --set, separated by semicolons.
inline RunSpec spec_of(const QString& settings) {
  RunSpec spec;
  for (const QString& line : settings.split(QLatin1Char(';'), Qt::SkipEmptyParts)) {
    std::vector<Finding> findings;
    set_field(spec, line.toStdString(), findings);
    if (!findings.empty()) qFatal("%s", findings.front().text().c_str());
  }
  return spec;
}

/// Column "settings": what spec_of() takes.
inline void addLongPlans() {
  QTest::addColumn<QString>("settings");
  const auto row = [](const char* name, const char* settings) { QTest::newRow(name) << settings; };
  row("short epochs, llm",
      "data.samples=40;accumulation.micro_batch=1;accumulation.steps=7;run.samples=100000000;"
      "accumulation.dialect=llm");
  row("short epochs, mmengine",
      "data.samples=40;accumulation.micro_batch=1;accumulation.steps=7;"
      "run.samples=100000000;accumulation.dialect=mmengine;schedule.kind=cosine;schedule.warmup=90000000");
  row("one batch an epoch",
      "data.samples=1;accumulation.micro_batch=1;accumulation.steps=999983;"
      "accumulation.tail=carry;run.samples=100000000");
  row("epochs that are filled up",
      "data.samples=41;accumulation.micro_batch=2;accumulation.steps=1048576;"
      "accumulation.tail=pad_repeat;run.samples=80000000");
  row("epochs that are dropped",
      "data.samples=41;accumulation.micro_batch=1;accumulation.steps=1048576;"
      "accumulation.dialect=colossalai;run.epochs=1000000");
  row("ranks whose batches differ",
      "data.samples=1000003;accumulation.micro_batch=1;parallel.data=7;"
      "accumulation.dialect=accelerate;schedule.kind=linear;schedule.total=10;run.samples=100000000");
  row("windows that grow",
      "data.samples=40;accumulation.micro_batch=1;accumulation.group_length=by_update;"
      "accumulation.length_schedule=[[1, 2], [1000000, 3]];run.updates=30000000");
  row("windows that grow with the samples",
      "data.samples=1003;accumulation.micro_batch=2;parallel.data=2;accumulation.steps=100000;"
      "accumulation.rampup=[4, 4, 90000000];schedule.clock=samples;schedule.kind=cosine;"
      "schedule.warmup_fraction=0.1;run.samples=100000000");
  row("windows that grow across epochs",
      "data.samples=40;accumulation.micro_batch=1;accumulation.dialect=llm;accumulation.steps=30001;"
      "accumulation.rampup=[1, 1, 99000000];run.samples=100000000");
  row("a search for what fits",
      "accumulation.group_length=memory_search;accumulation.memory_limit=128;"
      "accumulation.micro_batch=1000000;accumulation.steps=1000000;data.samples=1000000;model.dropout=0;"
      "run.updates=10");
  row("the widest mlp", "model.kind=mlp;model.inputs=915752;model.hidden=[524288];model.outputs=1;run.updates=3");
  row("the deepest gpt", "model.layers=1000;model.width=65536;model.heads=1024;model.vocabulary=4194304;run.updates=3");
}

}  // namespace accrue::test
