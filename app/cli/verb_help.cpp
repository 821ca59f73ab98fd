// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "manual_pages.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// What its reader can do after a page, which opens with it, on one line.
std::string aim_of(const ManualPage& page) {
  constexpr std::string_view opening = "After this page you ";
  const auto begin = page.text.find(opening) + opening.size();
  std::string sentence(page.text.substr(begin, page.text.find_first_of(".:", begin) - begin));
  std::ranges::replace(sentence, '\n', ' ');
  return sentence;
}

}  // namespace

int print_manual(const HelpOptions& options) {
  if (options.topic.empty()) {
    put("accrue-run help TOPIC prints a page. After it you\n");
    for (const ManualPage& page : manual_pages())
      put("  %-18s %s\n", std::string(page.topic).c_str(), aim_of(page).c_str());
    return status_done;
  }
  const auto page = std::ranges::find(manual_pages(), options.topic, &ManualPage::topic);
  if (page == manual_pages().end())
    return report({.code = ErrorCode::config,
                   .message = "the manual has no page \"" + options.topic + "\"",
                   .where = {},
                   .hint = "accrue-run help lists its pages; accrue-run VERB --help explains a verb."});
  put(std::string(page->text));
  return status_done;
}

}  // namespace accrue::cli
