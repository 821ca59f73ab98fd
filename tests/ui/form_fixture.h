// SPDX-License-Identifier: GPL-3.0-or-later
// Common actions of the tests of the set-up form.
#pragma once

#include "setup/field_form.h"
#include "studio_fixture.h"

namespace accrue::ui {

inline FieldForm* formOf(const StudioFixture& studio) {
  return studio.find<FieldForm>("fieldForm");
}

inline void typeInto(QWidget* field, const QString& text) {
  field->setFocus();
  QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(field, text);
}

}  // namespace accrue::ui
