// SPDX-License-Identifier: GPL-3.0-or-later
// Theme: Fusion with the studio's palette, which follows the system's live; type scale, spacing, and icons that follow
// the text colour.
#pragma once

#include <QFont>
#include <QIcon>
#include <QObject>
#include <QString>

#include "theme_colors.h"

class QApplication;

namespace accrue::ui {

enum class ThemeMode { system, light, dark, highContrast };

/// Distances in logical pixels.
namespace space {
inline constexpr int base = 4;
inline constexpr int inGroup = 8;
inline constexpr int betweenGroups = 16;
inline constexpr int page = 24;
inline constexpr int icon = 16;
inline constexpr int toolIcon = 24;
}  // namespace space

enum class TextSize { small, body, title };
/// The system's UI font at 0.85, 1.0 or 1.25 of its size.
QFont textFont(TextSize size, QFont::Weight weight = QFont::Normal);
/// The UI font with digits of equal width, for numbers that change live.
QFont tabularFont(TextSize size = TextSize::body);
/// Font of the log and of code.
QFont codeFont();

/// An icon from :/icons/NAME.svg in the palette's text colour (disabled: muted). It is coloured while painting, so a
/// theme change needs no new icon.
QIcon themedIcon(const QString& name);
/// State icon, in a fixed role of the palette.
QIcon stateIcon(accrue::RunState state);

/// Thread: GUI. One per application.
class Theme : public QObject {
  Q_OBJECT

 public:
  explicit Theme(QApplication& application, QObject* parent = nullptr);
  void setMode(ThemeMode mode);
  ThemeMode mode() const { return mode_; }
  bool dark() const { return dark_; }

 Q_SIGNALS:
  /// Emitted after a change of the application's palette; widgets also get QEvent::PaletteChange.
  void changed();

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void apply();

  QApplication& application_;
  ThemeMode mode_ = ThemeMode::system;
  bool dark_ = false;
  bool applying_ = false;
};

}  // namespace accrue::ui
