// SPDX-License-Identifier: Apache-2.0
// Tokenizers by `accrue-run data build`, beside what PyPI's tokenizers 0.23.3 and sentencepiece 0.1.97 made of the same
// files and texts; and files of tokenizers and sidecars that are damaged, of which none may do worse than be refused.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <map>
#include <random>

#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/data/text_dataset.h"
#include "support/fuzz_inputs.h"
#include "support/indexed_corpus.h"
#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"
#include "tokenizer.h"

namespace test_tokenizers {

using namespace accrue;
using namespace accrue::test;

namespace {

using Numbers = std::vector<std::int64_t>;
using tokenize::Tokens;

const char* const merges_text =
    "#version: 0.2\na t\nh e\nc at\nt he\n\xC4\xA0 \xC3\x83\n\xC4\xA0 cat\nm at\n\xC4\xA0 o\n\xC4\xA0 the\n\xC4\xA0 "
    "mat\n"
    "\xC4\xA0"
    "cat s\n' t\n0 2\nB r\nT \xC3\x83\nT he\na r\nb e\nc k\nd i\ni s\nt \xC3\x83\n\xC2\xA5 \xC3\xA6\n\xC2\xA9 "
    "t\xC3\x83\n";

/// The end of a document, 256 bytes by the letters that stand for them, and a token for each merge.
std::string vocabulary_json() {
  std::vector<int> letters;
  for (int byte = 33; byte < 256; ++byte)
    if (byte < 127 || (byte > 160 && byte != 173)) letters.push_back(byte);
  for (int next = 256; letters.size() < 256; ++next) letters.push_back(next);
  QJsonObject json{{"<|endoftext|>", 0}};
  int number = 1;
  for (const int letter : letters) json.insert(QString(QChar(static_cast<char16_t>(letter))), number++);
  for (const QString& line : QString::fromUtf8(merges_text).split('\n', Qt::SkipEmptyParts).mid(1))
    json.insert(line.section(' ', 0, 0) + line.section(' ', 1, 1), number++);
  return QJsonDocument(json).toJson().toStdString();
}

const char* const word_pieces =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nis\n'\n##n\nt\non\nmat\n;\nother\nare\n.\nuber\ndie\nbruck\n##"
    "e\n:\n"
    "ete\n2\n,\n##0\n##2\n##4\n02\n\xE6\x97\xA5\n\xE6\x9C\xAC\nThe\n\xC3\x9C\n##ber\n";

const char* const sentence_model =
    "Cg4KBTx1bms+FQAAAAAYAgoMCgM8cz4VAAAAABgDCg0KBDwvcz4VAAAAABgDCgoKA+KWgRX4z9e/CggKAWUVUgc0wAoICgFyFVQH"
    "NMAKCgoDdGhlFVcYSMAKCAoBdBUlC2LACggKAVQV3CpjwAoJCgLDiRXcKmPACggKAScV3ipjwAoICgEyFd4qY8AKCAoBaRXeKmPA"
    "CggKAW4V3ipjwAoJCgLDqRXeKmPACg0KBuKWgW1hdBXeKmPACgsKBOKWgW8V7ypjwAoOCgfiloFjYXRzFU2hY8AKCQoCaGUVE3GJ"
    "wAoICgFzFfgmisAKDQoG4paBY2F0FcQnisAKCAoBbxXfpIrACggKAWEVr6WKwAoICgFtFbClisAKCAoBYxWypYrACggKAUIVe6aK"
    "wAoICgEsFYCmisAKCAoBLhWAporACggKATAVgKaKwAoICgE0FYCmisAKCAoBOhWAporACggKATsVgKaKwAoICgFkFYCmisAKCAoB"
    "axWAporACgkKAsO8FYCmisAKCgoD5pelFYCmisAKCgoD5pysFYCmisAKCAoBYhWCporACggKAWgVgqaKwAoJCgLDnBWCporAEhQK"
    "By4vYy50eHQSBC4vc3AgKIgCABoMCghpZGVudGl0eRIA";

/// GPT-2's words, as other tokenizers name them.
const char* const split_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

QJsonObject byte_level(bool space_before, bool splits = true) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", space_before}, {"trim_offsets", true}, {"use_regex", splits}};
}
QJsonObject split_by(const QString& pattern) {
  return {{"type", "Split"}, {"pattern", QJsonObject{{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}
QJsonObject sequence_of(const QJsonArray& steps) {
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}
QJsonObject added(int token, const QString& content, bool special, const QString& flag = {}) {
  QJsonObject entry{{"id", token},     {"content", content}, {"single_word", false},  {"lstrip", false},
                    {"rstrip", false}, {"special", special}, {"normalized", !special}};
  if (!flag.isEmpty()) entry[flag] = true;
  return entry;
}

/// The merges of merges_text as pairs, or each in one text.
QJsonArray merges_json(bool pairs) {
  QJsonArray merges;
  for (const QString& line : QString::fromUtf8(merges_text).split('\n', Qt::SkipEmptyParts).mid(1))
    merges.append(pairs ? QJsonValue(QJsonArray{line.section(' ', 0, 0), line.section(' ', 1, 1)}) : QJsonValue(line));
  return merges;
}

/// A list of this one pair.
QJsonArray one_merge(const QString& left, const QString& right) {
  QJsonArray list;
  list.append(QJsonArray{left, right});
  return list;
}

QJsonObject byte_pairs(const QJsonObject& vocabulary, const QJsonArray& merges) {
  return {{"type", "BPE"},
          {"dropout", QJsonValue()},
          {"unk_token", QJsonValue()},
          {"vocab", vocabulary},
          {"merges", merges}};
}

/// A tokenizer.json; `more` are keys of the model.
std::string tokenizer_json(QJsonObject model, const QJsonObject& words, const QJsonArray& added_tokens = {},
                           const QJsonObject& more = {}, const QJsonValue& normalizer = {}) {
  for (auto each = more.begin(); each != more.end(); ++each) model.insert(each.key(), each.value());
  return QJsonDocument(QJsonObject{{"version", "1.0"},
                                   {"added_tokens", added_tokens},
                                   {"normalizer", normalizer},
                                   {"pre_tokenizer", words},
                                   {"model", model}})
      .toJson()
      .toStdString();
}

/// With an end of line and two lines between, in one document.
const char* const first_text = "The cat isn't on the  mat;\n\n the other cats are.";
const char* const second_text =
    "\xC3\x9C"
    "ber \xC3\x89T\xC3\x89 2,024 \xE6\x97\xA5\xE6\x9C\xAC\tx";

}  // namespace

class TestTokenizers : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;

  std::filesystem::path fresh() { return temporary_.filePath(QStringLiteral("f%1").arg(++count_)).toStdString(); }
  static void write(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::filesystem::path written(std::string_view bytes) {
    auto path = fresh();
    write(path, bytes);
    return path;
  }
  std::string choice(const QString& kind) const {
    const std::map<QString, const char*> files = {
        {"bpe", "my-vocab.json"}, {"wordpiece", "vocab.txt"}, {"sentencepiece", "m.model"}};
    return (kind + ":" + temporary_.filePath(files.at(kind))).toStdString();
  }
  static Outcome data(const QStringList& arguments) {
    return Program(programPath("accrue-run"), QStringList{"data"} + arguments).finish();
  }
  Outcome build(const std::filesystem::path& text, const std::filesystem::path& prefix, const std::string& tokenizer,
                const QStringList& more = {}) const {
    return data(QStringList{"build", QString::fromStdString(text), "--out", QString::fromStdString(prefix),
                            "--tokenizer", QString::fromStdString(tokenizer)} +
                more);
  }

 private Q_SLOTS:
  void initTestCase() {
    const std::filesystem::path dir = temporary_.path().toStdString();
    write(dir / "my-vocab.json", vocabulary_json());
    write(dir / "my-merges.txt", merges_text);
    write(dir / "vocab.txt", word_pieces);
    const QByteArray model = QByteArray::fromBase64(sentence_model);
    write(dir / "m.model", {model.data(), static_cast<std::size_t>(model.size())});
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
    const auto prefix = fresh();
    const auto built =
        build(written(text.toStdString()), prefix, choice(kind), flag.isEmpty() ? QStringList() : QStringList{flag});
    QVERIFY2(built.status == 0, qPrintable(built.err));
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.get(0).value(), expected);
    const auto sidecar = read_sidecar(prefix).value().value();
    QCOMPARE(QString::fromStdString(sidecar.tokenizer), kind);
    QCOMPARE(sidecar.largest_token, *std::ranges::max_element(expected));
    QCOMPARE(sidecar.files.size(), std::size_t(kind == "bpe" ? 2 : 1));
    QCOMPARE(sidecar.files[0].sha256, sha256_hex(bytes_of(sidecar.files[0].path)));
  }

  /// The one file of Hugging Face's library: its tokens are those of PyPI's tokenizers 0.23.3 for the same file.
  void tokenizer_json_gives_the_tokens_of_the_original_data() {
    const Rows<QString, QByteArray, QString, Numbers> row;
    const QJsonObject whole = QJsonDocument::fromJson(QByteArray::fromStdString(vocabulary_json())).object();
    const auto bpe = [&](bool pairs, const QJsonObject& words, const QJsonArray& tokens = {},
                         const QJsonObject& more = {}, const QJsonObject& vocabulary = {}) {
      const QJsonObject used = vocabulary.isEmpty() ? whole : vocabulary;
      const auto merges =
          vocabulary.contains("he") && vocabulary.size() < 10 ? one_merge("h", "e") : merges_json(pairs);
      return QByteArray::fromStdString(tokenizer_json(byte_pairs(used, merges), words, tokens, more));
    };
    const Numbers first{272, 262, 221, 277, 78,  268, 264, 78,  265, 221, 266, 27,
                        199, 199, 265, 264, 260, 82,  267, 221, 273, 69,  14};
    const Numbers second{128, 251, 274, 82,  261, 232, 271, 232, 221, 18, 12,
                         269, 20,  221, 163, 246, 279, 251, 106, 198, 88};
    row("pairs", "bpe", bpe(true, byte_level(false)), first_text, first);
    row("pairs, no ASCII", "bpe", bpe(true, byte_level(false)), second_text, second);
    row("lines", "bpe", bpe(false, byte_level(false)), first_text, first);
    row("the pattern in a sequence", "bpe", bpe(true, sequence_of({split_by(split_pattern), byte_level(false, false)})),
        second_text, second);
    row("a space before", "bpe", bpe(true, byte_level(true)), second_text,
        Numbers{261, 251, 274, 82, 261, 232, 271, 232, 221, 18, 12, 269, 20, 221, 163, 246, 279, 251, 106, 198, 88});
    row("a space before a newline", "bpe", bpe(true, byte_level(true)), "\nthe", Numbers{221, 199, 260});
    row("a space that is there", "bpe", bpe(true, byte_level(true)), " the", Numbers{265});
    const QJsonArray tokens{added(0, "<|endoftext|>", true), added(281, "<mask>", true, "lstrip"),
                            added(282, "cats", false), added(283, "<|endoftext|>!", true),
                            added(284, QString::fromUtf8("\xC3\xA9<"), false)};
    const QString third = QString::fromUtf8("the  <mask>cat<|endoftext|>! the cats\xC3\xA9<|endoftext|>\nthe");
    row("added tokens", "bpe", bpe(true, byte_level(false), tokens), third,
        Numbers{260, 281, 259, 283, 265, 221, 282, 128, 103, 0, 199, 260});
    row("added tokens, a space before", "bpe", bpe(true, byte_level(true), tokens), third,
        Numbers{265, 281, 262, 283, 265, 221, 282, 261, 103, 0, 221, 199, 260});
    QJsonObject more_words = whole;
    more_words.insert(QString::fromUtf8("\xC4\xA0other"), 290);
    row("whole words", "bpe", bpe(false, byte_level(false), {}, {{"ignore_merges", true}}, more_words), first_text,
        Numbers{272, 262, 221, 277, 78, 268, 264, 78, 265, 221, 266, 27, 199, 199, 265, 290, 267, 221, 273, 69, 14});
    const QJsonObject small{{"h", 0}, {"e", 1}, {"l", 2}, {"o", 3}, {"he", 4}};
    row("few bytes", "bpe", bpe(true, byte_level(false), {}, {}, small), "hello", Numbers{4, 2, 2, 3});
    row("bytes without a token", "bpe", bpe(true, byte_level(false), {}, {}, small), "he xllo\n", Numbers{4, 2, 2, 3});
    row("unknown bytes", "bpe", bpe(true, byte_level(false), {}, {{"unk_token", "o"}}, small), "hello xx",
        Numbers{4, 2, 2, 3, 3, 3, 3});
    row("unknown bytes as one", "bpe",
        bpe(true, byte_level(false), {}, {{"unk_token", "o"}, {"fuse_unk", true}}, small), "hello xx",
        Numbers{4, 2, 2, 3, 3});

    QJsonObject pieces;
    for (const QString& piece : QString::fromUtf8(word_pieces).split('\n', Qt::SkipEmptyParts))
      pieces.insert(piece, static_cast<int>(pieces.size()));
    const QJsonArray around{added(0, "[PAD]", true), added(1, "[UNK]", true), added(2, "[CLS]", true),
                            added(3, "[SEP]", true), added(4, "[MASK]", true, "lstrip")};
    const auto word_piece = [&](bool lower) {
      return QByteArray::fromStdString(tokenizer_json({{"type", "WordPiece"},
                                                       {"unk_token", "[UNK]"},
                                                       {"continuing_subword_prefix", "##"},
                                                       {"max_input_chars_per_word", 100},
                                                       {"vocab", pieces}},
                                                      {{"type", "BertPreTokenizer"}}, around, {},
                                                      QJsonObject{{"type", "BertNormalizer"},
                                                                  {"clean_text", true},
                                                                  {"handle_chinese_chars", true},
                                                                  {"strip_accents", QJsonValue()},
                                                                  {"lowercase", lower}}));
    };
    row("word pieces", "wordpiece", word_piece(true), second_text, Numbers{18, 23, 24, 25, 29, 28, 30, 31, 1});
    row("word pieces, added", "wordpiece", word_piece(true), "the [MASK]is[SEP] cats", Numbers{5, 4, 8, 3, 6, 7});
    row("word pieces, cased", "wordpiece", word_piece(false), second_text,
        Numbers{33, 34, 1, 24, 25, 29, 28, 30, 31, 1});
  }
  void tokenizer_json_gives_the_tokens_of_the_original() {
    const auto [kind, json, text, expected] = current_row<QString, QByteArray, QString, Numbers>();
    const auto prefix = fresh(), file = written(json.toStdString());
    const auto built = build(written(text.toStdString()), prefix, kind.toStdString() + ":" + file.string());
    QVERIFY2(built.status == 0, qPrintable(built.err));
    QCOMPARE(IndexedDataset::open(prefix).value().get(0).value(), expected);
    QCOMPARE(built.err.contains("no token for 3 bytes of the texts"), text == "he xllo\n");
    const auto sidecar = read_sidecar(prefix).value().value();
    QCOMPARE(QString::fromStdString(sidecar.tokenizer), kind);
    QCOMPARE(sidecar.files.size(), std::size_t{1});
    const auto made = tokenize::make_from_tokenizer_json(json.toStdString(), false).value();
    const Tokens tokens(expected.begin(), expected.end());
    if (text == first_text && kind == "bpe") QCOMPARE(QString::fromStdString(made->decode(tokens)), text);
  }

  void what_a_tokenizer_json_asks_for_in_vain_is_named_data() {
    const Rows<QString, QByteArray, QString> row;
    const QJsonObject small{{"h", 0}, {"e", 1}, {"he", 2}};
    const QJsonObject model = byte_pairs(small, one_merge("h", "e"));
    const auto json = [&](const QJsonObject& words, const QJsonObject& more = {}, const QJsonArray& tokens = {},
                          const QJsonValue& normalizer = {}) {
      return QByteArray::fromStdString(tokenizer_json(model, words, tokens, more, normalizer));
    };
    row("another pattern", "bpe", json(sequence_of({split_by("\\p{N}{1,3}"), byte_level(false, false)})),
        "Split by another pattern than GPT-2's: \"\\\\p{N}{1,3}\"");
    row("another pre_tokenizer", "bpe", json({{"type", "Metaspace"}}), "the pre_tokenizer \"Metaspace\"");
    row("no words", "bpe", json(byte_level(false, false)), "ByteLevel without its pattern");
    row("a normalizer", "bpe", json(byte_level(false), {}, {}, QJsonObject{{"type", "NFC"}}), "the normalizer \"NFC\"");
    row("bytes for the unknown", "bpe", json(byte_level(false), {{"byte_fallback", true}}), "model.byte_fallback");
    row("ends of words", "bpe", json(byte_level(false), {{"end_of_word_suffix", "</w>"}}), "end_of_word_suffix");
    row("a word alone", "bpe", json(byte_level(false), {}, {added(3, "x", true, "single_word")}),
        "single_word of \"x\"");
    row("space behind", "bpe", json(byte_level(false), {}, {added(3, "x", true, "rstrip")}), "rstrip of \"x\"");
    row("Unigram", "bpe", json(byte_level(false), {{"type", "Unigram"}}), "Unigram, which is SentencePiece's");
    row("no WordPiece", "wordpiece", json(byte_level(false)), "one of another kind");
    row("no SentencePiece", "sentencepiece", json(byte_level(false)), "this is JSON and no SentencePiece model");
    row("a piece that is none", "bpe", json(byte_level(false), {{"merges", one_merge("h", "x")}}),
        "the list of merges of the tokenizer is damaged: merge 1 has a piece that the vocabulary lacks");
  }
  void what_a_tokenizer_json_asks_for_in_vain_is_named() {
    const auto [kind, json, words] = current_row<QString, QByteArray, QString>();
    const auto file = written(json.toStdString());
    const auto refused = build(written("hehhe x"), fresh(), kind.toStdString() + ":" + file.string());
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains(words), qPrintable(refused.err));
    QVERIFY2(refused.err.contains(QString::fromStdString(file)), qPrintable(refused.err));
  }

  /// Whichever of the two files is damaged is named.
  void a_damaged_file_of_two_is_named() {
    const std::filesystem::path folder = fresh();
    std::filesystem::create_directory(folder);
    const auto said = [&](const std::string& vocabulary, const std::string& merges) {
      write(folder / "vocab.json", vocabulary);
      write(folder / "merges.txt", merges);
      return build(written("a"), fresh(), "bpe:" + (folder / "vocab.json").string()).err;
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
    const auto prefix = fresh();
    const auto built = build(written("The cat.\nthe mats\n\nother\n"), prefix, choice("wordpiece"), {"--sentences"});
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
    const auto shown = data({"show", QString::fromStdString(prefix)});
    QVERIFY2(shown.out.contains("wordpiece") && shown.out.contains("vocabulary         137"), qPrintable(shown.out));
  }

  void what_cannot_be_tokenized_is_refused() {
    const auto expect = [this](const std::string& tokenizer, std::string_view text, const QStringList& more,
                               const char* words) {
      const auto refused = build(written(text), fresh(), tokenizer, more);
      QCOMPARE(refused.status, 2);
      QVERIFY2(refused.err.contains(words), qPrintable(refused.err));
    };
    expect("words:x", "a", {}, "\"words:x\" is no tokenizer");
    expect("bpe:" + (fresh() / "vocab.json").string(), "a", {}, "vocab.json");
    expect("wordpiece:" + written("the\ncat\n").string(), "a", {}, "it has no token [UNK]");
    expect("sentencepiece:" + written("not a model").string(), "a", {}, "cannot be read");
    expect(choice("bpe"), "good \xFF bad", {}, "the text is not UTF-8: byte 5");
    expect(choice("wordpiece"), "a", {"--append-eod"}, "has no token that ends a document");
    expect(choice("bpe"), "a", {"--append-eod", "--sentences"}, "no token that ends a document");
    expect(choice("bpe"), "a", {"--keep-case"}, "applies to wordpiece only");
    expect(choice("bpe"), "a b\n" + std::string(17 << 20, 'a'), {}, "16 MiB follow each other without white space");
  }

  /// Documents of more than a stretch: of whole lines, of one line, with every kind of white space at their ends.
  void stretches_of_a_long_text_have_the_tokens_of_the_whole_data() {
    const Rows<QString, QString> row;
    for (const QString kind : {"bpe", "wordpiece"})
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
    tokenizer.tokenizer = kind == "bpe" ? tokenize::make_byte_pair({vocabulary_json()}, {merges_text}).value()
                                        : tokenize::make_word_piece(word_pieces, false).value();
    tokenizer.known = tokenizer.tokenizer->facts();
    std::string words;
    for (int i = 0; words.size() < 1'600'000; ++i) {
      words += (i % 3 == 0 ? first_text : second_text) + std::string("  don't") + (i % 5 == 0 ? " 202" : "the\t");
      words += lines == "CRLF"         ? "\r\n"
               : lines == "one line"   ? " "
               : lines == "wide space" ? "\xE3\x80\x80\n\n the "
                                       : " \n";
    }
    if (lines == "one line") std::ranges::replace(words, '\n', ' ');
    const auto prefix = fresh();
    const auto built = build_text_dataset(
        {.texts = {written(words)}, .prefix = prefix, .documents = DocumentKind::file, .tokenizer = &tokenizer}, {});
    QVERIFY2(built, built ? "" : built.error().text().c_str());
    QVERIFY(tokenizer.texts >= 2 && tokenizer.longest <= stretch_bytes);
    const auto dataset = IndexedDataset::open(prefix).value();
    QCOMPARE(dataset.sequences(), 1);
    const Tokens whole = tokenizer.tokenizer->encode(words).value();
    QVERIFY(dataset.get(0).value() == Numbers(whole.begin(), whole.end()));
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
      const auto whole = fresh(), prefix = fresh();
      TextDatasetRequest request{.texts = {written(words), written(words)},
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
    const std::string good = kind == "bpe"              ? vocabulary
                             : kind == "tokenizer.json" ? json
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
      const auto made = kind == "bpe"              ? tokenize::make_byte_pair({bad}, {merges_text})
                        : kind == "merges"         ? tokenize::make_byte_pair({vocabulary}, {bad})
                        : kind == "wordpiece"      ? tokenize::make_word_piece(bad, false)
                        : kind == "tokenizer.json" ? tokenize::make_from_tokenizer_json(bad, false)
                                                   : tokenize::make_sentence_piece(bad);
      if (!made) {
        const auto says = [&made](const char* words) { return made.error().message.find(words) != std::string::npos; };
        QVERIFY(kind == "sentencepiece"    ? says("cannot be read") || says("this is JSON")
                : kind == "tokenizer.json" ? says("is damaged") || says("asks for what is not supported")
                                           : says("is damaged"));
        ++refused;
        continue;
      }
      const auto vocabulary_size = (*made)->facts().special.vocabulary;
      const Tokens tokens = (*made)->encode(second_text).value();
      for (const std::int32_t token : tokens) QVERIFY(token >= 0 && token < vocabulary_size);
    }
    QVERIFY(refused > fuzz_inputs / 100 && refused < fuzz_inputs);
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestTokenizers)

}  // namespace test_tokenizers
#include "test_tokenizers.moc"
