// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "manual_pages.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// Returns a page's opening line: what its reader can do afterwards.
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
  if (page != manual_pages().end()) {
    put(std::string(page->text));
    return status_done;
  }
  if (const SpecField* field = find_field(options.topic)) {
    put(annotated_default(*field));
    return status_done;
  }
  const std::string near(nearest_key(options.topic));
  return report({.code = ErrorCode::config,
                 .message = "no page of the manual, no verb and no key of a spec is called \"" + options.topic + "\"",
                 .where = {},
                 .hint = (near.empty() ? "" : "Did you mean \"" + near + "\"? ") + "accrue-run help lists the pages."});
}

}  // namespace accrue::cli
