// SPDX-License-Identifier: Apache-2.0
// tokenizer.json by `accrue-run data build`: the steps of published families, and what is not supported. The tokens are
// those of PyPI's tokenizers 0.23.3 for the same file; tests/support/check_tokenizers.py holds a corpus of many scripts
// against it.
#include <QTest>
#include <algorithm>

#include "accrue/run/data/indexed_dataset.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/tokenizer_files.h"
#include "tokenizer.h"

namespace test_tokenizer_json {

using namespace accrue;
using namespace accrue::test;
using tokenize::Tokens;

class TestTokenizerJson : public QObject {
  Q_OBJECT
  TokenizerFolder folder_;

 private Q_SLOTS:
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
    const auto prefix = folder_.fresh(), file = folder_.written(json.toStdString());
    const auto built =
        folder_.build(folder_.written(text.toStdString()), prefix, kind.toStdString() + ":" + file.string());
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

  void steps_of_a_tokenizer_json_give_the_tokens_of_the_original_data() {
    const Rows<QJsonObject, QJsonObject, QJsonObject, QJsonArray, QString, Numbers> row;
    const auto of = [](const char* json) { return QJsonDocument::fromJson(json).object(); };
    const QJsonObject bytes =
        byte_pairs(QJsonDocument::fromJson(QByteArray::fromStdString(vocabulary_json())).object(), merges_json(true));
    const QJsonObject plain = byte_level(false, false), words = byte_level(false), none;
    row("Llama 3", bytes, sequence_of({split_by(llama3_pattern), plain}), none, {},
        "don't STOP'S 12345 the!\n\n  cat\r\n\tmat",
        Numbers{68, 79, 78, 268, 221, 51,  52,  47,  48,  7,   51,  221, 17, 18,
                19, 20, 21, 265, 1,   199, 199, 221, 262, 202, 199, 198, 263});
    row("NFC", bytes, words, of(R"({"type": "NFC"})"), {}, QString::fromUtf8("e\xCC\x81 \xC3\xA9"),
        Numbers{128, 103, 261, 103});
    row("replaced and small", bytes, words, of(R"({"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}, {"type": "Lowercase"}]})"),
        {}, "The  CAT", Numbers{260, 262});
    row("a table of characters", bytes, words,
        QJsonObject{{"type", "Precompiled"}, {"precompiled_charsmap", rules_for_x()}}, {}, "cat x", Numbers{259, 265});
    row("digits", bytes, sequence_of({of(R"({"type": "Digits", "individual_digits": true})"), byte_level(true)}), none,
        {}, "02 cat02", Numbers{221, 16, 221, 18, 262, 221, 16, 221, 18});
    for (const auto& [behavior, expected] : {std::pair("Removed", Numbers{259, 263, 260}),
                                             std::pair("MergedWithNext", Numbers{259, 13, 13, 263, 27, 260})}) {
      QJsonObject split = split_by("[-;]");
      split["behavior"] = behavior;
      row(behavior, bytes, sequence_of({split, plain}), none, {}, "cat--mat;the", expected);
    }
    const auto replaced = [](const char* pattern, const char* content) {
      return QJsonObject{
          {"type", "Replace"}, {"pattern", QJsonObject{{"Regex", pattern}}}, {"content", QString::fromUtf8(content)}};
    };
    row("lines by Ruby's rules", bytes, words, replaced("^t.", "a"), {}, "the\ntx\rtx",
        Numbers{65, 69, 199, 65, 202, 84, 88});
    row("classes by Ruby's rules", bytes, words, replaced("[\\h]+|\\W", "a"), {}, QString::fromUtf8("xb0\xC2\xB2 y"),
        Numbers{88, 65, 127, 111, 65, 89});
    row("an empty match", bytes, sequence_of({split_by("(?=m)"), plain}), replaced("$", "t"), {}, "catmat",
        Numbers{259, 263, 84});
    row("the number of the vocabulary", bytes, words, none, {added(7000, "cat", true)}, "catmat", Numbers{259, 263});
    row("a token alone", bytes, words, none,
        {added(263, "mat", false, "single_word"), added(259, "cat", true, "single_word")}, "cat mat cats mat.",
        Numbers{259, 221, 263, 267, 221, 263, 14});
    row("space behind", bytes, words, none, {added(281, "<r>", true, "rstrip")}, "the <r>  cat",
        Numbers{260, 221, 281, 259});

    const QJsonObject characters = of(R"({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
        "vocab": {"<unk>": 0, "<0xE6>": 1, "<0x97>": 2, "<0xA5>": 3, "\u2581": 4, "t": 5, "h": 6, "e": 7, "c": 8, "a": 9,
                  "he": 10, "the": 11, "\u2581the": 12, "\u2581c": 13},
        "merges": [["h", "e"], ["t", "he"], ["\u2581", "the"], ["\u2581", "c"]]})");
    const QString text = QString::fromUtf8("the cathe \xE6\x97\xA5 xx");
    const Numbers marked{12, 13, 9, 11, 4, 1, 2, 3, 4, 0};
    const auto metaspace = [](const char* scheme, bool splits) {
      return QJsonObject{{"type", "Metaspace"}, {"prepend_scheme", scheme}, {"split", splits}};
    };
    row("Llama 2", characters, none,
        of(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})"),
        {}, text, marked);
    row("a mark always", characters, metaspace("always", true), none, {}, text, marked);
    row("a mark never", characters, metaspace("never", true), none, {}, text, Numbers{11, 13, 9, 11, 4, 1, 2, 3, 4, 0});
    row("a mark first", characters, metaspace("first", false), none, {}, text, marked);
    row("not first", characters, metaspace("first", false), none, {added(14, "<s>", true)}, "<s>the", Numbers{14, 11});
    row("not first after a space", characters,
        sequence_of({of(R"({"type": "WhitespaceSplit"})"), metaspace("first", false)}), none, {}, " the", Numbers{11});
    row("a merge twice", of(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4},
            "merges": [["a", "b"], ["b", "c"], ["a", "b"]]})"),
        none, none, {}, "abc", Numbers{0, 4});
    row("Unigram",
        of(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581", -2.0], ["t", -3.0], ["h", -3.0],
            ["e", -3.0], ["the", -4.0], ["\u2581the", -4.5], ["he", -3.5], ["c", -5.0], ["at", -4.0], ["a", -4.2]]})"),
        metaspace("always", true), none, {}, "the cathe xx th", Numbers{6, 1, 8, 9, 7, 1, 0, 1, 2, 3});
    row("words",
        of(R"({"type": "WordLevel", "vocab": {"[UNK]": 0, "cat": 1, ",": 2, "the": 3}, "unk_token": "[UNK]"})"),
        of(R"({"type": "Whitespace"})"), none, {}, "the cat, dog", Numbers{3, 1, 2, 0});
    const QJsonObject by_space = of(R"({"type": "WhitespaceSplit"})");
    row("ends of words",
        of(R"({"type": "BPE", "end_of_word_suffix": "</w>", "vocab": {"c": 0, "a": 1, "t": 2, "t</w>": 3,
            "at</w>": 4, "cat</w>": 5, "s</w>": 6}, "merges": [["a", "t</w>"], ["c", "at</w>"]]})"),
        by_space, none, {}, "cat cats", Numbers{5, 0, 1, 2, 6});
    row("parts of words", of(R"({"type": "BPE", "continuing_subword_prefix": "##", "vocab": {"c": 0, "##a": 1, "##t": 2,
            "##at": 3, "cat": 4}, "merges": [["##a", "##t"], ["c", "##at"]]})"),
        by_space, none, {}, "cat ca", Numbers{4, 0, 1});
  }
  void steps_of_a_tokenizer_json_give_the_tokens_of_the_original() {
    const auto [model, words, normalizer, tokens, text, expected] =
        current_row<QJsonObject, QJsonObject, QJsonObject, QJsonArray, QString, Numbers>();
    const auto folder = folder_.fresh(), prefix = folder_.fresh();
    std::filesystem::create_directory(folder);
    const auto part = [](const QJsonObject& each) { return each.isEmpty() ? QJsonValue() : QJsonValue(each); };
    const QJsonObject file{
        {"added_tokens", tokens}, {"normalizer", part(normalizer)}, {"pre_tokenizer", part(words)}, {"model", model}};
    folder_.write(folder / "tokenizer.json", QJsonDocument(file).toJson().toStdString());
    const auto built = folder_.build(folder_.written(text.toStdString()), prefix, folder.string());
    QVERIFY2(built.status == 0, qPrintable(built.err));
    QCOMPARE(IndexedDataset::open(prefix).value().get(0).value(), expected);
  }

  void what_a_tokenizer_json_asks_for_in_vain_is_named_data() {
    const Rows<QString, QByteArray, QString> row;
    const QJsonObject small{{"h", 0}, {"e", 1}, {"he", 2}};
    const QJsonObject model = byte_pairs(small, one_merge("h", "e"));
    const auto json = [&](const QJsonObject& words, const QJsonObject& more = {}, const QJsonArray& tokens = {},
                          const QJsonValue& normalizer = {}) {
      return QByteArray::fromStdString(tokenizer_json(model, words, tokens, more, normalizer));
    };
    row("a pattern that is none", "bpe", json(sequence_of({split_by("\\p{N"), byte_level(false, false)})),
        "the pattern \"\\\\p{N\", which ICU does not read (U_REGEX_");
    row("another pre_tokenizer", "bpe", json({{"type", "UnicodeScripts"}}), "the pre_tokenizer \"UnicodeScripts\"");
    row("another in a sequence", "bpe", json(sequence_of({QJsonObject{{"type", "Words"}}})), "pre_tokenizer \"Words\"");
    row("words of bytes", "bpe", json(sequence_of({byte_level(false), split_by("a")})),
        "a pre_tokenizer after ByteLevel");
    row("a behavior", "bpe", json({{"type", "Split"}, {"pattern", QJsonObject{{"String", "a"}}}, {"behavior", "Kept"}}),
        "a Split with the behavior \"Kept\"");
    row("a scheme", "bpe", json({{"type", "Metaspace"}, {"prepend_scheme", "last"}}), "prepend_scheme = \"last\"");
    row("a normalizer", "bpe", json(byte_level(false), {}, {}, QJsonObject{{"type", "Nmt"}}), "the normalizer \"Nmt\"");
    row("no table of characters", "bpe",
        json(byte_level(false), {}, {}, QJsonObject{{"type", "Precompiled"}, {"precompiled_charsmap", "AAA"}}),
        "precompiled_charsmap is no table of characters");
    row("dropout", "bpe", json(byte_level(false), {{"dropout", 0.1}}), "the dropout of merges");
    row("bytes for pieces", "unigram", json(byte_level(false), {{"type", "Unigram"}}),
        "a model of bytes that is \"Unigram\"");
    row("another model", "bpe", json(byte_level(false), {{"type", "Model"}}), "a model of bytes that is \"Model\"");
    QJsonObject deep{{"type", "NFC"}};
    for (int i = 0; i < 200; ++i) deep = {{"type", "Sequence"}, {"normalizers", QJsonArray{{QJsonValue(deep)}}}};
    row("too deep", "json", json(byte_level(false), {}, {}, deep), "this is no tokenizer.json");
    row("space in a token", "bpe", json(byte_level(false), {}, {added(3, "x y", true)}),
        "the white space within the text of");
    row("no WordPiece", "wordpiece", json(byte_level(false)), "one of another kind");
    row("no SentencePiece", "sentencepiece", json(byte_level(false)), "this is JSON and no SentencePiece model");
    row("a piece that is none", "bpe", json(byte_level(false), {{"merges", one_merge("h", "x")}}),
        "the list of merges of the tokenizer is damaged: merge 1 has a piece that the vocabulary lacks");
  }
  void what_a_tokenizer_json_asks_for_in_vain_is_named() {
    const auto [kind, json, words] = current_row<QString, QByteArray, QString>();
    const auto file = folder_.written(json.toStdString());
    const auto refused =
        folder_.build(folder_.written("hehhe x"), folder_.fresh(), kind.toStdString() + ":" + file.string());
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains(words), qPrintable(refused.err));
    QVERIFY2(refused.err.contains(QString::fromStdString(file)), qPrintable(refused.err));
  }
};

ACCRUE_TEST_MAIN(TestTokenizerJson)

}  // namespace test_tokenizer_json
#include "test_tokenizer_json.moc"
