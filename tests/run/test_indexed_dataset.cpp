// SPDX-License-Identifier: Apache-2.0
// Indexed datasets on disk: their bytes, their damage, and builds that are interrupted. Sums are of files that
// megatron-core 0.12.0 wrote.
#include "accrue/run/data/indexed_dataset.h"

#include <QTemporaryDir>
#include <QTest>
#include <cstring>
#include <random>

#include "support/fuzz_inputs.h"
#include "support/indexed_corpus.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_indexed_dataset {

using namespace accrue;
using namespace accrue::test;

namespace {

using Tokens = std::vector<std::int64_t>;

std::string unhex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Documents [[1,2,3],[4,5]] and [[6]].
template <typename T>
void write_six(const std::filesystem::path& prefix, DType dtype) {
  auto builder = IndexedDatasetBuilder::create(prefix, dtype).value();
  const auto add = [&builder](std::vector<T> tokens) {
    builder.append_bytes(std::as_bytes(std::span<const T>(tokens))).value();
    builder.end_sequence().value();
  };
  add({1, 2, 3});
  add({4, 5});
  builder.end_document().value();
  add({6});
  builder.end_document().value();
  builder.finalize().value();
}

/// Reads all there is; false where something was refused.
bool read_everything(const std::filesystem::path& prefix) {
  const auto dataset = IndexedDataset::open(prefix);
  if (!dataset) return false;
  bool whole = dataset->check().has_value();
  for (std::int64_t i = 0; i < std::min<std::int64_t>(dataset->sequences(), 100); ++i) {
    const auto bytes = dataset->bytes(i);
    if (!bytes) whole = false;
    std::size_t sum = 0;
    for (const std::byte each : bytes ? *bytes : std::span<const std::byte>()) sum += static_cast<std::size_t>(each);
    if (sum > bytes_of(bin_path(prefix)).size() * 255) qFatal("read beyond the file");
  }
  for (std::int64_t i = 0; i < std::min<std::int64_t>(dataset->documents(), 100); ++i)
    if (!dataset->document(i)) whole = false;
  return whole;
}

}  // namespace

class TestIndexedDataset : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  std::filesystem::path fresh() { return temporary_.filePath(QStringLiteral("data%1").arg(++count_)).toStdString(); }

 private Q_SLOTS:
  void two_documents_are_these_bytes() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    QCOMPARE(bytes_of(idx_path(prefix)), unhex("4d4d494449445800"
                                               "00"
                                               "0100000000000000"
                                               "08"
                                               "0300000000000000"
                                               "0300000000000000"
                                               "030000000200000001000000"
                                               "000000000000000006000000000000000a00000000000000"
                                               "000000000000000002000000000000000300000000000000"));
    QCOMPARE(bytes_of(bin_path(prefix)), unhex("010002000300040005000600"));
  }
  void what_a_dataset_holds_can_be_read() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.sequences(), 3);
    QCOMPARE(dataset.documents(), 2);
    QCOMPARE(dataset.tokens(), 6);
    QCOMPARE(dataset.get(0).value(), (Tokens{1, 2, 3}));
    QCOMPARE(dataset.get(0, 1, 1).value(), (Tokens{2}));
    QCOMPARE(dataset.get(1, 2).value(), Tokens{});
    QCOMPARE(dataset.document(0).value(), (IndexRange{0, 2}));
    QCOMPARE(dataset.document(1).value(), (IndexRange{2, 3}));
    QVERIFY(dataset.check());
  }
  void what_it_does_not_hold_is_an_error() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const auto dataset = IndexedDataset::open(prefix).value();
    for (const auto& [sequence, offset, length] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
             {3, 0, 0}, {-1, 0, 0}, {0, 4, 0}, {0, 0, 4}, {0, -1, 1}, {0, 1, -1}, {1, 1, INT64_MAX}, {1, INT64_MIN, 1}})
      QVERIFY2(!dataset.get(sequence, offset, length), qPrintable(QString::number(sequence)));
    QVERIFY(!dataset.document(2));
    QVERIFY(!dataset.document(-1));
    QVERIFY(!dataset.lengths({0, 4}));
  }

  void every_type_has_the_bytes_of_the_original() {
    const auto dir = fresh();
    std::filesystem::create_directory(dir);
    write_six<float>(dir / "f32", DType::float32);
    write_six<double>(dir / "f64", DType::float64);
    write_six<std::int8_t>(dir / "i8", DType::int8);
    write_six<std::int64_t>(dir / "i64", DType::int64);
    QCOMPARE(file_sum(dir / "f32.idx"), std::string("adb7306b3a4f1149"));
    QCOMPARE(file_sum(dir / "f64.bin"), std::string("d73f023a3f852bf2"));
    QCOMPARE(file_sum(dir / "i8.bin"), std::string("7192385c3c0605de"));
    QCOMPARE(file_sum(dir / "i64.bin"), std::string("5f544d51f4618ae3"));
    write_corpus(dir / "corpus", corpus_lengths);
    QCOMPARE(file_sum(dir / "corpus.idx"), std::string("7bdce6d462273f0d"));
    QCOMPARE(file_sum(dir / "corpus.bin"), std::string("b179fd6bde193de7"));
    QCOMPARE(IndexedDataset::open(dir / "i64").value().get(1).value(), (Tokens{4, 5}));
    QVERIFY(!IndexedDataset::open(dir / "f32").value().get(1));
    const auto raw = IndexedDataset::open(dir / "f64").value();
    double third = 0;
    std::memcpy(&third, raw.bytes(0, 2).value().data(), sizeof third);
    QCOMPARE(third, 3.0);
  }
  void merged_datasets_have_the_bytes_of_the_original() {
    const auto dir = fresh();
    std::filesystem::create_directory(dir);
    write_six<std::uint16_t>(dir / "u16", DType::uint16);
    write_corpus(dir / "other", {30, 21, 9}, false, 1000);
    auto builder = IndexedDatasetBuilder::create(dir / "merged", DType::uint16).value();
    QVERIFY(builder.add_index(dir / "u16"));
    QVERIFY(builder.add_index(dir / "other"));
    QVERIFY(builder.finalize());
    QCOMPARE(file_sum(dir / "merged.idx"), std::string("ba7ebe20913baa4a"));
    QCOMPARE(file_sum(dir / "merged.bin"), std::string("30e6810affd9dad5"));
    write_six<std::int32_t>(dir / "i32", DType::int32);
    auto mixed = IndexedDatasetBuilder::create(dir / "mixed", DType::uint16).value();
    QVERIFY(!mixed.add_index(dir / "i32"));
  }
  void vocabularies_choose_the_type() {
    QCOMPARE(optimal_dtype(65499), DType::uint16);
    QCOMPARE(optimal_dtype(65500), DType::int32);
  }

  void a_multimodal_index_is_refused_by_name() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    write_bytes(idx_path(prefix), bytes_of(idx_path(prefix)) + std::string(3, '\0'));
    const auto opened = IndexedDataset::open(prefix);
    QVERIFY(!opened);
    QVERIFY(opened.error().message.find("multimodal") != std::string::npos);
  }
  void an_index_that_was_cut_short_says_so() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const std::string whole = bytes_of(idx_path(prefix));
    for (const std::size_t bytes : {4, 20, 33}) {
      write_bytes(idx_path(prefix), whole.substr(0, bytes));
      const auto opened = IndexedDataset::open(prefix);
      QVERIFY(!opened);
      QVERIFY2(opened.error().message.find("cut short: it has " + std::to_string(bytes)) != std::string::npos,
               opened.error().message.c_str());
    }
  }
  void damage_is_named_data() {
    const Rows<QString, int, QString, QString> row;
    row("no magic", ".idx", 0, "ff", "MMIDIDX");
    row("version 2", ".idx", 9, "02", "version 2");
    row("type 9", ".idx", 17, "09", "type 9");
    row("type 0", ".idx", 17, "00", "type 0");
    row("more sequences than the file", ".idx", 18, "ffffffffffffffff", "sequences");
    row("a count that overflows", ".idx", 26, "000000000000002000000000", "document entries");
    row("a first document that is not 0", ".idx", 70, "01", "documents");
    row("a last document beyond the sequences", ".idx", 86, "04", "documents");
    row("a last sequence too long", ".idx", 42, "02", "last sequence");
    row("a last sequence before the file", ".idx", 58, "ffffffffffffffff", "last sequence");
  }
  void damage_is_named() {
    const auto [file, at, digits, word] = current_row<QString, int, QString, QString>();
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const std::filesystem::path path = prefix.string() + file.toStdString();
    std::string bytes = bytes_of(path);
    const std::string damage = unhex(digits.toStdString());
    bytes.replace(static_cast<std::size_t>(at), damage.size(), damage);
    write_bytes(path, bytes);
    const auto opened = IndexedDataset::open(prefix);
    QVERIFY(!opened);
    QVERIFY2(opened.error().message.find(word.toStdString()) != std::string::npos, opened.error().text().c_str());
    QVERIFY(opened.error().where.starts_with(prefix.string()));
  }
  void damage_in_the_middle_is_met_at_the_sequence() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    std::string bytes = bytes_of(idx_path(prefix));
    bytes[34] = 9;     // sequence 0 has 9 tokens
    bytes[61] = 0x7f;  // sequence 1 begins far beyond the file
    write_bytes(idx_path(prefix), bytes);
    const auto dataset = IndexedDataset::open(prefix).value();
    QVERIFY(!dataset.bytes(0));
    QVERIFY(!dataset.bytes(1));
    QVERIFY(dataset.bytes(2));
    QVERIFY(!dataset.check());
  }
  void truncated_files_are_refused() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const std::string idx = bytes_of(idx_path(prefix)), bin = bytes_of(bin_path(prefix));
    for (std::size_t size = 0; size < idx.size(); ++size) {
      write_bytes(idx_path(prefix), idx.substr(0, size));
      QVERIFY2(!IndexedDataset::open(prefix), qPrintable(QString::number(size)));
    }
    write_bytes(idx_path(prefix), idx);
    for (std::size_t size = 0; size < bin.size(); ++size) {
      write_bytes(bin_path(prefix), bin.substr(0, size));
      QVERIFY2(!IndexedDataset::open(prefix), qPrintable(QString::number(size)));
    }
    write_bytes(bin_path(prefix), bin + "more");
    QVERIFY(!IndexedDataset::open(prefix));
  }
  void random_damage_is_refused_or_read_within_the_files() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const std::string idx = bytes_of(idx_path(prefix));
    std::mt19937 random(20240817);
    int refused = 0;
    const int trials = fuzz_inputs;
    // The file stays and is written over: a hundred thousand new ones would take minutes.
    std::fstream file(idx_path(prefix), std::ios::binary | std::ios::in | std::ios::out);
    for (int trial = 0; trial < trials; ++trial) {
      std::string damaged = idx;
      for (auto flips = 1 + random() % 4; flips > 0; --flips)
        damaged[random() % damaged.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
      file.seekp(0).write(damaged.data(), static_cast<std::streamsize>(damaged.size())).flush();
      refused += read_everything(prefix) ? 0 : 1;
    }
    QVERIFY2(refused > trials * 9 / 10 && refused < trials, qPrintable(QString::number(refused)));
  }

  void a_damaged_bin_is_refused_or_read_as_it_is() {
    const auto prefix = fresh();
    write_six<std::uint16_t>(prefix, DType::uint16);
    const std::string bin = bytes_of(bin_path(prefix));
    std::mt19937 random(20240818);
    int refused = 0;
    std::fstream file(bin_path(prefix), std::ios::binary | std::ios::in | std::ios::out);  // written over, as above
    for (int trial = 0; trial < fuzz_inputs; ++trial) {
      std::string damaged = bin;
      for (auto flips = 1 + random() % 4; flips > 0; --flips)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      if (random() % 3 == 0) damaged.resize(1 + random() % (2 * bin.size()), static_cast<char>(random()));
      std::filesystem::resize_file(bin_path(prefix), damaged.size());
      file.seekp(0).write(damaged.data(), static_cast<std::streamsize>(damaged.size())).flush();
      const auto opened = IndexedDataset::open(prefix);
      QCOMPARE(opened.has_value(), damaged.size() == bin.size());
      if (!opened) {
        QVERIFY2(opened.error().where == bin_path(prefix).string(), opened.error().text().c_str());
        ++refused;
        continue;
      }
      std::string read;
      for (std::int64_t i = 0; i < opened->sequences(); ++i) {
        const auto bytes = opened->bytes(i).value();
        read.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      QCOMPARE(read, damaged);
    }
    QVERIFY(refused > fuzz_inputs / 10 && refused < fuzz_inputs);
  }

  void an_interrupted_build_goes_on_to_the_same_bytes() {
    const auto whole = fresh(), prefix = fresh();
    write_corpus(whole, corpus_lengths);
    std::int64_t token = 0;
    std::size_t next = 0;
    const auto add = [&](IndexedDatasetBuilder& builder) {
      Tokens tokens(static_cast<std::size_t>(corpus_lengths[next++]));
      std::iota(tokens.begin(), tokens.end(), token);
      token += static_cast<std::int64_t>(tokens.size());
      builder.add_item(tokens).value();
      builder.end_document().value();
    };
    {
      auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
      for (int i = 0; i < 20; ++i) add(builder);
      const Tokens begun = {token, token + 1};  // of the next sequence
      QVERIFY(builder.append(begun));
      QVERIFY(builder.checkpoint("20 and 2"));
      for (int i = 0; i < 5; ++i) QVERIFY(builder.add_item(Tokens{7, 7, 7}));  // lost with the process
    }
    QVERIFY(IndexedDatasetBuilder::interrupted(prefix));
    QVERIFY(!IndexedDataset::open(prefix));
    auto builder = IndexedDatasetBuilder::resume(prefix).value();
    QCOMPARE(builder.place(), std::string("20 and 2"));
    QCOMPARE(builder.sequences(), 20);
    QCOMPARE(builder.open_tokens(), 2);
    Tokens rest(static_cast<std::size_t>(corpus_lengths[next++] - 2));
    std::iota(rest.begin(), rest.end(), token + 2);
    token += static_cast<std::int64_t>(rest.size()) + 2;
    QVERIFY(builder.add_item(rest));
    QVERIFY(builder.end_document());
    while (next < corpus_lengths.size()) add(builder);
    QVERIFY(builder.finalize());
    QCOMPARE(bytes_of(idx_path(prefix)), bytes_of(idx_path(whole)));
    QCOMPARE(bytes_of(bin_path(prefix)), bytes_of(bin_path(whole)));
    QVERIFY(!IndexedDatasetBuilder::interrupted(prefix));
  }
  void a_build_that_ended_between_its_two_renames_goes_on() {
    const auto prefix = fresh();
    {
      auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
      QVERIFY(builder.add_item(Tokens{1, 2}));
      QVERIFY(builder.end_document());
      QVERIFY(builder.checkpoint("all"));
    }
    const auto part = prefix.parent_path() / ("." + prefix.filename().string() + ".bin.part");
    std::filesystem::rename(part, bin_path(prefix));
    QVERIFY(IndexedDatasetBuilder::resume(prefix).value().finalize());
    QCOMPARE(IndexedDataset::open(prefix).value().get(0).value(), (Tokens{1, 2}));
  }
  /// The order of the renames: prompts, tokens, index.
  void prompts_come_and_go_with_their_dataset() {
    for (const bool tokens_too : {false, true}) {
      const auto prefix = fresh();
      {
        auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
        for (const std::int64_t token : {1, 2}) {
          QVERIFY(builder.append(Tokens{token}));
          builder.end_prompt();
          QVERIFY(builder.add_item(Tokens{3, 4}) && builder.end_document());
        }
        QVERIFY(builder.checkpoint("all"));
      }
      const auto part = [&](const char* ending) {
        return prefix.parent_path() / ("." + prefix.filename().string() + ending);
      };
      std::filesystem::rename(part(".prompts.part"), prompts_path(prefix));
      if (tokens_too) std::filesystem::rename(part(".bin.part"), bin_path(prefix));
      auto resumed = IndexedDatasetBuilder::resume(prefix).value();
      QVERIFY(resumed.add_item(Tokens{5}) && resumed.end_document() && resumed.finalize());
      const auto copy = fresh();
      auto builder = IndexedDatasetBuilder::create(copy, DType::uint16).value();
      QVERIFY(builder.add_index(prefix) && builder.finalize());
      for (const auto& each : {prefix, copy}) {
        const auto dataset = IndexedDataset::open(each).value();
        QCOMPARE((Tokens{dataset.prompt_length(0).value(), dataset.prompt_length(1).value(),
                         dataset.prompt_length(2).value()}),
                 (Tokens{1, 1, 0}));
        QVERIFY(!std::filesystem::exists(part(".prompts.part")));
      }
    }
  }
  void damaged_prompts_are_refused() {
    const auto prefix = fresh();
    write_corpus(prefix, {3, 4});
    const auto write = [&](const std::vector<std::int32_t>& prompts) {
      std::ofstream(prompts_path(prefix), std::ios::binary)
          .write(reinterpret_cast<const char*>(prompts.data()), static_cast<std::streamsize>(4 * prompts.size()));
    };
    write({3, 5});
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.prompt_length(0).value(), 3);
    QCOMPARE(QString::fromStdString(dataset.prompt_length(1).error().message),
             QString("gives sequence 1, of 4 tokens, a prompt of 5"));
    write({3});
    const Error short_file = IndexedDataset::open(prefix).error();
    QCOMPARE(QString::fromStdString(short_file.message), QString("has 4 bytes, and 2 sequences need 8"));
    QCOMPARE(short_file.where, prompts_path(prefix).string());
  }
  void nothing_is_left_beside_a_dataset() {
    const auto dir = fresh();
    std::filesystem::create_directory(dir);
    write_six<std::uint16_t>(dir / "six", DType::uint16);
    QStringList names = QDir(QString::fromStdString(dir.string())).entryList(QDir::Files | QDir::Hidden);
    QCOMPARE(names, (QStringList{"six.bin", "six.idx"}));
  }
  void what_cannot_be_built_is_refused() {
    const auto prefix = fresh();
    auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
    QVERIFY(!builder.append(Tokens{65536}));
    QVERIFY(!builder.append(Tokens{-1}));
    QVERIFY(!IndexedDatasetBuilder::create(prefix, DType::uint16));  // being built
    QVERIFY(!builder.finalize());                                    // no tokens
    QVERIFY(builder.add_item(Tokens{1}));
    QVERIFY_EXCEPTION_THROWN(static_cast<void>(builder.finalize()), std::logic_error);
    QVERIFY(builder.end_document());
    QVERIFY(builder.finalize());
    const auto again = IndexedDatasetBuilder::create(prefix, DType::uint16);
    QVERIFY(!again);
    QVERIFY(again.error().message.find("exists") != std::string::npos);
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestIndexedDataset)

}  // namespace test_indexed_dataset
#include "test_indexed_dataset.moc"
