// SPDX-License-Identifier: GPL-3.0-or-later
#include "start_page.h"

#include <QApplication>
#include <QFile>
#include <QFileInfo>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QScrollArea>
#include <QStyle>
#include <QTimer>
#include <QVBoxLayout>

#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr int card_width = 264;
constexpr int columns = 2;
constexpr int recent_shown = 6;
constexpr auto file_property = "file";

struct Example {
  const char* resource;
  const char* object_name;
  const char* icon;
  const char* title;
  const char* sentence;  ///< one line of the card
};

constexpr Example examples[] = {
    {"ten-batches.accrue", "startTenBatches", "compare", QT_TRANSLATE_NOOP("StartPage", "Ten batches, N = 4"),
     QT_TRANSLATE_NOOP("StartPage", "What becomes of the two left over?")},
    {"toy.accrue", "startEightPoints", "step-update", QT_TRANSLATE_NOOP("StartPage", "Eight points"),
     QT_TRANSLATE_NOOP("StartPage", "One update, the exact answer: 2.04.")},
    {"larger-batch.accrue", "startLargerBatch", "compare", QT_TRANSLATE_NOOP("StartPage", "A larger batch"),
     QT_TRANSLATE_NOOP("StartPage", "The demo with 128 samples an update.")},
    {"tensor-two.accrue", "startTensorTwo", "tensor", QT_TRANSLATE_NOOP("StartPage", "Every layer on two ranks"),
     QT_TRANSLATE_NOOP("StartPage", "Heads, MLP and vocabulary divided.")},
    {"pipeline-two.accrue", "startPipelineTwo", "pipeline", QT_TRANSLATE_NOOP("StartPage", "Two stages"),
     QT_TRANSLATE_NOOP("StartPage", "A pipeline, planned and measured.")},
    {"zero-two.accrue", "startZeroTwo", "shards", QT_TRANSLATE_NOOP("StartPage", "One optimizer on two ranks"),
     QT_TRANSLATE_NOOP("StartPage", "Each holds half of its state, and a copy of its half of the weights.")},
    {"grid-eight.accrue", "startGridEight", "grid", QT_TRANSLATE_NOOP("StartPage", "Eight ranks"),
     QT_TRANSLATE_NOOP("StartPage", "Data, tensor and pipeline at once.")},
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
  return kind_ == Kind::way ? space::inGroup + space::base : space::inGroup;
}

QSize StartCard::sizeHint() const {
  const QFontMetrics title(textFont(TextSize::body, QFont::DemiBold));
  const QFontMetrics small(textFont(TextSize::small));
  return {card_width, 2 * padding() + title.height() + space::base / 2 + lines() * small.height()};
}

void StartCard::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool strong = hasFocus() || isDown();
  painter.setPen(QPen(strong ? colors.accent : colors.hairline, strong ? 2.0 : 1.0));
  painter.setBrush(underMouse() && !isDown() ? mixed(colors.accent, colors.surface, 0.06) : colors.surface);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
  const QRect icon(space::betweenGroups, (height() - space::toolIcon) / 2, space::toolIcon, space::toolIcon);
  themedIcon(icon_).paint(&painter, icon);
  const QRect text = rect().adjusted(icon.right() + space::betweenGroups, padding(), -padding(), -padding());
  painter.setFont(textFont(TextSize::body, QFont::DemiBold));
  painter.setPen(colors.text);
  painter.drawText(text, Qt::AlignLeft | Qt::AlignTop, this->text());
  const int below = painter.fontMetrics().height() + space::base / 2;
  painter.setFont(textFont(TextSize::small));
  painter.setPen(colors.muted);
  painter.drawText(text.adjusted(0, below, 0, 0), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, sentence_);
}

StartPage::StartPage(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("startPage"));
  auto* content = new QWidget;
  auto* outer = new QVBoxLayout(content);
  outer->setContentsMargins(space::page, space::inGroup, space::page, space::inGroup);
  outer->addStretch(2);
  auto* column = new QVBoxLayout;
  column->setSpacing(space::inGroup);
  auto* title = new QLabel(tr("What do you want to train?"), this);
  title->setFont(textFont(TextSize::title, QFont::DemiBold));
  column->addWidget(title);
  auto* grid = new QGridLayout;
  grid->setSpacing(space::inGroup);
  using Kind = StartCard::Kind;
  lesson_ = new StartCard(Kind::way, QStringLiteral("step-update"), tr("Lesson 1"),
                          tr("What accumulation does, in six minutes. Press Enter."), this);
  auto* demo = new StartCard(Kind::way, QStringLiteral("demo"), tr("Demo"),
                             tr("A small model on two ranks learns while you watch."), this);
  auto* gallery = new StartCard(Kind::way, QStringLiteral("warning"), tr("Bug gallery"),
                                tr("Fifteen bugs: see each, find it, mend it."), this);
  auto* open = new StartCard(Kind::way, QStringLiteral("open"), tr("Open"), tr("A run spec: a *.accrue file."), this);
  auto* runs = new StartCard(Kind::way, QStringLiteral("recent"), tr("Recent runs"),
                             tr("Open a run that was trained before."), this);
  auto* fresh =
      new StartCard(Kind::way, QStringLiteral("document-new"), tr("New"), tr("Start from the defaults."), this);
  lesson_->setObjectName(QStringLiteral("startLesson1"));
  demo->setObjectName(QStringLiteral("startDemo"));
  gallery->setObjectName(QStringLiteral("startGallery"));
  open->setObjectName(QStringLiteral("startOpen"));
  runs->setObjectName(QStringLiteral("startRuns"));
  fresh->setObjectName(QStringLiteral("startNew"));
  lesson_->setDefault(true);
  cards_ = {lesson_, demo, gallery, open, runs, fresh};
  for (int i = 0; i < cards_.size(); ++i) grid->addWidget(cards_[i], i / columns, i % columns);
  column->addLayout(grid);
  const auto addTitle = [&](const QString& text) {
    auto* label = new QLabel(text, this);
    label->setFont(textFont(TextSize::small, QFont::DemiBold));
    label->setContentsMargins(0, space::base, 0, 0);
    column->addWidget(label);
    return label;
  };
  addTitle(tr("Examples"));
  column->addLayout(addExamples());
  recent_title_ = addTitle(tr("Recent files"));
  recent_title_->hide();
  recent_ = new QGridLayout;
  recent_->setSpacing(0);
  column->addLayout(recent_);
  auto* centred = new QHBoxLayout;
  centred->addStretch(1);
  centred->addLayout(column);
  centred->addStretch(1);
  outer->addLayout(centred);
  outer->addStretch(3);
  auto* scroll = new QScrollArea(this);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setWidget(content);
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(scroll);
  connect(lesson_, &StartCard::clicked, this, &StartPage::lessonRequested);
  connect(demo, &StartCard::clicked, this, &StartPage::demoRequested);
  connect(gallery, &StartCard::clicked, this, &StartPage::galleryRequested);
  connect(open, &StartCard::clicked, this, &StartPage::openRequested);
  connect(runs, &StartCard::clicked, this, &StartPage::runsRequested);
  connect(fresh, &StartCard::clicked, this, &StartPage::newRequested);
}

/// A card for each example that this build contains.
QGridLayout* StartPage::addExamples() {
  auto* grid = new QGridLayout;
  grid->setSpacing(space::inGroup);
  for (const Example& example : examples) {
    const QString resource = QLatin1String(example.resource);
    if (!QFile::exists(QStringLiteral(":/presets/%1").arg(resource))) continue;
    const QString name = tr(example.title);
    auto* card = new StartCard(StartCard::Kind::example, QLatin1String(example.icon), name, tr(example.sentence), this);
    card->setObjectName(QLatin1String(example.object_name));
    const int place = grid->count();
    grid->addWidget(card, place / columns, place % columns);
    cards_.append(card);
    connect(card, &StartCard::clicked, this, [this, resource, name] { Q_EMIT presetRequested(resource, name); });
  }
  return grid;
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
    const int place = recent_->count();
    recent_->addWidget(link, place / columns, place % columns, Qt::AlignLeft);
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
  lesson_->setFocus(Qt::OtherFocusReason);
}

void StartPage::keyPressEvent(QKeyEvent* event) {
  const int digit = event->key() - Qt::Key_1;
  if (digit >= 0 && digit < cards_.size() && event->modifiers() == Qt::NoModifier) {
    cards_[digit]->click();
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
