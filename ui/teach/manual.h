// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of the manual, which are compiled in, as Markdown.
#pragma once

#include <QString>
#include <vector>

namespace accrue::ui {

struct ManualPage {
  QString topic;  ///< "layouts", the name of its file
  QString title;
  QString text;   ///< Markdown; links into the sources are plain code: the studio need not lie beside them
  QString shown;  ///< what of it stands on the page
};
/// In the order of their contents.
const std::vector<ManualPage>& manual();

}  // namespace accrue::ui
