// SPDX-License-Identifier: GPL-3.0-or-later
#include <QElapsedTimer>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "document/findings_model.h"
#include "document/spec_document.h"
#include "live/run_actions.h"

#include <QAbstractItemModelTester>
#include "kit/number_text.h"
#include "support/test_program.h"

namespace test_document {

using namespace accrue;
using namespace accrue::ui;

namespace {

const SpecField& field(const char* key) {
  const SpecField* found = find_field(key);
  Q_ASSERT(found);
  return *found;
}

}  // namespace

class TestDocument : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void typing_in_one_field_is_one_step_of_undo() {
    SpecDocument document;
    const std::int64_t before = document.spec().accumulation.steps;
    document.setField(field("accumulation.steps"), std::int64_t{1});
    document.setField(field("accumulation.steps"), std::int64_t{16});
    QCOMPARE(document.spec().accumulation.steps, 16);
    QCOMPARE(document.undoStack()->count(), 1);
    document.undoStack()->undo();
    QCOMPARE(document.spec().accumulation.steps, before);
    document.undoStack()->redo();
    QCOMPARE(document.spec().accumulation.steps, 16);
  }

  void what_is_typed_slowly_is_one_step_until_it_ends() {
    SpecDocument document;
    const std::int64_t before = document.spec().accumulation.steps;
    const auto type = [&document](std::int64_t steps) {
      document.typeField(field("accumulation.steps"), steps);
      QElapsedTimer since;
      since.start();
      QTRY_VERIFY_WITH_TIMEOUT(since.hasExpired(SpecDocument::merge_ms + 1), 10000);
    };
    type(1);
    type(16);
    QCOMPARE(document.undoStack()->count(), 1);
    document.endTyping();
    type(2);
    QCOMPARE(document.undoStack()->count(), 2);
    document.cancelTyping();
    QCOMPARE(document.spec().accumulation.steps, 16);
    document.cancelTyping();  // nothing is being typed
    QCOMPARE(document.spec().accumulation.steps, 16);
    document.undoStack()->undo();
    QCOMPARE(document.spec().accumulation.steps, before);
  }

  void edits_of_two_fields_are_two_steps() {
    SpecDocument document;
    QSignalSpy changed(&document, &SpecDocument::changed);
    document.setField(field("accumulation.steps"), std::int64_t{8});
    document.setField(field("optimizer.lr"), 0.5);
    QCOMPARE(document.undoStack()->count(), 2);
    QCOMPARE(changed.count(), 2);
    QCOMPARE(changed.at(0).at(0).toString(), QStringLiteral("accumulation.steps"));
    document.setField(field("optimizer.lr"), 0.5);
    QCOMPARE(changed.count(), 2);
  }

  void one_length_clears_the_others() {
    SpecDocument document;
    document.setField(field("run.updates"), std::int64_t{100});
    document.setField(field("run.epochs"), 2.0);
    QVERIFY(!document.spec().run.updates);
    QCOMPARE(document.spec().run.epochs, std::optional<double>(2.0));
    document.undoStack()->undo();
    QCOMPARE(document.spec().run.updates, std::optional<std::int64_t>(100));
    QVERIFY(!document.spec().run.epochs);
  }

  void undoing_back_to_the_file_is_unmodified() {
    const QTemporaryDir dir;
    SpecDocument document;
    QVERIFY(document.saveAs(dir.filePath(QStringLiteral("a.accrue"))));
    QVERIFY(!document.isModified());
    document.setField(field("accumulation.steps"), std::int64_t{9});
    QVERIFY(document.isModified());
    document.undoStack()->undo();
    QVERIFY(!document.isModified());
  }

  void a_value_put_back_by_typing_is_no_edit() {
    const QTemporaryDir dir;
    SpecDocument document;
    QVERIFY(document.saveAs(dir.filePath(QStringLiteral("a.accrue"))));
    const std::int64_t before = document.spec().accumulation.steps;
    QSignalSpy modified(&document, &SpecDocument::modifiedChanged);
    for (const std::int64_t steps : {before + 8, before}) {
      document.typeField(field("accumulation.steps"), steps);
      document.endTyping();
      document.setField(field("optimizer.lr"), document.spec().optimizer.lr);
      QCOMPARE(document.isModified(), steps != before);
    }
    QCOMPARE(modified.count(), 2);
    // After another save the values of that one are compared with.
    document.setField(field("accumulation.steps"), before + 8);
    QVERIFY(document.save());
    QVERIFY(!document.isModified());
    document.undoStack()->undo();
    QVERIFY(document.isModified());
    // A document that was never saved counts as modified, whatever its values.
    document.restore(RunSpec{}, QStringLiteral("kept"), {}, {});
    QVERIFY(document.isModified());
    document.acceptEdits();
    QVERIFY(!document.isModified());
  }

  void saves_what_it_opens() {
    const QTemporaryDir dir;
    const QString file = dir.filePath(QStringLiteral("a.accrue"));
    SpecDocument written;
    written.setField(field("accumulation.steps"), std::int64_t{7});
    written.setField(field("optimizer.lr"), 3e-4);
    QVERIFY(written.saveAs(file));
    SpecDocument read;
    QVERIFY(!has_errors(read.open(file)));
    QVERIFY(read.spec() == written.spec());
    QCOMPARE(read.displayName(), QStringLiteral("a.accrue"));
  }

  void the_same_data_are_named_after_saving_elsewhere() {
    const QTemporaryDir dir;
    QVERIFY(QDir(dir.path()).mkpath(QStringLiteral("sub")));
    SpecDocument document;
    QVERIFY(document.saveAs(dir.filePath(QStringLiteral("a.accrue"))));
    document.setField(field("data.path"), std::string("corpus.txt"));
    QVERIFY(document.saveAs(dir.filePath(QStringLiteral("sub/b.accrue"))));
    QCOMPARE(document.spec().data.path, std::string("../corpus.txt"));
  }

  void a_bad_file_leaves_the_document_as_it_was() {
    const QTemporaryDir dir;
    const QString file = dir.filePath(QStringLiteral("bad.accrue"));
    QFile out(file);
    QVERIFY(out.open(QIODevice::WriteOnly));
    out.write("accrue = 1\n[accumulation]\nsteps = 0\nstepz = 3\n");
    out.close();
    SpecDocument document;
    document.setField(field("accumulation.steps"), std::int64_t{5});
    const auto findings = document.open(file);
    QVERIFY(has_errors(findings));
    QCOMPARE(document.spec().accumulation.steps, 5);
    QVERIFY(document.filePath().isEmpty());
    QVERIFY(has_errors(document.open(dir.filePath(QStringLiteral("missing.accrue")))));
  }

  void no_edit_changes_a_locked_key() {
    SpecDocument document;
    document.setField(field("run.epochs"), 1.0);
    const RunSpec before = document.spec();
    QSignalSpy refused(&document, &SpecDocument::editRefused);
    QSignalSpy changed(&document, &SpecDocument::changed);
    document.lockKeys({QStringLiteral("Lesson 9"),
                       QStringLiteral("Leave the lesson to change it."),
                       {{"run.epochs", QStringLiteral("One pass is enough.")}}});
    QVERIFY(!document.setField(field("run.epochs"), 2.0));
    QCOMPARE(refused.takeFirst().first().toString(),
             QStringLiteral("Lesson 9 keeps Epochs as it is. One pass is enough. Leave the lesson to change it."));
    QCOMPARE(changed.count(), 1);                                        // an editor shows the spec's value again
    QVERIFY(!document.setField(field("run.updates"), std::int64_t{5}));  // would clear the epochs
    QVERIFY(!document.setFieldText(field("run.epochs"), QStringLiteral("3")));
    RunSpec other = before;
    other.accumulation.steps = 7;
    other.run.epochs = 4.0;
    QVERIFY(!document.setSpec(other, QStringLiteral("Use another")));
    QCOMPARE(refused.count(), 3);
    QCOMPARE(document.spec(), before);
    // Values that follow by the sample lock are part of the edit.
    QVERIFY(document.setField(field("accumulation.micro_batch"), std::int64_t{4}));
    document.lockKeys({QStringLiteral("Lesson 9"), {}, {{"accumulation.steps", QStringLiteral("Four.")}}});
    document.setSampleLock(SampleLock::per_update);
    const std::int64_t samples = document.samplesKept();
    QVERIFY(!document.setField(field("accumulation.micro_batch"), std::int64_t{1}));
    QCOMPARE(document.samplesKept(), samples);
    document.setSampleLock(SampleLock::none);
    QVERIFY(document.setField(field("accumulation.micro_batch"), std::int64_t{1}));
  }

  void a_sample_lock_goes_with_its_document() {
    SpecDocument document;
    document.setSampleLock(SampleLock::per_update);
    QSignalSpy changed(&document, &SpecDocument::sampleLockChanged);
    document.reset(RunSpec{}, QStringLiteral("other"));
    QCOMPARE(document.sampleLock(), SampleLock::none);
    QCOMPARE(changed.count(), 1);
  }

  void locked_keys_go_with_their_document() {
    SpecDocument document;
    document.lockKeys({QStringLiteral("Lesson 9"), {}, {{"run.seed", QStringLiteral("The numbers are printed.")}}});
    QVERIFY(!document.setField(field("run.seed"), std::int64_t{5}));
    document.reset(RunSpec{}, QStringLiteral("other"));
    QVERIFY(document.lockedKeys().holder.isEmpty());
    QVERIFY(document.setField(field("run.seed"), std::int64_t{5}));
  }

  void saving_where_nothing_can_be_written_says_so() {
    SpecDocument document;
    const auto saved = document.saveAs(QStringLiteral("/proc/nowhere/a.accrue"));
    QVERIFY(!saved);
    QCOMPARE(saved.error().code, ErrorCode::disk);
    QVERIFY(!saved.error().hint.empty());
  }

  void findings_keep_rows_that_stay() {
    FindingsModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
    Finding warning{.severity = Severity::warning, .key = "launch.device", .message = "slow"};
    Finding error{.severity = Severity::error, .key = "accumulation.steps", .message = "Must be at least 1"};
    error.found = "0";
    model.setFindings({warning});
    model.setFindings({warning, error});
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.errors(), 1);
    QCOMPARE(model.index(0).data(FindingsModel::keyRole).toString(), QStringLiteral("accumulation.steps"));
    QVERIFY(model.index(0).data().toString().contains(QStringLiteral("(found 0)")));
    model.setFindings({});
    QCOMPARE(model.rowCount(), 0);
    QCOMPARE(reset.count(), 0);
  }

  void numbers_are_grouped_and_bytes_have_units() {
    QCOMPARE(groupedNumber(1234), QStringLiteral("1234"));
    QCOMPARE(groupedNumber(1234567), QStringLiteral("1\u2009234\u2009567"));
    QCOMPARE(groupedNumber(-12345), QStringLiteral("-12\u2009345"));
    QCOMPARE(bytesText(512), QStringLiteral("512 B"));
    QCOMPARE(bytesText(3 * 1024 * 1024 / 2), QStringLiteral("1.5 MiB"));
    QCOMPARE(durationText(80), QStringLiteral("1 min 20 s"));
  }
};

ACCRUE_TEST_MAIN(TestDocument)

}  // namespace test_document
#include "test_document.moc"
