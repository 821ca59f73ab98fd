// SPDX-License-Identifier: GPL-3.0-or-later
// The colours of every shipped palette must be distinguishable for everyone. Distances are computed in CIELAB, in
// normal sight and under the simulations of Machado, Oliveira and Fernandes (2009) at full severity.
#include <QApplication>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>
#include <QtMath>
#include <array>
#include <cmath>

#include "kit/studio_style.h"
#include "kit/theme.h"
#include "support/test_program.h"

namespace test_palette {

using namespace accrue;
using namespace accrue::ui;

namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

constexpr double leastDistance = 20.0;  // CIE76
constexpr double leastContrast = 3.2;
constexpr double leastApartInGrey = 1.8;  // ratio of luminances

struct Sight {
  const char* name;
  Matrix matrix;  // on linear RGB
};

constexpr std::array<Sight, 4> sights = {{
    {"normal", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protan", {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
    {"deutan", {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    {"tritan", {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}},
}};

double linear(int value) {
  const double c = value / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

Vector times(const Matrix& matrix, const Vector& v) {
  Vector result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) result[i] += matrix[i][k] * v[k];
  return result;
}

Vector lab(const QColor& color, const Sight& sight) {
  Vector rgb = times(sight.matrix, {linear(color.red()), linear(color.green()), linear(color.blue())});
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  constexpr Matrix toXyz = {
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  const Vector xyz = times(toXyz, rgb);
  const auto f = [](double t) { return t > 216.0 / 24389.0 ? std::cbrt(t) : (24389.0 / 27.0 * t + 16.0) / 116.0; };
  const double x = f(xyz[0] / 0.95047);
  const double y = f(xyz[1]);
  const double z = f(xyz[2] / 1.08883);
  return {116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)};
}

double distance(const QColor& a, const QColor& b, const Sight& sight) {
  const Vector left = lab(a, sight);
  const Vector right = lab(b, sight);
  return std::hypot(left[0] - right[0], left[1] - right[1], left[2] - right[2]);
}

/// CIEDE2000, which judges saturated colours as eyes do where CIE76 overrates them.
double perceived(const QColor& one, const QColor& other, const Sight& sight) {
  constexpr double turn = 360.0;
  const Vector a = lab(one, sight);
  const Vector b = lab(other, sight);
  const auto saturation = [](double chroma) {
    const double seventh = std::pow(chroma, 7.0);
    return std::sqrt(seventh / (seventh + std::pow(25.0, 7.0)));
  };
  const auto radians = [](double degrees) { return qDegreesToRadians(degrees); };
  const double wider = 1.5 - 0.5 * saturation((std::hypot(a[1], a[2]) + std::hypot(b[1], b[2])) / 2.0);
  const double chromaA = std::hypot(wider * a[1], a[2]);
  const double chromaB = std::hypot(wider * b[1], b[2]);
  const double hueA = std::fmod(qRadiansToDegrees(std::atan2(a[2], wider * a[1])) + turn, turn);
  const double hueB = std::fmod(qRadiansToDegrees(std::atan2(b[2], wider * b[1])) + turn, turn);
  const double apart = std::remainder(hueB - hueA, turn);
  const double hue = std::fmod(hueA + apart / 2.0 + turn, turn);
  const double light = (a[0] + b[0]) / 2.0 - 50.0;
  const double chroma = (chromaA + chromaB) / 2.0;
  const double weight = 1.0 - 0.17 * std::cos(radians(hue - 30.0)) + 0.24 * std::cos(radians(2.0 * hue)) +
                        0.32 * std::cos(radians(3.0 * hue + 6.0)) - 0.20 * std::cos(radians(4.0 * hue - 63.0));
  const double dL = (b[0] - a[0]) / (1.0 + 0.015 * light * light / std::sqrt(20.0 + light * light));
  const double dC = (chromaB - chromaA) / (1.0 + 0.045 * chroma);
  const double dH =
      2.0 * std::sqrt(chromaA * chromaB) * std::sin(radians(apart / 2.0)) / (1.0 + 0.015 * chroma * weight);
  const double bend = std::sin(radians(60.0 * std::exp(-std::pow((hue - 275.0) / 25.0, 2.0))));
  return std::sqrt(dL * dL + dC * dC + dH * dH - 2.0 * saturation(chroma) * bend * dC * dH);
}

void addThemes() {
  QTest::addColumn<bool>("dark");
  QTest::newRow("light") << false;
  QTest::newRow("dark") << true;
}

const ThemeColors& theme() {
  QFETCH(bool, dark);
  return dark ? darkColors() : lightColors();
}

}  // namespace

class TestPalette : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void any_two_series_are_told_apart_data() { addThemes(); }

  void any_two_series_are_told_apart() {
    const ThemeColors& colors = theme();
    for (const Sight& sight : sights)
      for (int a = 0; a < seriesColorCount; ++a)
        for (int b = a + 1; b < seriesColorCount; ++b) {
          const double apart = distance(seriesColor(colors, a), seriesColor(colors, b), sight);
          QVERIFY2(apart >= leastDistance, qPrintable(QStringLiteral("%1: %2 and %3 are %4 apart")
                                                          .arg(QLatin1String(sight.name))
                                                          .arg(a)
                                                          .arg(b)
                                                          .arg(apart)));
        }
  }
  void the_first_series_are_the_furthest_apart_data() { addThemes(); }

  void the_first_series_are_the_furthest_apart() {
    const ThemeColors& colors = theme();
    for (const Sight& sight : sights)
      for (int b = 1; b < 6; ++b)
        for (int a = 0; a < b; ++a) {
          const double apart = perceived(seriesColor(colors, a), seriesColor(colors, b), sight);
          const double least = b < 4 ? 17.0 : b < 5 ? 14.5 : 10.2;
          QVERIFY2(apart >= least, qPrintable(QStringLiteral("%1: %2 and %3 are %4 apart")
                                                  .arg(QLatin1String(sight.name))
                                                  .arg(a)
                                                  .arg(b)
                                                  .arg(apart)));
        }
  }

  void ciede2000_is_that_of_the_standard() {
    // Red and green, as published implementations give it.
    QVERIFY(std::abs(perceived(QColor(255, 0, 0), QColor(0, 255, 0), sights[0]) - 86.6) < 0.2);
    QVERIFY(std::abs(perceived(QColor(0, 0, 0), QColor(255, 255, 255), sights[0]) - 100.0) < 0.1);
  }
  void series_stand_out_from_the_surface_data() { addThemes(); }

  void series_stand_out_from_the_surface() {
    const ThemeColors& colors = theme();
    for (int i = 0; i < seriesColorCount; ++i)
      QVERIFY2(contrastRatio(seriesColor(colors, i), colors.surface) >= leastContrast, qPrintable(QString::number(i)));
  }
  void text_is_readable_data() { addThemes(); }

  void text_is_readable() {
    const ThemeColors& colors = theme();
    for (const QColor& ground : {colors.window, colors.surface}) {
      QVERIFY(contrastRatio(colors.text, ground) >= 12.0);
      QVERIFY(contrastRatio(colors.muted, ground) >= 4.5);
      QVERIFY(contrastRatio(colors.accent, ground) >= 4.5);
    }
    const QPalette palette = widgetPalette(colors);
    QVERIFY(contrastRatio(palette.color(QPalette::HighlightedText), palette.color(QPalette::Highlight)) >= 4.5);
    QVERIFY(contrastRatio(palette.color(QPalette::ButtonText), palette.color(QPalette::Button)) >= 4.5);
    QVERIFY(contrastRatio(palette.color(QPalette::ToolTipText), palette.color(QPalette::ToolTipBase)) >= 4.5);
  }
  void frames_of_fields_stand_out_data() { addThemes(); }

  void frames_of_fields_stand_out() {
    for (const ThemeColors& colors : {theme(), contrastColors(theme().dark)})
      for (const QColor& ground : {colors.window, colors.surface}) QVERIFY(contrastRatio(colors.frame, ground) >= 3.0);
  }
  void a_field_is_painted_with_that_frame_data() { addThemes(); }

  void a_field_is_painted_with_that_frame() {
    StudioStyle style;
    QLineEdit field;
    field.setStyle(&style);
    field.setPalette(widgetPalette(theme()));
    field.resize(80, 24);
    const QImage image = field.grab().toImage();
    // Somewhere on the way in from the left edge, at half height.
    double most = 1.0;
    for (int x = 0; x < 4; ++x)
      most = std::max(most, contrastRatio(image.pixelColor(x, image.height() / 2), theme().surface));
    QVERIFY2(most >= 3.0, qPrintable(QString::number(most)));
  }
  void high_contrast_is_more_contrast_data() { addThemes(); }

  void high_contrast_is_more_contrast() {
    const ThemeColors& plain = theme();
    const ThemeColors& colors = contrastColors(plain.dark);
    const QPalette palette = widgetPalette(colors);
    QVERIFY(isHighContrast(palette));
    QCOMPARE(contrastRatio(colors.text, colors.surface), 21.0);
    QCOMPARE(colors.muted, colors.text);
    QCOMPARE(palette.color(QPalette::PlaceholderText), colors.text);
    QVERIFY(contrastRatio(colors.accent, colors.surface) > contrastRatio(plain.accent, plain.surface));
    QCOMPARE(themeColors(palette).muted, colors.text);
    for (int i = 0; i < seriesColorCount; ++i)
      QVERIFY(contrastRatio(seriesColor(colors, i), colors.surface) >= leastContrast);
  }
  void states_stand_out_data() { addThemes(); }

  void states_stand_out() {
    for (const ThemeColors& colors : {theme(), contrastColors(theme().dark)})
      for (const RunState state : {RunState::idle, RunState::running, RunState::paused, RunState::degraded,
                                   RunState::failed, RunState::finished})
        for (const QColor& ground : {colors.window, colors.surface})
          QVERIFY(contrastRatio(stateColor(colors, state), ground) >= 4.5);
  }
  void kinds_of_work_are_told_apart_data() {
    QTest::addColumn<bool>("dark");
    QTest::addColumn<bool>("contrast");
    QTest::newRow("light") << false << false;
    QTest::newRow("dark") << true << false;
    QTest::newRow("high contrast, light") << false << true;
    QTest::newRow("high contrast, dark") << true << true;
  }

  void kinds_of_work_are_told_apart() {
    QFETCH(bool, contrast);
    const ThemeColors& colors = contrast ? contrastColors(theme().dark) : theme();
    const std::array kinds = {colors.forward, colors.backward, colors.optimizerStep, colors.collective};
    // On grey paper by lightness alone.
    for (std::size_t a = 0; a < kinds.size(); ++a)
      for (std::size_t b = a + 1; b < kinds.size(); ++b) {
        const double apart = contrastRatio(kinds[a], kinds[b]);
        QVERIFY2(apart >= leastApartInGrey, qPrintable(QStringLiteral("%1 and %2: %3").arg(a).arg(b).arg(apart)));
      }
    for (const QColor& color : {colors.backward, colors.optimizerStep, colors.collective})
      QVERIFY(contrastRatio(color, colors.surface) >= 3.0);
    for (const Sight& sight : sights)
      for (std::size_t a = 0; a < kinds.size(); ++a)
        for (std::size_t b = a + 1; b < kinds.size(); ++b)
          QVERIFY2(distance(kinds[a], kinds[b], sight) >= leastDistance, sight.name);
  }
  void axes_are_told_apart_data() { addThemes(); }

  void axes_are_told_apart() {
    const ThemeColors& colors = theme();
    const std::array<QString, 4> axes = {QStringLiteral("data"), QStringLiteral("tensor"), QStringLiteral("pipeline"),
                                         QStringLiteral("world")};
    for (const Sight& sight : sights)
      for (std::size_t a = 0; a < axes.size(); ++a)
        for (std::size_t b = a + 1; b < axes.size(); ++b)
          QVERIFY2(distance(axisColor(colors, axes[a]), axisColor(colors, axes[b]), sight) >= leastDistance,
                   sight.name);
    QCOMPARE(axisColor(colors, QStringLiteral("data")), colors.collective);
  }

  void after_eight_the_dash_changes() {
    for (int i = 0; i < seriesColorCount; ++i) {
      QCOMPARE(seriesColor(lightColors(), i), seriesColor(lightColors(), i + seriesColorCount));
      QVERIFY(seriesDash(i) != seriesDash(i + seriesColorCount));
      QCOMPARE(seriesDash(i), Qt::SolidLine);
    }
  }

  void pens_are_one_pixel_wide() {
    for (int i = 0; i < 3 * seriesColorCount; ++i) {
      QVERIFY(seriesPen(darkColors(), i, 0.5).widthF() <= 1.0);
      QVERIFY(seriesPen(darkColors(), i, 0.5).isCosmetic());  // on a screen of any density
    }
  }

  void the_palette_decides_between_light_and_dark() {
    QVERIFY(!isDark(widgetPalette(lightColors())));
    QVERIFY(isDark(widgetPalette(darkColors())));
    QVERIFY(themeColors(widgetPalette(darkColors())).dark);
    QCOMPARE(themeColors(widgetPalette(lightColors())).surface, lightColors().surface);
  }

  void a_palette_that_is_not_ours_keeps_its_surfaces() {
    QPalette contrast;
    contrast.setColor(QPalette::Window, Qt::black);
    contrast.setColor(QPalette::Base, Qt::black);
    contrast.setColor(QPalette::WindowText, Qt::white);
    contrast.setColor(QPalette::Text, Qt::white);
    const ThemeColors colors = themeColors(contrast);
    QVERIFY(colors.dark);
    QCOMPARE(colors.surface, QColor(Qt::black));
    QCOMPARE(colors.text, QColor(Qt::white));
    QVERIFY(contrastRatio(colors.muted, colors.surface) >= 4.5);
  }

  void switching_is_live() {
    Theme theme(*qApp);
    theme.setMode(ThemeMode::light);
    QWidget widget;
    const QColor before = widget.palette().color(QPalette::Window);
    QSignalSpy changed(&theme, &Theme::changed);
    theme.setMode(ThemeMode::dark);
    QCOMPARE(changed.count(), 1);
    QVERIFY(theme.dark());
    QTRY_VERIFY(widget.palette().color(QPalette::Window) != before);
    QVERIFY(isDark(widget.palette()));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestPalette)

}  // namespace test_palette
#include "test_palette.moc"
