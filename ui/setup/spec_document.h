// SPDX-License-Identifier: GPL-3.0-or-later
// SpecDocument: the one RunSpec that is being edited, with its file and its history of edits.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QTimer>
#include <QUndoStack>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/plugin_facts.h"
#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/sample_lock.h"
#include "accrue/run/spec_fields.h"

namespace accrue::ui {

/// Keys that keep their values while a lesson is open.
struct LockedKeys {
  QString holder;                                   ///< who keeps them: "Lesson 1"
  QString way_out;                                  ///< what frees them: "Leave the lesson to change it."
  std::map<std::string, QString, std::less<>> why;  ///< key and why it stays, as a sentence
};

/// A document as it was at one time.
struct SetUp {
  RunSpec spec;
  quint64 document = 0;                   ///< SpecDocument::opened()
  std::vector<PluginRecord> libraries{};  ///< that its ranks load
};

/// Thread: GUI.
class SpecDocument : public QObject {
  Q_OBJECT

 public:
  /// Successive edits of one field within this time become one undo step.
  static constexpr qint64 merge_ms = 300;
  /// After a pause of this length in typing, the sample lock follows the number that is there.
  static constexpr int pause_ms = 700;

  explicit SpecDocument(QObject* parent = nullptr);

  const RunSpec& spec() const { return spec_; }
  /// Counts every change of the spec; results for an older revision are out of date.
  quint64 revision() const { return revision_; }
  /// Counts the documents that took another's place: presets, files, specs of runs and lessons.
  quint64 opened() const { return opened_; }
  /// Where relative paths of the spec start: the file's folder, the current folder before the first save.
  std::filesystem::path baseDir() const;
  QString filePath() const { return file_path_; }
  /// File name, or the name of an unsaved spec.
  QString displayName() const;
  /// The values differ from those that were saved or opened, however they came to.
  bool isModified() const { return modified_; }
  QUndoStack* undoStack() { return &undo_; }

  /// One undoable edit. Values of the length group (updates, epochs, samples, tokens) clear each other, so that exactly
  /// one of them is set. False: it would change a locked key. Then the spec stays, editRefused() says why, and
  /// changed() lets every editor show the spec again.
  bool setField(const SpecField& field, const SpecValue& value);
  /// The same with a value written as for --set; returns false and changes nothing if it does not fit.
  bool setFieldText(const SpecField& field, const QString& text, QString* problem = nullptr);
  /// As setField() with a value that is still being typed: until endTyping() it is one undo step with what follows,
  /// however long that takes.
  bool typeField(const SpecField& field, const SpecValue& value);
  void endTyping();
  /// Takes back what is being typed.
  void cancelTyping();
  /// The same while typing goes on: the text of this field is no value any more, so the beginning of it is none either.
  void takeBackTyped(const SpecField& field);

  /// Several fields at once as one undoable edit, e.g. the spec under another dialect; text names it in the menu.
  /// False as for setField().
  bool setSpec(const RunSpec& spec, const QString& text);

  /// From now on no edit changes these keys. They belong to the document: another one has none.
  void lockKeys(LockedKeys keys);
  void unlockKeys() { lockKeys({}); }
  /// An empty holder: no one keeps any.
  const LockedKeys& lockedKeys() const { return locked_; }

  /// While there is a lock, an edit of N, the micro-batch or the ranks is followed by what keeps the samples that the
  /// spec has now; see sample_lock.h. A number that is being typed is followed once it is whole: at endTyping(), or
  /// after a pause. An edit that nothing can follow stands, and the samples differ from samplesKept().
  void setSampleLock(SampleLock lock);
  SampleLock sampleLock() const { return lock_; }
  /// 0 = none are.
  std::int64_t samplesKept() const { return samples_kept_; }
  /// A number is being typed, and what keeps the samples has not followed it yet.
  bool isFollowDue() const { return follow_.isActive(); }
  /// Key of the factor that was edited last; empty before.
  QString lastFactor() const { return last_factor_; }

  /// A new, unsaved document. Clears the history.
  void reset(RunSpec spec, const QString& name, const std::filesystem::path& base_dir = {});
  /// From now on the values as they are count as unedited. Clears the history.
  void acceptEdits();
  /// Restores unsaved edits of a file (empty: never saved); the document is modified from the start. Clears the
  /// history.
  void restore(RunSpec spec, const QString& name, const std::filesystem::path& base_dir, const QString& file_path);
  /// Replaces the document by a file's. On error the document stays as it was, and the findings say why.
  std::vector<Finding> open(const QString& path);
  Result<void> save();
  Result<void> saveAs(const QString& path);

 Q_SIGNALS:
  /// key is empty if more than one field may have changed.
  void changed(const QString& key);
  void fileChanged();
  void modifiedChanged(bool modified);
  /// There is another lock, or what keeps the samples has followed what was typed.
  void sampleLockChanged();
  void lockedKeysChanged();
  /// Who keeps which key, why, and what frees it.
  void editRefused(const QString& sentence);

 private:
  friend class EditCommand;
  bool edit(const SpecField& field, const SpecValue& value, quint64 typing);
  bool refuses(const RunSpec& after);
  void applySpec(const RunSpec& spec, const QString& key);
  bool isTypedLast() const;
  void followTyped();
  /// `saved`: what its edits are compared with; none: it is modified, whatever its values.
  void takeOther(const RunSpec& spec, const std::optional<RunSpec>& saved);
  void compareWithSaved();

  RunSpec spec_;
  std::optional<RunSpec> saved_ = spec_;
  bool modified_ = false;
  QUndoStack undo_;
  QString file_path_;
  QString name_;
  std::filesystem::path base_dir_;
  quint64 revision_ = 0;
  quint64 opened_ = 0;
  quint64 typing_ = 1;  ///< counts what was typed
  SampleLock lock_ = SampleLock::none;
  std::int64_t samples_kept_ = 0;
  QString last_factor_;
  QTimer follow_;
  LockedKeys locked_;
};

/// The keys for the length of a run; a spec has exactly one of them.
bool isLengthKey(std::string_view key);

}  // namespace accrue::ui
