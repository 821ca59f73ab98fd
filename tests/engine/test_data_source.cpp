// SPDX-License-Identifier: Apache-2.0
// Samples come out of every kind of data at the place and in the shape that the planner counted, and what does not fit
// is refused with its place.
#include <ATen/ops/equal.h>

#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>

#include "accrue/data/data_source.h"
#include "accrue/run/facts/sample_places.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_data_source {

using namespace accrue;

namespace {

/// For QVERIFY2, which evaluates its message in any case.
template <typename T>
std::string why(const Result<T>& result) {
  return result ? "" : result.error().text();
}

struct Opened {
  DataFacts facts;
  Result<std::unique_ptr<DataSource>> source;
};

Opened open_spec(const RunSpec& spec, const std::string& base = {}) {
  const auto facts = scan_data(spec, base);
  if (!facts) return {{}, tl::unexpected(facts.error())};
  return {*facts, open_data(spec, *facts, base)};
}

std::vector<std::int64_t> longs(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {plain.const_data_ptr<std::int64_t>(), plain.const_data_ptr<std::int64_t>() + plain.numel()};
}

std::vector<double> doubles(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kDouble).contiguous();
  return {plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel()};
}

RunSpec text_spec(const std::string& file, std::int64_t context) {
  RunSpec spec;
  spec.model.context = context;
  spec.data.kind = DataKind::text;
  spec.data.path = file;
  return spec;
}

RunSpec table_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.inputs = 2;
  spec.model.outputs = 1;
  spec.data.kind = DataKind::inline_;
  spec.data.x = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  spec.data.y = {{10}, {20}, {30}, {40}};
  return spec;
}

RunSpec ragged_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.outputs = 2;
  spec.model.loss = LossKind::cross_entropy;
  spec.data.kind = DataKind::inline_;
  spec.data.sequences = {{1}, {1, 2}, {1, 2, 3}};
  spec.data.labels = {{1}, {1, 0}, {1, -100, 1}};
  return spec;
}

/// What this process has read from files so far; -1 if unknown.
std::int64_t bytes_read() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  while (counters >> name >> bytes)
    if (name == "rchar:") return bytes;
  return -1;
}

}  // namespace

class TestDataSource : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void text_windows_are_shifted_by_one_and_share_one_byte() {
    QTemporaryDir folder;
    write(folder, "a.txt", "abcdefghij");  // 10 bytes: (10 - 1) / 3 = 3 samples
    const auto opened = open_spec(text_spec("a.txt", 3), folder.path().toStdString());
    QVERIFY2(opened.source, why(opened.source).c_str());
    DataSource& source = **opened.source;
    QCOMPARE(source.size(Split::train), 3);
    const std::vector<std::int64_t> rows{2, 0};
    const Batch batch = source.batch(Split::train, rows);
    QCOMPARE(longs(batch.inputs), (std::vector<std::int64_t>{'g', 'h', 'i', 'a', 'b', 'c'}));
    QCOMPARE(longs(batch.targets), (std::vector<std::int64_t>{'h', 'i', 'j', 'b', 'c', 'd'}));
    QCOMPARE(batch.samples, 2);
    QCOMPARE(batch.items, 6);
    QCOMPARE(batch.inputs.sizes().vec(), (std::vector<std::int64_t>{2, 3}));
  }

  void the_end_of_the_data_is_for_validation() {
    QTemporaryDir folder;
    write(folder, "a.txt", "abcdefghijk");  // five samples of 2
    RunSpec spec = text_spec("a.txt", 2);
    spec.data.validation_fraction = 0.4;
    const auto opened = open_spec(spec, folder.path().toStdString());
    QVERIFY2(opened.source, why(opened.source).c_str());
    QCOMPARE((*opened.source)->size(Split::train), 3);
    QCOMPARE((*opened.source)->size(Split::validation), 2);
    const std::vector<std::int64_t> rows{0, 1};
    QCOMPARE(longs((*opened.source)->batch(Split::validation, rows).inputs),
             (std::vector<std::int64_t>{'g', 'h', 'i', 'j'}));
  }

  void samples_for_validation_are_drawn_from_all_where_that_is_asked_for() {
    RunSpec spec = table_spec();
    spec.data.x.clear();
    spec.data.y.clear();
    for (int row = 0; row < 40; ++row) {
      spec.data.x.push_back({double(row), 0});
      spec.data.y.push_back({double(row)});
    }
    spec.data.validation_fraction = 0.25;
    spec.data.validation_shuffle = true;
    const auto opened = open_spec(spec);
    QVERIFY2(opened.source, why(opened.source).c_str());
    std::vector<std::int64_t> rows(30);
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<double> trained = doubles((*opened.source)->batch(Split::train, rows).targets);
    rows.resize(10);
    const std::vector<double> kept = doubles((*opened.source)->batch(Split::validation, rows).targets);
    QVERIFY(*std::ranges::min_element(kept) < 30);  // not the last ten
    const SamplePlaces places(opened.facts);
    for (std::size_t i = 0; i < 10; ++i) QCOMPARE(kept[i], static_cast<double>(places.validation(std::int64_t(i))));
    trained.insert(trained.end(), kept.begin(), kept.end());
    std::ranges::sort(trained);
    for (std::size_t i = 0; i < trained.size(); ++i) QCOMPARE(trained[i], static_cast<double>(i));
  }

  void validation_may_have_a_file_of_its_own() {
    QTemporaryDir folder;
    write(folder, "a.txt", "abcdefg");
    write(folder, "b.txt", "vwxyz");
    RunSpec spec = text_spec("a.txt", 2);
    spec.data.validation_path = "b.txt";
    const auto opened = open_spec(spec, folder.path().toStdString());
    QVERIFY2(opened.source, why(opened.source).c_str());
    const std::vector<std::int64_t> last{2}, both{1, 0};
    QCOMPARE(longs((*opened.source)->batch(Split::train, last).targets), (std::vector<std::int64_t>{'f', 'g'}));
    QCOMPARE(longs((*opened.source)->batch(Split::validation, both).inputs),
             (std::vector<std::int64_t>{'x', 'y', 'v', 'w'}));

    write(folder, "a.csv", "1,2,dog\n3,4,cat\n5,6,dog\n");
    write(folder, "b.csv", "7;8;dog\n9;10;dog\n");
    RunSpec table = table_spec();
    table.data = {};
    table.data.kind = DataKind::csv;
    table.data.path = "a.csv";
    table.data.validation_path = "b.csv";
    table.model.outputs = 2;
    table.model.loss = LossKind::cross_entropy;
    const auto classes = open_spec(table, folder.path().toStdString());
    QVERIFY2(classes.source, why(classes.source).c_str());
    const std::vector<std::int64_t> all{0, 1, 2}, kept{0, 1};
    QCOMPARE(longs((*classes.source)->batch(Split::train, all).targets), (std::vector<std::int64_t>{1, 0, 1}));
    QCOMPARE(longs((*classes.source)->batch(Split::validation, kept).targets), (std::vector<std::int64_t>{1, 1}));
    QCOMPARE(doubles((*classes.source)->batch(Split::validation, kept).inputs), (std::vector<double>{7, 8, 9, 10}));
  }

  void no_samples_make_an_empty_batch() {
    const auto opened = open_spec(table_spec());
    QVERIFY2(opened.source, why(opened.source).c_str());
    const Batch batch = (*opened.source)->batch(Split::train, {});
    QCOMPARE(batch.samples, 0);
    QCOMPARE(batch.items, 0);
  }

  void tokens_of_both_widths_data() {
    QTest::addColumn<QString>("type");
    QTest::newRow("uint16") << "uint16";
    QTest::newRow("uint32") << "uint32";
  }
  void tokens_of_both_widths() {
    QFETCH(QString, type);
    QTemporaryDir folder;
    std::string bytes;
    for (const std::uint32_t token : {1U, 40'000U, 3U, 4U, 5U}) append(bytes, token, type == "uint16" ? 2 : 4);
    write(folder, "t.bin", bytes);
    RunSpec spec = text_spec("t.bin", 2);
    spec.data.kind = DataKind::tokens;
    spec.data.token_type = type.toStdString();
    spec.model.vocabulary = 50'000;
    const auto opened = open_spec(spec, folder.path().toStdString());
    QVERIFY2(opened.source, why(opened.source).c_str());
    const std::vector<std::int64_t> rows{0, 1};
    const Batch batch = (*opened.source)->batch(Split::train, rows);
    QCOMPARE(longs(batch.inputs), (std::vector<std::int64_t>{1, 40'000, 3, 4}));
    QCOMPARE(longs(batch.targets), (std::vector<std::int64_t>{40'000, 3, 4, 5}));
  }

  void a_token_outside_the_vocabulary_is_refused_with_its_place() {
    QTemporaryDir folder;
    std::string bytes;
    for (const std::uint32_t token : {1U, 2U, 300U, 4U, 5U}) append(bytes, token, 2);
    write(folder, "t.bin", bytes);
    RunSpec spec = text_spec("t.bin", 2);
    spec.data.kind = DataKind::tokens;
    const auto opened = open_spec(spec, folder.path().toStdString());
    QVERIFY(!opened.source);
    QCOMPARE(opened.source.error().code, ErrorCode::data);
    QVERIFY2(opened.source.error().text().find("300") != std::string::npos, why(opened.source).c_str());
  }

  void data_that_changed_since_the_plan_is_refused() {
    QTemporaryDir folder;
    write(folder, "a.txt", "abcdefghij");
    const RunSpec spec = text_spec("a.txt", 3);
    const auto facts = scan_data(spec, folder.path().toStdString());
    QVERIFY(facts.has_value());
    write(folder, "a.txt", "abcdefghiJ");
    const auto opened = open_data(spec, *facts, folder.path().toStdString());
    VERIFY_FAILS(opened, ErrorCode::data, "changed");
    QVERIFY(opened.error().text().find("a.txt") != std::string::npos);
  }

  void a_missing_file_is_refused() {
    const auto opened = open_data(text_spec("nowhere.txt", 3), {}, "/nonexistent");
    QVERIFY(!opened);
    QCOMPARE(opened.error().code, ErrorCode::data);
  }

  void inline_rows_in_the_models_type() {
    RunSpec spec = table_spec();
    spec.model.dtype = Dtype::float64;
    const auto opened = open_spec(spec);
    QVERIFY2(opened.source, why(opened.source).c_str());
    const std::vector<std::int64_t> rows{3, 1};
    const Batch batch = (*opened.source)->batch(Split::train, rows);
    QCOMPARE(batch.inputs.scalar_type(), at::kDouble);
    QCOMPARE(doubles(batch.inputs), (std::vector<double>{7, 8, 3, 4}));
    QCOMPARE(doubles(batch.targets), (std::vector<double>{40, 20}));
    QCOMPARE(batch.items, 2);
  }

  void a_width_that_is_not_the_models_is_refused() {
    RunSpec spec = table_spec();
    spec.model.inputs = 3;
    const auto facts = scan_data(table_spec(), {});
    QVERIFY(facts.has_value());
    const auto opened = open_data(spec, *facts, {});
    VERIFY_FAILS(opened, ErrorCode::data, "model.inputs");
  }

  void csv_columns_become_inputs_and_labels() {
    QTemporaryDir folder;
    write(folder, "t.csv", "a,label,b\n1,0,2\n3,1,4\n5,1,6\n");
    RunSpec spec = table_spec();
    spec.data.kind = DataKind::csv;
    spec.data.path = "t.csv";
    spec.data.label_columns = {"label"};
    spec.model.outputs = 2;
    spec.model.loss = LossKind::cross_entropy;
    const auto opened = open_spec(spec, folder.path().toStdString());
    QVERIFY2(opened.source, why(opened.source).c_str());
    const std::vector<std::int64_t> rows{2};
    const Batch batch = (*opened.source)->batch(Split::train, rows);
    QCOMPARE(batch.inputs.sizes().vec(), (std::vector<std::int64_t>{1, 1, 2}));
    QCOMPARE(doubles(batch.inputs), (std::vector<double>{5, 6}));
    QCOMPARE(longs(batch.targets), (std::vector<std::int64_t>{1}));
    QCOMPARE(batch.items, 1);
  }

  void a_table_is_read_once_for_its_hash_and_once_for_its_rows() {
    if (bytes_read() < 0) QSKIP("this system does not count what a process reads");
    QTemporaryDir folder;
    std::string rows;
    for (int row = 0; row < 50'000; ++row) rows += "1,2,3\n";
    write(folder, "t.csv", rows);
    RunSpec spec = table_spec();
    spec.data.kind = DataKind::csv;
    spec.data.path = "t.csv";
    const auto facts = scan_data(spec, folder.path().toStdString()).value();
    const std::int64_t before = bytes_read();
    const auto opened = open_data(spec, facts, folder.path().toStdString());
    const std::int64_t after = bytes_read();
    QVERIFY2(opened, why(opened).c_str());
    QCOMPARE((*opened)->size(Split::train), 50'000);
    QCOMPARE((after - before) / std::ssize(rows), 2);  // the count itself reads some hundred bytes
  }

  void ragged_sequences_are_padded_to_the_longest_of_the_batch() {
    const auto opened = open_spec(ragged_spec());
    QVERIFY2(opened.source, why(opened.source).c_str());
    const std::vector<std::int64_t> rows{0, 2};
    const Batch batch = (*opened.source)->batch(Split::train, rows);
    QCOMPARE(batch.inputs.sizes().vec(), (std::vector<std::int64_t>{2, 3, 1}));
    QCOMPARE(doubles(batch.inputs), (std::vector<double>{1, 0, 0, 1, 2, 3}));
    QCOMPARE(longs(batch.targets), (std::vector<std::int64_t>{1, -100, -100, 1, -100, 1}));
    QCOMPARE(batch.items, 3);  // three labels count, one of the four is ignored
  }

  void a_label_outside_the_classes_is_refused() {
    RunSpec spec = ragged_spec();
    const auto facts = scan_data(spec, {});
    QVERIFY(facts.has_value());
    spec.model.outputs = 1;
    const auto opened = open_data(spec, *facts, {});
    QVERIFY(!opened);
    QCOMPARE(opened.error().code, ErrorCode::data);
  }

  void the_synthetic_language_depends_on_seed_and_sample_alone() {
    RunSpec spec;
    spec.model.context = 32;
    spec.model.vocabulary = 48;
    spec.data.samples = 100;
    const auto first = open_spec(spec);
    const auto again = open_spec(spec);
    QVERIFY2(first.source, why(first.source).c_str());
    const std::vector<std::int64_t> rows{42};
    const std::vector<std::int64_t> more{7, 42};
    const at::Tensor sample = (*first.source)->batch(Split::train, rows).inputs;
    QVERIFY(at::equal(sample[0], (*again.source)->batch(Split::train, more).inputs[1]));
    for (const std::int64_t token : longs(sample)) QVERIFY(token >= 0 && token < 48);
    spec.run.seed = 1;
    const auto other = open_spec(spec);
    QVERIFY(!at::equal(sample, (*other.source)->batch(Split::train, rows).inputs));
    QVERIFY(other.facts.fingerprint != first.facts.fingerprint);
  }

  void the_linear_teacher_can_be_learned() {
    RunSpec spec = table_spec();
    spec.data = {};
    spec.data.samples = 64;
    spec.model.inputs = 1;
    const auto opened = open_spec(spec);
    QVERIFY2(opened.source, why(opened.source).c_str());
    std::vector<std::int64_t> rows(64);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    const Batch batch = (*opened.source)->batch(Split::train, rows);
    const auto x = doubles(batch.inputs);
    const auto y = doubles(batch.targets);
    double xx = 0, xy = 0, yy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      xx += x[i] * x[i];
      xy += x[i] * y[i];
      yy += y[i] * y[i];
    }
    const double left = (yy - xy * xy / xx) / 64;                              // mean square of what a line leaves over
    QVERIFY2(left > 0.003 && left < 0.03, qPrintable(QString::number(left)));  // noise of 0.1
  }

 private:
  static void write(const QTemporaryDir& folder, const char* name, const std::string& bytes) {
    std::ofstream(folder.filePath(name).toStdString(), std::ios::binary | std::ios::trunc) << bytes;
  }
  static void append(std::string& bytes, std::uint32_t token, int width) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>((token >> (8 * i)) & 255);
  }
};

ACCRUE_TEST_MAIN(TestDataSource)

}  // namespace test_data_source
#include "test_data_source.moc"
