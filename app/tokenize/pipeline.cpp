// SPDX-License-Identifier: Apache-2.0
#include "pipeline.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace accrue::tokenize {
namespace {

class Pipeline final : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {}

  Result<void> prepare() {
    for (const auto& [name, token] : parts_.model->vocabulary()) take_name(token, name);
    for (const AddedToken& each : parts_.added) {
      take_name(each.token, each.content);
      is_added_.resize(names_.size());
      is_added_[static_cast<std::size_t>(each.token)] = true;
      Text content = to_utf16(each.content);
      Place alone;
      if (!each.early && parts_.normalizer)
        if (auto done = parts_.normalizer(content, alone); !done) return done;
      (each.early ? early_ : late_).add(std::move(content), each);
    }
    is_added_.resize(names_.size());
    return {};
  }

  Result<Tokens> encode(std::string_view text, bool goes_on) const override {
    Tokens tokens;
    Place place{.goes_on = goes_on, .first = !goes_on};
    const Text wide = to_utf16(text);
    const auto between = [&](std::size_t begin, std::size_t end) -> Result<void> {
      return append_section(wide.substr(begin, end - begin), std::exchange(place, {false, false}), tokens);
    };
    const auto found = [&](std::int32_t token) {
      tokens.push_back(token);
      place = {.goes_on = false, .first = false};
    };
    if (auto done = early_.walk(wide, between, found); !done) return tl::unexpected(done.error());
    return tokens;
  }

  std::int64_t left_out() const override { return parts_.model->left_out(); }

  std::string decode(const Tokens& tokens) const override {
    std::string text, others;
    bool begins = true;
    const auto end_others = [&] {
      text += parts_.joining.letters ? bytes_of_letters(others) : others;
      others.clear();
    };
    for (const std::int32_t token : tokens) {
      if (token < 0 || token >= std::ssize(names_) || names_[static_cast<std::size_t>(token)] == nullptr) continue;
      const std::string& name = *names_[static_cast<std::size_t>(token)];
      if (is_added_[static_cast<std::size_t>(token)]) {
        end_others();
        text += name;
      } else {
        others += joined(name, std::exchange(begins, false));
      }
    }
    end_others();
    return text;
  }

  DatasetSidecar facts() const override {
    DatasetSidecar facts{
        .tokenizer = parts_.kind, .files = {}, .special = {.vocabulary = std::ssize(names_), .pad = -1}};
    facts.keep_case = parts_.keep_case;
    const auto find = [this](const std::string& name) { return number_of(name); };
    if (parts_.kind != "bpe") take_special_tokens(facts, find);
    if (parts_.kind != "wordpiece") take_end_of_document(facts);
    const std::string& prefix = parts_.joining.apart;
    if (!prefix.empty())
      for (const std::string* name : names_)
        facts.special.continues.push_back(name != nullptr && name->starts_with(prefix));
    return facts;
  }

 private:
  void take_name(std::int32_t token, const std::string& name) {
    const auto place = static_cast<std::size_t>(token);
    names_.resize(std::max(names_.size(), place + 1));
    names_[place] = &name;
  }

  /// The number of a token of the vocabulary or an added one, or -1.
  std::int64_t number_of(const std::string& name) const {
    const auto added = std::ranges::find(parts_.added, name, &AddedToken::content);
    return added == parts_.added.end() ? parts_.model->number_of(name) : added->token;
  }

  void take_end_of_document(DatasetSidecar& facts) const {
    for (const char* const name :
         {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"}) {
      const std::int64_t end = number_of(name);
      if (end < 0) continue;
      facts.end_of_document = end;
      return;
    }
  }

  /// Text between two early tokens.
  Result<void> append_section(Text section, Place place, Tokens& tokens) const {
    if (parts_.normalizer)
      if (auto done = parts_.normalizer(section, place); !done) return done;
    const auto between = [&](std::size_t begin, std::size_t end) -> Result<void> {
      return append_words(section.substr(begin, end - begin), std::exchange(place, {false, false}), tokens);
    };
    const auto found = [&](std::int32_t token) {
      tokens.push_back(token);
      place = {.goes_on = false, .first = false};
    };
    return late_.walk(section, between, found);
  }

  Result<void> append_words(Text text, Place place, Tokens& tokens) const {
    std::vector<Text> words{std::move(text)};
    if (parts_.splitter)
      if (auto done = parts_.splitter(words, place); !done) return done;
    for (const Text& word : words)
      if (auto done = parts_.model->append(to_utf8(word), tokens); !done) return done;
    return {};
  }

  std::string joined(const std::string& name, bool first) const {
    const Joining& joining = parts_.joining;
    if (!joining.apart.empty())
      return name.starts_with(joining.apart) && !first ? name.substr(joining.apart.size()) : (first ? "" : " ") + name;
    if (joining.space.empty()) return name;
    unsigned byte = 0;
    if (name.size() == 6 && name.starts_with("<0x") && name.back() == '>' &&
        std::from_chars(name.data() + 3, name.data() + 5, byte, 16).ptr == name.data() + 5)
      return std::string(1, static_cast<char>(byte));
    std::string text = name;
    for (auto at = text.find(joining.space); at != std::string::npos; at = text.find(joining.space, at + 1))
      text.replace(at, joining.space.size(), " ");
    return first && joining.begins_with_space && text.starts_with(' ') ? text.substr(1) : text;
  }

  PipelineParts parts_;
  AddedTokenSearch early_, late_;
  std::vector<const std::string*> names_;  ///< by number; null: none
  std::vector<bool> is_added_;             ///< likewise
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_pipeline(PipelineParts parts) {
  auto pipeline = std::make_unique<Pipeline>(std::move(parts));
  if (auto prepared = pipeline->prepare(); !prepared) return tl::unexpected(prepared.error());
  return pipeline;
}

void take_special_tokens(DatasetSidecar& facts, const std::function<std::int64_t(const std::string&)>& find) {
  const auto first_of = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (const std::int64_t token = find(name); token >= 0) return token;
    return std::int64_t{-1};
  };
  SpecialTokens& special = facts.special;
  special.cls = first_of({"[CLS]", "<cls>", "<CLS>"});
  special.sep = first_of({"[SEP]", "<sep>", "<SEP>"});
  special.mask = first_of({"[MASK]", "<mask>", "<MASK>"});
  special.pad = first_of({"[PAD]", "<pad>"});
  special.bos = first_of({"[BOS]", "<s>"});
  special.eos = first_of({"[EOS]", "</s>"});
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t sentinel = find("<extra_id_" + std::to_string(i) + ">");
    if (sentinel < 0) break;
    special.sentinels.push_back(sentinel);
  }
}

}  // namespace accrue::tokenize
