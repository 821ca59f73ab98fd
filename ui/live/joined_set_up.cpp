// SPDX-License-Identifier: GPL-3.0-or-later
#include "joined_set_up.h"

#include <QPointer>

#include "accrue/run/megatron/megatron_lowering.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "run_control.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto joined_id = "joined";

/// Ignores a run's name, which has no effect. A run's spec has derived values and the sizes of a library's data sets
/// written out; a document has not.
bool describeTheSame(RunSpec a, RunSpec b) {
  for (RunSpec* spec : {&a, &b}) {
    spec->run.name.clear();
    if (!spec->megatron.custom_megatron_datasets_provider_function) continue;
    spec->data.samples = DataSpec().samples;
    spec->data.validation_fraction = DataSpec().validation_fraction;
  }
  return without_lowered(a) == without_lowered(b);
}

}  // namespace

JoinedSetUp::JoinedSetUp(RunControl* control, SpecDocument* document, SpecFiles* files, MessageBar* bar,
                         QObject* parent)
    : QObject(parent), document_(document), files_(files), bar_(bar) {
  connect(control, &RunControl::joined, this, &JoinedSetUp::join);
  const auto withdraw = [this] { bar_->withdraw(QLatin1String(joined_id)); };
  connect(files_, &SpecFiles::documentOpened, this, withdraw);
  connect(control, &RunControl::runBegun, this, withdraw);
}

void JoinedSetUp::join(RunSeries* run) {
  if (!run->spec() || describeTheSame(*run->spec(), document_->spec())) return;
  if (!document_->isModified()) {
    files_->load(*run);
    return;
  }
  bar_->post({QLatin1String(joined_id), RunState::paused,
              tr("The set-up shows %1, which has unsaved edits; the run is %2, with another spec")
                  .arg(document_->displayName(), run->name()),
              tr("Load the run's spec"), [this, run = QPointer<RunSeries>(run)] {
                if (run) files_->load(*run);
              }});
}

}  // namespace accrue::ui
