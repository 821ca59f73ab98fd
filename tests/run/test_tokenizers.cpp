// SPDX-License-Identifier: Apache-2.0
// Tokenizers by `accrue-run data build`, beside what PyPI's tokenizers 0.23.3 and sentencepiece 0.1.97 made of the same
// files and texts; and files of tokenizers and sidecars that are damaged, of which none may do worse than be refused.
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>
#include <map>
#include <random>

#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/data/text_dataset.h"
#include "support/fuzz_inputs.h"
#include "support/indexed_corpus.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/tokenizer_files.h"
#include "tokenizer.h"

namespace test_tokenizers {

using namespace accrue;
using namespace accrue::test;

using tokenize::Tokens;

class TestTokenizers : public QObject {
  Q_OBJECT
  TokenizerFolder folder_;

  std::string choice(const QString& kind) const {
    const std::map<QString, const char*> files = {
        {"bpe", "my-vocab.json"}, {"wordpiece", "vocab.txt"}, {"sentencepiece", "m.model"}};
    return kind.toStdString() + ":" + (folder_.path() / files.at(kind)).string();
  }

 private Q_SLOTS:
  void initTestCase() {
    const std::filesystem::path dir = folder_.path();
    folder_.write(dir / "my-vocab.json", vocabulary_json());
    folder_.write(dir / "my-merges.txt", merges_text);
    folder_.write(dir / "vocab.txt", word_pieces);
    const QByteArray model = QByteArray::fromBase64(sentence_model);
    folder_.write(dir / "m.model", {model.data(), static_cast<std::size_t>(model.size())});
  }

  void tokens_are_those_of_the_original_data() {
    const Rows<QString, QString, QString, Numbers> row;
    row("bpe", "bpe", first_text, "", Numbers{272, 262, 221, 277, 78,  268, 264, 78,  265, 221, 266, 27,
                                              199, 199, 265, 264, 260, 82,  267, 221, 273, 69,  14});
    row("bpe, no ASCII", "bpe", second_text, "",
        Numbers{128, 251, 274, 82, 261, 232, 271, 232, 221, 18, 12, 269, 20, 221, 163, 246, 279, 251, 106, 198, 88});
    row("wordpiece", "wordpiece", first_text, "", Numbers{5, 6, 8, 10, 9, 11, 12, 5, 13, 14, 5, 15, 6, 7, 16, 17});
    row("wordpiece, no ASCII", "wordpiece", second_text, "", Numbers{18, 23, 24, 25, 29, 28, 30, 31, 1});
    row("cased", "wordpiece", first_text, "--keep-case",
        Numbers{32, 6, 8, 10, 9, 11, 12, 5, 13, 14, 5, 15, 6, 7, 16, 17});
    row("cased, no ASCII", "wordpiece", second_text, "--keep-case", Numbers{33, 34, 1, 24, 25, 29, 28, 30, 31, 1});
    row("sentencepiece", "sentencepiece", first_text, "",
        Numbers{3, 8, 18, 20, 3, 12, 19, 13, 10, 7, 16, 13, 3, 6, 15, 31, 0, 3, 6, 16, 6, 5, 17, 3, 22, 5, 4, 27});
    row("sentencepiece, no ASCII", "sentencepiece", second_text, "",
        Numbers{3, 39, 37, 4, 5, 3, 9, 8, 9, 3, 11, 26, 28, 11, 29, 3, 35, 36, 0});
  }
  void tokens_are_those_of_the_original() {
    const auto [kind, text, flag, expected] = current_row<QString, QString, QString, Numbers>();
    const auto prefix = folder_.fresh();
    const auto built = folder_.build(folder_.written(text.toStdString()), prefix, choice(kind),
                                     flag.isEmpty() ? QStringList() : QStringList{flag});
    QVERIFY2(built.status == 0, qPrintable(built.err));
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.get(0).value(), expected);
    const auto sidecar = read_sidecar(prefix).value().value();
    QCOMPARE(QString::fromStdString(sidecar.tokenizer), kind);
    QCOMPARE(sidecar.largest_token, *std::ranges::max_element(expected));
    QCOMPARE(sidecar.files.size(), std::size_t(kind == "bpe" ? 2 : 1));
    QCOMPARE(sidecar.files[0].sha256, sha256_hex(bytes_of(sidecar.files[0].path)));
  }

  /// Whichever of the two files is damaged is named.
  void a_damaged_file_of_two_is_named() {
    const std::filesystem::path folder = folder_.fresh();
    std::filesystem::create_directory(folder);
    const auto said = [&](const std::string& vocabulary, const std::string& merges) {
      folder_.write(folder / "vocab.json", vocabulary);
      folder_.write(folder / "merges.txt", merges);
      return folder_.build(folder_.written("a"), folder_.fresh(), "bpe:" + (folder / "vocab.json").string()).err;
    };
    const QString in_merges = said(vocabulary_json(), "#version: 0.2\na\n");
    QVERIFY2(in_merges.contains("merges.txt: the list of merges of the tokenizer is damaged: line 2 is not two pieces"),
             qPrintable(in_merges));
    const QString unknown = said(vocabulary_json(), "#version: 0.2\nz zzz\n");
    QVERIFY2(unknown.contains("merges.txt: ") && !unknown.contains("vocab.json: "), qPrintable(unknown));
    const QString in_vocabulary = said("[1]", merges_text);
    QVERIFY2(in_vocabulary.contains("vocab.json: the vocabulary of the tokenizer is damaged"),
             qPrintable(in_vocabulary));
  }

  /// The blocks of google-research/bert, of which U+2B820 to U+2CEAF is extension E: between letters they stand alone.
  void chinese_characters_stand_alone_data() {
    const Rows<int, bool> row;
    for (const int point : {0x4E00, 0x9FFF, 0x2B740, 0x2B81F, 0x2B820, 0x2B830, 0x2B91F, 0x2CEAF, 0x2F800})
      row(qPrintable(QString::number(point, 16)), point, true);
    for (const int point : {0x2CEB0, 0x3042, 0xAC00}) row(qPrintable(QString::number(point, 16)), point, false);
  }
  void chinese_characters_stand_alone() {
    const auto [point, alone] = current_row<int, bool>();
    const std::string letter = QString::fromUcs4(reinterpret_cast<const char32_t*>(&point), 1).toStdString();
    const std::string pieces = "[UNK]\na\nb\n" + letter + "\n##b\n##" + letter + "\n";
    const auto tokenizer = tokenize::make_word_piece(pieces, true).value();
    QCOMPARE(tokenizer->encode("a" + letter + "b").value(), alone ? (Tokens{1, 3, 2}) : (Tokens{1, 5, 4}));
  }

  void tokens_become_text_again_data() {
    const Rows<QString, QString, QString> row;
    row("bpe", "bpe", first_text, first_text);
    row("bpe, no ASCII", "bpe", second_text, second_text);
    row("wordpiece", "wordpiece", first_text, "the cat isn ' t on the mat ; the other cats are .");
    row("sentencepiece", "sentencepiece", "The cat is on the mat.", "The cat is on the mat.");
  }
  void tokens_become_text_again() {
    const auto [kind, text, expected] = current_row<QString, QString, QString>();
    const auto made = kind == "bpe" ? tokenize::make_byte_pair({vocabulary_json()}, {merges_text})
                      : kind == "wordpiece"
                          ? tokenize::make_word_piece(word_pieces, false)
                          : tokenize::make_sentence_piece(QByteArray::fromBase64(sentence_model).toStdString());
    Tokens tokens = made.value()->encode(text.toStdString()).value();
    tokens.insert(tokens.end(), {-1, 100'000});  // a model may have more tokens than its tokenizer
    QCOMPARE(QString::fromStdString(made.value()->decode(tokens)), expected);
  }

  void sentences_have_the_special_tokens_of_bert() {
    const auto prefix = folder_.fresh();
    const auto built =
        folder_.build(folder_.written("The cat.\nthe mats\n\nother\n"), prefix, choice("wordpiece"), {"--sentences"});
    QVERIFY2(built.status == 0, qPrintable(built.err));
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.documents(), 2);
    QCOMPARE(dataset.sequences(), 3);
    QCOMPARE(dataset.get(1).value(), (Numbers{5, 13, 7}));
    const SpecialTokens special = read_sidecar(prefix).value().value().special;
    QCOMPARE(special.cls, 2);
    QCOMPARE(special.mask, 4);
    QCOMPARE(special.pad, 0);
    QCOMPARE(special.bos, 35);  // the vocabulary's 35 tokens lack it
    QCOMPARE(special.sentinels.size(), std::size_t{100});
    QCOMPARE(special.vocabulary, 137);
    QVERIFY(special.continues_word(7) && !special.continues_word(6) && !special.continues_word(35));
    const auto shown = folder_.data({"show", QString::fromStdString(prefix)});
    QVERIFY2(shown.out.contains("wordpiece") && shown.out.contains("vocabulary         137"), qPrintable(shown.out));
  }

  void what_cannot_be_tokenized_is_refused() {
    const auto expect = [this](const std::string& tokenizer, std::string_view text, const QStringList& more,
                               const char* words) {
      const auto refused = folder_.build(folder_.written(text), folder_.fresh(), tokenizer, more);
      QCOMPARE(refused.status, 2);
      QVERIFY2(refused.err.contains(words), qPrintable(refused.err));
    };
    expect("words:x", "a", {}, "\"words:x\" is no tokenizer");
    QJsonArray growing;
    for (int i = 0; i < 4; ++i)
      growing.append(
          QJsonObject{{"type", "Replace"}, {"pattern", QJsonObject{{"String", "h"}}}, {"content", QString(5000, 'h')}});
    const std::string grows =
        tokenizer_json(byte_pairs({{"h", 0}, {"e", 1}, {"he", 2}}, one_merge("h", "e")), byte_level(false), {}, {},
                       QJsonObject{{"type", "Sequence"}, {"normalizers", growing}});
    expect(folder_.written(grows).string(), "h", {}, "the tokenizer's replacements make the text too long");
    expect(folder_.written(grows).string(), "h", {"--keep-case"}, "applies to wordpiece only");
    expect("bpe:" + (folder_.fresh() / "vocab.json").string(), "a", {}, "vocab.json");
    expect("wordpiece:" + folder_.written("the\ncat\n").string(), "a", {}, "it has no token [UNK]");
    expect("sentencepiece:" + folder_.written("not a model").string(), "a", {}, "cannot be read");
    expect(choice("bpe"), "good \xFF bad", {}, "the text is not UTF-8: byte 5");
    expect(choice("wordpiece"), "a", {"--append-eod"}, "has no token that ends a document");
    expect(choice("bpe"), "a", {"--append-eod", "--sentences"}, "no token that ends a document");
    expect(choice("bpe"), "a", {"--keep-case"}, "applies to wordpiece only");
    expect(choice("bpe"), "a b\n" + std::string(17 << 20, 'a'), {}, "16 MiB follow each other without white space");
  }

  /// Documents of more than a stretch: of whole lines, of one line, with every kind of white space at their ends.
  void stretches_of_a_long_text_have_the_tokens_of_the_whole_data() {
    const Rows<QString, QString> row;
    for (const QString kind : {"bpe", "wordpiece", "Llama 3", "T5"})
      for (const QString lines : {"lines", "CRLF", "one line", "wide space"})
        row(qPrintable(kind + ", " + lines), kind, lines);
  }
  void stretches_of_a_long_text_have_the_tokens_of_the_whole() {
    const auto [kind, lines] = current_row<QString, QString>();
    struct InProcess : TextTokenizer {
      std::unique_ptr<tokenize::Tokenizer> tokenizer;
      DatasetSidecar known;
      std::size_t longest = 0, texts = 0;
      const DatasetSidecar& facts() const override { return known; }
      Result<Numbers> encode(std::string_view text, bool goes_on) override {
        longest = std::max(longest, text.size());
        ++texts;
        const Tokens tokens = tokenizer->encode(text, goes_on).value();
        return Numbers(tokens.begin(), tokens.end());
      }
    } tokenizer;
    QJsonObject vocabulary = QJsonDocument::fromJson(QByteArray::fromStdString(vocabulary_json())).object();
    QJsonArray merges = merges_json(true);
    for (const QString joined :
         {".\u010A", ".\u010D", ";\u010A", ";\u010D", "\u0122\u010A", "\u0122\u010D"}) {  // with a line end
      vocabulary.insert(joined, static_cast<int>(vocabulary.size()));
      merges.append(QJsonArray{joined.left(1), joined.mid(1)});
    }
    const std::string llama3 = tokenizer_json(byte_pairs(vocabulary, merges),
                                              sequence_of({split_by(llama3_pattern), byte_level(false, false)}));
    tokenizer.tokenizer = (kind == "bpe"         ? tokenize::make_byte_pair({vocabulary_json()}, {merges_text})
                           : kind == "wordpiece" ? tokenize::make_word_piece(word_pieces, false)
                           : kind == "T5"        ? tokenize::make_from_tokenizer_json(json_of_many_steps(), false)
                                                 : tokenize::make_from_tokenizer_json(llama3, false))
                              .value();
    tokenizer.known = tokenizer.tokenizer->facts();
    std::string words;
    for (int i = 0; words.size() < 1'600'000; ++i) {
      words += (i % 3 == 0 ? first_text : second_text) + std::string("  don't") + (i % 5 == 0 ? " 202" : "the\t");
      if (i % 7 != 0) words += i % 2 == 0 ? "." : "\xF0\x9F\x98\x80";
      words += lines == "CRLF"         ? "\r\n"
               : lines == "one line"   ? " "
               : lines == "wide space" ? "\xE3\x80\x80\n\n the "
                                       : " \n";
    }
    if (lines == "one line") std::ranges::replace(words, '\n', ' ');
    const auto prefix = folder_.fresh();
    const auto built = build_text_dataset(
        {.texts = {folder_.written(words)}, .prefix = prefix, .documents = DocumentKind::file, .tokenizer = &tokenizer},
        {});
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    QVERIFY(tokenizer.texts >= 2 && tokenizer.longest <= stretch_bytes);
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.sequences(), 1);
    const Tokens whole = tokenizer.tokenizer->encode(words).value();
    QVERIFY(dataset.get(0).value() == Numbers(whole.begin(), whole.end()));
  }

  /// The steps of a search are limited for each match, and not for all of a text.
  void a_long_text_of_short_words_is_no_hard_one() {
    std::string numbers;
    while (numbers.size() < 1'200'000) numbers += "3.14, 2.72; 0x1F\n";
    const auto prefix = folder_.fresh();
    const auto built = folder_.build(folder_.written(numbers), prefix, choice("bpe"));
    QVERIFY2(built.status == 0, qPrintable(built.err));
    QVERIFY(IndexedDataset::open(prefix).value().tokens() > 1'000'000);
  }

  void an_interrupted_build_goes_on_to_the_same_files() {
    struct Letters : TextTokenizer {
      DatasetSidecar known = byte_tokenizer_facts(false);
      const DatasetSidecar& facts() const override { return known; }
      Result<Numbers> encode(std::string_view text, bool /*goes_on*/) override {
        Numbers tokens{static_cast<std::int64_t>(text.size() % 256)};
        for (const char each : text)
          if (each != 'e') tokens.push_back(static_cast<unsigned char>(each));
        return tokens;
      }
    } letters;
    std::string words;
    for (int i = 0; i < 100'000; ++i) words += "line " + std::to_string(i) + (i % 5 == 0 ? "\n\n" : "\n");
    // One paragraph, and one line, of more than a stretch.
    std::string lines = words, line = words;
    lines.erase(std::ranges::unique(lines, [](char a, char b) { return a == '\n' && b == '\n'; }).begin(), lines.end());
    std::ranges::replace(line, '\n', ' ');
    words += "\n\n" + lines + "\n\n" + line;
    struct Kind {
      DocumentKind documents;
      bool sentences, tokenizer;
    };
    for (const auto& [documents, sentences, tokenizer] :
         {Kind{DocumentKind::paragraph, true, true}, Kind{DocumentKind::paragraph, false, true},
          Kind{DocumentKind::file, false, true}, Kind{DocumentKind::paragraph, true, false}}) {
      const auto whole = folder_.fresh(), prefix = folder_.fresh();
      TextDatasetRequest request{.texts = {folder_.written(words), folder_.written(words)},
                                 .prefix = whole,
                                 .documents = documents,
                                 .sentences = sentences,
                                 .tokenizer = tokenizer ? &letters : nullptr};
      QVERIFY(build_text_dataset(request, [](const TextProgress&) { return true; }));
      request.prefix = prefix;
      int stops = 0;
      for (; stops < 100; ++stops) {
        int parts = 0;
        const auto built = build_text_dataset(request, [&](const TextProgress&) { return ++parts < 7; });
        if (built) break;
        QCOMPARE(built.error().code, ErrorCode::cancelled);
      }
      QVERIFY(stops > 2 && stops < 100);
      for (const auto& path : {&idx_path, &bin_path, &sidecar_path})
        QCOMPARE(bytes_of(path(prefix)), bytes_of(path(whole)));
    }
  }

  /// A damaged file is refused, or it makes tokens of its vocabulary.
  void damaged_files_are_refused_or_bear_tokens_data() {
    const Rows<QString> row;
    row("byte pairs", "bpe");
    row("merges", "merges");
    row("word pieces", "wordpiece");
    row("sentence pieces", "sentencepiece");
    row("tokenizer.json", "tokenizer.json");
    row("many steps", "many steps");
    row("sidecar", "sidecar");
  }
  void damaged_files_are_refused_or_bear_tokens() {
    const auto [kind] = current_row<QString>();
    std::mt19937 random(20240817);
    DatasetSidecar described = byte_tokenizer_facts(true);
    described.special.continues.assign(363, false);
    described.special.continues[7] = described.special.continues[8] = true;
    described.files = {{"a", "b"}};
    const std::string vocabulary = vocabulary_json();
    const std::string json = tokenizer_json(
        byte_pairs(QJsonDocument::fromJson(QByteArray::fromStdString(vocabulary)).object(), merges_json(true)),
        byte_level(true), {added(0, "<|endoftext|>", true)});
    const bool is_json = kind == "tokenizer.json" || kind == "many steps";
    const std::string good = kind == "bpe"              ? vocabulary
                             : kind == "tokenizer.json" ? json
                             : kind == "many steps"     ? json_of_many_steps()
                             : kind == "merges"         ? std::string(merges_text)
                             : kind == "wordpiece"      ? std::string(word_pieces)
                             : kind == "sentencepiece"  ? QByteArray::fromBase64(sentence_model).toStdString()
                                                        : to_json(described);
    int refused = 0;
    for (int input = 0; input < fuzz_inputs; ++input) {
      std::string bad = good;
      for (auto changes = 1 + random() % 3; changes > 0; --changes) {
        const std::size_t at = random() % bad.size();
        switch (random() % 4) {
          case 0:
            bad[at] = static_cast<char>(random());
            break;
          case 1:
            bad.erase(at, 1 + random() % 8);
            break;
          case 2:
            bad.insert(at, bad.substr(random() % bad.size(), random() % 16));
            break;
          default:
            bad.resize(std::max<std::size_t>(at, 1));
        }
        if (bad.empty()) bad = " ";
      }
      if (kind == "sidecar") {
        const auto parsed = parse_sidecar(bad, "x.json");
        if (!parsed) {
          QVERIFY(!parsed.error().message.empty() && parsed.error().where == "x.json");
          ++refused;
        }
        continue;
      }
      const auto made = kind == "bpe"         ? tokenize::make_byte_pair({bad}, {merges_text})
                        : kind == "merges"    ? tokenize::make_byte_pair({vocabulary}, {bad})
                        : kind == "wordpiece" ? tokenize::make_word_piece(bad, false)
                        : is_json             ? tokenize::make_from_tokenizer_json(bad, false)
                                              : tokenize::make_sentence_piece(bad);
      if (!made) {
        const auto says = [&made](const char* words) { return made.error().message.find(words) != std::string::npos; };
        QVERIFY(kind == "sentencepiece" ? says("cannot be read") || says("this is JSON")
                : is_json               ? says("is damaged") || says("asks for what is not supported")
                                        : says("is damaged"));
        ++refused;
        continue;
      }
      const auto vocabulary_size = (*made)->facts().special.vocabulary;
      const auto encoded = (*made)->encode(second_text);
      if (!encoded) QVERIFY(is_json && !encoded.error().message.empty());
      const Tokens tokens = encoded.value_or(Tokens());
      for (const std::int32_t token : tokens) QVERIFY(token >= 0 && token < vocabulary_size);
    }
    QVERIFY(refused > fuzz_inputs / 100 && refused < fuzz_inputs);
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestTokenizers)

}  // namespace test_tokenizers
#include "test_tokenizers.moc"
