// SPDX-License-Identifier: Apache-2.0
// Small tokenizers made by hand, in each kind of file, and a folder in which data sets are built with them.
#pragma once

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/programs.h"

namespace accrue::test {

using Numbers = std::vector<std::int64_t>;

inline const char* const merges_text =
    "#version: 0.2\na t\nh e\nc at\nt he\n\xC4\xA0 \xC3\x83\n\xC4\xA0 cat\nm at\n\xC4\xA0 o\n\xC4\xA0 the\n\xC4\xA0 "
    "mat\n"
    "\xC4\xA0"
    "cat s\n' t\n0 2\nB r\nT \xC3\x83\nT he\na r\nb e\nc k\nd i\ni s\nt \xC3\x83\n\xC2\xA5 \xC3\xA6\n\xC2\xA9 "
    "t\xC3\x83\n";

/// The end of a document, 256 bytes by the letters that stand for them, and a token for each merge.
inline std::string vocabulary_json() {
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

inline const char* const word_pieces =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nis\n'\n##n\nt\non\nmat\n;\nother\nare\n.\nuber\ndie\nbruck\n##"
    "e\n:\n"
    "ete\n2\n,\n##0\n##2\n##4\n02\n\xE6\x97\xA5\n\xE6\x9C\xAC\nThe\n\xC3\x9C\n##ber\n";

inline const char* const sentence_model =
    "Cg4KBTx1bms+FQAAAAAYAgoMCgM8cz4VAAAAABgDCg0KBDwvcz4VAAAAABgDCgoKA+KWgRX4z9e/CggKAWUVUgc0wAoICgFyFVQH"
    "NMAKCgoDdGhlFVcYSMAKCAoBdBUlC2LACggKAVQV3CpjwAoJCgLDiRXcKmPACggKAScV3ipjwAoICgEyFd4qY8AKCAoBaRXeKmPA"
    "CggKAW4V3ipjwAoJCgLDqRXeKmPACg0KBuKWgW1hdBXeKmPACgsKBOKWgW8V7ypjwAoOCgfiloFjYXRzFU2hY8AKCQoCaGUVE3GJ"
    "wAoICgFzFfgmisAKDQoG4paBY2F0FcQnisAKCAoBbxXfpIrACggKAWEVr6WKwAoICgFtFbClisAKCAoBYxWypYrACggKAUIVe6aK"
    "wAoICgEsFYCmisAKCAoBLhWAporACggKATAVgKaKwAoICgE0FYCmisAKCAoBOhWAporACggKATsVgKaKwAoICgFkFYCmisAKCAoB"
    "axWAporACgkKAsO8FYCmisAKCgoD5pelFYCmisAKCgoD5pysFYCmisAKCAoBYhWCporACggKAWgVgqaKwAoJCgLDnBWCporAEhQK"
    "By4vYy50eHQSBC4vc3AgKIgCABoMCghpZGVudGl0eRIA";

/// GPT-2's words, as other tokenizers name them.
inline const char* const split_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Llama 3's words; punctuation takes the line ends that follow it.
inline const char* const llama3_pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                                          R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline QJsonObject byte_level(bool space_before, bool splits = true) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", space_before}, {"trim_offsets", true}, {"use_regex", splits}};
}
inline QJsonObject split_by(const QString& pattern) {
  return {{"type", "Split"}, {"pattern", QJsonObject{{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}
inline QJsonObject sequence_of(const QJsonArray& steps) {
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}
inline QJsonObject added(int token, const QString& content, bool special, const QString& flag = {}) {
  QJsonObject entry{{"id", token},     {"content", content}, {"single_word", false},  {"lstrip", false},
                    {"rstrip", false}, {"special", special}, {"normalized", !special}};
  if (!flag.isEmpty()) entry[flag] = true;
  return entry;
}

/// The merges of merges_text as pairs, or each in one text.
inline QJsonArray merges_json(bool pairs) {
  QJsonArray merges;
  for (const QString& line : QString::fromUtf8(merges_text).split('\n', Qt::SkipEmptyParts).mid(1))
    merges.append(pairs ? QJsonValue(QJsonArray{line.section(' ', 0, 0), line.section(' ', 1, 1)}) : QJsonValue(line));
  return merges;
}

/// A list of this one pair.
inline QJsonArray one_merge(const QString& left, const QString& right) {
  QJsonArray list;
  list.append(QJsonArray{left, right});
  return list;
}

inline QJsonObject byte_pairs(const QJsonObject& vocabulary, const QJsonArray& merges) {
  return {{"type", "BPE"},
          {"dropout", QJsonValue()},
          {"unk_token", QJsonValue()},
          {"vocab", vocabulary},
          {"merges", merges}};
}

/// A tokenizer.json; `more` are keys of the model.
inline std::string tokenizer_json(QJsonObject model, const QJsonObject& words, const QJsonArray& added_tokens = {},
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

/// Rules of SentencePiece that turn x into "the": a table of units, of which three are used, and the texts.
inline QString rules_for_x() {
  std::vector<std::uint32_t> units(0x7C);
  units[0] = 1 << 10;  // the children of the root begin at 1
  units[1 ^ 'x'] = 2 << 10 | 1 << 8 | 'x';
  units[1 ^ 'x' ^ 2] = 1U << 31;  // the text at 0
  const auto size = static_cast<std::uint32_t>(units.size() * sizeof units[0]);
  QByteArray bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(reinterpret_cast<const char*>(units.data()), static_cast<qsizetype>(size));
  return bytes.append("the", 4).toBase64();
}

/// Every kind of step in one file.
inline std::string json_of_many_steps() {
  const QJsonArray normalizers{
      QJsonObject{{"type", "NFKC"}}, QJsonObject{{"type", "StripAccents"}},
      QJsonObject{{"type", "Precompiled"}, {"precompiled_charsmap", rules_for_x()}},
      QJsonObject{{"type", "Replace"}, {"pattern", QJsonObject{{"Regex", " {2,}"}}}, {"content", " "}},
      QJsonObject{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}};
  const QJsonArray words{split_by("(?i:'s|'t)|\\p{L}+|\\s+(?!\\S)"), QJsonObject{{"type", "Digits"}},
                         QJsonObject{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                         QJsonObject{{"type", "Metaspace"}, {"prepend_scheme", "always"}}};
  QJsonArray pieces;
  for (const char* piece : {"<unk>", "\xE2\x96\x81", "the", "cat", "at", "a", "t", "<0xC3>", "<0x9C>"}) {
    QJsonArray scored;
    scored.append(QString::fromUtf8(piece));
    scored.append(-3.0);
    pieces.append(scored);
  }
  return tokenizer_json({{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", pieces}},
                        sequence_of(words), {added(9, "<s>", true, "lstrip"), added(10, "cat", false, "single_word")},
                        {}, QJsonObject{{"type", "Sequence"}, {"normalizers", normalizers}});
}

/// With an end of line and two lines between, in one document.
inline const char* const first_text = "The cat isn't on the  mat;\n\n the other cats are.";
inline const char* const second_text =
    "\xC3\x9C"
    "ber \xC3\x89T\xC3\x89 2,024 \xE6\x97\xA5\xE6\x9C\xAC\tx";

/// A folder of files and data sets.
class TokenizerFolder {
 public:
  std::filesystem::path fresh() { return temporary_.filePath(QStringLiteral("f%1").arg(++count_)).toStdString(); }
  std::filesystem::path path() const { return temporary_.path().toStdString(); }
  std::filesystem::path written(std::string_view bytes) {
    auto path = fresh();
    write(path, bytes);
    return path;
  }
  static void write(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  static Outcome data(const QStringList& arguments) {
    return Program(programPath("accrue-run"), QStringList{"data"} + arguments).finish();
  }
  static Outcome build(const std::filesystem::path& text, const std::filesystem::path& prefix,
                       const std::string& tokenizer, const QStringList& more = {}) {
    return data(QStringList{"build", QString::fromStdString(text), "--out", QString::fromStdString(prefix),
                            "--tokenizer", QString::fromStdString(tokenizer)} +
                more);
  }

 private:
  QTemporaryDir temporary_;
  int count_ = 0;
};

}  // namespace accrue::test
