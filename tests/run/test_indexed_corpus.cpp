// SPDX-License-Identifier: Apache-2.0
// Data that a spec of indexed datasets reads, according to its plan and in its ranks: facts, refusals, and the tokens
// of each sample.
#include "accrue/run/facts/indexed_corpus.h"

#include <QTemporaryDir>
#include <QTest>
#include <map>
#include <set>
#include <thread>

#include "accrue/run/data/document_resets.h"
#include "accrue/run/data/text_dataset.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/indexed_samples.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/record/branch.h"
#include "support/file_leases.h"
#include "support/indexed_corpus.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_indexed_corpus {

using namespace accrue;
using namespace accrue::test;

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers all_tokens(const IndexedSamples& samples) {
  Numbers all;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    const auto item = samples.gpt(i).value();
    all.insert(all.end(), item.tokens.begin(), item.tokens.end());
  }
  return all;
}

}  // namespace

class TestIndexedCorpus : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  std::filesystem::path dir_;

  /// 907, 60 and 300 tokens; each counts on from its own first token.
  RunSpec spec(std::vector<std::string> paths = {"corpus"}) const {
    RunSpec spec;
    spec.model.context = 8;
    spec.model.vocabulary = 4000;
    spec.data.kind = DataKind::indexed;
    spec.data.paths = std::move(paths);
    spec.data.split = "1";
    spec.run.epochs = 1;
    spec.accumulation.micro_batch = 2;
    spec.accumulation.steps = 2;
    return spec;
  }
  /// 40 documents of three sentences each, a byte a token.
  RunSpec bert_of_lines() const {
    RunSpec masked = spec({"lines"});
    masked.model.context = 48;
    masked.model.kind = ModelKind::bert;
    masked.model.vocabulary = 363;  // 256 bytes, the end of a document, six special tokens, 100 sentinels
    masked.run.epochs.reset();
    masked.run.samples = 30;
    return masked;
  }
  IndexedSamples open(const RunSpec& spec, DatasetSplit split = DatasetSplit::train) const {
    return IndexedSamples::open(spec, plan_corpus(spec, dir_).value(), split, dir_, IndexCaching::read_only).value();
  }
  HostFacts host() const { return {.cores = 8, .memory_bytes = std::int64_t{16} << 30}; }

 private Q_SLOTS:
  void initTestCase() {
    dir_ = temporary_.path().toStdString();
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += "a line of text\nand number " + std::to_string(i) + "\nthe third\n\n";
    std::ofstream(dir_ / "lines.txt") << lines;
    build_text_dataset({.texts = {dir_ / "lines.txt"}, .prefix = dir_ / "lines", .sentences = true},
                       [](const TextProgress&) { return true; })
        .value();
    write_corpus(dir_ / "corpus", corpus_lengths);
    write_corpus(dir_ / "small", {30, 21, 9}, true, 1000);
    write_corpus(dir_ / "third", std::vector<int>(30, 10), true, 2000);
  }

  void facts_follow_from_headers() {
    const auto facts = scan_data(spec(), dir_).value();
    QCOMPARE(facts.samples, (907 - 1) / 8);
    QCOMPARE(facts.validation_samples, 0);
    QCOMPARE(facts.tokens_per_sample, 8);
    QCOMPARE(facts.bytes, std::int64_t(907 * 2 + 34 + 12 * 50 + 8 * 51));
    QCOMPARE(facts.fingerprint.size(), std::size_t{32});
    // 200 updates of 4 samples are requested, and the index has those of whole passes.
    RunSpec updates = spec();
    updates.run.epochs.reset();
    updates.run.updates = 200;
    QCOMPARE(samples_of_run(updates), std::optional<std::int64_t>(800));
    const auto corpus = plan_corpus(updates, dir_).value();
    QCOMPARE(corpus.training.sets[0].passes, 8);  // least E with 907 E >= 800 x 8 + 1
    QCOMPARE(corpus.training.samples, (8 * 907 - 1) / 8);
    QCOMPARE(open(updates).size(), corpus.training.samples);
  }

  void an_epoch_is_a_pass_over_the_tokens() {
    RunSpec two = spec();
    two.run.epochs = 1.5;
    const auto result = preflight(two, host(), scan_data(two, dir_).value(), dir_);
    QVERIFY(result.plan);
    const auto corpus = plan_corpus(two, dir_).value();
    QCOMPARE(corpus.training.sets[0].passes, 2);
    QCOMPARE(corpus.training.samples, (2 * 907 - 1) / 8);
    // Three quarters of two passes, in micro-steps of two samples.
    QCOMPARE(result.plan->totals.micro_steps, 85);
    QVERIFY(!result.plan->order.shuffle);
  }

  void every_token_comes_once_a_pass() {
    const auto samples = open(spec());
    std::map<std::int64_t, int> seen;
    for (const std::int64_t token : all_tokens(samples)) ++seen[token];
    for (const auto& [token, times] : seen) QCOMPARE(times, 1);
    QCOMPARE(std::ssize(seen), 113 * 8);  // what fills no sample is left out
    RunSpec three = spec();
    three.run.epochs = 3;
    std::map<std::int64_t, int> often;
    for (const std::int64_t token : all_tokens(open(three))) ++often[token];
    std::int64_t missing = 0;
    for (const auto& [token, times] : often) {
      QVERIFY(times <= 3);
      missing += 3 - times;
    }
    QCOMPARE(std::ssize(often), 907);
    QCOMPARE(missing, 3 * 907 - (3 * 907 - 1) / 8 * 8);
  }

  void ranks_share_consecutive_samples_data() {
    const Rows<int, int> row;
    row("alone", 1, 3);
    row("two", 2, 2);
    row("four", 4, 5);
  }
  void ranks_share_consecutive_samples() {
    const auto [world, micro_batch] = current_row<int, int>();
    RunSpec blend = spec({"corpus", "small", "third"});
    blend.data.weights = {5, 3, 2};
    blend.run.epochs.reset();
    blend.run.samples = 100;
    blend.parallel.data = world;
    blend.accumulation.micro_batch = micro_batch;
    const auto result = preflight(blend, host(), scan_data(blend, dir_).value(), dir_);
    QVERIFY(result.plan);
    const SampleOrder& order = result.plan->order;
    std::int64_t next = 0;
    for (std::int64_t batch = 0; batch < 100 / (world * micro_batch); ++batch)
      for (std::int64_t rank = 0; rank < world; ++rank)
        for (const std::int64_t sample : order.batch(0, batch, rank)) QCOMPARE(sample, next++);
    QVERIFY(next > 75);
  }

  void a_blend_has_its_weights() {
    RunSpec blend = spec({"corpus", "small", "third"});
    blend.data.weights = {0.5, 0.3, 0.2};
    blend.run.epochs.reset();
    blend.run.samples = 10;
    const auto corpus = plan_corpus(blend, dir_).value();
    QCOMPARE(corpus.training.samples, 10);
    QVERIFY(corpus.training.weighted);
    const auto samples = open(blend);
    std::vector<std::size_t> sets;
    for (std::int64_t i = 0; i < 10; ++i) sets.push_back(samples.origin(i).value().set);
    QCOMPARE(sets, (std::vector<std::size_t>{0, 1, 2, 0, 1, 0, 2, 0, 1, 0}));
    // Without weights every sample of every set comes once.
    RunSpec all = spec({"corpus", "small", "third"});
    const auto every = open(all);
    QCOMPARE(every.size(), 113 + 7 + 37);
    std::set<std::pair<std::size_t, std::int64_t>> items;
    for (std::int64_t i = 0; i < every.size(); ++i) {
      const auto origin = every.origin(i).value();
      items.emplace(origin.set, origin.item);
    }
    QCOMPARE(std::ssize(items), every.size());
  }

  void a_sample_says_what_it_is_cut_from() {
    const auto samples = open(spec());
    const auto corpus = IndexedDataset::open(dir_ / "corpus").value();
    for (const std::int64_t sample : {0, 17, 112}) {
      Numbers text;
      const auto origin = samples.origin(sample).value();
      for (const TextPiece& piece : origin.pieces) {
        const auto part = corpus.get(piece.sequence, piece.offset, piece.length).value();
        text.insert(text.end(), part.begin(), part.end());
      }
      const auto item = samples.gpt(sample).value();
      QCOMPARE(std::ssize(text), 9);
      QCOMPARE(Numbers(text.begin(), text.end() - 1), item.tokens);
      QCOMPARE(Numbers(text.begin() + 1, text.end()), item.labels);
    }
  }

  void consumed_samples_are_passed_over() {
    RunSpec later = spec();
    later.data.consumed_samples = {40};
    const auto whole = open(spec()), rest = open(later);
    QCOMPARE(rest.size(), whole.size() - 40);
    QCOMPARE(rest.gpt(0).value().tokens, whole.gpt(40).value().tokens);
    later.data.consumed_samples = {113};
    const auto spent = scan_data(later, dir_);
    QVERIFY(!spent);
    QCOMPARE(spent.error().where, std::string("data.consumed_samples"));
  }

  void a_split_keeps_sequences_apart() {
    RunSpec halves = spec();
    halves.data.split = "50, 50";
    std::set<std::int64_t> training, validation;
    const auto kept = open(halves, DatasetSplit::valid);
    for (const std::int64_t token : all_tokens(open(halves))) training.insert(token);
    for (const std::int64_t token : all_tokens(kept)) validation.insert(token);
    QVERIFY(!validation.empty());
    for (const std::int64_t token : validation) QVERIFY(!training.contains(token));
    // Datasets of their own for evaluation leave all others to training.
    RunSpec own = spec();
    own.data.validation_paths = {"small"};
    const auto facts = scan_data(own, dir_).value();
    QCOMPARE(facts.samples, 113);
    QCOMPARE(facts.validation_samples, (60 - 1) / 8);
  }

  void what_cannot_be_read_is_refused_data() {
    const Rows<QString, QString, QString> row;
    row("no dataset", "none", "data.paths", "no dataset is named");
    row("a missing one", "missing", "nowhere.idx", "");
    row("an ending", "ending", "corpus.idx.idx", "");
    row("weights without datasets", "weights", "data.weights", "there are 2 weights for 1 dataset");
    row("a weight of nothing", "zero", "data.weights", "is not above 0");
    row("a split of nothing", "split", "data.split", "the split leaves nothing of");
    row("no split", "words", "data.split", "is no split");
    row("a sample that is too long", "long", "data.split", "too few for one sample of 1001");
    row("a vocabulary that is too small", "vocabulary", "model.vocabulary", "holds the token 122");
    row("no special tokens at all", "sentences", "data.paths", "has no .json file");
    row("special tokens that are missing", "special", "data.paths", "lacks special tokens");
  }
  void what_cannot_be_read_is_refused() {
    const auto [what, where, words] = current_row<QString, QString, QString>();
    RunSpec bad = spec();
    if (what == "none") bad.data.paths.clear();
    if (what == "missing") bad.data.paths = {"nowhere"};
    if (what == "ending") bad.data.paths = {"corpus.idx"};
    if (what == "weights") bad.data.weights = {1, 2};
    if (what == "zero") {
      bad.data.paths = {"corpus", "small"};
      bad.data.weights = {1, 0};
    }
    if (what == "split") bad.data.split = "0, 1";
    if (what == "words") bad.data.split = "all";
    if (what == "long") bad.model.context = 1000;
    if (what == "vocabulary") {
      std::ofstream(dir_ / "text.txt") << "xyz " << std::string(100, 'a');
      if (!std::filesystem::exists(dir_ / "text.idx"))
        build_text_dataset({{dir_ / "text.txt"}, dir_ / "text"}, [](const TextProgress&) { return true; }).value();
      bad.data.paths = {"text"};
      bad.model.vocabulary = 122;
    }
    if (what == "sentences" || what == "special") {
      bad.model.kind = ModelKind::bert;
      bad.run.epochs.reset();
      bad.run.samples = 4;
    }
    if (what == "special") {
      write_corpus(dir_ / "plain", corpus_lengths);
      write_sidecar(dir_ / "plain", {.tokenizer = "bytes", .special = {.vocabulary = 300}}).value();
      bad.data.paths = {"plain"};
    }
    const auto facts = scan_data(bad, dir_);
    QVERIFY(!facts);
    QVERIFY2(facts.error().where.ends_with(where.toStdString()), facts.error().text().c_str());
    QVERIFY2(QString::fromStdString(facts.error().message).contains(words), facts.error().text().c_str());
  }

  /// A lost file would put the prompts into the loss, without a word.
  void prompts_belong_to_a_dataset() {
    std::ofstream(dir_ / "asked.jsonl") << "{\"q\": \"what is it? \", \"a\": \"it is a cat\"}\n";
    QVERIFY(build_text_dataset(
        {.texts = {dir_ / "asked.jsonl"}, .prefix = dir_ / "asked", .json_key = "a", .prompt_key = "q"}, {}));
    const RunSpec asked = spec({"asked"});
    const auto facts = scan_data(asked, dir_);
    QVERIFY2(facts, facts ? "" : facts.error().text().c_str());
    const std::int32_t longer = 13;
    std::ofstream(prompts_path(dir_ / "asked"), std::ios::binary)
        .write(reinterpret_cast<const char*>(&longer), sizeof longer);
    QVERIFY(scan_data(asked, dir_).value().fingerprint != facts->fingerprint);

    const auto refusal = [this](const RunSpec& bad) {
      return QString::fromStdString(scan_data(bad, dir_).error().text());
    };
    RunSpec bert = asked;
    bert.model.kind = ModelKind::bert;
    QVERIFY2(refusal(bert).contains("has prompts, which only a GPT or a Llama can leave out of the loss"),
             qPrintable(refusal(bert)));
    std::filesystem::remove(prompts_path(dir_ / "asked"));
    QVERIFY2(refusal(asked).contains("asked.prompts is missing"), qPrintable(refusal(asked)));
  }

  /// Before the start, and with the key that mends it.
  void a_bert_of_single_sentences_needs_no_second_head() {
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += "document " + std::to_string(i) + "\n\n";
    std::ofstream(dir_ / "single.txt") << lines;
    QVERIFY(build_text_dataset({.texts = {dir_ / "single.txt"}, .prefix = dir_ / "single", .sentences = true}, {}));
    RunSpec single = bert_of_lines();
    single.data.paths = {"single"};
    const auto refused = scan_data(single, dir_);
    QVERIFY(!refused);
    const QString words = QString::fromStdString(refused.error().text());
    QVERIFY2(words.contains("no document has 2 sentences"), qPrintable(words));
    QVERIFY2(words.contains("Set model.binary_head = false"), qPrintable(words));
    single.model.binary_head = false;
    const auto taken = scan_data(single, dir_);
    QVERIFY2(taken, taken ? "" : taken.error().text().c_str());
    QCOMPARE(taken->samples, 30);
  }

  void a_token_below_zero_is_the_dataset_s_fault_data() {
    const Rows<int, QString> row;
    row("negative", -2, "Build the dataset again: a token is a number from 0");
    row("too large", 600, "Raise model.vocabulary");
  }
  void a_token_below_zero_is_the_dataset_s_fault() {
    const auto [token, hint] = current_row<int, QString>();
    const std::string name = "token" + std::to_string(token);
    auto builder = IndexedDatasetBuilder::create(dir_ / name, DType::int32).value();
    const std::vector<std::int64_t> tokens(9, token);
    builder.add_item(tokens).value();
    builder.end_document().value();
    builder.finalize().value();
    RunSpec bad = spec({name});
    bad.model.vocabulary = 500;
    const auto read = open(bad).gpt(0);
    QVERIFY(!read);
    QCOMPARE(QString::fromStdString(read.error().hint), hint);
  }

  void a_token_outside_the_vocabulary_is_refused_where_it_is_read() {
    RunSpec small = spec();
    small.model.vocabulary = 500;
    const auto samples = open(small);
    int refused = 0;
    for (std::int64_t i = 0; i < samples.size(); ++i) refused += samples.gpt(i) ? 0 : 1;
    QVERIFY(refused > 0 && refused < samples.size());
  }

  void findings_name_the_key_data() {
    const Rows<QString, QString> row;
    row("a seed that no index takes", "seed", "data.seed");
    row("an order that is not the index's", "shuffle", "data.shuffle");
    row("resets without a token", "reset", "data.end_of_document");
    row("a token that the model lacks", "eod", "data.end_of_document");
    row("too many consumed", "consumed", "data.consumed_samples");
    row("fewer samples than ranks", "ranks", "parallel.data");
    row("a share of masks for a GPT", "masks", "data.mask_probability");
    row("a seed of other data", "other", "data.seed");
  }
  void findings_name_the_key() {
    const auto [what, key] = current_row<QString, QString>();
    RunSpec bad = spec();
    if (what == "seed") bad.run.seed = std::int64_t{1} << 40;
    if (what == "shuffle") bad.data.shuffle = false;
    if (what == "reset") bad.data.reset_positions = true;
    if (what == "eod") bad.data.end_of_document = 5000;
    if (what == "consumed") bad.data.consumed_samples = {1, 1, 1, 1};
    if (what == "masks") bad.data.mask_probability = 0.5;
    if (what == "other") {
      bad.data = {};
      bad.data.seed = 4;
    }
    if (what == "ranks") {
      bad.model.context = 400;
      bad.parallel.data = 4;
    }
    const auto facts = scan_data(bad, dir_);
    QVERIFY(facts);
    const auto result = preflight(bad, host(), *facts, dir_);
    const bool named = std::ranges::any_of(result.findings,
                                           [&key](const Finding& finding) { return finding.key == key.toStdString(); });
    QVERIFY(named);
  }

  void one_builds_an_index_and_the_others_load_it() {
    RunSpec cached = spec({"corpus", "third"});
    cached.data.cache = "cache";
    cached.data.weights = {1, 1};
    const auto corpus = plan_corpus(cached, dir_).value();
    std::vector<std::jthread> ranks;
    std::atomic<std::int64_t> opened = 0;
    for (int rank = 0; rank < 4; ++rank)
      ranks.emplace_back([&] {
        const auto samples = IndexedSamples::open(cached, corpus, DatasetSplit::train, dir_);
        if (samples) opened += samples->size();
      });
    ranks.clear();
    QCOMPARE(opened, 4 * corpus.training.samples);
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "cache")) {
      const std::string name = entry.path().filename();
      names.insert(name.substr(name.find('-') + 1));
    }
    QCOMPARE(names, (std::set<std::string>{"BlendedDataset-train-dataset_index.npy",
                                           "BlendedDataset-train-dataset_sample_index.npy",
                                           "BlendedDataset-train-description.txt", "GPTDataset-train-corpus.txt",
                                           "GPTDataset-train-description.txt", "GPTDataset-train-document_index.npy",
                                           "GPTDataset-train-sample_index.npy", "GPTDataset-train-shuffle_index.npy"}));
    const auto again = IndexedSamples::open(cached, corpus, DatasetSplit::train, dir_).value();
    QCOMPARE(all_tokens(again), all_tokens(open(cached)));
  }

  /// Hashes are those of the descriptions that Megatron-LM's classes write, made by Python's json and hashlib.
  void caches_have_the_names_of_the_original_data() {
    const Rows<QString, bool, QString> row;
    row("none", "", false, "bc910e7d5c007d9102021cd2f2fd8f77");
    row("bytes", "bytes", false, "164a7c1ab41f29a4e8385b6e490cef90");
    row("byte pairs", "bpe", false, "9f6c9ff65bac4778c17c92b17f42acfc");
    row("word pieces", "wordpiece", false, "3d0e3f5afa68a546a5ef544ec673826a");
    row("cased word pieces", "wordpiece", true, "e556e1aa6d15daf7685da7bbefc72b23");
    row("sentence pieces", "sentencepiece", false, "c68928fdaac12e3a03dc251833aa06a4");
  }
  void caches_have_the_names_of_the_original() {
    const auto [tokenizer, keep_case, hash] = current_row<QString, bool, QString>();
    RunSpec named = spec();
    named.data.cache = "named";
    if (!tokenizer.isEmpty()) {
      DatasetSidecar sidecar{.tokenizer = tokenizer.toStdString(), .files = {}, .special = {.vocabulary = 4000}};
      if (tokenizer == "bytes") sidecar.special.vocabulary = 257;
      if (tokenizer == "bpe") sidecar.files = {{"gpt2-vocab.json", ""}, {"gpt2-merges.txt", ""}};
      if (tokenizer == "wordpiece") sidecar.files = {{"vocab.txt", ""}};
      if (tokenizer == "sentencepiece") sidecar.files = {{"m.model", ""}};
      sidecar.keep_case = keep_case;
      write_sidecar(dir_ / "corpus", sidecar).value();
    }
    const auto corpus = plan_corpus(named, dir_).value();
    const auto samples = IndexedSamples::open(named, corpus, DatasetSplit::train, dir_);
    std::filesystem::remove(sidecar_path(dir_ / "corpus"));
    QVERIFY2(samples, samples ? "" : samples.error().text().c_str());
    QVERIFY(std::filesystem::exists(dir_ / "named" / (hash.toStdString() + "-GPTDataset-train-shuffle_index.npy")));
  }

  void a_cache_of_another_corpus_is_built_again() {
    namespace fs = std::filesystem;
    RunSpec cached = spec({"renewed"});
    cached.data.cache = "renewals";
    const auto read = [&] {
      return all_tokens(
          IndexedSamples::open(cached, plan_corpus(cached, dir_).value(), DatasetSplit::train, dir_).value());
    };
    write_corpus(dir_ / "renewed", {30, 21, 9});
    const Numbers before = read();
    for (const auto& path : {idx_path(dir_ / "renewed"), bin_path(dir_ / "renewed")}) fs::remove(path);
    write_corpus(dir_ / "renewed", {9, 30, 21}, true, 500);
    QCOMPARE(read(), all_tokens(open(spec({"renewed"}))));
    QVERIFY(read() != before);
    const auto number_of_files = [&] {
      return std::distance(fs::directory_iterator(dir_ / "renewals"), fs::directory_iterator());
    };
    QCOMPARE(number_of_files(), 5);  // the same names

    // Without our mark the files are Megatron-LM's: here with another shuffle.
    const auto file_that_ends = [&](std::string_view ending) {
      for (const auto& entry : fs::directory_iterator(dir_ / "renewals"))
        if (entry.path().string().ends_with(ending)) return entry.path();
      return fs::path();
    };
    fs::remove(file_that_ends("-corpus.txt"));
    IndexArray(std::vector<std::uint32_t>{6, 5, 4, 3, 2, 1, 0}).save(file_that_ends("shuffle_index.npy")).value();
    const auto wrote_theirs = [&](std::chrono::seconds since) {
      fs::last_write_time(file_that_ends("description.txt"), fs::file_time_type::clock::now() + since);
    };
    wrote_theirs(std::chrono::seconds(5));
    const Numbers theirs = read();
    QVERIFY(theirs != all_tokens(open(spec({"renewed"}))));
    QCOMPARE(number_of_files(), 4);
    // They are taken unless the corpus is younger.
    fs::last_write_time(idx_path(dir_ / "renewed"),
                        fs::last_write_time(file_that_ends("description.txt")) + std::chrono::seconds(1));
    QVERIFY(read() != theirs);
    QCOMPARE(read(), all_tokens(open(spec({"renewed"}))));
    QCOMPARE(number_of_files(), 5);

    // As after cp -p: written before the index was, and here since.
    fs::remove(file_that_ends("-corpus.txt"));
    IndexArray(std::vector<std::uint32_t>{6, 5, 4, 3, 2, 1, 0}).save(file_that_ends("shuffle_index.npy")).value();
    wrote_theirs(std::chrono::hours(-1));
    fs::last_write_time(idx_path(dir_ / "renewed"), fs::file_time_type::clock::now() - std::chrono::hours(2));
    QVERIFY(read() != theirs);
    QCOMPARE(number_of_files(), 5);
  }

  void another_corpus_has_another_fingerprint() {
    write_corpus(dir_ / "changing", {30, 21, 9}, true, 1000);
    const auto print = [this] { return scan_data(spec({"changing"}), dir_).value().fingerprint; };
    const std::string before = print();
    QCOMPARE(print(), before);
    QVERIFY(before != scan_data(spec({"corpus"}), dir_).value().fingerprint);
    std::fstream file(bin_path(dir_ / "changing"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(100).put('x').flush();
    QVERIFY(print() != before);
  }

  // Ranks, and the supervisor of a resumed run, take the first supervisor's word for files that stand as it hashed
  // them.
  void a_corpus_is_hashed_again_only_if_a_file_may_have_changed() {
    const std::vector<std::string> touched{"read0.bin", "read1.idx", "kept2.bin", "kept3.idx"};
    const auto scan = [this](std::size_t i, const DataFacts& known = {}) {
      RunSpec own = spec({"read" + std::to_string(i)});
      own.data.validation_paths = {"kept" + std::to_string(i)};
      return scan_data(own, dir_, known).value();
    };
    for (std::size_t i = 0; i < touched.size(); ++i) {
      write_corpus(dir_ / ("read" + std::to_string(i)), corpus_lengths);
      write_corpus(dir_ / ("kept" + std::to_string(i)), {30, 21, 9});
    }
    if (!has_leases(dir_ / touched[0])) QSKIP("this file system does not say who has a file open");
    QTRY_VERIFY_WITH_TIMEOUT(!scan(touched.size() - 1).files.at(0).state.empty(), 30'000);
    for (std::size_t i = 0; i < touched.size(); ++i) {
      const DataFacts fresh = scan(i);
      DataFacts known = fresh;
      known.files.at(0).fingerprint = "of the earlier scan";
      QCOMPARE(scan(i, known).fingerprint, std::string("of the earlier scan"));
      QCOMPARE(scan(i, known).samples, fresh.samples);
      QCOMPARE(scan(i, known).bytes, fresh.bytes);
      std::string bytes = bytes_of(dir_ / touched[i]);
      std::ofstream(dir_ / touched[i], std::ios::binary) << bytes;
      QCOMPARE(scan(i, known).fingerprint, fresh.fingerprint);
      QCOMPARE(scan(i, known).files.at(0).state, std::string());  // written a moment ago, it could change again
      if (!touched[i].ends_with(".bin")) continue;
      bytes[10] ^= 1;
      std::ofstream(dir_ / touched[i], std::ios::binary) << bytes;
      QVERIFY(scan(i, known).fingerprint != fresh.fingerprint);
      QCOMPARE(scan(i, known).fingerprint, scan(i).fingerprint);
    }
  }

  void a_branch_says_what_moves_its_place() {
    const auto plan_of = [this](const RunSpec& spec) {
      return preflight(spec, host(), scan_data(spec, dir_).value(), dir_).plan.value();
    };
    const auto point_of = [&](const RunSpec& spec) {
      const RunPlan plan = plan_of(spec);
      BranchPoint from;
      from.checkpoint = {10};
      from.spec = spec;
      for (std::string& path : from.spec.data.paths) path = (dir_ / path).string();
      from.window = plan.window;
      from.curve = plan.curve;
      return from;
    };
    const auto said = [&](const BranchPoint& from, const RunSpec& changed) {
      QStringList words;
      for (const Finding& finding : check_branch(from, plan_of(changed)))
        words << QString::fromStdString(finding.key) + (finding.severity == Severity::warning ? ": " : "!: ") +
                     QString::fromStdString(finding.message);
      return words.join('\n');
    };
    RunSpec spec = this->spec();
    spec.run.epochs.reset();
    spec.run.updates = 40;  // of 4 samples: two passes
    const BranchPoint from = point_of(spec);
    const auto warnings = [&](const RunSpec& changed) {
      QStringList keys;
      for (const QString& each : said(from, changed).split('\n')) keys << each.section(": ", 0, 0);
      return keys.join(' ');
    };
    QCOMPARE(warnings(spec), QString());
    RunSpec changed = spec;
    changed.run.updates = 50;  // two passes, too
    QCOMPARE(warnings(changed), QString());
    changed.run.updates = 100;
    QCOMPARE(warnings(changed), QStringLiteral("run.updates"));
    changed = spec;
    changed.data.consumed_samples = {8};
    QCOMPARE(warnings(changed), QStringLiteral("data.consumed_samples"));
    changed = spec;
    changed.data.split = "2, 1";
    QVERIFY(warnings(changed).contains("data.split!"));

    // A blend has the length of the run, and a cyclic sampler shuffles all of it: 160 samples, then 200.
    RunSpec blend = spec;
    blend.data.paths = {"corpus", "third"};
    blend.data.weights = {0.5, 0.5};
    const auto longer = [&](RunSpec run, std::int64_t updates) {
      const BranchPoint here = point_of(run);
      run.run.updates = updates;
      return said(here, run);
    };
    const QString tail = ", and the samples come in another order from here on";
    QCOMPARE(longer(blend, 50), QString());
    blend.data.sampler = SamplerKind::cyclic;
    QCOMPARE(longer(blend, 40), QString());
    QCOMPARE(longer(blend, 50),
             "run.updates: another length of the run has another shuffle: the cyclic sampler draws "
             "from 200 samples where it drew from 160" +
                 tail);

    // 40 documents of one sample each: four passes hold 160 samples, and five 200.
    RunSpec sentences = bert_of_lines();
    sentences.run.samples.reset();
    sentences.run.updates = 31;
    QCOMPARE(longer(sentences, 40), QString());
    QCOMPARE(longer(sentences, 41), "run.updates: another length of the run has another index: " +
                                        QString::fromStdString((dir_ / "lines").string()) +
                                        " gives 200 samples where it gave 160" + tail);
  }

  void documents_begin_after_their_end() {
    QCOMPARE(document_starts(Numbers{5, 9, 6, 7, 9, 9, 8}, 9), (Numbers{0, 0, 2, 2, 2, 5, 6}));
    QCOMPARE(document_starts(Numbers{5, 6}, 9), (Numbers{0, 0}));
  }

  void sentences_train_a_bert_and_a_t5() {
    const auto dataset = IndexedDataset::open(dir_ / "lines").value();
    QCOMPARE(dataset.documents(), 40);
    QCOMPARE(dataset.sequences(), 120);
    RunSpec masked = bert_of_lines();
    const auto bert = open(masked);
    QCOMPARE(bert.size(), 30);
    for (std::int64_t i = 0; i < bert.size(); ++i) {
      const auto item = bert.bert(i).value();
      QCOMPARE(std::ssize(item.text), 48);
      QCOMPARE(item.text.front(), 257);
      QVERIFY(bert.origin(i).value().pieces.size() >= 2);
    }
    masked.model.kind = ModelKind::t5;
    masked.model.decoder_context = 32;
    const auto t5 = open(masked);
    for (std::int64_t i = 0; i < t5.size(); ++i) QCOMPARE(std::ssize(t5.t5(i).value().decoder_text), 32);
    masked.run.samples.reset();
    masked.run.epochs = 2;
    const auto counted = plan_corpus(masked, dir_).value();
    QCOMPARE(counted.training.samples, 80);  // a document is one sample
    masked.model.vocabulary = 300;
    QVERIFY(!plan_corpus(masked, dir_));
  }

  /// A document of "lines" has about 35 tokens; a target below that, drawn from 2 up to the whole sample, cuts it.
  void the_asked_share_of_samples_is_cut_short() {
    RunSpec masked = bert_of_lines();
    const auto cut = [&](double share) {
      masked.data.short_sequence_probability = share;
      const auto samples = open(masked);
      int count = 0;
      for (std::int64_t i = 0; i < samples.size(); ++i)
        count +=
            masked.model.kind == ModelKind::bert ? samples.bert(i).value().truncated : samples.t5(i).value().truncated;
      return count;
    };
    for (const ModelKind kind : {ModelKind::bert, ModelKind::t5}) {
      masked.model.kind = kind;
      QCOMPARE(cut(0.0), 0);
      const int half = cut(0.5), all = cut(1.0);
      QVERIFY2(0 < half && half < all && all < 30, qPrintable(QString("%1 and %2").arg(half).arg(all)));
    }
  }
};

ACCRUE_TEST_MAIN(TestIndexedCorpus)

}  // namespace test_indexed_corpus
#include "test_indexed_corpus.moc"
