// SPDX-License-Identifier: Apache-2.0
// Indexed datasets from text, by the library and by `accrue-run data`.
#include "accrue/run/text_dataset.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/indexed_dataset.h"
#include "support/indexed_corpus.h"
#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_text_dataset {

using namespace accrue;
using namespace accrue::test;

class TestTextDataset : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  std::filesystem::path fresh() { return temporary_.filePath(QStringLiteral("data%1").arg(++count_)).toStdString(); }
  std::filesystem::path text(const std::string& words) {
    const auto path = fresh();
    std::ofstream(path, std::ios::binary) << words;
    return path;
  }
  static Outcome data(const QStringList& arguments) {
    return Program(programPath("accrue-run"), QStringList{"data"} + arguments).finish();
  }
  static bool go_on(const TextProgress&) { return true; }
  /// The documents as text, an end-of-document token as $.
  static QString documents_of(const std::filesystem::path& prefix) {
    const auto dataset = IndexedDataset::open(prefix).value();
    QStringList documents;
    for (std::int64_t i = 0; i < dataset.documents(); ++i) {
      QString words;
      const auto tokens = dataset.get(dataset.document(i).value().begin).value();
      for (const std::int64_t token : tokens)
        words += token == end_of_document_token ? QChar('$') : QChar(static_cast<char16_t>(token));
      documents << words;
    }
    return documents.join("|");
  }

 private Q_SLOTS:
  void all_files_of_a_dataset_have_one_mode() {
    const QString prefix = QString::fromStdString(fresh().string());
    QCOMPARE(data({"build", QString::fromStdString(text("a\n").string()), "--out", prefix}).status, 0);
    const auto mode = [&prefix](const char* ending) { return QFile::permissions(prefix + QLatin1String(ending)); };
    QCOMPARE(mode(".json"), mode(".bin"));
    QCOMPARE(mode(".idx"), mode(".bin"));
  }

  void a_text_is_divided_into_documents_data() {
    const Rows<QString, int, bool, QString> row;
    row("a file", "a\n\nb\n", int(DocumentKind::file), false, "a\n\nb\n");
    row("paragraphs", "\n\na\nb\n\n\nc\n", int(DocumentKind::paragraph), false, "a\nb|c");
    row("lines", "a\n\nbc\nd", int(DocumentKind::line), false, "a|bc|d");
    row("with the end of each", "a\nb\n", int(DocumentKind::line), true, "a$|b$");
  }
  void a_text_is_divided_into_documents() {
    const auto [words, kind, eod, expected] = current_row<QString, int, bool, QString>();
    const auto prefix = fresh();
    const auto built =
        build_text_dataset({{text(words.toStdString())}, prefix, static_cast<DocumentKind>(kind), eod}, go_on);
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    QCOMPARE(documents_of(prefix), expected);
    QCOMPARE(built->documents, expected.count('|') + 1);
  }
  void a_document_that_no_sequence_can_hold_is_several() {
    const auto prefix = fresh();
    const auto built = build_text_dataset(
        {.texts = {text("0123456789\nab\n")}, .prefix = prefix, .documents = DocumentKind::line, .longest_sequence = 4},
        {});
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.documents(), 2);
    QCOMPARE(dataset.lengths({0, dataset.sequences()}).value(), (std::vector<std::int32_t>{4, 4, 2, 2}));
  }
  void a_build_that_nobody_watches_is_whole() {
    const auto built = build_text_dataset({{text("abc")}, fresh()}, {});
    QVERIFY(built);
    QCOMPARE(built->tokens, 3);
  }

  void a_stopped_build_goes_on_to_the_same_files() {
    std::string words;
    for (int i = 0; i < 200'000; ++i) words += "line " + std::to_string(i) + (i % 7 == 0 ? "\n\n" : "\n");
    const auto first = text(words), second = text("an end\nof two lines");
    const auto whole = fresh(), prefix = fresh();
    TextDatasetRequest request{{first, second}, whole, DocumentKind::paragraph, true};
    QVERIFY(build_text_dataset(request, go_on));
    request.prefix = prefix;
    std::int64_t read = 0;
    int stops = 0;
    for (; stops < 100; ++stops) {
      int parts = 0;
      const auto built = build_text_dataset(request, [&](const TextProgress& progress) {
        read = progress.bytes;
        return ++parts < 3;
      });
      if (built) {
        QVERIFY(built->resumed_at > 0);
        break;
      }
      QCOMPARE(built.error().code, ErrorCode::cancelled);
      QVERIFY(!IndexedDataset::open(prefix));
    }
    QVERIFY(stops >= 2 && stops < 100);
    QCOMPARE(read, static_cast<std::int64_t>(words.size() + 19));
    QCOMPARE(bytes_of(idx_path(prefix)), bytes_of(idx_path(whole)));
    QCOMPARE(bytes_of(bin_path(prefix)), bytes_of(bin_path(whole)));
  }
  void an_interrupted_build_of_other_texts_is_refused() {
    const auto prefix = fresh();
    const auto stop = [](const TextProgress&) { return false; };
    QCOMPARE(build_text_dataset({{text("one")}, prefix, DocumentKind::file, false}, stop).error().code,
             ErrorCode::cancelled);
    const auto other = build_text_dataset({{text("two")}, prefix, DocumentKind::file, false}, go_on);
    QCOMPARE(other.error().code, ErrorCode::config);
  }

  void the_program_builds_shows_and_indexes() {
    const QString prefix = QString::fromStdString(fresh().string());
    const QString words = QString::fromStdString(text("0123456789\nabcdef\n").string());
    const Outcome built = data({"build", words, "--out", prefix, "--documents", "line", "--append-eod"});
    QCOMPARE(built.status, 0);
    QCOMPARE(built.out, prefix + ": 2 documents, 18 tokens\n");
    const Outcome shown = data({"show", prefix, "--json"});
    const QJsonObject facts = QJsonDocument::fromJson(shown.out.toUtf8()).object();
    QCOMPARE(facts["dtype"].toString(), QString("uint16"));
    QCOMPARE(facts["documents"].toInt(), 2);
    QCOMPARE(facts["longest_sequence"].toInt(), 11);
    QVERIFY(data({"show", prefix}).out.contains("shortest sequence  7\n"));

    const Outcome index = data({"index", prefix, "--seq-length", "4", "--split", "1", "--seed", "0", "--json"});
    QCOMPARE(index.status, 0);
    const QJsonObject train =
        QJsonDocument::fromJson(index.out.toUtf8()).object()["splits"].toObject()["train"].toObject();
    QCOMPARE(train["samples"].toInt(), 4);  // (18 - 1) / 4
    QCOMPARE(train["document_index"].toArray().size(), 2);
    QCOMPARE(train["sample_index"].toArray().size(), 5);
    QCOMPARE(train["sample_index"].toArray()[0].toArray(), (QJsonArray{0, 0}));
    QCOMPARE(train["shuffle_index"].toArray().size(), 4);
    QVERIFY(data({"index", prefix, "--seq-length", "4"}).out.startsWith("train: sequences 0 to 1, 18 tokens"));
    const Outcome asked = data({"index", prefix, "--seq-length", "4", "--samples", "4,2"});
    QCOMPARE(asked.status, 0);
    QVERIFY2(asked.err.contains("valid skipped: --split assigns it none of 2 sequences"), qPrintable(asked.err));
    const Outcome none = data({"index", prefix, "--seq-length", "100"});
    QCOMPARE(none.status, 0);
    QVERIFY2(none.err.contains("train has no sample: 18 tokens do not fill one of 100"), qPrintable(none.err));
  }
  void what_the_program_cannot_do_it_refuses_data() {
    const Rows<QStringList, int, QString> row;
    row("no verb", {}, 2, "subcommand");
    row("no text", {"build", "/nowhere.txt", "--out", "PREFIX"}, 2, "/nowhere.txt");
    row("a folder", {"build", "/tmp", "--out", "PREFIX"}, 2, "regular");
    row("no dataset", {"show", "/nowhere"}, 2, "/nowhere.idx");
    row("one of its files", {"show", "GOOD.bin"}, 2, "without .bin or .idx");
    row("damaged", {"show", "DAMAGED"}, 5, "MMIDIDX");
    row("no folder", {"build", "TEXT", "--out", "/nowhere/at"}, 2, "there is no such folder: /nowhere");
    row("no sample", {"index", "GOOD", "--seq-length", "0"}, 2, "sequence length");
    row("no split", {"index", "GOOD", "--seq-length", "2", "--split", "a"}, 2, "split");
    row("taken", {"build", "TEXT", "--out", "GOOD"}, 2, "exists");
    row("nothing in it", {"build", "EMPTY", "--out", "PREFIX"}, 2, "no tokens");
  }
  void what_the_program_cannot_do_it_refuses() {
    const auto [given, status, word] = current_row<QStringList, int, QString>();
    const auto good = fresh(), damaged = fresh();
    write_corpus(good, {3, 4});
    write_corpus(damaged, {3, 4});
    std::ofstream(idx_path(damaged)) << "something else";
    QStringList arguments = given;
    arguments.replaceInStrings("GOOD", QString::fromStdString(good.string()));
    arguments.replaceInStrings("DAMAGED", QString::fromStdString(damaged.string()));
    arguments.replaceInStrings("PREFIX", QString::fromStdString(fresh().string()));
    arguments.replaceInStrings("TEXT", QString::fromStdString(text("words").string()));
    arguments.replaceInStrings("EMPTY", QString::fromStdString(text("").string()));
    const Outcome outcome = data(arguments);
    QCOMPARE(outcome.status, status);
    QVERIFY2(outcome.err.contains(word), qPrintable(outcome.err));
    QVERIFY(outcome.out.isEmpty());
  }
};

ACCRUE_TEST_MAIN(TestTextDataset)

}  // namespace test_text_dataset
#include "test_text_dataset.moc"
