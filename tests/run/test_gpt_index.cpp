// SPDX-License-Identifier: Apache-2.0
// Tokens of samples and their distribution over ranks: shuffles, splits, the three GPT indices, their cache, blends,
// samplers. Sums and hashes are those of megatron-core 0.12.0 with NumPy 2.4 for the same dataset.
#include "accrue/run/data/gpt_index.h"

#include <QTemporaryDir>
#include <QTest>
#include <map>
#include <set>

#include "accrue/run/data/blend.h"
#include "accrue/run/data/data_samplers.h"
#include "accrue/run/data/dataset_splits.h"
#include "accrue/run/data/gpt_dataset.h"
#include "accrue/run/data/index_cache.h"
#include "accrue/run/data/numpy_random.h"
#include "support/fuzz_inputs.h"
#include "support/indexed_corpus.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_gpt_index {

using namespace accrue;
using namespace accrue::test;

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers shuffled(int count, std::uint32_t seed) {
  Numbers numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  RandomState(seed).shuffle(std::span(numbers));
  return numbers;
}

TokenizerIdentity bytes_tokenizer() {
  return {"ByteTokenizer", {}, {{"eod", "256"}}};
}

}  // namespace

class TestGptIndex : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  std::filesystem::path dir_;
  std::shared_ptr<const IndexedDataset> corpus_;
  std::shared_ptr<const IndexedDataset> other_;

  GptDataset dataset(const GptIndexRequest& request, const IndexRange& range, bool other = false) const {
    const auto& source = other ? other_ : corpus_;
    return {source, build_gpt_index(*source, range, request).value(), request};
  }
  static Numbers all_text(const GptDataset& dataset) {
    Numbers all;
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      const auto text = dataset.text(i).value();
      all.insert(all.end(), text.begin(), text.end());
    }
    return all;
  }

 private Q_SLOTS:
  void initTestCase() {
    dir_ = temporary_.path().toStdString();
    write_corpus(dir_ / "corpus", corpus_lengths);
    write_corpus(dir_ / "other", {30, 21, 9}, false, 1000);
    corpus_ = std::make_shared<IndexedDataset>(IndexedDataset::open(dir_ / "corpus").value());
    other_ = std::make_shared<IndexedDataset>(IndexedDataset::open(dir_ / "other").value());
  }

  void shuffles_are_those_of_numpy() {
    QCOMPARE(shuffled(10, 0), (Numbers{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
    QCOMPARE(shuffled(10, 42), (Numbers{8, 1, 5, 0, 7, 2, 9, 4, 3, 6}));
    QCOMPARE(sum_of(shuffled(100000, 0xffffffff)), std::string("570132be8e770a44"));
    QCOMPARE(shuffled(1, 3), (Numbers{0}));
  }
  void draws_are_those_of_numpy() {
    RandomState first(42);
    QCOMPARE(first.random(), 0.3745401188473625);
    QCOMPARE(first.random(), 0.9507143064099162);
    RandomState whole(7);
    for (const std::int64_t expected : {4, 9, 6, 3, 3}) QCOMPARE(whole.randint(0, 10), expected);
    for (const std::int64_t expected : {328596, 79460, 886105}) QCOMPARE(whole.randint(-3, 1000000), expected);
    QCOMPARE(whole.randint(4, 5), 4);
    QCOMPARE(whole.randint(0, std::int64_t{1} << 40), 796881771918);
    QCOMPARE(whole.randint(0, std::int64_t{1} << 32), 1133316631);
    QCOMPARE(whole.random(), 0.5011204636599379);
    RandomState trials(8);
    for (const std::int64_t expected : {10, 16, 10, 4, 2, 1, 3, 3}) QCOMPARE(trials.geometric(0.2), expected);
  }

  void splits_round_halves_to_even_data() {
    const Rows<QString, int, QString> row;
    row("three of 50", "969, 30, 1", 50, "0-48 48-50 50-50");
    row("three of 1001", "969, 30, 1", 1001, "0-970 970-1000 1000-1001");
    row("two", "99,1", 1001, "0-991 991-1001 none");
    row("one", "1", 5, "0-5 none none");
    row("not the first", "0,1", 5, "none 0-5 none");
    row("half of one is none", "1,0,1", 1, "0-0 none 0-1");
    row("half of five is two", "1,0,1", 5, "0-2 none 2-5");
    row("other signs", ".5;.25/.25", 1001, "0-500 500-751 751-1001");
    row("small parts", "99.5,0.25,0.25", 1001, "0-996 996-998 998-1001");
    row("a sum above 1 on the way", "0.1,0.2,0.7", 5, "0-0 0-2 2-5");
  }
  void splits_round_halves_to_even() {
    const auto [text, elements, expected] = current_row<QString, int, QString>();
    QStringList ranges;
    const SplitMatrix matrix = parse_split(text.toStdString()).value();
    for (const auto& bounds : matrix) {
      const IndexRange range = bounds ? elements_of(*bounds, elements) : IndexRange{};
      ranges << (bounds ? QStringLiteral("%1-%2").arg(range.begin).arg(range.end) : "none");
    }
    QCOMPARE(ranges.join(" "), expected);
  }
  void bad_splits_are_refused() {
    for (const char* text : {"", ",", "1,2,3,4", "0,0,0", "-1,2", "1e5,1", "1.2.3", ".", "nan", "a"})
      QVERIFY2(!parse_split(text), text);
  }

  void the_walk_advances_by_the_sequence_length() {
    const std::vector<std::int32_t> lengths = {3, 5, 2, 7}, order = {2, 0, 3, 1};
    GptIndexRequest request;
    request.sequence_length = 4;
    const auto shape = gpt_index_shape(17, request).value();
    QCOMPARE(shape.samples, 4);
    QCOMPARE(numbers_of(build_sample_index(lengths, order, request, shape.samples)),
             (Numbers{0, 0, 1, 2, 2, 3, 3, 0, 3, 4}));
  }
  void indices_are_those_of_the_original_data() {
    // length, samples (0: one epoch), seed, first, last, samples made; sums of the document, sample and shuffle index
    // and of all tokens
    const Rows<int, int, int, int, int, int, QString> row;
    row("one epoch", 8, 0, 1234, 0, 48, 107, "9d9e688fe2d0b36a 2d5f5bbe7134f500 4ee3009ab70bee66 512ffdb0be502239");
    row("a small split", 8, 0, 1234, 48, 50, 5, "d09f301eda8d58d3 b85bb220f08cf7e1 2afadcc129cef8ca 9d8032ac98b751a5");
    row("three epochs", 8, 300, 1234, 0, 45, 311,
        "24624d6339b65134 607fedfadd5af4a7 ffbc148d614dd504 4248413a8346659a");
    row("32 epochs", 8, 300, 1234, 45, 50, 307, "6aa401e6f456468d 6c6aec7fc9bf35c4 a66d50f3cdd1da77 5b48e819fb52b039");
    row("the second nearly whole", 16, 100, 7, 0, 45, 103,
        "0d5372f0dc4e90a8 96425a9e17b67832 753b35b464a2e9df 66cb9950b7e3ba87");
    row("seven epochs", 5, 1000, 42, 0, 40, 1033,
        "8689624217e46644 aa8459f8032b3cd8 0e315d7c9adcdeca 47b4410b8cf3039a");
    row("117 epochs", 5, 1000, 42, 48, 50, 1006, "ba394fc5dcefdd2f 636a8efe74be084f fcf8c2082c006d67 7b94070f8cf26fe9");
    row("the last epoch apart", 16, 120, 3, 0, 50, 170,
        "318295374e0a188c 9d59dda0d3878f87 41b13e78348ec855 36701090c984448d");
    row("a tenth of the last epoch", 16, 61, 3, 0, 50, 113,
        "a7409a9207c91ef8 eaeb2adbcd1f06df 191ef4988d790023 d8187a56fc854a43");
    row("long samples", 64, 2, 9, 0, 50, 14, "9b5a35a3af19ac92 a93314a5d4e058ac 4bc9771796411db6 b0cdf9311052b62a");
  }
  void indices_are_those_of_the_original() {
    const auto [length, samples, seed, first, last, made, sums] = current_row<int, int, int, int, int, int, QString>();
    GptIndexRequest request;
    request.sequence_length = length;
    if (samples > 0) request.samples = samples;
    request.seed = static_cast<std::uint32_t>(seed);
    const GptDataset cut = dataset(request, {first, last});
    QCOMPARE(cut.size(), made);
    const GptIndex& index = cut.index();
    QCOMPARE(sum_of(index.document_index) + " " + sum_of(index.sample_index) + " " + sum_of(index.shuffle_index) + " " +
                 sum_of(all_text(cut)),
             sums.toStdString());
    QCOMPARE(cut.index().shuffle_index.type(), IndexArray::Type::uint32);
  }
  void a_partial_last_sample_can_be_kept_data() {
    const Rows<bool, bool, int, int, QString, QString> row;  // extra token, dropped, samples requested and made
    row("dropped", true, true, 0, 56, "40cc45bc420aa44f", "705d467ed9b893d2");
    row("kept", true, false, 0, 57, "b441efaced3d28b7", "47a2e848b0aa204e");
    row("kept where there is none", true, false, 150, 170, "db9d6aec2c567ad4", "b9aac76ea5a730f8");
    row("no extra token", false, true, 0, 56, "028517fb2958d7cf", "7bf4fa61bf69fd32");
    row("kept, no extra token", false, false, 0, 57, "50202aaa50dd189c", "ff238e42ff5b773c");
    row("kept after three epochs", false, false, 150, 171, "127cca65d2bbc12d", "bf678b7e7e43f794");
  }
  void a_partial_last_sample_can_be_kept() {
    const auto [extra, dropped, samples, made, walk, tokens] = current_row<bool, bool, int, int, QString, QString>();
    GptIndexRequest request{.sequence_length = 16, .samples = {}, .seed = 11};
    if (samples > 0) request.samples = samples;
    request.add_extra_token = extra;
    request.drop_last_partial_sequence = dropped;
    const GptDataset cut = dataset(request, {0, 50});
    QCOMPARE(cut.size(), made);
    QCOMPARE(sum_of(cut.index().sample_index), walk.toStdString());
    QCOMPARE(sum_of(all_text(cut)), tokens.toStdString());
  }
  void every_token_is_a_label_once_an_epoch() {
    GptIndexRequest request{.sequence_length = 5, .samples = 500, .seed = 77};
    const GptIndexShape shape = gpt_index_shape(907, request).value();
    QCOMPARE(shape.epochs, 3);
    const GptDataset cut = dataset(request, {0, 50});
    std::map<std::int64_t, int> seen;
    for (std::int64_t i = 0; i < cut.size(); ++i) {
      const GptItem item = cut.item(i).value();
      for (const std::int64_t token : item.labels) ++seen[token];
    }
    // But for the first token of the row and the tail that fills no sample.
    const std::int64_t missing = 3 * 907 - 5 * cut.size();
    QVERIFY(missing >= 1 && missing < 1 + 5);
    std::int64_t total = 0;
    for (std::int64_t token = 0; token < 907; ++token) {
      QVERIFY(seen[token] <= 3);
      total += 3 - seen[token];
    }
    QCOMPARE(total, missing);
    QCOMPARE(seen.size(), std::size_t{907});
  }
  /// Tokens 10 s to 10 s + 3 are the prompt of sequence s; no others are left out.
  void prompts_have_no_loss() {
    const auto prefix = dir_ / "prompts";
    auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
    for (std::int64_t s = 0; s < 20; ++s) {
      for (std::int64_t token = 10 * s; token < 10 * s + 10; ++token) {
        builder.append(Numbers{token}).value();
        if (token == 10 * s + 3) builder.end_prompt();
      }
      builder.end_sequence().value();
      builder.end_document().value();
    }
    QVERIFY(builder.finalize());
    const auto source = std::make_shared<const IndexedDataset>(IndexedDataset::open(prefix).value());
    const GptIndexRequest request{.sequence_length = 7, .samples = {}, .seed = 3};
    const GptDataset cut(source, build_gpt_index(*source, {0, 20}, request).value(), request);
    QVERIFY(cut.size() > 20);
    for (std::int64_t i = 0; i < cut.size(); ++i) {
      const GptItem item = cut.item(i).value();
      for (std::size_t k = 0; k < item.labels.size(); ++k)
        QCOMPARE(item.loss_mask[k], item.labels[k] % 10 <= 3 ? 0.0F : 1.0F);
    }
  }
  void labels_are_the_next_tokens_and_padding_has_no_loss() {
    GptIndexRequest request{.sequence_length = 16, .samples = {}, .seed = 11};
    request.drop_last_partial_sequence = false;
    const GptDataset cut = dataset(request, {0, 50});
    int padded = 0;
    for (std::int64_t i = 0; i < cut.size(); ++i) {
      const auto text = cut.text(i).value();
      const GptItem item = cut.item(i).value();
      for (std::size_t k = 0; k < 16; ++k) {
        const bool padding = text[k + 1] == -1;
        padded += padding ? 1 : 0;
        QCOMPARE(item.tokens[k], std::max<std::int64_t>(text[k], 0));
        QCOMPARE(item.labels[k], std::max<std::int64_t>(text[k + 1], 0));
        QCOMPARE(item.loss_mask[k], padding ? 0.0F : 1.0F);
      }
    }
    QCOMPARE(padded, 57 * 16 - 906);
    QCOMPARE(cut.padding_item().value().loss_mask, std::vector<float>(16, 0.0F));
    QVERIFY(!cut.item(57));
    QVERIFY(!cut.item(-1));
  }
  void an_index_of_another_dataset_is_refused() {
    GptIndexRequest request{.sequence_length = 8, .samples = {}, .seed = 1};
    const GptDataset wrong(other_, build_gpt_index(*corpus_, {0, 50}, request).value(), request);
    int refused = 0;
    for (std::int64_t i = 0; i < wrong.size(); ++i) refused += wrong.item(i) ? 0 : 1;
    QVERIFY(refused > 100);
  }
  void impossible_requests_are_refused() {
    const auto refused = [this](std::int64_t length, std::optional<std::int64_t> samples, IndexRange range) {
      return !build_gpt_index(*corpus_, range, {.sequence_length = length, .samples = samples, .seed = 0});
    };
    QVERIFY(refused(0, {}, {0, 50}));
    QVERIFY(refused(8, 0, {0, 50}));
    QVERIFY(refused(8, INT64_MAX, {0, 50}));
    QVERIFY(refused(8, std::int64_t{1} << 50, {0, 50}));  // beyond the memory of any machine
    QVERIFY(refused(8, {}, {48, 48}));                    // no tokens
    QVERIFY(refused(8, {}, {0, 51}));
  }

  void cache_files_have_the_names_and_bytes_of_the_original() {
    DatasetIdentity identity{.dataset_path = "corpus",
                             .num_samples = {},
                             .index_split = DatasetSplit::train,
                             .random_seed = 1234,
                             .sequence_length = 8,
                             .split = "60,40,0",
                             .tokenizer = bytes_tokenizer()};
    const GptIndexRequest request{.sequence_length = 8, .samples = {}, .seed = 1234};
    const auto folder = dir_ / "cache";
    QVERIFY(!load_index(folder, identity).value());
    const GptIndex index = build_gpt_index(*corpus_, {0, 30}, request).value();
    QVERIFY(save_index(folder, identity, index));
    const std::string stem = (folder / "c18e020649bea55b7f9e603fde71abbc-GPTDataset-train-").string();
    QCOMPARE(file_sum(stem + "description.txt"), std::string("55bbfc5cb1b1b370"));
    QCOMPARE(file_sum(stem + "document_index.npy"), std::string("6774bf804e9e385a"));
    QCOMPARE(file_sum(stem + "sample_index.npy"), std::string("b6f0251ef99d4ea1"));
    QCOMPARE(file_sum(stem + "shuffle_index.npy"), std::string("94c9d85fa67f6d79"));
    const GptIndex loaded = *load_index(folder, identity).value();
    QCOMPARE(numbers_of(loaded.document_index), numbers_of(index.document_index));
    QCOMPARE(numbers_of(loaded.sample_index), numbers_of(index.sample_index));
    QCOMPARE(numbers_of(loaded.shuffle_index), numbers_of(index.shuffle_index));

    const std::string path = stem + "sample_index.npy", bytes = bytes_of(path);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
      QVERIFY2(!load_index(folder, identity), qPrintable(QString::number(size)));
    }
    std::mt19937 random(5);
    for (int trial = 0; trial < fuzz_inputs; ++trial) {
      std::string damaged = bytes;
      damaged[random() % 128] = static_cast<char>(random());
      damaged[random() % damaged.size()] = static_cast<char>(random());
      std::ofstream(path, std::ios::binary) << damaged;
      const auto read = load_index(folder, identity);
      if (!read || !*read) continue;
      const GptDataset cut(corpus_, **read, request);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(cut.size(), 100); ++i)
        if (const auto text = cut.text(i)) QCOMPARE(text->size(), std::size_t{9});
    }
  }
  void hashes_are_those_of_the_original_data() {
    const Rows<int, int, int, QString, int, QString> row;
    row("a tail of digits", 5, 1000, 42, "80,15,5", 2, "14f81881f82bbda093cdbc4b67faa318");
    row("spaceless thirds", 4, 7, 0, "99.5,0.25,0.25", 0, "a07e780b222e06609b07e285e4c11912");
    row("two parts", 16, 100, 7, "90,10", 1, "652e669e321fd06e328607fc9f935b71");
    row("one part", 64, 2, 9, "1", 0, "5a110d74a4ac77c2e311772ab4205a87");
  }
  void hashes_are_those_of_the_original() {
    const auto [length, samples, seed, split, which, hash] = current_row<int, int, int, QString, int, QString>();
    const DatasetIdentity identity{.dataset_path = "corpus",
                                   .num_samples = samples,
                                   .index_split = dataset_splits[which],
                                   .random_seed = static_cast<std::uint32_t>(seed),
                                   .sequence_length = length,
                                   .split = split.toStdString(),
                                   .tokenizer = bytes_tokenizer()};
    const auto folder = dir_ / "hashes";
    const GptIndex index =
        build_gpt_index(*corpus_, {0, 50}, {.sequence_length = length, .samples = {}, .seed = 0}).value();
    QVERIFY(save_index(folder, identity, index));
    const std::string name = hash.toStdString() + "-GPTDataset-" + std::string(to_string(dataset_splits[which]));
    QVERIFY(std::filesystem::exists(folder / (name + "-description.txt")));
  }

  void blends_keep_the_proportions() {
    const Numbers expected = {0, 1, 2, 0, 1, 0, 2, 0, 1, 0};
    QCOMPARE(numbers_of(build_blend_index(std::vector{.5, .3, .2}, 10).value().dataset_index), expected);
  }
  void blends_are_those_of_the_original_data() {
    const Rows<int, int, int, QString, QString> row;  // sets, samples, size
    row("two", 2, 1000, 1000, "47ba2169de355910", "098c2c0ce9b9cd79");
    row("nine", 9, 5000, 5005, "3837fd7d188c8f66", "ad1586595340d6f5");
    row("three hundred", 300, 20000, 20136, "29e5613f4150102f", "6d598668b66a206c");
  }
  void blends_are_those_of_the_original() {
    const auto [sets, samples, size, order, positions] = current_row<int, int, int, QString, QString>();
    std::vector<double> weights = {30, 70};
    if (sets == 9) weights.clear();
    for (int k = 0; sets == 9 && k < 9; ++k) weights.push_back(0.1 * k + 0.37);
    if (sets == 300) weights.clear();
    for (int k = 0; sets == 300 && k < 300; ++k) weights.push_back(1.0 / (k + 3));
    const BlendSizes sizes = blend_sizes(weights, samples).value();
    QCOMPARE(sizes.size, size);
    const BlendIndex index = build_blend_index(sizes.weights, sizes.size).value();
    QCOMPARE(sum_of(index.dataset_index), order.toStdString());
    QCOMPARE(sum_of(index.dataset_sample_index), positions.toStdString());
    const std::vector<std::int64_t> requested = {sets == 2   ? 302
                                                 : sets == 9 ? 269
                                                             : 1399,
                                                 sets == 2   ? 704
                                                 : sets == 9 ? 342
                                                             : 1050};
    QCOMPARE(sizes.requested[0], requested[0]);
    QCOMPARE(sizes.requested[1], requested[1]);
  }
  void an_exhaustive_blend_takes_everything_once() {
    QCOMPARE(numbers_of(build_exhaustive_blend_index(Numbers{5, 3, 1}).value().dataset_index),
             (Numbers{0, 1, 2, 0, 1, 0, 0, 1, 0}));
    const BlendIndex index = build_exhaustive_blend_index(Numbers{100, 250, 33}).value();
    QCOMPARE(sum_of(index.dataset_index), std::string("e0db229f04b94852"));
    QCOMPARE(sum_of(index.dataset_sample_index), std::string("41975d3cd83da047"));
  }
  void impossible_blends_are_refused() {
    for (const auto& weights : std::vector<std::vector<double>>{{}, {0.0, 1.0}, {-1.0, 2.0}, {NAN}, {INFINITY}})
      QVERIFY(!build_blend_index(weights, 10));
    QVERIFY(!build_blend_index(std::vector{1.0}, 0));
    QVERIFY(!build_blend_index(std::vector<double>(32767, 1.0), 10));
    QVERIFY(!build_exhaustive_blend_index(Numbers{1, 0}));
  }
  void a_blend_is_cached_under_the_name_of_the_original() {
    const BlendSizes sizes = blend_sizes(std::vector{70.0, 30.0}, 120).value();
    DatasetIdentity corpus{.dataset_path = "corpus",
                           .num_samples = sizes.requested[0],
                           .index_split = DatasetSplit::train,
                           .random_seed = 1234,
                           .sequence_length = 8,
                           .split = "60,40,0",
                           .tokenizer = bytes_tokenizer()};
    DatasetIdentity other = corpus;
    other.dataset_path = "other";
    other.num_samples = sizes.requested[1];
    const BlendIdentity identity{{corpus, other}, DatasetSplit::train, sizes.weights, sizes.size};
    const auto folder = dir_ / "blends";
    QVERIFY(save_index(folder, identity, build_blend_index(sizes.weights, sizes.size).value()));
    const std::string stem = (folder / "44295bab141efe640f0e66a71ec52998-BlendedDataset-train-").string();
    QCOMPARE(file_sum(stem + "description.txt"), std::string("dece7e214feba38e"));
    QCOMPARE(file_sum(stem + "dataset_index.npy"), std::string("ef9103341fab1c28"));
    QCOMPARE(file_sum(stem + "dataset_sample_index.npy"), std::string("57f7ecdeeaa84df2"));
    QVERIFY(load_index(folder, identity).value());
    corpus.num_samples = other.num_samples = {};
    const BlendIdentity exhaustive{{corpus, other}, DatasetSplit::train, {66, 6}, {}};
    QVERIFY(save_index(folder, exhaustive, build_exhaustive_blend_index(Numbers{66, 6}).value()));
    QCOMPARE(file_sum(folder / "747649b2a6648a3e13ffb03b6972fa20-BlendedDataset-train-description.txt"),
             std::string("f8feda09ce4f6b79"));
  }

  void ranks_divide_a_consecutive_range() {
    for (const std::int64_t ranks : {1, 2, 3}) {
      std::set<std::int64_t> all;
      std::size_t taken = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        auto sampler = SingleSampler::create({100, 24, 4, rank, ranks}).value();
        while (const auto batch = sampler.next()) {
          QCOMPARE(batch->size(), std::size_t{4});
          taken += batch->size();
          all.insert(batch->begin(), batch->end());
        }
      }
      const auto expected = static_cast<std::size_t>(76 / (4 * ranks) * 4 * ranks);
      QCOMPARE(taken, expected);
      QCOMPARE(all.size(), expected);
      QCOMPARE(*all.begin(), 24);
      QCOMPARE(*all.rbegin(), 24 + static_cast<std::int64_t>(expected) - 1);
    }
  }
  void a_kept_tail_is_short_or_empty() {
    auto first = SingleSampler::create({5, 0, 2, 0, 2}, false).value();
    auto second = SingleSampler::create({5, 0, 2, 1, 2}, false).value();
    QCOMPARE(*first.next(), (SampleBatch{0, 1}));
    QCOMPARE(*second.next(), (SampleBatch{2, 3}));
    QCOMPARE(*first.next(), (SampleBatch{4}));
    QCOMPARE(*second.next(), SampleBatch{});
    QVERIFY(!first.next());
  }
  void a_cyclic_sampler_resumes_within_an_epoch() {
    const auto backwards = [](std::int64_t size, std::int64_t epoch) {
      Numbers order(static_cast<std::size_t>(size));
      for (std::int64_t i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = (size - 1 - i + epoch) % size;
      return order;
    };
    for (const bool sharded : {false, true}) {
      std::vector<CyclicSampler> ranks;
      for (std::int64_t rank = 0; rank < 2; ++rank)
        ranks.push_back(CyclicSampler::create({11, 0, 2, rank, 2}, sharded, backwards).value());
      // 8 of 11 samples an epoch. Turns: 9 8 7 6 5 4 3 2 between the ranks; shards: 3 2 1 0 and 7 6 5 4.
      QCOMPARE(ranks[0].next(), sharded ? (SampleBatch{3, 2}) : (SampleBatch{9, 7}));
      QCOMPARE(ranks[1].next(), sharded ? (SampleBatch{7, 6}) : (SampleBatch{8, 6}));
      auto resumed = CyclicSampler::create({11, 4, 2, 1, 2}, sharded, backwards).value();
      const SampleBatch second = ranks[1].next();
      QCOMPARE(second, sharded ? (SampleBatch{5, 4}) : (SampleBatch{4, 2}));
      QCOMPARE(resumed.next(), second);
      QCOMPARE(resumed.epoch(), 1);
      QCOMPARE(resumed.next(), sharded ? (SampleBatch{4, 7}) : (SampleBatch{9, 7}));
    }
  }
  void impossible_samplers_are_refused() {
    QVERIFY(!SingleSampler::create({10, 10, 1, 0, 1}));
    QVERIFY(!SingleSampler::create({10, -1, 1, 0, 1}));
    QVERIFY(!SingleSampler::create({10, 0, 0, 0, 1}));
    QVERIFY(!SingleSampler::create({10, 0, 1, 2, 2}));
    QVERIFY(!CyclicSampler::create({3, 0, 2, 0, 2}, true, {}));
    QVERIFY(!CyclicSampler::create({8, 3, 2, 0, 2}, true, {}));
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestGptIndex)

}  // namespace test_gpt_index
#include "test_gpt_index.moc"
