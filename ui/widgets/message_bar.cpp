// SPDX-License-Identifier: GPL-3.0-or-later
#include "message_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "kit/text_scale.h"
#include "kit/theme.h"

namespace accrue::ui {

MessageBar::MessageBar(QWidget* parent)
    : QWidget(parent),
      icon_(new QLabel(this)),
      text_(new QLabel(this)),
      action_(new QPushButton(this)),
      close_(new QToolButton(this)),
      contents_(new QHBoxLayout) {
  setObjectName(QStringLiteral("messageBar"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(space::betweenGroups, space::inGroup, space::inGroup, space::inGroup);
  layout->setSpacing(space::inGroup);
  layout->addWidget(icon_);
  layout->addLayout(contents_, 1);
  layout->addWidget(close_);
  contents_->setSpacing(space::inGroup);
  contents_->addWidget(text_, 1);
  contents_->addWidget(action_);
  text_->setObjectName(QStringLiteral("messageText"));
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  action_->setObjectName(QStringLiteral("messageAction"));
  action_->setAutoDefault(false);
  close_->setObjectName(QStringLiteral("messageClose"));
  close_->setAutoRaise(true);
  close_->setFocusPolicy(Qt::TabFocus);
  close_->setIcon(themedIcon(QStringLiteral("clear")));
  close_->setToolTip(tr("Dismiss (Esc)"));
  close_->setAccessibleName(tr("Dismiss the message"));
  connect(action_, &QPushButton::clicked, this, &MessageBar::act);
  connect(close_, &QToolButton::clicked, this, &MessageBar::dismiss);
  hide();
}

void MessageBar::post(Message message) {
  const auto earlier = std::ranges::find(messages_, message.id, &Message::id);
  const bool is_progress = message.tone == RunState::running;
  if (earlier != messages_.end() && is_progress && earlier->tone == RunState::running) {
    *earlier = std::move(message);
  } else {
    if (earlier != messages_.end()) messages_.erase(earlier);
    std::erase_if(messages_, [](const Message& old) { return old.tone == RunState::finished && old.action.isEmpty(); });
    messages_.push_back(std::move(message));
  }
  showTop();
}

void MessageBar::withdraw(const QString& id) {
  std::erase_if(messages_, [&id](const Message& message) { return message.id == id; });
  showTop();
}

void MessageBar::withdrawWithout(const std::function<bool(const QString&)>& is_there) {
  std::erase_if(messages_, [&is_there](const Message& message) {
    return !message.runs.isEmpty() && std::ranges::none_of(message.runs, is_there);
  });
  showTop();
}

void MessageBar::withdrawOfPlots() {
  std::erase_if(messages_, [](const Message& message) { return message.ofPlots; });
  showTop();
}

QString MessageBar::currentId() const {
  return messages_.empty() ? QString() : messages_.back().id;
}

QString MessageBar::text() const {
  return messages_.empty() ? QString() : messages_.back().text;
}

void MessageBar::showTop() {
  setVisible(!messages_.empty());
  if (messages_.empty()) return;
  const Message& message = messages_.back();
  const int side = iconSide();
  const QIcon icon = message.icon.isEmpty() ? stateIcon(message.tone) : themedIcon(message.icon);
  icon_->setPixmap(icon.pixmap(QSize(side, side), devicePixelRatioF()));
  text_->setText(message.text);
  text_->setAccessibleName(message.text);
  text_->setToolTip(message.text);  // a low window cuts it
  action_->setVisible(!message.action.isEmpty());
  action_->setText(message.action);
  action_->setAccessibleName(message.action);
  placeAction();
  update();
}

void MessageBar::placeAction() {
  constexpr int least_letters = 40;
  const int beside = width() - action_->sizeHint().width();
  const bool under = beside < least_letters * fontMetrics().averageCharWidth();
  contents_->setDirection(under ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
  contents_->setAlignment(action_, under ? Qt::AlignLeft : Qt::Alignment());
}

void MessageBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  placeAction();
}

void MessageBar::act() {
  if (messages_.empty()) return;
  const Message message = messages_.back();
  withdraw(message.id);
  if (message.act) message.act();
}

void MessageBar::dismiss() {
  if (messages_.empty()) return;
  const Message message = messages_.back();
  withdraw(message.id);
  if (message.dismissed) message.dismissed();
}

void MessageBar::paintEvent(QPaintEvent*) {
  if (messages_.empty()) return;
  const ThemeColors colors = themeColors(palette());
  const QColor tone = stateColor(colors, messages_.back().tone);
  QPainter painter(this);
  painter.fillRect(rect(), mixed(tone, colors.surface, 0.12));
  painter.fillRect(QRect(0, 0, 3, height()), tone);
}

void MessageBar::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) showTop();
}

void MessageBar::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape)
    dismiss();
  else
    QWidget::keyPressEvent(event);
}

}  // namespace accrue::ui
