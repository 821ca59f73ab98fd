// SPDX-License-Identifier: Apache-2.0
// Counting, splitting and recognition of data.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/data/data_split.h"
#include "accrue/run/facts/csv_table.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/preflight/preflight.h"
#include "support/file_leases.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_data_facts {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::has_leases;
using accrue::test::Rows;

namespace {

RunSpec text_spec(std::int64_t context, double validation = 0.0) {
  RunSpec spec;
  spec.data.kind = DataKind::text;
  spec.data.path = "data";
  spec.data.validation_fraction = validation;
  spec.model.context = context;
  return spec;
}

RunSpec table_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.data.kind = DataKind::inline_;
  spec.data.x = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  spec.data.y = {{1}, {2}, {3}, {4}};
  return spec;
}

RunSpec ragged_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.loss = LossKind::cross_entropy;
  spec.model.outputs = 2;
  spec.data.kind = DataKind::inline_;
  spec.data.sequences = {{1}, {1, 2}, {1, 2, 3}};
  spec.data.labels = {{1}, {1, -100}, {1, 0, 1}};
  return spec;
}

/// Words for classes.
RunSpec class_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.inputs = 1;
  spec.model.outputs = 3;
  spec.model.loss = LossKind::cross_entropy;
  spec.data.kind = DataKind::csv;
  spec.data.path = "data";
  spec.evaluate.every_updates = 1;
  return spec;
}

/// 20 rows of each of three classes.
QByteArray sorted_classes() {
  QByteArray rows;
  for (int row = 0; row < 60; ++row) rows += QByteArray::number(row) + "," + "abc"[row / 20] + "\n";
  return rows;
}

}  // namespace

class TestDataFacts : public QObject {
  Q_OBJECT
 private:
  QTemporaryDir dir_;

  std::filesystem::path base() const { return dir_.path().toStdString(); }
  void write(const QByteArray& bytes, const char* name = "data") {
    QFile file(dir_.filePath(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    QCOMPARE(file.write(bytes), bytes.size());
  }
  QString findings(const RunSpec& spec) const {
    HostFacts host;
    host.cores = 4;
    host.backends = {"shm"};
    QStringList lines;
    for (const Finding& finding : preflight_files(spec, host, base()).findings)
      if (finding.key.starts_with("data.") || finding.key == "model.outputs")
        lines << QString::fromStdString(finding.text());
    return lines.join("|");
  }
  QString error(const RunSpec& spec) const {
    const auto facts = scan_data(spec, base());
    if (facts) return "no error";
    if (facts.error().code != ErrorCode::data) return "not a data error";
    return QString::fromStdString(facts.error().text()).replace(dir_.path(), ".");
  }

 private Q_SLOTS:
  void cleanup() { QFile::remove(dir_.filePath("data")); }

  void samples_share_one_token_with_their_neighbour_data() {
    const Rows<int, int> row;
    row("just one sample", 5, 1);
    row("one byte short of two", 8, 1);
    row("two", 9, 2);
    row("a rest is not used", 1002, 250);
  }
  void samples_share_one_token_with_their_neighbour() {
    const auto [bytes, samples] = current_row<int, int>();
    write(QByteArray(bytes, 'a'));
    const auto facts = scan_data(text_spec(4), base());
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QCOMPARE(facts->samples, samples);
    QCOMPARE(facts->tokens_per_sample, 4);
    QCOMPARE(facts->bytes, bytes);
    QVERIFY(stream_sample_begin(samples - 1, 4) + 4 < bytes);  // the last sample's last token is there
  }

  void the_last_part_is_kept_for_evaluation_rounded_up_data() {
    const Rows<int, double, int> row;
    row("none", 10, 0.0, 0);
    row("exact", 10, 0.1, 1);
    row("rounded up", 11, 0.1, 2);
    row("a product that is not exact in binary", 100, 0.07, 7);
    row("small", 3, 0.05, 1);
    row("everything", 1, 0.5, 1);
  }
  void the_last_part_is_kept_for_evaluation_rounded_up() {
    const auto [samples, fraction, kept] = current_row<int, double, int>();
    const DataSplit expected{samples - kept, kept};
    QVERIFY(split_samples(samples, fraction) == expected);
  }

  void a_fraction_keeps_the_samples_that_it_was_made_for() {
    for (std::int64_t samples = 1; samples <= 400; ++samples)
      for (std::int64_t kept = 0; kept <= samples; ++kept)
        QCOMPARE(split_samples(samples, fraction_keeping(kept, samples)).validation, kept);
    for (const std::int64_t kept : {0, 1, 29'999'999, 33'333'333, 50'000'001})
      QCOMPARE(split_samples(100'000'000, fraction_keeping(kept, 100'000'000)).validation, kept);
  }

  void a_fingerprint_is_of_the_content() {
    write("abcdefgh");
    const auto first = scan_data(text_spec(4), base());
    QCOMPARE(first->fingerprint.size(), 32u);
    const auto again = scan_data(text_spec(4), base());
    QCOMPARE(again->fingerprint, first->fingerprint);
    write("abcdefgi");
    const auto changed = scan_data(text_spec(4), base());
    QVERIFY(changed->fingerprint != first->fingerprint);
    write("ab");
    QCOMPARE(scan_data(text_spec(1), base())->fingerprint,
             std::string("89c65ebc828eebaca873719c24d5735c"));  // what the tool xxhsum -H2 prints
  }

  // Ranks take the supervisor's word for a file that stands as the supervisor hashed it.
  void a_file_is_hashed_again_only_if_it_may_have_changed() {
    const auto scan = [this](const DataFacts& known = {}) { return scan_data(text_spec(4), base(), known).value(); };
    write("abcdefgh");
    const DataFacts fresh = scan();
    QCOMPARE(fresh.files.size(), 1u);
    QCOMPARE(fresh.files[0].fingerprint, fresh.fingerprint);
    QCOMPARE(fresh.files[0].state, std::string());  // written a moment ago, it could change again without a sign
    DataFacts known = fresh;
    known.files[0].fingerprint = "of the earlier scan";
    QCOMPARE(scan(known).fingerprint, fresh.fingerprint);
    const QString path = dir_.filePath("data");
    if (!has_leases(path.toStdString())) QSKIP("this file system does not say who has a file open");
    QTRY_VERIFY_WITH_TIMEOUT(!scan().files[0].state.empty(), 30'000);
    known.files[0].state = scan().files[0].state;
    QCOMPARE(scan(known).fingerprint, std::string("of the earlier scan"));
    QCOMPARE(scan(known).samples, fresh.samples);
    QCOMPARE(scan(known).bytes, fresh.bytes);
    {
      // A process that has mapped it for writing can change it without changing its times.
      QFile file(path);
      QVERIFY(file.open(QIODevice::ReadWrite) && file.map(0, 8) != nullptr);
      file.close();
      QCOMPARE(scan().files[0].state, std::string());
      QCOMPARE(scan().fingerprint, fresh.fingerprint);
    }
    QCOMPARE(scan().files[0].state, known.files[0].state);
    known.files[0].state += "0";
    QCOMPARE(scan(known).fingerprint, fresh.fingerprint);
  }

  void a_large_file_is_hashed_in_blocks_as_a_whole() {
    QByteArray bytes(3 * 1024 * 1024 + 17, 'x');
    write(bytes);
    const auto whole = scan_data(text_spec(1024), base());
    QCOMPARE(whole->bytes, bytes.size());
    bytes[2 * 1024 * 1024 + 5] = 'y';
    write(bytes);
    QVERIFY(scan_data(text_spec(1024), base())->fingerprint != whole->fingerprint);
  }

  void token_files_are_little_endian_numbers() {
    RunSpec spec = text_spec(2);
    spec.data.kind = DataKind::tokens;
    spec.model.vocabulary = 300;
    write(QByteArray("\x01\x00\x2b\x01\x02\x00\x03\x00\x04\x00", 10));
    const auto facts = scan_data(spec, base());
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QCOMPARE(facts->samples, 2);
    spec.model.vocabulary = 299;
    QCOMPARE(error(spec), QString("./data: token 1 is 299, outside the vocabulary of 299. Raise model.vocabulary, or "
                                  "check data.token_type."));
    spec.data.token_type = "uint32";
    QCOMPARE(error(spec),
             QString("./data: the file has 10 bytes, not a whole number of 4-byte tokens. Check data.token_type."));
  }

  void text_may_have_a_smaller_vocabulary_that_holds_its_bytes() {
    RunSpec spec = text_spec(2);
    spec.model.vocabulary = 98;
    write("aaaaab");
    QCOMPARE(error(spec), QString("./data: token 5 is 98, outside the vocabulary of 98. Set model.vocabulary to 256."));
    write("aaaaaa");
    QVERIFY(scan_data(spec, base()));
  }

  void says_why_a_file_cannot_be_used() {
    const RunSpec spec = text_spec(4);
    QCOMPARE(error(spec), QString("./data: the file does not exist. Name an existing file in data.path."));
    write("");
    QCOMPARE(error(spec), QString("./data: the file is empty. Name a file with training data."));
    write("abcd");
    QCOMPARE(error(spec),
             QString("./data: the file has 4 bytes, too few for one sample of 5. Lower model.context, or name a "
                     "longer file."));
    RunSpec folder = spec;
    folder.data.path = ".";
    QCOMPARE(error(folder), QString("./.: this is a folder. Name a file in data.path."));
    RunSpec unnamed = spec;
    unnamed.data.path.clear();
    QCOMPARE(error(unnamed), QString("no file is named. Set data.path to the training data."));
    RunSpec device = spec;
    device.data.path = "/dev/zero";  // reading it would not end
    QCOMPARE(error(device), QString("/dev/zero: this is not a plain file. Name a file in data.path."));
    write("abcdefgh");
    QCOMPARE(error(text_spec(4, 0.9)),
             QString("data.validation_fraction: nothing is left to train on: evaluation keeps 1 sample of 1. Lower "
                     "data.validation_fraction."));
  }

  void an_absolute_path_is_not_moved() {
    DataSpec data;
    data.path = "/a/b";
    QCOMPARE(data_path(data, "/base"), std::filesystem::path("/a/b"));
    data.path = "b";
    QCOMPARE(data_path(data, "/base"), std::filesystem::path("/base/b"));
  }

  void tables_are_numbers_with_an_optional_header_data() {
    const Rows<QByteArray, QStringList, QString, QString> row;
    row("last column is the label", QByteArray("1,2,3\n4,5,6\n"), QStringList(), "2 rows, 2 + 1", "1 2 4 5 | 3 6");
    row("header", QByteArray("a,b,c\n1,2,3\n"), QStringList{"b"}, "1 rows, 2 + 1", "1 3 | 2");
    row("column by number", QByteArray("1,2,3\n"), QStringList{"1"}, "1 rows, 2 + 1", "2 3 | 1");
    row("labels in the order asked for", QByteArray("a,b,c\n1,2,3\n"), QStringList{"c", "a"}, "1 rows, 1 + 2",
        "2 | 3 1");
    row("semicolons", QByteArray("a;b;y\n1;2;3\n"), QStringList(), "1 rows, 2 + 1", "1 2 | 3");
    row("tabs", QByteArray("a\tb\ty\n1\t 2\t3\n"), QStringList(), "1 rows, 2 + 1", "1 2 | 3");
    row("tabs beside commas are spaces", QByteArray("1,\t2,3\n"), QStringList(), "1 rows, 2 + 1", "1 2 | 3");
    row("tabs behind a row of commas", QByteArray("1,2,3\t\n4,5,6\n"), QStringList(), "2 rows, 2 + 1", "1 2 4 5 | 3 6");
    row("tabs alone in a line", QByteArray("a\ty\n1\t2\n\t\t\n3\t4\n"), QStringList(), "2 rows, 1 + 1", "1 3 | 2 4");
    row("a semicolon in a name", QByteArray("a,b;c,y\n1,2,3\n"), QStringList(), "1 rows, 2 + 1", "1 2 | 3");
    row("a comma in a name", QByteArray("a, b;y\n1;2\n"), QStringList(), "1 rows, 1 + 1", "1 | 2");
    row("a name of two lines", QByteArray("\"a\nb\",y\n1,2\n"), QStringList(), "1 rows, 1 + 1", "1 | 2");
    row("quotes", QByteArray("\"a, b\",\"y\"\n\"1\",2\n"), QStringList{"a, b"}, "1 rows, 1 + 1", "2 | 1");
    row("ends of an old Mac", QByteArray("a,y\r1,2\r3,4\r"), QStringList(), "2 rows, 1 + 1", "1 3 | 2 4");
    row("words are classes in their order", QByteArray("a,y\n1,dog\n2,cat\n3,eel\n4,cat\n"), QStringList(),
        "4 rows, 1 + 1", "1 2 3 4 | 1 0 2 0");
    row("words without a header", QByteArray("5.1,setosa\n4.9,setosa\n6,virginica\n"), QStringList(), "3 rows, 1 + 1",
        "5.1 4.9 6 | 0 0 1");
    row("words in the first column", QByteArray("\"b \"\"x\"\"\";1\na;2\n\"b \"\"x\"\"\";3\n"), QStringList{"1"},
        "3 rows, 1 + 1", "1 2 3 | 1 0 1");
    row("a word over numbers is a name", QByteArray("0,1,label\n1,2,3\n4,5,6\n"), QStringList(), "2 rows, 2 + 1",
        "1 2 4 5 | 3 6");
    row("a name over words", QByteArray("0,1,label\n1,2,x\n4,5,y\n"), QStringList{"label"}, "2 rows, 2 + 1",
        "1 2 4 5 | 0 1");
    row("spaces, blank lines, windows ends", QByteArray("\xEF\xBB\xBF x , y \r\n\r\n 1 , +2.5e1 \r\n"), QStringList(),
        "1 rows, 1 + 1", "1 | 25");
  }
  void tables_are_numbers_with_an_optional_header() {
    const auto [text, labels, shape, numbers] = current_row<QByteArray, QStringList, QString, QString>();
    std::vector<std::string> names;
    for (const QString& label : labels) names.push_back(label.toStdString());
    const auto table = parse_csv(text.toStdString(), names, "t.csv");
    QVERIFY2(table, table ? "" : table.error().text().c_str());
    QCOMPARE(QString("%1 rows, %2 + %3").arg(table->rows).arg(table->inputs).arg(table->outputs), shape);
    QStringList shown;
    for (const double number : table->x) shown << QString::number(number);
    shown << "|";
    for (const double number : table->y) shown << QString::number(number);
    QCOMPARE(shown.join(' '), numbers);
  }

  void says_where_a_table_is_wrong_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QStringList>("labels");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* name, const char* text, QStringList labels, const char* expected) {
      QTest::newRow(name) << QByteArray(text) << labels << QString(expected);
    };
    row("word among numbers", "1,2\n3,x\n", {},
        "t.csv:2: column 2: \"x\" is not a finite number. A csv file of training data holds numbers only.");
    row("infinity", "1,2\n3,inf\n", {},
        "t.csv:2: column 2: \"inf\" is not a finite number. A csv file of training data holds numbers only.");
    row("missing cell", "1,2\n3\n", {},
        "t.csv:2: the row has 1 column where the first has 2. Give every row the same columns.");
    row("nan in the first row", "1,nan\n3,4\n", {},
        "t.csv:1: column 2: \"nan\" is not a finite number. A csv file of training data holds numbers only.");
    row("hole in the first row", "1,,3\n3,4,5\n", {},
        "t.csv:1: column 2: \"\" is not a finite number. A csv file of training data holds numbers only.");
    row("header alone", "a,b\n", {}, "t.csv: the table has no row of numbers");
    row("one column", "1\n2\n", {}, "t.csv: no column is left for x. A table needs inputs beside its labels.");
    row("no such label", "a,b\n1,2\n", {"c"},
        "t.csv: there is no column \"c\". Name columns in data.label_columns as the header line does, or by number "
        "from 1.");
    row("no table", "Some words.\nMore words.\n", {},
        "t.csv:1: this is no comma-separated table: its first line has no separator. Separate the columns by commas, "
        "semicolons or tabs.");
    row("parquet", "PAR1\x15\x04", {},
        "t.csv: this is no comma-separated table: it is a Parquet file. Write its texts as JSON lines, or its numbers "
        "as "
        "CSV, for example with pandas");
    row("UTF-16",
        "\xFF\xFE"
        "a,y",
        {"label"},
        "t.csv: this is no comma-separated table: it is a text in UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 't.csv' "
        "> "
        "utf8.txt");
    row("decimal commas", "1,5;2\n1,5;2\n", {},
        "t.csv:2: column 1: \"1,5\" is not a finite number. A csv file of training data holds numbers only.");
    row("decimal commas in every column", "1,5;2,5;0\n1,5;2,5;0\n", {},
        "t.csv:2: column 1: \"1,5\" is not a finite number. A csv file of training data holds numbers only.");
    row("an open quote", "1,2\n\"3,4\n", {}, "t.csv:2: column 1: a quote is opened here and never closed");
    row("text behind a quote", "1,2\n\"3\"x,4\n", {},
        "t.csv:2: column 1: the field goes on behind its closing quote. Put a separator between two fields, and write "
        "a "
        "quote in a quoted field twice.");
    row("a cut last row", "a,y\n1,2\n3", {},
        "t.csv:3: the row has 1 column where the first has 2. Give every row the same columns.");
    row("a hole among words", "1,dog\n2,cat\n3,dog\n4,\n", {},
        "t.csv:4: column 2: \"\" is no class, as the words of the other rows are. Fill it in, or leave the row out.");
    row("nan among words", "a,y\n1,dog\n2,nan\n", {},
        "t.csv:3: column 2: \"nan\" is no class, as the words of the other rows are. Fill it in, or leave the row "
        "out.");
    row("NA among words", "a,y\n1,dog\n2,NA\n", {},
        "t.csv:3: column 2: \"NA\" is no class, as the words of the other rows are. Fill it in, or leave the row out.");
    row("words in one of two label columns", "a,b,y\n1,2,dog\n", {"b", "y"},
        "t.csv:2: column 3: \"dog\" is not a finite number. A csv file of training data holds numbers only.");
    row("names or a row", "1,2,dog\n3,4,cat\n5,6,cat\n", {},
        "t.csv: line 1 may name the columns or be a row: \"dog\" is the label of no other row. Name all columns by "
        "words, "
        "or leave the row out.");
    row("number past the end", "1,2\n", {"3"},
        "t.csv: there is no column \"3\". Name columns in data.label_columns as the header line does, or by number "
        "from 1.");
  }
  void says_where_a_table_is_wrong() {
    QFETCH(QByteArray, text);
    QFETCH(QStringList, labels);
    QFETCH(QString, expected);
    std::vector<std::string> names;
    for (const QString& label : labels) names.push_back(label.toStdString());
    const auto table = parse_csv(text.toStdString(), names, "t.csv");
    QVERIFY(!table);
    QCOMPARE(QString::fromStdString(table.error().text()), expected);
  }

  void a_csv_file_is_counted_by_rows() {
    RunSpec spec = table_spec();
    spec.data = {};
    spec.data.kind = DataKind::csv;
    spec.data.path = "data";
    spec.data.validation_fraction = 0.25;
    write("a,b,y\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n");
    const auto facts = scan_data(spec, base());
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QCOMPARE(facts->samples, 3);
    QCOMPARE(facts->validation_samples, 2);
    QCOMPARE(facts->inputs, 2);
    QCOMPARE(facts->outputs, 1);
  }

  /// Sorted by class, without a header line, as it is published.
  void a_class_that_is_on_one_side_of_the_split_alone_is_warned_of() {
    RunSpec spec = class_spec();
    write(sorted_classes());
    spec.data.validation_fraction = 0.25;
    const auto facts = scan_data(spec, base());
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QVERIFY(has_named_classes(*facts));
    QCOMPARE(class_names(*facts), std::string("a = 0, b = 1, c = 2"));
    QVERIFY(facts->classes == (std::vector<ClassCount>{{"a", 0, 20, 0}, {"b", 1, 20, 0}, {"c", 2, 5, 15}}));
    QCOMPARE(findings(spec),
             QString("note: data.label_columns: has words, which become the classes a = 0, b = 1, c = 2|"
                     "warning: data.validation_shuffle: the samples kept for evaluation have none of the class a or b "
                     "(found false, expected true)"));
    spec.data.validation_shuffle = true;
    const auto drawn = scan_data(spec, base());
    QVERIFY(drawn && drawn->validation_shuffled);
    std::int64_t training = 0, validation = 0;
    for (const ClassCount& each : drawn->classes) {
      QCOMPARE(each.training + each.validation, 20);
      QVERIFY(each.training > 0 && each.validation > 0);
      training += each.training;
      validation += each.validation;
    }
    QCOMPARE(training, 45);
    QCOMPARE(validation, 15);
    QCOMPARE(findings(spec),
             QString("note: data.label_columns: has words, which become the classes a = 0, b = 1, c = 2"));
    RunSpec seeded = spec;
    seeded.run.seed = 7;  // the same samples
    QVERIFY(*scan_data(seeded, base()) == *drawn);
  }

  void labels_must_be_classes_of_the_model() {
    RunSpec spec = class_spec();
    write(sorted_classes());
    spec.model.outputs = 2;
    QVERIFY2(findings(spec).contains(
                 "model.outputs: a label is not a class of the model (found 2, expected 0 to 1, or -100)"),
             qPrintable(findings(spec)));
    spec.model.loss = LossKind::mse;
    QVERIFY2(error(spec).startsWith("model.loss: the labels are words, such as \"a\""), qPrintable(error(spec)));
    write("1,0\n2,1.5\n");
    spec.model.loss = LossKind::cross_entropy;
    QVERIFY2(error(spec).contains("the label of row 2 is 1.5"), qPrintable(error(spec)));
    write("1,0\n2,-100\n3,1\n");
    QVERIFY(scan_data(spec, base()));
  }

  void a_file_of_its_own_is_evaluated_on() {
    RunSpec spec = class_spec();
    spec.data.validation_path = "kept";
    write(sorted_classes());
    const auto alone = [&](const char* rows) {
      write(rows, "kept");
      return scan_data(spec, base());
    };
    const auto facts = alone("7;b\n8;c\n9;c\n");
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    QCOMPARE(facts->samples, 60);
    QCOMPARE(facts->validation_samples, 3);
    QVERIFY(facts->classes == (std::vector<ClassCount>{{"a", 0, 20, 0}, {"b", 1, 20, 1}, {"c", 2, 20, 2}}));
    QVERIFY(alone("7;b\n8;c\n8;c\n")->fingerprint != facts->fingerprint);
    QVERIFY2(findings(spec).contains("data.validation_path: the samples kept for evaluation have none of the class a "
                                     "(expected samples of every class)"),
             qPrintable(findings(spec)));
    const auto says = [&](const char* rows, const char* words) {
      const auto refused = alone(rows);
      QVERIFY(!refused);
      QCOMPARE(refused.error().where, std::string("data.validation_path"));
      QVERIFY2(refused.error().message.find(words) != std::string::npos, refused.error().message.c_str());
    };
    says("7,d\n8,d\n", "the class \"d\" is not in the training data");
    says("7,8,a\n7,8,a\n", "it has 3 columns where the training data have 2");
    says("7,1\n", "the labels of one file are words and those of the other numbers");
    says("", "the file is empty");
    write("7;b\n8;c\n9;c\n", "kept");
    spec.data.validation_fraction = 0.5;
    QVERIFY2(findings(spec).contains("data.validation_fraction: data.validation_path gives what is evaluated on"),
             qPrintable(findings(spec)));

    RunSpec text = text_spec(2);
    text.data.validation_path = "kept";
    write("abcdefg");
    write("abcde", "kept");
    const auto bytes = scan_data(text, base());
    QVERIFY2(bytes, bytes ? "" : bytes.error().text().c_str());
    QCOMPARE(bytes->samples, 3);
    QCOMPARE(bytes->validation_samples, 2);
    QFile::remove(dir_.filePath("kept"));
    QVERIFY2(error(text).contains("kept: the file does not exist"), qPrintable(error(text)));
  }

  void a_text_that_is_none_is_refused() {
    write(QByteArray("\x1F\x8B\x08\x00\x01\x02\x03\x04\x05", 9));
    QCOMPARE(error(text_spec(2)), QString("./data: this is no text: it is a gzip file. Unpack it: gzip -dk './data'"));
    write("{\"text\": \"a\"}", "lines.jsonl");
    RunSpec lines = text_spec(2);
    lines.data.path = "lines.jsonl";
    QVERIFY2(findings(lines).contains("warning: data.path: is JSON by its name"), qPrintable(findings(lines)));
    write(QByteArray("abcdefgh\0ij", 11));
    QVERIFY2(error(text_spec(2)).contains("a binary file"), qPrintable(error(text_spec(2))));
  }

  void inline_tables_are_counted_and_told_apart() {
    RunSpec spec = table_spec();
    const auto facts = scan_data(spec, base());
    QCOMPARE(facts->samples, 4);
    QCOMPARE(facts->inputs, 2);
    QCOMPARE(facts->outputs, 1);
    QCOMPARE(facts->tokens_per_sample, 1);
    spec.data.y[2][0] = 9;
    QVERIFY(scan_data(spec, base())->fingerprint != facts->fingerprint);
    RunSpec moved = table_spec();  // the same numbers in other rows are other data
    moved.data.x = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    moved.data.y = {{1, 2}, {3, 4}};
    const auto other = scan_data(moved, base());
    QVERIFY(other->fingerprint != facts->fingerprint);
    QCOMPARE(other->tokens_per_sample, 2);  // mse counts every output
    moved.model.loss = LossKind::cross_entropy;
    QCOMPARE(scan_data(moved, base())->tokens_per_sample, 1);
  }

  void sequences_count_labels_that_are_not_ignored() {
    const auto facts = scan_data(ragged_spec(), base());
    QVERIFY(facts);
    QCOMPARE(facts->samples, 3);
    QCOMPARE(facts->tokens_per_sample, 0);
    QVERIFY(facts->sample_tokens == std::vector<std::int64_t>({1, 1, 3}));
    QCOMPARE(facts->outputs, 2);
    RunSpec equal = ragged_spec();
    equal.data.validation_fraction = 0.3;
    const auto split = scan_data(equal, base());
    QCOMPARE(split->validation_samples, 1);
    QVERIFY(split->sample_tokens == std::vector<std::int64_t>({1, 1}));
    QCOMPARE(split->tokens_per_sample, 1);
  }

  void says_what_inline_data_lack() {
    RunSpec spec = table_spec();
    spec.data.y.pop_back();
    QCOMPARE(error(spec), QString("data.y: x has 4 rows and y has 3. Give every row of x a row of y."));
    spec = table_spec();
    spec.data.x[1] = {1};
    QCOMPARE(error(spec), QString("data.x: the rows differ in length. Give every row the same number of numbers; use "
                                  "sequences for samples of unequal length."));
    spec = ragged_spec();
    spec.data.labels[1] = {1};
    QCOMPARE(error(spec), QString("data.labels: row 2 has 2 positions and 1 label. Give every position one label; "
                                  "-100 is ignored."));
    spec = ragged_spec();
    spec.data.labels.pop_back();
    QCOMPARE(error(spec), QString("data.labels: sequences has 3 rows and labels has 2. Give every sequence its "
                                  "labels."));
    spec.data = {};
    spec.data.kind = DataKind::inline_;
    QCOMPARE(error(spec), QString("data.x: there are no samples. Give x and y, or sequences and labels."));
  }

  void synthetic_data_follow_from_the_seed_and_the_model() {
    RunSpec spec;
    const auto facts = scan_data(spec, base());
    QCOMPARE(facts->samples, 512);
    QCOMPARE(facts->tokens_per_sample, 128);
    QCOMPARE(scan_data(spec, base())->fingerprint, facts->fingerprint);
    spec.run.seed = 1;
    QVERIFY(scan_data(spec, base())->fingerprint != facts->fingerprint);
    spec.run.seed = 0;
    spec.accumulation.steps = 32;  // not a parameter of the generator
    QCOMPARE(scan_data(spec, base())->fingerprint, facts->fingerprint);
  }
};

ACCRUE_TEST_MAIN(TestDataFacts)

}  // namespace test_data_facts
#include "test_data_facts.moc"
