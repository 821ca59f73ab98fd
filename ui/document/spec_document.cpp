// SPDX-License-Identifier: GPL-3.0-or-later
#include "spec_document.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QSaveFile>
#include <QUndoCommand>
#include <algorithm>
#include <array>
#include <utility>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_lowering.h"

namespace accrue::ui {

namespace {

constexpr std::array<std::string_view, 4> length_keys = {"run.updates", "run.epochs", "run.samples", "run.tokens"};

/// Rewrites a relative data path for another folder, so that it still names the same file.
std::string rebased(const std::string& path, const std::filesystem::path& from, const std::filesystem::path& to) {
  if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
  const std::filesystem::path relative = (from / path).lexically_normal().lexically_relative(to);
  return relative.empty() ? (from / path).lexically_normal().string() : relative.string();
}

}  // namespace

bool isLengthKey(std::string_view key) {
  return std::find(length_keys.begin(), length_keys.end(), key) != length_keys.end();
}

/// One edit of one field: the whole spec before and after (a spec is a small value).
class EditCommand : public QUndoCommand {
 public:
  EditCommand(SpecDocument* document, const QString& text, RunSpec before, RunSpec after)
      : QUndoCommand(text), document_(document), before_(std::move(before)), after_(std::move(after)) {}

  EditCommand(SpecDocument* document, const SpecField& field, quint64 typing, RunSpec before, RunSpec after)
      : document_(document),
        key_(QString::fromUtf8(field.key.data(), static_cast<qsizetype>(field.key.size()))),
        before_(std::move(before)),
        after_(std::move(after)),
        typing_(typing) {
    //: Undo step; %1 is a field of the set-up form
    setText(QCoreApplication::translate("SpecDocument", "Change %1")
                .arg(QString::fromUtf8(field.label.data(), static_cast<qsizetype>(field.label.size()))));
    age_.start();
  }

  int id() const override { return key_.isEmpty() ? -1 : 1; }
  void undo() override { document_->applySpec(before_, key_); }
  void redo() override { document_->applySpec(after_, key_); }

  bool isBeingTyped() const { return typing_ == document_->typing_; }
  const QString& key() const { return key_; }
  const RunSpec& before() const { return before_; }

  bool mergeWith(const QUndoCommand* other) override {
    const auto* edit = static_cast<const EditCommand*>(other);
    if (edit->key_ != key_) return false;
    const bool goes_on = typing_ != 0 && edit->typing_ == typing_;
    if (!goes_on && age_.elapsed() > SpecDocument::merge_ms) return false;
    after_ = edit->after_;
    typing_ = edit->typing_;
    age_.restart();
    setObsolete(before_ == after_);
    return true;
  }

 private:
  SpecDocument* document_;
  QString key_;
  RunSpec before_;
  RunSpec after_;
  quint64 typing_ = 0;  ///< 0: the value was not typed
  QElapsedTimer age_;
};

SpecDocument::SpecDocument(QObject* parent) : QObject(parent), name_(tr("Untitled")) {
  follow_.setSingleShot(true);
  follow_.setInterval(pause_ms);
  connect(&follow_, &QTimer::timeout, this, &SpecDocument::followTyped);
}

std::filesystem::path SpecDocument::baseDir() const {
  if (!file_path_.isEmpty()) return QFileInfo(file_path_).absolutePath().toStdString();
  return base_dir_.empty() ? std::filesystem::path(QDir::currentPath().toStdString()) : base_dir_;
}

QString SpecDocument::displayName() const {
  return file_path_.isEmpty() ? name_ : QFileInfo(file_path_).fileName();
}

bool SpecDocument::setField(const SpecField& field, const SpecValue& value) {
  return edit(field, value, 0);
}

bool SpecDocument::typeField(const SpecField& field, const SpecValue& value) {
  return edit(field, value, typing_);
}

bool SpecDocument::edit(const SpecField& field, const SpecValue& value, quint64 typing) {
  RunSpec after = spec_;
  field.set(after, value);
  if (isLengthKey(field.key) && !std::holds_alternative<std::monostate>(value)) {
    for (const std::string_view key : length_keys) {
      const SpecField* other = find_field(key);
      if (other && key != field.key) other->set(after, std::monostate{});
    }
  }
  const bool factor = is_sample_factor(field.key);
  if (factor && typing == 0) {
    if (auto kept = keep_samples(after, field.key, lock_, samples_kept_)) after = *std::move(kept);
  }
  if (refuses(after)) return false;
  if (factor) last_factor_ = QString::fromUtf8(field.key.data(), static_cast<qsizetype>(field.key.size()));
  if (isLengthKey(field.key) && lock_ == SampleLock::in_total)
    samples_kept_ = locked_samples(after, lock_);  // another length is another total
  if (after == spec_) return true;
  if (factor && typing != 0 && lock_ != SampleLock::none)
    follow_.start();
  else
    follow_.stop();
  undo_.push(new EditCommand(this, field, typing, spec_, std::move(after)));
  return true;
}

void SpecDocument::endTyping() {
  if (follow_.isActive()) followTyped();
  ++typing_;
}

bool SpecDocument::isTypedLast() const {
  const auto* last = undo_.index() > 0 ? dynamic_cast<const EditCommand*>(undo_.command(undo_.index() - 1)) : nullptr;
  return last && last->isBeingTyped();
}

/// Part of the same undo step. If it would change a locked key, the typing is undone.
void SpecDocument::followTyped() {
  follow_.stop();
  const SpecField* factor = find_field(last_factor_.toStdString());
  if (!factor || !isTypedLast()) return;
  if (auto kept = keep_samples(spec_, factor->key, lock_, samples_kept_); kept && *kept != spec_) {
    if (refuses(*kept))
      undo_.undo();
    else
      undo_.push(new EditCommand(this, *factor, typing_, spec_, *std::move(kept)));
  }
  Q_EMIT sampleLockChanged();
}

void SpecDocument::setSampleLock(SampleLock lock) {
  follow_.stop();
  lock_ = lock;
  samples_kept_ = locked_samples(spec_, lock_);
  Q_EMIT sampleLockChanged();
}

void SpecDocument::cancelTyping() {
  follow_.stop();
  if (isTypedLast()) undo_.undo();
  endTyping();
}

void SpecDocument::takeBackTyped(const SpecField& field) {
  if (!isTypedLast()) return;
  const auto* typed = static_cast<const EditCommand*>(undo_.command(undo_.index() - 1));
  if (typed->key().toStdString() != field.key) return;
  follow_.stop();
  // Merged with the typing, it leaves no separate step.
  undo_.push(new EditCommand(this, field, typing_, spec_, typed->before()));
}

bool SpecDocument::setFieldText(const SpecField& field, const QString& text, QString* problem) {
  RunSpec probe = spec_;
  std::vector<Finding> findings;
  set_field(probe, std::string(field.key) + "=" + text.toStdString(), findings);
  const auto error = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.severity == Severity::error; });
  if (error != findings.end()) {
    if (problem) *problem = QString::fromStdString(error->message);
    return false;
  }
  return setField(field, field.get(probe));
}

bool SpecDocument::setSpec(const RunSpec& spec, const QString& text) {
  if (refuses(spec)) return false;
  if (spec != spec_) undo_.push(new EditCommand(this, text, spec_, spec));
  return true;
}

void SpecDocument::lockKeys(LockedKeys keys) {
  locked_ = std::move(keys);
  Q_EMIT lockedKeysChanged();
}

bool SpecDocument::refuses(const RunSpec& after) {
  if (locked_.why.empty()) return false;
  for (const SpecDifference& difference : diff_specs(spec_, after)) {
    const auto lock = locked_.why.find(difference.key);
    if (lock == locked_.why.end()) continue;
    const SpecField* field = find_field(difference.key);
    //: %1 who keeps a key, %2 the key's label, %3 why it is kept, as a sentence, %4 what frees it, as a sentence
    Q_EMIT editRefused(tr("%1 keeps %2 as it is. %3 %4")
                           .arg(locked_.holder,
                                QString::fromUtf8(field->label.data(), static_cast<qsizetype>(field->label.size())),
                                lock->second, locked_.way_out));
    Q_EMIT changed(QString());
    return true;
  }
  return false;
}

void SpecDocument::reset(const RunSpec& spec, const QString& name, const std::filesystem::path& base_dir) {
  undo_.clear();
  file_path_.clear();
  name_ = name;
  base_dir_ = base_dir;
  const RunSpec own = without_lowered(spec);
  takeOther(own, own);
  Q_EMIT fileChanged();
}

void SpecDocument::acceptEdits() {
  undo_.clear();
  saved_ = spec_;
  compareWithSaved();
}

void SpecDocument::restore(const RunSpec& spec, const QString& name, const std::filesystem::path& base_dir,
                           const QString& file_path) {
  undo_.clear();
  file_path_ = file_path;
  name_ = name;
  base_dir_ = base_dir;
  takeOther(spec, std::nullopt);
  Q_EMIT fileChanged();
}

std::vector<Finding> SpecDocument::open(const QString& path) {
  SpecReading reading = read_spec(path.toStdString());
  if (!reading.ok()) return std::move(reading.findings);
  undo_.clear();
  file_path_ = QFileInfo(path).absoluteFilePath();
  keep_set_keys(reading);
  const RunSpec own = without_lowered(reading.spec);
  takeOther(own, own);
  Q_EMIT fileChanged();
  return std::move(reading.findings);
}

Result<void> SpecDocument::save() {
  return saveAs(file_path_);
}

Result<void> SpecDocument::saveAs(const QString& path) {
  endTyping();
  const std::filesystem::path new_base = QFileInfo(path).absolutePath().toStdString();
  RunSpec moved = spec_;
  if (new_base != baseDir()) {
    const auto move = [&](std::string& place) { place = rebased(place, baseDir(), new_base); };
    move(moved.data.path);
    move(moved.data.validation_path);
    move(moved.data.cache);
    for (auto* places : {&moved.data.paths, &moved.data.validation_paths}) std::ranges::for_each(*places, move);
  }
  QSaveFile file(path);
  const QByteArray text = QByteArray::fromStdString(write_spec(moved));
  const bool written = file.open(QIODevice::WriteOnly) && file.write(text) == text.size() && file.commit();
  if (!written) {
    return fail(ErrorCode::disk, tr("The spec could not be saved: %1").arg(file.errorString()).toStdString(),
                path.toStdString(), tr("Choose another folder with Save as").toStdString());
  }
  file_path_ = QFileInfo(path).absoluteFilePath();
  saved_ = moved;
  if (moved != spec_) applySpec(moved, QStringLiteral("data.path"));
  compareWithSaved();
  Q_EMIT fileChanged();
  return {};
}

/// Locks of the previous document do not affect this one.
void SpecDocument::takeOther(const RunSpec& spec, const std::optional<RunSpec>& saved) {
  follow_.stop();
  if (!locked_.holder.isEmpty()) unlockKeys();
  if (lock_ != SampleLock::none) setSampleLock(SampleLock::none);
  last_factor_.clear();
  ++opened_;
  saved_ = saved;
  applySpec(spec, QString());
}

void SpecDocument::compareWithSaved() {
  const bool modified = saved_ != spec_;
  if (modified == modified_) return;
  modified_ = modified;
  Q_EMIT modifiedChanged(modified_);
}

void SpecDocument::applySpec(const RunSpec& spec, const QString& key) {
  spec_ = spec;
  ++revision_;
  compareWithSaved();
  const bool several = isLengthKey(key.toStdString()) || lock_ != SampleLock::none;
  Q_EMIT changed(several ? QString() : key);
}

}  // namespace accrue::ui
