// SPDX-License-Identifier: Apache-2.0
// Writes texts as sequences and documents of an indexed dataset. Splits texts that are too long for the tokenizer or
// for a sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/data/indexed_dataset_builder.h"
#include "accrue/run/data/text_dataset.h"

namespace accrue {

class DocumentWriter {
 public:
  DocumentWriter(const TextDatasetRequest& request, const DatasetSidecar& facts, IndexedDatasetBuilder& builder)
      : request_(request), facts_(facts), builder_(builder) {}

  /// Appends the tokens of a text to the open sequence.
  Result<void> append(std::string_view text);
  /// Ends the open sequence, if it has a token.
  Result<void> end_sequence();
  /// Ends the document of the sequences since the last one; does nothing if there are none.
  Result<void> end_document();

  /// Whether the open sequence has tokens.
  bool in_sequence() const { return builder_.open_tokens() > 0; }
  /// Whether some sequences belong to no document yet.
  bool in_document() const { return in_document_; }
  /// Largest token of all texts; -1 before the first.
  std::int64_t largest_token() const { return largest_; }
  /// Continues where an interrupted build stopped.
  void go_on(bool in_document, std::int64_t largest_token) {
    in_document_ = in_document;
    largest_ = largest_token;
  }

 private:
  Result<void> put(const std::vector<std::int64_t>& tokens);

  const TextDatasetRequest& request_;
  const DatasetSidecar& facts_;
  IndexedDatasetBuilder& builder_;
  bool in_document_ = false;
  std::int64_t largest_ = -1;
};

}  // namespace accrue
