// SPDX-License-Identifier: Apache-2.0
// BERT's words in pieces: control characters are removed; Chinese characters and punctuation are separate words;
// without keep_case letters become lower case and lose their accents. Each word is cut from its front into the longest
// pieces in the vocabulary; pieces after the first begin with ##.
// Source: Devlin et al., BERT; google-research/bert, tokenization.py.
#include <fmt/format.h>

#include <unordered_map>

#include "tokenizer.h"
#include "unicode.h"

namespace accrue::tokenize {
namespace {

constexpr std::size_t longest_word = 100;  ///< code points; a longer word is unknown as a whole

bool is_control(UChar32 point) {
  if (point == '\t' || point == '\n' || point == '\r') return false;
  return (U_GET_GC_MASK(point) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool is_punctuation(UChar32 point) {
  if ((point >= 33 && point <= 47) || (point >= 58 && point <= 64) || (point >= 91 && point <= 96) ||
      (point >= 123 && point <= 126))
    return true;
  return (U_GET_GC_MASK(point) & U_GC_P_MASK) != 0;
}

bool is_chinese(UChar32 point) {
  struct Block {
    UChar32 first, last;
  };
  constexpr Block blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                              {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const Block& block : blocks)
    if (point >= block.first && point <= block.last) return true;
  return false;
}

void append_small(CodePoints& points, UChar32 point) {
  constexpr UChar32 dotted_i = 0x130, dot_above = 0x307;
  if (point == dotted_i) {
    points.insert(points.end(), {'i', dot_above});
    return;
  }
  points.push_back(u_tolower(point));
}

class WordPiece final : public Tokenizer {
 public:
  Result<void> take(const std::vector<std::string>& tokens, const std::string& unknown_name, bool keep_case) {
    keep_case_ = keep_case;
    for (const std::string& token : tokens) {
      if (continues_.size() >= most_tokens) return damaged(fmt::format("it has more than {} tokens", most_tokens));
      tokens_[token] = static_cast<std::int32_t>(continues_.size());
      continues_.push_back(token.starts_with("##"));
      longest_ = std::max(longest_, token.size());
    }
    const auto unknown = tokens_.find(unknown_name);
    if (unknown == tokens_.end()) return damaged(fmt::format("it has no token {}", unknown_name));
    unknown_ = unknown->second;
    return {};
  }

  Result<Tokens> encode(std::string_view text, bool /*goes_on*/) const override {
    Tokens tokens;
    std::string word;
    std::size_t points = 0;
    const auto end_word = [&] {
      if (!word.empty()) encode_word(word, points, tokens);
      word.clear();
      points = 0;
    };
    for (const UChar32 point : normal(text)) {
      if (is_space(point)) {
        end_word();
      } else if (is_punctuation(point)) {
        end_word();
        append_utf8(word, point);
        points = 1;
        end_word();
      } else {
        append_utf8(word, point);
        ++points;
      }
    }
    end_word();
    return tokens;
  }

  /// Words with a space between them: no token has the original separators.
  std::string decode(const Tokens& tokens) const override {
    std::vector<const std::string*> names(continues_.size(), nullptr);
    for (const auto& [name, token] : tokens_) names[static_cast<std::size_t>(token)] = &name;
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token < 0 || token >= std::ssize(names) || names[static_cast<std::size_t>(token)] == nullptr) continue;
      const std::string_view name = *names[static_cast<std::size_t>(token)];
      const bool goes_on = name.starts_with("##") && !text.empty();
      if (!text.empty() && !goes_on) text.push_back(' ');
      text += goes_on ? name.substr(2) : name;
    }
    return text;
  }

  DatasetSidecar facts() const override {
    DatasetSidecar facts{.tokenizer = "wordpiece", .files = {}, .special = {.pad = -1}};
    facts.keep_case = keep_case_;
    SpecialTokens& special = facts.special;
    special.vocabulary = std::ssize(continues_);
    special.continues = continues_;
    const auto find = [this](const char* name) {
      const auto found = tokens_.find(name);
      return found == tokens_.end() ? -1 : std::int64_t{found->second};
    };
    special.cls = find("[CLS]");
    special.sep = find("[SEP]");
    special.mask = find("[MASK]");
    special.pad = find("[PAD]");
    special.bos = find("[BOS]");
    special.eos = find("[EOS]");
    return facts;
  }

 private:
  static tl::unexpected<Error> damaged(const std::string& what) {
    return fail(ErrorCode::data, "the vocabulary of the tokenizer is damaged: " + what, {},
                "Give vocab.txt as it was published, with a token a line");
  }

  CodePoints normal(std::string_view text) const {
    CodePoints points;
    for (const UChar32 point : code_points(text)) {
      if (point == 0 || point == 0xFFFD || is_control(point)) continue;
      if (is_space(point))
        points.push_back(' ');
      else if (is_chinese(point))
        points.insert(points.end(), {' ', point, ' '});
      else
        points.push_back(point);
    }
    if (keep_case_) return points;
    CodePoints small;
    for (const UChar32 point : decomposed(points))
      if (u_charType(point) != U_NON_SPACING_MARK) append_small(small, point);
    return small;
  }

  void encode_word(const std::string& word, std::size_t points, Tokens& tokens) const {
    const std::size_t before = tokens.size();
    bool known = points <= longest_word;
    for (std::size_t begin = 0; known && begin < word.size();) {
      std::size_t end = std::min(word.size(), begin + longest_);
      known = false;
      for (; end > begin && !known; --end) {
        if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) continue;
        const auto found = tokens_.find((begin > 0 ? "##" : "") + word.substr(begin, end - begin));
        if (found == tokens_.end()) continue;
        tokens.push_back(found->second);
        begin = end;
        known = true;
        break;
      }
    }
    if (known) return;
    tokens.resize(before);
    tokens.push_back(unknown_);
  }

  std::unordered_map<std::string, std::int32_t> tokens_;
  std::vector<bool> continues_;
  std::size_t longest_ = 0;  ///< bytes of the longest token
  std::int32_t unknown_ = 0;
  bool keep_case_ = false;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_word_piece(const std::vector<std::string>& tokens, const std::string& unknown,
                                                   bool keep_case) {
  auto tokenizer = std::make_unique<WordPiece>();
  if (auto taken = tokenizer->take(tokens, unknown, keep_case); !taken) return tl::unexpected(taken.error());
  return tokenizer;
}

Result<std::unique_ptr<Tokenizer>> make_word_piece(std::string_view vocabulary, bool keep_case) {
  std::vector<std::string> tokens;
  while (!vocabulary.empty()) {
    std::string_view line = vocabulary.substr(0, vocabulary.find('\n'));
    vocabulary.remove_prefix(std::min(line.size() + 1, vocabulary.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    tokens.emplace_back(line);
  }
  return make_word_piece(tokens, "[UNK]", keep_case);
}

}  // namespace accrue::tokenize
