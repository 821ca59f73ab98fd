// SPDX-License-Identifier: GPL-3.0-or-later
#include "start_page.h"

#include <QApplication>
#include <QFile>
#include <QFileInfo>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollArea>
#include <QStyle>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int widest_card = 300;
constexpr int usual_card = 264;
constexpr int most_menu_columns = 4;
constexpr int recent_shown = 6;
constexpr int margin = space::inGroup + space::base;

struct Example {
  const char* resource;
  const char* object_name;
  const char* icon;
  const char* title;
  const char* sentence;
};

constexpr Example examples[] = {
    {"ten-batches.accrue", "startTenBatches", "compare", QT_TRANSLATE_NOOP("StartPage", "Ten batches"),
     QT_TRANSLATE_NOOP("StartPage", "What happens to the two left over?")},
    {"toy.accrue", "startEightPoints", "step-update", QT_TRANSLATE_NOOP("StartPage", "Eight points"),
     QT_TRANSLATE_NOOP("StartPage", "One update ends at 2.04.")},
    {"larger-batch.accrue", "startLargerBatch", "compare", QT_TRANSLATE_NOOP("StartPage", "A larger batch"),
     QT_TRANSLATE_NOOP("StartPage", "128 samples in an update.")},
    {"tensor-two.accrue", "startTensorTwo", "tensor", QT_TRANSLATE_NOOP("StartPage", "Layers on two ranks"),
     QT_TRANSLATE_NOOP("StartPage", "Tensor parallelism.")},
    {"pipeline-two.accrue", "startPipelineTwo", "pipeline", QT_TRANSLATE_NOOP("StartPage", "Two stages"),
     QT_TRANSLATE_NOOP("StartPage", "Planned and measured.")},
    {"zero-two.accrue", "startZeroTwo", "shards", QT_TRANSLATE_NOOP("StartPage", "Optimizer on two ranks"),
     QT_TRANSLATE_NOOP("StartPage", "Half of its state on each.")},
    {"grid-eight.accrue", "startGridEight", "grid", QT_TRANSLATE_NOOP("StartPage", "Eight ranks"),
     QT_TRANSLATE_NOOP("StartPage", "Data, tensor and pipeline.")},
};

}  // namespace

StartCard::StartCard(Kind kind, const QString& icon, const QString& title, const QString& sentence, QWidget* parent)
    : QPushButton(title, parent), kind_(kind), icon_(icon), sentence_(sentence) {
  setAccessibleName(title);
  setAccessibleDescription(sentence);
  setAutoDefault(true);
  setCursor(Qt::PointingHandCursor);
  setAttribute(Qt::WA_Hover);
}

int StartCard::padding() const {
  return kind_ == Kind::way && sentence_shown_ ? margin : space::inGroup;
}

int StartCard::iconSide(bool with_sentence) {
  return with_sentence ? space::toolIcon : space::icon;
}

int StartCard::textLeft(bool with_sentence) {
  return margin + iconSide(with_sentence) + space::inGroup;
}

int StartCard::leastWidth(bool with_sentence) const {
  return textLeft(with_sentence) + QFontMetrics(textFont(TextSize::body, QFont::DemiBold)).horizontalAdvance(text()) +
         space::inGroup;
}

int StartCard::heightAt(int width, bool with_sentence) const {
  const int title = QFontMetrics(textFont(TextSize::body, QFont::DemiBold)).height();
  if (!with_sentence) return title + 3 * space::base;
  const QRect room(0, 0, width - textLeft(true) - space::inGroup, QWIDGETSIZE_MAX);
  const QRect lines = QFontMetrics(textFont(TextSize::small)).boundingRect(room, Qt::TextWordWrap, sentence_);
  const int pad = kind_ == Kind::way ? margin : space::inGroup;
  return 2 * pad + title + space::base / 2 + lines.height();
}

void StartCard::setSentenceShown(bool shown) {
  sentence_shown_ = shown;
  setToolTip(shown ? QString() : sentence_);
  update();
}

void StartCard::setDigit(int digit) {
  digit_ = digit;
  //: %1 is a key
  setAccessibleDescription(tr("%1 Key %2.").arg(sentence_).arg(digit));
  update();
}

void StartCard::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool strong = hasFocus() || isDown();
  painter.setPen(QPen(strong ? colors.accent : colors.frame, strong ? 2.0 : 1.0));
  painter.setBrush(underMouse() && !isDown() ? mixed(colors.accent, colors.surface, 0.06) : colors.surface);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
  const int side = iconSide(sentence_shown_);
  const QRect icon(margin, (height() - side) / 2, side, side);
  themedIcon(icon_).paint(&painter, icon);
  const QRect text = rect().adjusted(textLeft(sentence_shown_), padding(), -space::inGroup, -padding());
  if (digit_ > 0) {
    painter.setFont(textFont(TextSize::small));
    painter.setPen(colors.muted);
    const QRect edge(0, 0, width() - space::base, height());
    painter.drawText(edge.adjusted(0, padding(), 0, -padding()), Qt::AlignRight | Qt::AlignTop,
                     QString::number(digit_));
  }
  painter.setFont(textFont(TextSize::body, QFont::DemiBold));
  painter.setPen(colors.text);
  if (!sentence_shown_) {
    painter.drawText(rect().adjusted(textLeft(false), 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, this->text());
    return;
  }
  painter.drawText(text, Qt::AlignLeft | Qt::AlignTop, this->text());
  const int below = painter.fontMetrics().height() + space::base / 2;
  painter.setFont(textFont(TextSize::small));
  painter.setPen(colors.muted);
  painter.drawText(text.adjusted(0, below, 0, 0), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, sentence_);
}

StartPage::StartPage(QWidget* parent)
    : QWidget(parent), content_(new QWidget), column_(new QVBoxLayout), recent_menu_(new QMenu(this)) {
  setObjectName(QStringLiteral("startPage"));
  recent_menu_->setAccessibleName(tr("Recent files"));
  recent_menu_->setToolTipsVisible(true);  // they show a file's path, or that it is gone
  column_->setSpacing(space::inGroup);
  auto* title = new QLabel(tr("What do you want to train?"), this);
  title->setFont(textFont(TextSize::title, QFont::DemiBold));
  column_->addWidget(title);
  ways_grid_ = new QGridLayout;
  ways_grid_->setSpacing(space::inGroup);
  column_->addLayout(ways_grid_);
  examples_title_ = addTitle(tr("Examples"));
  examples_grid_ = new QGridLayout;
  examples_grid_->setSpacing(space::inGroup);
  column_->addLayout(examples_grid_);
  recent_ = new QHBoxLayout;
  column_->addLayout(recent_);
  addWays();
  addExamples();

  auto* outer = new QVBoxLayout(content_);
  outer->setContentsMargins(0, space::inGroup, 0, space::inGroup);
  outer->addStretch(2);
  auto* centred = new QHBoxLayout;
  centred->addStretch(1);
  centred->addLayout(column_);
  centred->addStretch(1);
  outer->addLayout(centred);
  outer->addStretch(3);
  auto* scroll = new QScrollArea(this);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setWidget(content_);
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(scroll);
  arrange();
}

QLabel* StartPage::addTitle(const QString& text) {
  auto* label = new QLabel(text, this);
  label->setFont(textFont(TextSize::small, QFont::DemiBold));
  label->setContentsMargins(0, space::base, 0, 0);
  column_->addWidget(label);
  return label;
}

void StartPage::addWays() {
  const auto add = [this](const char* object_name, const char* icon, const QString& title, const QString& sentence,
                          auto signal) {
    auto* card = new StartCard(StartCard::Kind::way, QLatin1String(icon), title, sentence, this);
    card->setObjectName(QLatin1String(object_name));
    connect(card, &StartCard::clicked, this, signal);
    ways_.append(card);
    card->setDigit(static_cast<int>(ways_.size()));
    return card;
  };
  lesson_ = add("startLesson1", "step-update", tr("Lesson 1"),
                tr("What accumulation does, in six minutes. Press Enter."), &StartPage::lessonRequested);
  add("startDemo", "demo", tr("Demo"), tr("A small model on two ranks learns while you watch."),
      &StartPage::demoRequested);
  add("startGallery", "warning", tr("Bug gallery"), tr("Fifteen bugs: see each, find it, fix it."),
      &StartPage::galleryRequested);
  add("startOpen", "open", tr("Open"), tr("A run spec: a *.accrue file."), &StartPage::openRequested);
  add("startRuns", "recent", tr("Recent runs"), tr("Open a run that was trained before."), &StartPage::runsRequested);
  add("startNew", "document-new", tr("New"), tr("Start from the defaults."), &StartPage::newRequested);
  lesson_->setDefault(true);
}

/// A card for each example that this build contains, and one that lists them in a menu.
void StartPage::addExamples() {
  const auto addMenu = [this](const char* object_name, const char* icon, const QString& title, const QString& sentence,
                              QMenu* menu) {
    auto* card = new StartCard(StartCard::Kind::way, QLatin1String(icon), title, sentence, this);
    card->setObjectName(QLatin1String(object_name));
    card->setMenu(menu);
    return card;
  };
  auto* menu = new QMenu(this);
  for (const Example& example : examples) {
    const QString resource = QLatin1String(example.resource);
    if (!QFile::exists(QStringLiteral(":/presets/%1").arg(resource))) continue;
    const QString name = tr(example.title);
    auto* card = new StartCard(StartCard::Kind::example, QLatin1String(example.icon), name, tr(example.sentence), this);
    card->setObjectName(QLatin1String(example.object_name));
    examples_.append(card);
    if (const auto digit = ways_.size() + examples_.size(); digit <= 9) card->setDigit(static_cast<int>(digit));
    connect(card, &StartCard::clicked, this, [this, resource, name] { Q_EMIT presetRequested(resource, name); });
    menu->addAction(themedIcon(QLatin1String(example.icon)), name, card, &QPushButton::click);
  }
  examples_menu_card_ =
      addMenu("startExamples", "demo", tr("Examples\u2026"), tr("Small set-ups that come with the program."), menu);
  recent_menu_card_ = addMenu("startRecentFiles", "recent", tr("Recent files\u2026"),
                              tr("Run specs that were open before."), recent_menu_);
}

void StartPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

void StartPage::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) {
    shape_ = {0, 0, true};
    arrange();
  }
}

QSize StartPage::minimumSizeHint() const {
  // Two of the smallest cards beside each other; a lower window scrolls.
  return {2 * menuCardWidth() + 3 * space::inGroup, 4 * space::page};
}

int StartPage::menuCardWidth() const {
  int width = std::max(examples_menu_card_->leastWidth(false), recent_menu_card_->leastWidth(false));
  for (const StartCard* card : ways_) width = std::max(width, card->leastWidth(false));
  return width;
}

void StartPage::arrange() {
  const Shape wanted = fitting();
  if (wanted != shape_) apply(wanted);
}

StartPage::Shape StartPage::fitting() const {
  int least = 0;
  for (const QList<StartCard*>& cards : {ways_, examples_})
    for (const StartCard* card : cards) least = std::max(least, card->leastWidth(true));
  for (const int columns : {2, 3, 1}) {
    const int room = (width() - 2 * margin - (columns - 1) * space::inGroup) / columns;
    if (room < least) continue;
    const int most = columns == 2 ? std::max(usual_card, least) : widest_card;
    const Shape shape{columns, std::min(room, most), true};
    if (heightOf(shape) <= height()) return shape;
  }
  const int narrow = menuCardWidth();
  const int fit = (width() - space::inGroup) / (narrow + space::inGroup);
  return {std::clamp(fit, 1, most_menu_columns), narrow, false};
}

int StartPage::heightOf(const Shape& shape) const {
  const auto titleHeight = [](TextSize size) { return QFontMetrics(textFont(size, QFont::DemiBold)).height(); };
  const auto gridHeight = [&shape](const QList<StartCard*>& cards) {
    int tallest = 0;
    for (const StartCard* card : cards) tallest = std::max(tallest, card->heightAt(shape.card_width, true));
    const auto rows = (static_cast<int>(cards.size()) + shape.columns - 1) / shape.columns;
    return rows * (tallest + space::inGroup);
  };
  const int height = 2 * space::inGroup + titleHeight(TextSize::title) + space::inGroup + gridHeight(ways_) +
                     titleHeight(TextSize::small) + space::base + space::inGroup + gridHeight(examples_);
  return recent_menu_->isEmpty() ? height : height + recent_menu_card_->heightAt(shape.card_width, false);
}

void StartPage::apply(const Shape& shape) {
  shape_ = shape;
  const auto place = [&shape](QGridLayout* grid, const QList<StartCard*>& cards, bool shown) {
    while (QLayoutItem* item = grid->takeAt(0)) delete item;
    int tallest = 0;
    for (StartCard* card : cards) {
      card->setSentenceShown(shape.whole);
      tallest = std::max(tallest, card->heightAt(shape.card_width, shape.whole));
    }
    for (int i = 0; i < cards.size(); ++i) {
      cards[i]->setFixedSize(shape.card_width, tallest);
      cards[i]->setVisible(shown);
      if (shown) grid->addWidget(cards[i], i / shape.columns, i % shape.columns);
    }
  };
  const bool any_recent = !recent_menu_->isEmpty();
  QList<StartCard*> ways = ways_;
  if (!shape.whole) ways.append(examples_menu_card_);
  while (QLayoutItem* item = recent_->takeAt(0)) delete item;
  if (!shape.whole && any_recent) ways.append(recent_menu_card_);
  examples_menu_card_->setVisible(!shape.whole);
  place(ways_grid_, ways, true);
  place(examples_grid_, examples_, shape.whole);
  examples_title_->setVisible(shape.whole);
  if (shape.whole) {
    recent_menu_card_->setSentenceShown(false);
    recent_menu_card_->setFixedSize(shape.card_width, recent_menu_card_->heightAt(shape.card_width, false));
    recent_->addWidget(recent_menu_card_, 0, Qt::AlignLeft);
  }
  recent_menu_card_->setVisible(any_recent);
}

void StartPage::setRecentFiles(const QStringList& files) {
  recent_menu_->clear();
  for (const QString& file : files.mid(0, recent_shown)) {
    QAction* link =
        recent_menu_->addAction(QFileInfo(file).fileName(), this, [this, file] { Q_EMIT fileRequested(file); });
    link->setObjectName(QStringLiteral("recentFile.%1").arg(recent_menu_->actions().size() - 1));
    link->setData(file);
  }
  apply(fitting());
  // The disk is read once the window is shown.
  QTimer::singleShot(0, this, &StartPage::disableMissing);
}

void StartPage::disableMissing() {
  for (QAction* link : recent_menu_->actions()) {
    const QString file = link->data().toString();
    const bool there = QFileInfo::exists(file);
    link->setEnabled(there);
    link->setToolTip(there ? file : tr("%1 no longer exists").arg(file));
  }
}

void StartPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  apply(fitting());  // the page may have become narrower or lower
  QTimer::singleShot(0, this, &StartPage::disableMissing);
}

void StartPage::focusDefault() {
  lesson_->setFocus(Qt::OtherFocusReason);
}

/// A click beside the cards: Enter starts the lesson again.
void StartPage::mousePressEvent(QMouseEvent* event) {
  lesson_->setFocus(Qt::MouseFocusReason);
  QWidget::mousePressEvent(event);
}

void StartPage::keyPressEvent(QKeyEvent* event) {
  const int digit = event->key() - Qt::Key_1;
  const QList<StartCard*> cards = ways_ + examples_;
  if (digit >= 0 && digit < cards.size() && event->modifiers() == Qt::NoModifier) {
    cards[digit]->click();
    return;
  }
  const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (enter && !qobject_cast<QAbstractButton*>(QApplication::focusWidget())) {
    lesson_->click();
    return;
  }
  QWidget::keyPressEvent(event);
}

}  // namespace accrue::ui
