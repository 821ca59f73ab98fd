// SPDX-License-Identifier: GPL-3.0-or-later
// SpecDocument: the RunSpec being edited, with its file and its history of edits.
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

#include "accrue/run/base/result.h"
#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/sample_lock.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/plugin_facts.h"

namespace accrue::ui {

/// Keys that keep their values while a lesson is open.
struct LockedKeys {
  QString holder;                                   ///< holder of the lock: "Lesson 1"
  QString way_out;                                  ///< way to unlock: "Leave the lesson to change it."
  std::map<std::string, QString, std::less<>> why;  ///< key and reason, as a sentence
};

/// State of a document at one time.
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
  /// After a typing pause of this length, the sample lock adjusts to the number.
  static constexpr int pause_ms = 700;

  explicit SpecDocument(QObject* parent = nullptr);

  const RunSpec& spec() const { return spec_; }
  /// Counts every change of the spec; results for an older revision are outdated.
  quint64 revision() const { return revision_; }
  /// Counts replacements of the document: presets, files, specs of runs and lessons.
  quint64 opened() const { return opened_; }
  /// Base of relative paths in the spec: the file's folder, or the current folder before the first save.
  std::filesystem::path baseDir() const;
  QString filePath() const { return file_path_; }
  /// File name, or the name of an unsaved spec.
  QString displayName() const;
  /// Whether the values differ from those saved or opened, for any reason.
  bool isModified() const { return modified_; }
  QUndoStack* undoStack() { return &undo_; }

  /// Makes one undoable edit. Values of the length group (updates, epochs, samples, tokens) clear each other, so that
  /// exactly one of them is set. Returns false if it would change a locked key. The spec then stays, editRefused()
  /// gives the reason, and changed() makes every editor show the spec again.
  bool setField(const SpecField& field, const SpecValue& value);
  /// Does the same with a value written as for --set; returns false and changes nothing if it is invalid.
  bool setFieldText(const SpecField& field, const QString& text, QString* problem = nullptr);
  /// Does setField() with a value that is still being typed: until endTyping() it forms one undo step with the
  /// following ones, however long that takes.
  bool typeField(const SpecField& field, const SpecValue& value);
  void endTyping();
  /// Undoes the current typing.
  void cancelTyping();
  /// Does the same while typing continues: the field's text is no longer a value, so its beginning is not one either.
  void takeBackTyped(const SpecField& field);

  /// Makes one undoable edit of several fields, e.g. the spec under another dialect; text names it in the menu. Returns
  /// false as setField() does.
  bool setSpec(const RunSpec& spec, const QString& text);

  /// Prevents edits of these keys from now on. They belong to the document: another one has none.
  void lockKeys(LockedKeys keys);
  void unlockKeys() { lockKeys({}); }
  /// Empty holder: no lock.
  const LockedKeys& lockedKeys() const { return locked_; }

  /// While there is a lock, an edit of N, the micro-batch or the ranks is followed by a change that keeps the spec's
  /// current samples; see sample_lock.h. For a number that is being typed it follows at endTyping() or after a pause.
  /// If nothing can follow, the edit stays, and the samples differ from samplesKept().
  void setSampleLock(SampleLock lock);
  SampleLock sampleLock() const { return lock_; }
  /// 0: none.
  std::int64_t samplesKept() const { return samples_kept_; }
  /// Whether a number is being typed and the change that keeps the samples is pending.
  bool isFollowDue() const { return follow_.isActive(); }
  /// Key of the last edited factor; empty before.
  QString lastFactor() const { return last_factor_; }

  /// Makes a new, unsaved document. Clears the history.
  void reset(const RunSpec& spec, const QString& name, const std::filesystem::path& base_dir = {});
  /// Accepts the current values as unedited. Clears the history.
  void acceptEdits();
  /// Restores unsaved edits of a file (empty: never saved); the document is modified from the start. Clears the
  /// history.
  void restore(const RunSpec& spec, const QString& name, const std::filesystem::path& base_dir,
               const QString& file_path);
  /// Replaces the document by a file's. On error the document stays unchanged, and the findings say why.
  std::vector<Finding> open(const QString& path);
  Result<void> save();
  Result<void> saveAs(const QString& path);

 Q_SIGNALS:
  /// key is empty if more than one field may have changed.
  void changed(const QString& key);
  void fileChanged();
  void modifiedChanged(bool modified);
  /// The lock has changed, or the change that keeps the samples has followed typing.
  void sampleLockChanged();
  void lockedKeysChanged();
  /// Sentence with the holder of the key, the reason and the way to unlock it.
  void editRefused(const QString& sentence);

 private:
  friend class EditCommand;
  bool edit(const SpecField& field, const SpecValue& value, quint64 typing);
  bool refuses(const RunSpec& after);
  void applySpec(const RunSpec& spec, const QString& key);
  bool isTypedLast() const;
  void followTyped();
  /// `saved`: the basis of its edits; none: it is modified, whatever its values.
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
  quint64 typing_ = 1;  ///< counts typing sessions
  SampleLock lock_ = SampleLock::none;
  std::int64_t samples_kept_ = 0;
  QString last_factor_;
  QTimer follow_;
  LockedKeys locked_;
};

/// Whether the key is one for the length of a run; a spec has exactly one of them.
bool isLengthKey(std::string_view key);

}  // namespace accrue::ui
