// SPDX-License-Identifier: Apache-2.0
// libsentencepiece reads the file in its own parser. This program is a separate process, so that a file that crashes
// the library ends no other program.
#include <sentencepiece_processor.h>

#include <exception>

#include "pipeline.h"

namespace accrue::tokenize {
namespace {

class SentencePiece final : public Tokenizer {
 public:
  Result<void> read(std::string_view model) {
    if (model.starts_with('{'))
      return fail(ErrorCode::data, "this is JSON and no SentencePiece model", {},
                  "Give the .model file as sentencepiece:FILE, and a tokenizer.json without a kind before it");
    try {  // it throws if its table of pieces cannot be built
      const auto status = processor_.LoadFromSerializedProto({model.data(), model.size()});
      if (status.ok() && processor_.GetPieceSize() > 0) return {};
    } catch (const std::exception&) {
    }
    return fail(ErrorCode::data, "the SentencePiece model cannot be read", {},
                "Give the .model file as it was trained or published");
  }

  Result<Tokens> encode(std::string_view text, bool /*goes_on*/) const override {
    std::vector<int> pieces;
    if (const auto status = processor_.Encode({text.data(), text.size()}, &pieces); !status.ok())
      return fail(ErrorCode::data, "the SentencePiece model cannot encode the text: " + status.ToString());
    return Tokens(pieces.begin(), pieces.end());
  }

  std::string decode(const Tokens& tokens) const override {
    std::vector<int> pieces;
    for (const std::int32_t token : tokens)
      if (token >= 0 && token < processor_.GetPieceSize()) pieces.push_back(token);
    std::string text;
    return processor_.Decode(pieces, &text).ok() ? text : std::string();
  }

  DatasetSidecar facts() const override {
    DatasetSidecar facts{.tokenizer = "sentencepiece", .files = {}, .special = {}};
    take_special_tokens(facts, [this](const std::string& name) { return find({name}); });
    SpecialTokens& special = facts.special;
    special.vocabulary = processor_.GetPieceSize();
    special.pad = processor_.pad_id();
    special.bos = processor_.bos_id();
    special.eos = processor_.eos_id();
    if (const std::int64_t end = find({"<eod>", "<EOD>", "<|endoftext|>"}); end >= 0)
      facts.end_of_document = end;
    else if (special.eos >= 0)
      facts.end_of_document = special.eos;
    return facts;
  }

 private:
  /// Returns the first of these pieces in the model, or -1.
  std::int64_t find(const std::vector<std::string>& names) const {
    for (const std::string& name : names)
      if (const int id = processor_.PieceToId(name); id >= 0 && processor_.IdToPiece(id) == name) return id;
    return -1;
  }

  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_sentence_piece(std::string_view model) {
  auto tokenizer = std::make_unique<SentencePiece>();
  if (auto read = tokenizer->read(model); !read) return tl::unexpected(read.error());
  return tokenizer;
}

}  // namespace accrue::tokenize
