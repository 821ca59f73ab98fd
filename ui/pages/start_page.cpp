// SPDX-License-Identifier: GPL-3.0-or-later
#include "start_page.h"

#include <QApplication>
#include <QFileInfo>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QStyle>
#include <QTimer>
#include <QVBoxLayout>

#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr int card_width = 264;
constexpr int recent_shown = 5;
constexpr auto file_property = "file";

}  // namespace

StartCard::StartCard(const QString& icon, const QString& title, const QString& sentence, QWidget* parent)
    : QPushButton(title, parent), icon_(icon), sentence_(sentence) {
  setAccessibleName(title);
  setAccessibleDescription(sentence);
  setAutoDefault(true);
  setCursor(Qt::PointingHandCursor);
  setAttribute(Qt::WA_Hover);
}

QSize StartCard::sizeHint() const {
  const QFontMetrics title(textFont(TextSize::body, QFont::DemiBold));
  const QFontMetrics small(textFont(TextSize::small));
  return {card_width, 2 * space::betweenGroups + title.height() + space::base + 2 * small.height()};
}

void StartCard::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool strong = hasFocus() || isDown();
  painter.setPen(QPen(strong ? colors.accent : colors.hairline, strong ? 2.0 : 1.0));
  painter.setBrush(underMouse() && !isDown() ? mixed(colors.accent, colors.surface, 0.06) : colors.surface);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
  const int pad = space::betweenGroups;
  const QRect icon(pad, (height() - space::toolIcon) / 2, space::toolIcon, space::toolIcon);
  themedIcon(icon_).paint(&painter, icon);
  const QRect text = rect().adjusted(icon.right() + pad, pad, -pad, -pad);
  painter.setFont(textFont(TextSize::body, QFont::DemiBold));
  painter.setPen(colors.text);
  painter.drawText(text, Qt::AlignLeft | Qt::AlignTop, this->text());
  const int below = painter.fontMetrics().height() + space::base;
  painter.setFont(textFont(TextSize::small));
  painter.setPen(colors.muted);
  painter.drawText(text.adjusted(0, below, 0, 0), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, sentence_);
}

StartPage::StartPage(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("startPage"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(space::page, space::page, space::page, space::page);
  outer->addStretch(2);
  auto* column = new QVBoxLayout;
  column->setSpacing(space::betweenGroups);
  auto* title = new QLabel(tr("What do you want to train?"), this);
  title->setFont(textFont(TextSize::title, QFont::DemiBold));
  column->addWidget(title);
  auto* grid = new QGridLayout;
  grid->setSpacing(space::betweenGroups);
  demo_ =
      new StartCard(QStringLiteral("demo"), tr("Demo"), tr("A small model learns while you watch. Press Enter."), this);
  auto* open = new StartCard(QStringLiteral("open"), tr("Open"), tr("A run spec: a *.accrue file."), this);
  auto* runs =
      new StartCard(QStringLiteral("recent"), tr("Recent runs"), tr("Open a run that was trained before."), this);
  auto* fresh = new StartCard(QStringLiteral("document-new"), tr("New"), tr("Start from the defaults."), this);
  auto* batches = new StartCard(QStringLiteral("compare"), tr("Ten batches, N = 4"),
                                tr("Two are left over. What would each system do?"), this);
  auto* points = new StartCard(QStringLiteral("step-update"), tr("Eight points"),
                               tr("One weight, one update, and the exact answer: 2.04."), this);
  batches->setObjectName(QStringLiteral("startTenBatches"));
  points->setObjectName(QStringLiteral("startEightPoints"));
  demo_->setObjectName(QStringLiteral("startDemo"));
  open->setObjectName(QStringLiteral("startOpen"));
  runs->setObjectName(QStringLiteral("startRuns"));
  fresh->setObjectName(QStringLiteral("startNew"));
  demo_->setDefault(true);
  cards_ = {demo_, open, runs, fresh, batches, points};
  for (int i = 0; i < cards_.size(); ++i) grid->addWidget(cards_[i], i / 2, i % 2);
  column->addLayout(grid);
  recent_title_ = new QLabel(tr("Recent files"), this);
  recent_title_->setFont(textFont(TextSize::small, QFont::DemiBold));
  recent_title_->hide();
  column->addWidget(recent_title_);
  recent_ = new QVBoxLayout;
  recent_->setSpacing(0);
  column->addLayout(recent_);
  auto* centred = new QHBoxLayout;
  centred->addStretch(1);
  centred->addLayout(column);
  centred->addStretch(1);
  outer->addLayout(centred);
  outer->addStretch(3);
  connect(demo_, &StartCard::clicked, this, &StartPage::demoRequested);
  connect(open, &StartCard::clicked, this, &StartPage::openRequested);
  connect(runs, &StartCard::clicked, this, &StartPage::runsRequested);
  connect(fresh, &StartCard::clicked, this, &StartPage::newRequested);
  connect(batches, &StartCard::clicked, this,
          [this] { Q_EMIT presetRequested(QStringLiteral("ten-batches.accrue"), tr("Ten batches")); });
  connect(points, &StartCard::clicked, this,
          [this] { Q_EMIT presetRequested(QStringLiteral("toy.accrue"), tr("Eight points")); });
}

void StartPage::setRecentFiles(const QStringList& files) {
  while (QLayoutItem* item = recent_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  recent_title_->setVisible(!files.isEmpty());
  for (const QString& file : files.mid(0, recent_shown)) {
    auto* link = new QPushButton(QFileInfo(file).fileName(), this);
    link->setObjectName(QStringLiteral("recentFile.%1").arg(recent_->count()));
    link->setFlat(true);
    link->setAutoDefault(true);
    link->setProperty(file_property, file);
    link->setToolTip(file);
    link->setAccessibleName(tr("Open %1").arg(QFileInfo(file).fileName()));
    link->setIcon(themedIcon(QStringLiteral("recent")));
    recent_->addWidget(link, 0, Qt::AlignLeft);
    connect(link, &QPushButton::clicked, this, [this, file] { Q_EMIT fileRequested(file); });
  }
  // The disk is read once the window is shown.
  QTimer::singleShot(0, this, &StartPage::disableMissing);
}

void StartPage::disableMissing() {
  for (int i = 0; i < recent_->count(); ++i) {
    QWidget* link = recent_->itemAt(i)->widget();
    const QString file = link->property(file_property).toString();
    const bool there = QFileInfo::exists(file);
    link->setEnabled(there);
    link->setToolTip(there ? file : tr("%1 no longer exists").arg(file));
  }
}

void StartPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  QTimer::singleShot(0, this, &StartPage::disableMissing);
}

void StartPage::focusDefault() {
  demo_->setFocus(Qt::OtherFocusReason);
}

void StartPage::keyPressEvent(QKeyEvent* event) {
  const int digit = event->key() - Qt::Key_1;
  if (digit >= 0 && digit < cards_.size() && event->modifiers() == Qt::NoModifier) {
    cards_[digit]->click();
    return;
  }
  const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (enter && !qobject_cast<QAbstractButton*>(QApplication::focusWidget())) {
    demo_->click();
    return;
  }
  QWidget::keyPressEvent(event);
}

}  // namespace accrue::ui
