// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "accrue/run/megatron/plugin_facts.h"
#include "kit/job_runner.h"

class QDialogButtonBox;
class QLabel;
class QPushButton;
class QTableWidget;

namespace accrue::ui {

class FileDialogs;
class LibraryProbe;

/// Purpose of a choice of plug-in libraries.
struct LibraryQuestion {
  std::vector<PluginRecord> libraries;  ///< initial choice
  /// Returns what is missing with these libraries, as a sentence; empty: nothing.
  std::function<QString(const std::vector<PluginFacts>&)> missing;
  bool whole = false;  ///< the choice is possible only if nothing is missing
};

/// Choice of the plug-in libraries that ranks load: what each registers, its author, and what loads it. accrue-rank
/// describes them in the background; no library is loaded here.
class LibrariesDialog : public QDialog {
  Q_OBJECT

 public:
  LibrariesDialog(const std::string& rank_program, LibraryQuestion question, FileDialogs* dialogs, QWidget* parent);

  /// Descriptions of the libraries.
  const std::vector<PluginFacts>& described() const { return facts_; }

 private:
  void add();
  void remove();
  void renew();
  void ask();
  void show(const std::vector<PluginFacts>& facts);
  void showButtons();

  LibraryQuestion question_;
  FileDialogs* dialogs_;
  std::shared_ptr<LibraryProbe> probe_;
  std::vector<PluginRecord> rows_;
  std::vector<PluginFacts> facts_;  ///< of the rows, once described
  quint64 request_ = 0;
  QTableWidget* table_;
  QLabel* missing_;
  QPushButton* add_;
  QPushButton* remove_;
  QPushButton* renew_;
  QDialogButtonBox* buttons_;
  JobRunner jobs_;
};

}  // namespace accrue::ui
