// SPDX-License-Identifier: GPL-3.0-or-later
// Icons that are coloured while painting: the SVG is drawn in the current palette's text colour.
#include <QFile>
#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmapCache>
#include <QSvgRenderer>
#include <optional>

#include "theme.h"

namespace accrue::ui {

namespace {

/// Colour of the icon files.
constexpr const char* inkInFile = "#1b1f24";

class ThemedIconEngine final : public QIconEngine {
 public:
  ThemedIconEngine(QString name, std::optional<accrue::RunState> state) : name_(std::move(name)), state_(state) {
    QFile file(QStringLiteral(":/icons/%1.svg").arg(name_));
    if (file.open(QIODevice::ReadOnly)) svg_ = file.readAll();
  }

  QIconEngine* clone() const override { return new ThemedIconEngine(*this); }
  QString key() const override { return QStringLiteral("accrue-themed"); }
  bool isNull() override { return svg_.isEmpty(); }

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
    const qreal ratio = painter->device()->devicePixelRatioF();
    const int side = std::min(rect.width(), rect.height());
    QPixmap drawn = pixmap(QSize(side, side) * ratio, mode, state);
    drawn.setDevicePixelRatio(ratio);
    painter->drawPixmap(QPointF(rect.center().x() + 0.5 - side / 2.0, rect.center().y() + 0.5 - side / 2.0), drawn);
  }

  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State) override {
    const QColor color = ink(mode);
    const QString key = QStringLiteral("accrue-icon/%1/%2/%3x%4")
                            .arg(name_, color.name(QColor::HexArgb))
                            .arg(size.width())
                            .arg(size.height());
    QPixmap result;
    if (QPixmapCache::find(key, &result)) return result;
    QByteArray recoloured = svg_;
    const QByteArray name = color.name().toLatin1();
    recoloured.replace(inkInFile, name).replace("currentColor", name);
    result = QPixmap(size);
    result.fill(Qt::transparent);
    QSvgRenderer renderer(recoloured);
    QPainter painter(&result);
    renderer.render(&painter, QRectF(QPointF(), QSizeF(size)));
    painter.end();
    QPixmapCache::insert(key, result);
    return result;
  }

 private:
  QColor ink(QIcon::Mode mode) const {
    const QPalette palette = QGuiApplication::palette();
    if (mode == QIcon::Disabled) return palette.color(QPalette::Disabled, QPalette::Text);
    if (state_) return stateColor(themeColors(palette), *state_);  // selected rows are tinted, not filled
    return palette.color(QPalette::Active, mode == QIcon::Selected ? QPalette::HighlightedText : QPalette::Text);
  }

  QString name_;
  std::optional<accrue::RunState> state_;
  QByteArray svg_;
};

}  // namespace

QIcon themedIcon(const QString& name) {
  return QIcon(new ThemedIconEngine(name, std::nullopt));
}

QIcon stateIcon(accrue::RunState state) {
  const std::string_view name = accrue::to_string(state);
  return QIcon(new ThemedIconEngine(
      QStringLiteral("state-") + QString::fromLatin1(name.data(), static_cast<qsizetype>(name.size())), state));
}

}  // namespace accrue::ui
