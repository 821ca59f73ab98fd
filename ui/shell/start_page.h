// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPushButton>
#include <QStringList>
#include <QWidget>

class QGridLayout;
class QHBoxLayout;
class QLabel;
class QMenu;
class QVBoxLayout;

namespace accrue::ui {

/// A card of the start page: a button with a picture, a title and, if there is room, a sentence. Otherwise the
/// sentence is the tooltip.
class StartCard : public QPushButton {
  Q_OBJECT

 public:
  enum class Kind { way, example };
  StartCard(Kind kind, const QString& icon, const QString& title, const QString& sentence, QWidget* parent = nullptr);
  /// The narrowest width, in logical pixels, at which the title is not cut.
  int leastWidth(bool with_sentence) const;
  /// The height at a width, with the sentence or without.
  int heightAt(int width, bool with_sentence) const;
  void setSentenceShown(bool shown);
  /// The digit on the keyboard that presses the card, shown at its right edge.
  void setDigit(int digit);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int padding() const;
  static int iconSide(bool with_sentence);
  static int textLeft(bool with_sentence);

  Kind kind_;
  QString icon_;
  QString sentence_;
  bool sentence_shown_ = true;
  int digit_ = 0;  ///< 0 = none
};

/// Fills the centre while nothing is open: six ways to begin, the examples that come with the program,
/// and the recent files in a menu. In a small window the cards have no sentences, and the examples are a menu as well.
class StartPage : public QWidget {
  Q_OBJECT

 public:
  explicit StartPage(QWidget* parent = nullptr);
  /// Files that no longer exist are shown but disabled.
  void setRecentFiles(const QStringList& files);
  void focusDefault();
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  /// The first lesson, which is what Enter starts.
  void lessonRequested();
  void galleryRequested();
  void demoRequested();
  void openRequested();
  void runsRequested();
  void newRequested();
  /// A spec that comes with the program: its resource and the document's name.
  void presetRequested(const QString& resource, const QString& name);
  void fileRequested(const QString& file);

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  /// Arrangement of the page: number of columns, width of a card, and whether cards show everything or use menus.
  struct Shape {
    int columns = 2;
    int card_width = 0;
    bool whole = true;
    bool operator==(const Shape&) const = default;
  };
  QLabel* addTitle(const QString& text);
  void addWays();
  void addExamples();
  /// Uses the first shape, from the usual one to the smallest, for which the page has room.
  void arrange();
  Shape fitting() const;
  /// The width of a card without a sentence, all alike.
  int menuCardWidth() const;
  int heightOf(const Shape& shape) const;
  void apply(const Shape& shape);
  void disableMissing();

  QWidget* content_;
  QVBoxLayout* column_;
  StartCard* lesson_ = nullptr;
  QList<StartCard*> ways_;
  QList<StartCard*> examples_;
  StartCard* examples_menu_card_ = nullptr;
  StartCard* recent_menu_card_ = nullptr;
  QMenu* recent_menu_;
  QLabel* examples_title_;
  QGridLayout* ways_grid_;
  QGridLayout* examples_grid_;
  QHBoxLayout* recent_;
  Shape shape_{0, 0, true};
};

}  // namespace accrue::ui
