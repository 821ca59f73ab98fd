// SPDX-License-Identifier: Apache-2.0
// Indexed datasets from text, by the library and by `accrue-run data`.
#include "accrue/run/data/text_dataset.h"

#include <fmt/format.h>
#include <zlib.h>

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/base/system_error.h"
#include "accrue/run/data/indexed_dataset.h"
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
  /// The files of a dataset and of its build, with the hidden ones.
  static QStringList remains_of(const std::filesystem::path& prefix) {
    const QString name = QString::fromStdString(prefix.filename().string());
    return QDir(QString::fromStdString(prefix.parent_path()))
        .entryList({name + ".*", "." + name + ".*"}, QDir::Files | QDir::Hidden);
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
    row("a file keeps its ends", "a\r\n\r\nb\r\n", int(DocumentKind::file), false, "a\r\n\r\nb\r\n");
    row("paragraphs of Windows", "F 1\r\nS\r\n\r\nT\r\n\r\nU\r\n", int(DocumentKind::paragraph), false, "F 1\nS|T|U");
    row("paragraphs of an old Mac", "a\rb\r\rc\r", int(DocumentKind::paragraph), false, "a\nb|c");
    row("paragraphs of several systems", "a\nb\r\nc\rd\r\n\ne", int(DocumentKind::paragraph), false, "a\nb\nc\nd|e");
    row("lines of Windows", "a\r\n\r\nbc\r\nd", int(DocumentKind::line), true, "a$|bc$|d$");
    row("lines of an old Mac", "a\r\rbc\rd", int(DocumentKind::line), false, "a|bc|d");
    row("white space is a blank line", "a\n \t\nb \n  \r\n\n  c\n\t", int(DocumentKind::paragraph), false, "a|b |  c");
    row("white space is no line", "a\n \t\n  b\n \n", int(DocumentKind::line), false, "a|  b");
    row("white space within a paragraph", "a\n  b\n\tc", int(DocumentKind::paragraph), false, "a\n  b\n\tc");
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
  /// Of UTF-8; the mark of a file in the middle of a text is a character like others.
  void a_byte_order_mark_is_no_part_of_a_text() {
    const std::string mark = "\xEF\xBB\xBF";
    for (const DocumentKind kind : {DocumentKind::file, DocumentKind::paragraph, DocumentKind::line}) {
      const auto prefix = fresh();
      const auto built = build_text_dataset({{text(mark + "a"), text(mark + "b" + mark)}, prefix, kind}, go_on);
      QVERIFY2(built, built ? "" : built.error().text().c_str());
      QCOMPARE(documents_of(prefix), QString::fromLatin1("a|b\xEF\xBB\xBF"));
    }
  }

  void sentences_end_with_their_line_and_documents_at_a_blank_one_data() {
    const Rows<QString> row;
    for (const char* const end : {"\n", "\r\n", "\r"})
      for (const char* const blank : {"", " ", "\t "}) {
        const QString name =
            QStringLiteral("%1 %2").arg(QString(end).toUtf8().toHex(), QString(blank).toUtf8().toHex());
        row(qPrintable(name), QString("First line.|Second line.|%1|Third.|%1|%1|Fourth.").arg(blank).replace('|', end));
      }
  }
  void sentences_end_with_their_line_and_documents_at_a_blank_one() {
    const auto [words] = current_row<QString>();
    const auto prefix = fresh();
    const auto built =
        build_text_dataset({.texts = {text(words.toStdString())}, .prefix = prefix, .sentences = true}, {});
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.documents(), 3);
    QCOMPARE(dataset.lengths({0, dataset.sequences()}).value(), (std::vector<std::int32_t>{11, 12, 6, 7}));
  }

  /// The first read ends after each byte around the end of a line in turn.
  void an_end_of_a_line_may_lie_in_two_reads() {
    constexpr std::size_t part = std::size_t{1} << 18;
    for (const std::size_t before : {part - 6, part - 5, part - 4, part - 3, part - 2, part - 1, part}) {
      const auto prefix = fresh();
      const auto built = build_text_dataset(
          {{text(std::string(before, 'x') + "\r\n\t\r\n b\r\nc")}, prefix, DocumentKind::paragraph}, {});
      QVERIFY2(built, built ? "" : built.error().text().c_str());
      QCOMPARE(documents_of(prefix), QString(static_cast<int>(before), 'x') + "| b\nc");
    }
  }

  void json_lines_give_a_document_each_data() {
    const Rows<QString, QString, bool, QString, QString> row;
    row("as Megatron-LM takes them", "x.jsonl", "", false,
        "{\"text\": \"A quick fox.\"}\n{\"text\": \"\"}\n{\"text\": \"L\\u00e9a said \\\"hi\\\".\\nLine.\"}\n",
        QString::fromLatin1("A quick fox.|L\xC3\xA9"
                            "a said \"hi\".\nLine."));
    row("with the end of each", "x.JSONL", "", true, "{\"text\":\"a\"}\n{\"text\":\"\"}\n{\"text\":\"b\"}", "a$|b$");
    row("another key, another name", "x.txt", "body", false, "{\"id\":1,\"body\":\"a\"}\r\n\r\n{\"body\":\"b\"}\r\n",
        "a|b");
    row("a mark before it", "x.ndjson", "", false, "\xEF\xBB\xBF{\"text\":\"a\"}", "a");
    row("ends of lines within a text", "x.json", "", false, "{\"text\":\"a\\r\\n\\r\\nb\"}", "a\r\n\r\nb");
  }
  void json_lines_give_a_document_each() {
    const auto [name, key, eod, lines, expected] = current_row<QString, QString, bool, QString, QString>();
    const auto folder = fresh(), prefix = fresh();
    std::filesystem::create_directory(folder);
    std::ofstream(folder / name.toStdString(), std::ios::binary)
        << (lines.startsWith(QLatin1String("\xEF")) ? lines.toLatin1() : lines.toUtf8()).toStdString();
    const auto built = build_text_dataset(
        {.texts = {folder / name.toStdString()}, .prefix = prefix, .append_eod = eod, .json_key = key.toStdString()},
        {});
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    QCOMPARE(documents_of(prefix), expected);
    QCOMPARE(built->documents, expected.count('|') + 1);
  }
  /// A list of texts is a document of as many sequences, of which the last bears the end; with sentences each line is.
  void a_document_of_json_lines_may_have_several_sequences() {
    const std::string lines = "{\"text\":[\"ab\",\"\",\"cde\"]}\n{\"text\":\"f\\n\\ngh\\n\"}\n";
    for (const bool sentences : {false, true}) {
      const auto prefix = fresh();
      const auto built = build_text_dataset({.texts = {text(lines)},
                                             .prefix = prefix,
                                             .append_eod = !sentences,
                                             .sentences = sentences,
                                             .json_key = "text"},
                                            {});
      QVERIFY2(built, built ? "" : built.error().text().c_str());
      const auto dataset = IndexedDataset::open(prefix).value();
      QCOMPARE(dataset.documents(), 2);
      QCOMPARE(dataset.lengths({0, dataset.sequences()}).value(),
               sentences ? (std::vector<std::int32_t>{2, 3, 1, 2}) : (std::vector<std::int32_t>{2, 4, 7}));
    }
  }

  void prompts_have_their_lengths_beside_the_dataset() {
    const auto lines = text(
        "{\"ask\":\"2+2=\",\"say\":\"4\"}\n\n{\"ask\":\"\",\"say\":\"hi\"}\n"
        "{\"ask\":[\"a \",\"b \"],\"say\":[\"c\",\"d\"]}\n{\"ask\":\"\",\"say\":\"\"}\n");
    const auto prefix = fresh();
    TextDatasetRequest request{
        .texts = {lines}, .prefix = prefix, .append_eod = true, .json_key = "say", .prompt_key = "ask"};
    const auto built = build_text_dataset(request, {});
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    QCOMPARE(documents_of(prefix), QString("2+2=4$|hi$|a b cd$"));
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.sequences(), 3);
    const std::vector<std::int64_t> expected{4, 0, 4};
    for (std::int64_t i = 0; i < 3; ++i)
      QCOMPARE(dataset.prompt_length(i).value(), expected[static_cast<std::size_t>(i)]);
    QVERIFY(read_sidecar(prefix).value().value().prompts);

    const auto refused = [&](const char* words) {
      request.prefix = fresh();
      const Error error = build_text_dataset(request, {}).error();
      QVERIFY2(error.text().find(words) != std::string::npos, error.text().c_str());
    };
    request.prompt_key = "query";
    refused(":1: the object has no key \"query\", but \"ask\", \"say\". Name the key of the text with --prompt-key");
    request.prompt_key = "say";
    refused("the prompt is under the key of the text");
    request.prompt_key = "ask";
    request.json_key.clear();
    refused("only JSON lines have a key for prompts");
    request.json_key = "say";
    request.append_eod = false;
    request.sentences = true;
    refused("sentences have no prompt");
  }

  void a_packed_text_is_read_as_the_text() {
    std::string words;
    for (int i = 0; i < 100'000; ++i) words += "line " + std::to_string(i) + "\n\n";
    const auto plain = fresh(), packed = fresh(), file = fresh();
    gzFile pack = ::gzopen(file.c_str(), "wb");
    QCOMPARE(::gzwrite(pack, words.data(), static_cast<unsigned>(words.size())), static_cast<int>(words.size()));
    QCOMPARE(::gzclose(pack), Z_OK);
    TextDatasetRequest request{{text(words)}, plain, DocumentKind::paragraph};
    QVERIFY(build_text_dataset(request, {}));
    request.texts = {file};
    request.prefix = packed;
    for (int stops = 0;; ++stops) {
      int parts = 0;
      std::int64_t read = 0;
      const auto built = build_text_dataset(request, [&](const TextProgress& progress) {
        read = progress.bytes;
        return ++parts < 2;
      });
      QVERIFY(read <= static_cast<std::int64_t>(std::filesystem::file_size(file)));
      if (built) {
        QVERIFY(stops > 1);
        break;
      }
      QCOMPARE(built.error().code, ErrorCode::cancelled);
    }
    QCOMPARE(bytes_of(idx_path(packed)), bytes_of(idx_path(plain)));
    QCOMPARE(bytes_of(bin_path(packed)), bytes_of(bin_path(plain)));
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    request.prefix = fresh();
    const auto cut = build_text_dataset(request, {});
    QVERIFY(!cut);
    QCOMPARE(QString::fromStdString(cut.error().message), QString("the gzip file was cut"));
  }

  void what_is_no_text_is_refused_by_its_name_data() {
    const Rows<QByteArray, QString, QString> row;
    row("parquet", QByteArray("PAR1\x15\x04", 6), "a Parquet file", "JSON lines");
    row("numpy", QByteArray("\x93NUMPY\x01\0v", 9), "a NumPy array", "savetxt");
    row("zip", QByteArray("PK\x03\x04\x14", 5), "a zip archive", "");
    row("zstd", QByteArray("\x28\xB5\x2F\xFD\x04", 5), "a Zstandard file", "zstd -d");
    row("UTF-16", QByteArray("\xFF\xFEh\0i\0", 6), "a text in UTF-16", "iconv -f UTF-16 -t UTF-8");
    row("UTF-16, big", QByteArray("\xFE\xFF\0h\0i", 6), "a text in UTF-16", "iconv");
    row("UTF-16 without a mark", QByteArray("h\0i\0 \0t\0h\0e\0r\0e\0", 16), "a text in UTF-16LE", "iconv -f UTF-16LE");
    row("UTF-16BE without a mark", QByteArray("\0h\0i\0 \0t\0h\0e", 12), "a text in UTF-16BE", "iconv -f UTF-16BE");
    row("UTF-32", QByteArray("\xFF\xFE\0\0h\0\0\0", 8), "a text in UTF-32", "iconv -f UTF-32");
    row("zeros", QByteArray("abcdefgh\0ijklmnop", 17), "a binary file", "UTF-8");
    row("an index", QByteArray("MMIDIDX\0\0\1", 10), "the index of an indexed dataset", "indexed");
  }
  void what_is_no_text_is_refused_by_its_name() {
    const auto [bytes, what, way] = current_row<QByteArray, QString, QString>();
    const auto prefix = fresh(), bad = text(bytes.toStdString());
    const auto built = build_text_dataset({{text("good"), bad}, prefix}, {});
    QVERIFY(!built);
    QCOMPARE(built.error().code, ErrorCode::data);
    QCOMPARE(QString::fromStdString(built.error().where), QString::fromStdString(bad));
    const QString words = QString::fromStdString(built.error().text());
    QVERIFY2(words.contains("this is no text: it is " + what) && words.contains(way), qPrintable(words));
    QVERIFY(remains_of(prefix).isEmpty());
  }

  /// A disk that fails or a death at any file call leaves a dataset that is whole, or nothing in the way of the next
  /// build; and after an error no part of it.
  void a_half_made_dataset_is_not_in_the_way_data() {
    const Rows<QString> row;
    for (const QString how : {"EIO", "KILL"}) row(qPrintable(how), how);
  }
  void a_half_made_dataset_is_not_in_the_way() {
#ifdef __SANITIZE_ADDRESS__
    QSKIP("the sanitizer must be the first library of a program");
#endif
    const auto [how] = current_row<QString>();
    const QString words = QString::fromStdString(text("a\n\nb\n").string());
    const auto whole = fresh();
    QVERIFY(build_text_dataset({{words.toStdString()}, whole, DocumentKind::paragraph}, {}));
    int calls = 0;
    for (int call = 0; call <= calls; ++call) {  // the first one only counts
      const QString prefix = QString::fromStdString(fresh().string()), log = prefix + ".log";
      const QStringList build{"build", words, "--out", prefix, "--documents", "paragraph"};
      const QStringList trouble{"LD_PRELOAD=" + programPath("libaccrue_failing_disk.so"), "FAILING_DISK_HOW=" + how,
                                QStringLiteral("FAILING_DISK_CALL=%1").arg(call),
                                "FAILING_DISK_PATH=" + prefix.section('/', -1) + ".", "FAILING_DISK_LOG=" + log};
      const Outcome first = Program(programPath("accrue-run"), QStringList{"data"} + build, trouble).finish();
      QFile logged(log);
      QVERIFY(logged.open(QIODevice::ReadOnly));
      const QStringList seen = QString::fromUtf8(logged.readAll()).split('\n', Qt::SkipEmptyParts);
      logged.remove();
      if (call == 0) calls = static_cast<int>(seen.size());
      const auto context = [&] { return (how + " " + seen.value(call - 1) + ": " + first.err).toUtf8(); };
      if (how != "KILL" && first.status != 0)
        QVERIFY2(remains_of(prefix.toStdString()).isEmpty(),
                 (context() + remains_of(prefix.toStdString()).join(' ').toUtf8()).constData());
      const Outcome second = data(build);
      const bool was_whole = second.status == 2 && second.err.contains("exists already");
      QVERIFY2(second.status == 0 || was_whole, (context() + second.err.toUtf8()).constData());
      QVERIFY2(first.status != 0 || was_whole, context().constData());
      for (const auto& path : {&idx_path, &bin_path})
        QCOMPARE(bytes_of(path(prefix.toStdString())), bytes_of(path(whole)));
      const QStringList left = remains_of(prefix.toStdString());
      QVERIFY2(left.size() == 3, (context() + left.join(' ').toUtf8()).constData());
    }
    QVERIFY(calls > 10);
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
    QVERIFY(!IndexedDataset::open(prefix).value().has_prompts());
    QCOMPARE(read, static_cast<std::int64_t>(words.size() + 19));
    QCOMPARE(bytes_of(idx_path(prefix)), bytes_of(idx_path(whole)));
    QCOMPARE(bytes_of(bin_path(prefix)), bytes_of(bin_path(whole)));
  }
  void a_stopped_build_of_prompts_goes_on_to_the_same_files() {
    std::string lines;
    for (int i = 0; i < 40'000; ++i) lines += fmt::format("{{\"q\":\"question {}\",\"a\":\"answer\"}}\n", i);
    const auto whole = fresh(), prefix = fresh();
    TextDatasetRequest request{.texts = {text(lines)}, .prefix = whole, .json_key = "a", .prompt_key = "q"};
    QVERIFY(build_text_dataset(request, {}));
    request.prefix = prefix;
    int stops = 0;
    for (; stops < 100; ++stops) {
      int parts = 0;
      if (build_text_dataset(request, [&](const TextProgress&) { return ++parts < 2; })) break;
    }
    QVERIFY(stops >= 2 && stops < 100);
    for (const auto& path : {&idx_path, &bin_path, &prompts_path})
      QCOMPARE(bytes_of(path(prefix)), bytes_of(path(whole)));
  }
  void what_may_not_be_read_is_not_asked_to_be_written() {
    for (const int denied : {EACCES, EPERM}) {
      QCOMPARE(system_hint(denied, FileUse::read), std::string("Check its permissions"));
      QCOMPARE(system_hint(denied), std::string("Choose a folder that you may write"));
    }
    QCOMPARE(system_hint(ENOENT, FileUse::read), std::string("Check the path"));
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
    row("no key", {"build", "JSON", "--out", "PREFIX", "--json-keys", "body"}, 2,
        ":2: the object has no key \"body\", but \"text\", \"id\"");
    row("no text", {"build", "JSON", "--out", "PREFIX", "--json-keys", "id"}, 2, "neither a text nor a list of texts");
    row("no object", {"build", "TEXT", "--out", "PREFIX", "--json-keys", "text"}, 2,
        ":1: the line is not a JSON object");
    row("documents of JSON lines", {"build", "JSON", "--out", "PREFIX", "--json-keys", "text", "--documents", "line"},
        2, "a line of JSON is a document");
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
    arguments.replaceInStrings("JSON", QString::fromStdString(text("\n{\"text\":\"a\",\"id\":1}\n").string()));
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
