// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPushButton>
#include <QStringList>
#include <QWidget>

class QGridLayout;
class QLabel;

namespace accrue::ui {

/// A card of the start page: a button with a picture, a title and a sentence; an example's is small.
class StartCard : public QPushButton {
  Q_OBJECT

 public:
  enum class Kind { way, example };
  StartCard(Kind kind, const QString& icon, const QString& title, const QString& sentence, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int padding() const;
  int lines() const { return kind_ == Kind::way ? 2 : 1; }

  Kind kind_;
  QString icon_;
  QString sentence_;
};

/// Fills the centre while nothing is open: six ways to begin, the examples that come with the program,
/// and the recent files.
class StartPage : public QWidget {
  Q_OBJECT

 public:
  explicit StartPage(QWidget* parent = nullptr);
  /// Files that no longer exist are shown but disabled.
  void setRecentFiles(const QStringList& files);
  void focusDefault();

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
  void keyPressEvent(QKeyEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  QGridLayout* addExamples();
  void disableMissing();

  StartCard* lesson_;
  QList<StartCard*> cards_;
  QLabel* recent_title_;
  QGridLayout* recent_;
};

}  // namespace accrue::ui
