// SPDX-License-Identifier: Apache-2.0
// accrue-tokenize as a TextTokenizer: the program is started once, and a text that makes it crash ends only that
// process.
#pragma once

#include <memory>
#include <string>

#include "accrue/run/data/text_dataset.h"
#include "accrue/run/process/child_process.h"

namespace accrue::cli {

class TokenizerProcess final : public TextTokenizer {
 public:
  /// choice: KIND:FILE, or the path of a tokenizer.json or of its folder. keep_case: for a wordpiece. Errors: config
  /// for another choice; data for a file that is not such a tokenizer; device if the program is missing; protocol.
  static Result<std::unique_ptr<TokenizerProcess>> start(const std::string& choice, bool keep_case);

  const DatasetSidecar& facts() const override { return facts_; }
  /// Errors: data for a text that is not UTF-8, that the tokenizer rejects, or that ended the program.
  Result<std::vector<std::int64_t>> encode(std::string_view text, bool goes_on) override;
  /// Bytes so far that have no token and were dropped.
  std::int64_t left_out() const { return left_out_; }
  /// Errors: protocol as encode().
  Result<std::string> decode(const std::vector<std::int64_t>& tokens);

 private:
  TokenizerProcess() = default;
  Result<void> read_facts();
  Error read_error();
  Result<void> ask(char request, std::uint64_t count, const void* from, std::size_t bytes);
  Result<void> send(const void* from, std::size_t bytes);
  Result<void> receive(void* to, std::size_t bytes);
  tl::unexpected<Error> ended() const;

  std::string file_;
  ChildProcess process_;
  OwnedFd socket_;
  DatasetSidecar facts_;
  std::int64_t left_out_ = 0;
};

}  // namespace accrue::cli
