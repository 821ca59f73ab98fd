// SPDX-License-Identifier: Apache-2.0
// How data are counted, split and recognised again.
#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/csv_table.h"
#include "accrue/run/data_facts.h"
#include "accrue/run/data_split.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_data_facts {

using namespace accrue;
using accrue::test::current_row;
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
