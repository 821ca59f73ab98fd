// SPDX-License-Identifier: Apache-2.0
// The samples of BERT and T5 beside those that megatron-core 0.12.0 with NumPy 1.26.4 made of the same dataset, with a
// tokenizer of 120 tokens in which every third from 42 to 99 goes on with a word. Sums are over every number of every
// item.
#include "accrue/run/data/bert_dataset.h"
#include "accrue/run/data/t5_dataset.h"

#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/data/indexed_dataset_builder.h"
#include "support/test_program.h"

namespace test_sentence_samples {

using namespace accrue;

namespace {

using Numbers = std::vector<std::int64_t>;

/// The corpus of the frozen run: documents of up to six sentences, drawn by a linear congruential generator.
class Corpus {
 public:
  void write(const std::filesystem::path& prefix) {
    auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
    for (int document = 0; document < 14; ++document) {
      const std::int64_t sentences = std::max<std::int64_t>(next(7), 1);
      std::vector<Numbers> texts;
      for (std::int64_t i = 0; i < sentences; ++i) texts.push_back(sentence(1 + next(12)));
      if (document == 5) texts.back() = sentence(513);
      for (const Numbers& text : texts) QVERIFY(builder.add_item(text));
      QVERIFY(builder.end_document());
    }
    QVERIFY(builder.finalize());
  }

 private:
  std::int64_t next(std::int64_t limit) {
    state_ = (state_ * 1103515245 + 12345) % 2147483648;
    return (state_ >> 8) % limit;
  }
  Numbers sentence(std::int64_t length) {
    Numbers text;
    for (std::int64_t i = 0; i < length; ++i) text.push_back(1 + next(99));
    return text;
  }
  std::int64_t state_ = 1;
};

SpecialTokens stub_tokenizer() {
  SpecialTokens special{.vocabulary = 120, .cls = 101, .sep = 102, .mask = 103, .pad = 0, .bos = 104, .eos = 105};
  for (std::int64_t token = 106; token < 118; ++token) special.sentinels.push_back(token);
  for (std::int64_t token = 0; token < 120; ++token)
    special.continues.push_back(token >= 40 && token < 100 && token % 3 == 0);
  return special;
}

/// FNV-1a over whole numbers.
class Sum {
 public:
  void add(const Numbers& numbers) {
    for (const std::int64_t number : numbers) add(number);
  }
  void add(std::int64_t number) { sum_ = (sum_ ^ static_cast<std::uint64_t>(number)) * 1099511628211U; }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 1469598103934665603U;
};

Numbers rows_of(const IndexArray& index) {
  Numbers rows;
  for (std::int64_t i = 0; i < index.size(); ++i)
    for (std::int64_t column = 0; column < index.columns(); ++column) rows.push_back(index.at(i, column));
  return rows;
}

}  // namespace

#define REFUSED(result, words)                                                       \
  do {                                                                               \
    const auto refused_result = (result);                                            \
    QVERIFY(!refused_result);                                                        \
    QVERIFY2(QString::fromStdString(refused_result.error().message).contains(words), \
             refused_result.error().message.c_str());                                \
  } while (false)

class TestSentenceSamples : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  std::shared_ptr<const IndexedDataset> corpus_;

  Result<BertDataset> bert(const IndexRange& documents, const BertRequest& request) const {
    auto index = build_sentence_index(*corpus_, documents, BertDataset::index_request(request).value());
    if (!index) return tl::unexpected(index.error());
    return BertDataset::create(corpus_, *std::move(index), request, stub_tokenizer());
  }
  Result<T5Dataset> t5(const T5Request& request, SpecialTokens special = stub_tokenizer()) const {
    auto index = build_sentence_index(*corpus_, {0, 14}, T5Dataset::index_request(request).value());
    if (!index) return tl::unexpected(index.error());
    return T5Dataset::create(corpus_, *std::move(index), request, std::move(special));
  }

 private Q_SLOTS:
  void initTestCase() {
    const std::filesystem::path prefix = std::filesystem::path(temporary_.path().toStdString()) / "sentences";
    Corpus().write(prefix);
    corpus_ = std::make_shared<IndexedDataset>(IndexedDataset::open(prefix).value());
    QCOMPARE(corpus_->sequences(), 47);
  }

  void bert_samples_are_upstreams_data() {
    QTest::addColumn<Numbers>("range");
    QTest::addColumn<std::int64_t>("length");
    QTest::addColumn<bool>("head");
    QTest::addColumn<std::int64_t>("samples");
    QTest::addColumn<std::int64_t>("seed");
    QTest::addColumn<double>("shorter");
    QTest::addColumn<double>("probability");
    QTest::addColumn<bool>("longer");
    QTest::addColumn<Numbers>("rows");
    QTest::addColumn<std::uint64_t>("sum");
    QTest::newRow("bert head") << Numbers{0, 14} << std::int64_t{32} << true << std::int64_t{40} << std::int64_t{1234}
                               << 0.1 << 0.15 << false
                               << Numbers{42, 47, 29, 16, 20, 18, 6,  8,  29, 33, 39, 29, 22, 24, 29, 33, 39, 29,
                                          0,  5,  29, 28, 33, 28, 22, 24, 29, 16, 22, 29, 22, 24, 29, 6,  8,  29,
                                          39, 42, 29, 28, 33, 29, 25, 28, 29, 0,  5,  29, 0,  5,  29, 28, 33, 29,
                                          25, 28, 29, 28, 33, 29, 25, 28, 29, 16, 22, 29, 42, 47, 29, 25, 28, 29,
                                          6,  8,  29, 0,  5,  29, 39, 42, 29, 39, 42, 29, 6,  8,  29, 16, 22, 29,
                                          39, 42, 29, 6,  8,  29, 42, 47, 29, 33, 39, 29, 39, 42, 29, 0,  5,  29,
                                          20, 22, 29, 42, 47, 29, 16, 22, 29, 42, 47, 29, 22, 24, 29, 25, 28, 29,
                                          33, 39, 29, 22, 24, 29, 33, 39, 29, 28, 33, 29}
                               << std::uint64_t{4834987421556740999U};
    QTest::newRow("bert no head") << Numbers{0, 14} << std::int64_t{24} << false << std::int64_t{20} << std::int64_t{7}
                                  << 0.1 << 0.15 << false
                                  << Numbers{16, 22, 21, 25, 28, 21, 5,  6,  21, 6,  8,  2,  9,  10, 21, 16, 22,
                                             21, 6,  8,  21, 8,  9,  21, 9,  10, 21, 39, 42, 21, 33, 37, 21, 24,
                                             25, 21, 0,  5,  21, 25, 28, 21, 8,  9,  21, 28, 33, 21, 28, 33, 21,
                                             24, 25, 21, 0,  5,  21, 37, 39, 2,  22, 24, 21, 33, 37, 21, 5,  6,
                                             21, 42, 47, 21, 37, 39, 21, 39, 42, 21, 22, 24, 2,  42, 47, 21}
                                  << std::uint64_t{16992344204836206454U};
    QTest::newRow("bert split") << Numbers{3, 11} << std::int64_t{20} << true << std::int64_t{12} << std::int64_t{99}
                                << 0.5 << 0.3 << false
                                << Numbers{20, 22, 17, 25, 28, 17, 30, 33, 17, 16, 20, 17, 28, 30, 6,  22, 24, 17,
                                           20, 22, 17, 16, 20, 17, 25, 28, 10, 28, 30, 2,  30, 33, 17, 22, 24, 10}
                                << std::uint64_t{2524146159726389537U};
    QTest::newRow("bert longer") << Numbers{0, 14} << std::int64_t{32} << true << std::int64_t{12} << std::int64_t{5}
                                 << 0.0 << 0.15 << true
                                 << Numbers{6,  8,  29, 33, 39, 29, 28, 33, 29, 33, 39, 29, 39, 42, 29, 16, 22, 29,
                                            6,  8,  29, 25, 28, 29, 0,  5,  29, 16, 22, 29, 39, 42, 29, 22, 24, 29,
                                            42, 47, 29, 0,  5,  29, 25, 28, 29, 22, 24, 29, 42, 47, 29, 28, 33, 29}
                                 << std::uint64_t{14573801132554310442U};
  }
  void bert_samples_are_upstreams() {
    QFETCH(Numbers, range);
    QFETCH(std::int64_t, length);
    QFETCH(bool, head);
    QFETCH(std::int64_t, samples);
    QFETCH(std::int64_t, seed);
    QFETCH(double, shorter);
    QFETCH(double, probability);
    QFETCH(bool, longer);
    QFETCH(Numbers, rows);
    QFETCH(std::uint64_t, sum);
    BertRequest request{.sequence_length = length,
                        .samples = samples,
                        .seed = static_cast<std::uint32_t>(seed),
                        .binary_head = head,
                        .short_probability = shorter};
    request.masking.probability = probability;
    request.masking.longer_runs = longer;
    request.masking.whole_words = !longer;
    const auto dataset = bert({range[0], range[1]}, request);
    QVERIFY(dataset);
    QCOMPARE(rows_of(dataset->index()), rows);
    Sum all;
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      const auto item = dataset->item(i);
      QVERIFY(item);
      all.add(item->text);
      all.add(item->types);
      all.add(item->labels);
      all.add(item->is_random ? 1 : 0);
      all.add(item->padding_mask);
      all.add(item->loss_mask);
      all.add(item->truncated ? 1 : 0);
    }
    QCOMPARE(all.value(), sum);
  }
  void a_bert_item_is_upstreams() {
    const auto dataset = bert(
        {3, 11},
        {.sequence_length = 20, .samples = 12, .seed = 99, .short_probability = 0.5, .masking = {.probability = 0.3}});
    QVERIFY(dataset);
    const auto item = dataset->item(1).value();
    QCOMPARE(item.text, (Numbers{101, 67, 61, 91, 90, 5, 33, 48, 30, 103, 102, 103, 6, 103, 103, 14, 1, 21, 17, 102}));
    QCOMPARE(item.types, (Numbers{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
    QCOMPARE(item.labels, (Numbers{-1, -1, -1, -1, -1, -1, -1, -1, -1, 37, -1, 53, -1, 38, 11, 14, -1, -1, -1, -1}));
    QCOMPARE(item.loss_mask, (Numbers{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0}));
    QCOMPARE(item.padding_mask, (Numbers{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
    QVERIFY(!item.is_random);
    QVERIFY(item.truncated);
  }
  void t5_samples_are_upstreams_data() {
    QTest::addColumn<std::int64_t>("length");
    QTest::addColumn<std::int64_t>("decoder");
    QTest::addColumn<std::int64_t>("samples");
    QTest::addColumn<std::int64_t>("seed");
    QTest::addColumn<double>("shorter");
    QTest::addColumn<double>("probability");
    QTest::addColumn<Numbers>("rows");
    QTest::addColumn<std::uint64_t>("sum");
    QTest::newRow("t5") << std::int64_t{40} << std::int64_t{32} << std::int64_t{40} << std::int64_t{1234} << 0.1 << 0.15
                        << Numbers{0,  5,  38, 39, 42, 38, 42, 47, 38, 22, 24, 38, 28, 33, 38, 6,  8,  38, 42, 47,
                                   38, 0,  5,  38, 9,  10, 38, 6,  8,  38, 28, 33, 38, 24, 25, 38, 16, 22, 38, 5,
                                   6,  38, 33, 39, 38, 42, 47, 38, 25, 28, 38, 28, 33, 38, 9,  10, 38, 5,  6,  22,
                                   22, 24, 38, 25, 28, 38, 8,  9,  38, 28, 33, 38, 22, 24, 38, 25, 28, 38, 33, 39,
                                   38, 8,  9,  38, 22, 24, 38, 6,  8,  38, 16, 22, 38, 6,  8,  38, 8,  9,  38, 16,
                                   22, 38, 39, 42, 38, 24, 25, 38, 9,  10, 38, 24, 25, 38, 39, 42, 38, 0,  5,  38,
                                   16, 22, 38, 33, 39, 38, 8,  9,  38, 42, 47, 38, 0,  5,  38, 25, 28, 38, 5,  6,
                                   38, 39, 42, 38, 5,  6,  38, 9,  10, 38, 33, 39, 38, 24, 25, 38}
                        << std::uint64_t{1633231915157838618U};
    QTest::newRow("t5 dense") << std::int64_t{24} << std::int64_t{40} << std::int64_t{20} << std::int64_t{3} << 0.25
                              << 0.4 << Numbers{8,  9,  22, 9,  10, 22, 24, 25, 10, 25, 28, 22, 5,  6,  22, 28, 33,
                                                15, 39, 42, 22, 42, 47, 22, 28, 33, 22, 6,  8,  22, 33, 35, 8,  9,
                                                10, 22, 25, 28, 22, 16, 20, 18, 6,  8,  9,  24, 25, 22, 22, 24, 22,
                                                33, 39, 22, 20, 22, 22, 0,  5,  22, 8,  9,  11, 42, 47, 22, 39, 42,
                                                22, 35, 39, 22, 0,  5,  22, 22, 24, 22, 16, 22, 22, 5,  6,  22}
                              << std::uint64_t{10997105900307148823U};
  }
  void t5_samples_are_upstreams() {
    QFETCH(std::int64_t, length);
    QFETCH(std::int64_t, decoder);
    QFETCH(std::int64_t, samples);
    QFETCH(std::int64_t, seed);
    QFETCH(double, shorter);
    QFETCH(double, probability);
    QFETCH(Numbers, rows);
    QFETCH(std::uint64_t, sum);
    T5Request request{.sequence_length = length,
                      .decoder_sequence_length = decoder,
                      .samples = samples,
                      .seed = static_cast<std::uint32_t>(seed),
                      .short_probability = shorter};
    request.masking.probability = probability;
    const auto dataset = t5(request);
    QVERIFY(dataset);
    QCOMPARE(rows_of(dataset->index()), rows);
    Sum all;
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      const auto item = dataset->item(i);
      QVERIFY(item);
      all.add(item->encoder_text);
      all.add(item->decoder_text);
      all.add(item->labels);
      all.add(item->loss_mask);
      all.add(item->truncated ? 1 : 0);
      all.add(item->encoder_mask);
      all.add(item->decoder_mask);
    }
    QCOMPARE(all.value(), sum);
  }
  void a_t5_item_is_upstreams() {
    const auto dataset = t5({.sequence_length = 40, .decoder_sequence_length = 32, .samples = 40, .seed = 1234});
    QVERIFY(dataset);
    const auto item = dataset->item(0).value();
    QCOMPARE(item.encoder_text,
             (Numbers{10, 75, 80, 45, 25, 97, 4,  13, 29, 106, 14, 48, 74, 78, 32, 12, 86, 4, 17, 71,
                      80, 38, 60, 41, 78, 82, 29, 15, 35, 34,  0,  0,  0,  0,  0,  0,  0,  0, 0,  0}));
    QCOMPARE(item.decoder_text, (Numbers{104, 106, 88, 99, 10, 84, 87, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                         0,   0,   0,  0,  0,  0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0}));
    QCOMPARE(item.labels, (Numbers{106, 88, 99, 10, 84, 87, 105, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                   -1,  -1, -1, -1, -1, -1, -1,  -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  }

  void padding_is_masked_whatever_its_token() {
    SpecialTokens special = stub_tokenizer();
    special.pad = 119;
    const BertRequest request{.sequence_length = 32, .seed = 3};
    auto index = build_sentence_index(*corpus_, {0, 14}, BertDataset::index_request(request).value()).value();
    const auto item = BertDataset::create(corpus_, std::move(index), request, special).value().item(0).value();
    const auto padded = std::count(item.text.begin(), item.text.end(), 119);
    QVERIFY(padded > 0);
    QCOMPARE(std::count(item.padding_mask.begin(), item.padding_mask.end(), 0), padded);
    QCOMPARE(item.types.back(), 0);
  }
  void what_cannot_be_sampled_is_refused() {
    REFUSED(bert({4, 5}, {.sequence_length = 32, .samples = 9}), "no document has 2 sentences");
    REFUSED(bert({9, 9}, {.sequence_length = 32}), "the split has no documents");
    REFUSED(BertDataset::index_request({.sequence_length = 4}), "has no room for text");
    SpecialTokens few = stub_tokenizer();
    few.sentinels.resize(1);
    const T5Request request{.sequence_length = 24, .decoder_sequence_length = 40, .samples = 20, .seed = 3};
    T5Request dense = request;
    dense.masking.probability = 0.9;
    dense.masking.geometric = false;
    const auto spans = t5(dense, few);
    QVERIFY(spans);
    bool refused = false;
    for (std::int64_t i = 0; i < spans->size(); ++i) refused = refused || !spans->item(i);
    QVERIFY(refused);
    T5Request narrow = request;
    narrow.decoder_sequence_length = 1;
    REFUSED(t5(narrow).value().item(0), "gives the decoder");
    few.sentinels.clear();
    REFUSED(t5(request, few), "sentinel");
    SpecialTokens small = stub_tokenizer();
    small.mask = -1;
    REFUSED(t5(request, small), "mask token");
    REFUSED(t5(request).value().item(1000), "there is no sample 1000");
  }
};

ACCRUE_TEST_MAIN(TestSentenceSamples)

}  // namespace test_sentence_samples
#include "test_sentence_samples.moc"
