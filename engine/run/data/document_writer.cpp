// SPDX-License-Identifier: Apache-2.0
#include "document_writer.h"

#include <algorithm>
#include <span>
#include <utility>

namespace accrue {

Result<void> DocumentWriter::append(std::string_view text) {
  if (request_.tokenizer == nullptr) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    return put({bytes, bytes + text.size()});
  }
  const auto tokens = request_.tokenizer->encode(text, in_sequence());
  if (!tokens) return tl::unexpected(tokens.error());
  for (const std::int64_t token : *tokens)
    if (token < 0 || token >= facts_.special.vocabulary)
      return fail(ErrorCode::protocol, "the tokenizer gave a token that it does not have: " + std::to_string(token));
  return put(*tokens);
}

/// A sequence that is too long continues in the next one of the same document.
Result<void> DocumentWriter::put(const std::vector<std::int64_t>& tokens) {
  for (const std::int64_t token : tokens) largest_ = std::max(largest_, token);
  std::span<const std::int64_t> rest(tokens);
  for (auto room = request_.longest_sequence - builder_.open_tokens(); std::ssize(rest) > room;
       room = request_.longest_sequence) {
    if (auto appended = builder_.append(rest.first(static_cast<std::size_t>(room))); !appended) return appended;
    if (auto ended = builder_.end_sequence(); !ended) return ended;
    rest = rest.subspan(static_cast<std::size_t>(room));
  }
  return builder_.append(rest);
}

Result<void> DocumentWriter::end_sequence() {
  if (!in_sequence()) return {};  // white space alone, which the tokenizer dropped
  in_document_ = true;
  return builder_.end_sequence();
}

Result<void> DocumentWriter::end_document() {
  if (in_sequence() && request_.append_eod)
    if (auto written = put({*facts_.end_of_document}); !written) return written;
  if (auto ended = end_sequence(); !ended) return ended;
  if (!std::exchange(in_document_, false)) return {};
  return builder_.end_document();
}

}  // namespace accrue
