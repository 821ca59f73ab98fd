// SPDX-License-Identifier: GPL-3.0-or-later
// Pages of the manual, compiled in as Markdown.
#pragma once

#include <QString>
#include <vector>

namespace accrue::ui {

struct ManualPage {
  QString topic;  ///< its file's name: "layouts"
  QString title;
  QString text;   ///< Markdown; links into the sources are plain code, because the studio may be installed without them
  QString shown;  ///< visible text of the page
};
/// In the order of contents.
const std::vector<ManualPage>& manual();

}  // namespace accrue::ui
