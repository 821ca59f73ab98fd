// SPDX-License-Identifier: GPL-3.0-or-later
#include "library_desk.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/preflight/run_order.h"
#include "document/findings_model.h"
#include "document/library_probe.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "document/spec_files.h"
#include "kit/text.h"
#include "libraries_dialog.h"
#include "library_memory.h"
#include "runs/run_library.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

/// Sentence about a missing part, beside the list of libraries.
QString sentenceOf(const Finding& finding) {
  const SpecField* field = find_field(finding.key);
  if (!field) return findingSentence(finding);
  //: %1 is a field of [megatron], %2 the name in quotation marks that the spec gives it
  const QString text = LibraryDesk::tr("No library here registers %1 %2.")
                           .arg(fromView(field->label), QString::fromStdString(finding.found));
  return finding.fix_value
             ? LibraryDesk::tr("%1 Did you mean \u201C%2\u201D?").arg(text, QString::fromStdString(*finding.fix_value))
             : text;
}

}  // namespace

LibraryDesk::LibraryDesk(const Parts& parts)
    : QObject(parts.window),
      parts_(parts),
      memory_(new LibraryMemory(parts.document, parts.preflight, parts.settings, this)) {
  connect(parts_.control, &RunControl::librariesMissed, this, &LibraryDesk::offer);
  connect(parts_.files, &SpecFiles::runTaken, this, &LibraryDesk::takeRecorded);
}

void LibraryDesk::choose() {
  const auto missing = [document = parts_.document](std::vector<PluginFacts> libraries) {
    if (!namesLibraries(document->spec())) return tr("The spec names nothing of a library, so none is loaded.");
    std::erase_if(libraries, [](const PluginFacts& library) { return !library.error.empty(); });  // its row says so
    QStringList sentences;
    for (const Finding& finding : check_plugins(document->spec().megatron, libraries)) sentences << sentenceOf(finding);
    return sentences.join(QLatin1Char('\n'));
  };
  open({parts_.preflight->chosenLibraries(), missing}, [this](std::vector<PluginFacts> chosen) {
    std::erase_if(chosen,
                  [](const PluginFacts& library) { return library.sha256.empty(); });  // the file does not exist
    parts_.preflight->chooseLibraries(records_of(chosen));
  });
}

void LibraryDesk::open(LibraryQuestion question, Taken taken) {
  if (dialog_) return dialog_->raise();
  dialog_ = new LibrariesDialog(rankProgram(parts_.control->bridgeOptions()), std::move(question), parts_.dialogs,
                                parts_.window);
  dialog_->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog_, &QDialog::accepted, this, [this, taken = std::move(taken)] { taken(dialog_->described()); });
  dialog_->open();
}

void LibraryDesk::offer(const QString& folder, const std::vector<PluginRecord>& recorded, const Error& error,
                        GoOn wanted) {
  parts_.bar->post({QStringLiteral("command"), RunState::failed, QString::fromStdString(error.text()),
                    tr("Choose plug-in libraries\u2026"),
                    [this, folder, recorded, wanted] { chooseAgain(folder, recorded, wanted); }});
}

void LibraryDesk::chooseAgain(const QString& folder, const std::vector<PluginRecord>& recorded, GoOn wanted) {
  const auto missing = [recorded](const std::vector<PluginFacts>& libraries) {
    QStringList gone;
    for (const PluginRecord& each : recorded)
      if (std::ranges::none_of(libraries, [&each](const PluginFacts& library) {
            return library.error.empty() && library.sha256 == each.sha256;
          }))
        gone << tr("The run began with \u201C%1\u201D of SHA-256 %2, which is not among these.")
                    .arg(QString::fromStdString(each.name), QString::fromStdString(each.sha256));
    return gone.join(QLatin1Char('\n'));
  };
  open({recorded, missing, true}, [this, folder, wanted](std::vector<PluginFacts> chosen) {
    // The missing file may be beside the one that now has its contents.
    std::erase_if(chosen, [](const PluginFacts& library) { return !library.error.empty(); });
    if (wanted == GoOn::branch) {
      parts_.preflight->chooseLibraries(records_of(chosen));
      return parts_.control->branch(folder);
    }
    std::vector<std::string> places;
    for (const PluginFacts& library : chosen) places.push_back(library.file);
    parts_.control->resume(folder, places);
  });
}

/// Takes the libraries of its record if they are already trusted: the user chose them once, or trains with them here.
void LibraryDesk::takeRecorded(const RunSeries& run) {
  if (!run.spec() || !namesLibraries(*run.spec()) || parts_.library->isImported(run.folder())) return;
  const bool trains_here = parts_.control->run() == &run && parts_.control->hosting() != Hosting::none;
  jobs_.run(
      [plan = std::filesystem::path(run.folder().toStdString()) / "plan.json"] {
        auto order = read_run_order(plan);
        return order ? std::move(order->plugins) : std::vector<PluginRecord>();
      },
      [this, trains_here, opened = parts_.document->opened()](std::vector<PluginRecord> recorded) {
        if (opened != parts_.document->opened() || !parts_.preflight->chosenLibraries().empty()) return;
        if (trains_here || memory_->knows(recorded)) parts_.preflight->chooseLibraries(std::move(recorded));
      });
}

}  // namespace accrue::ui
