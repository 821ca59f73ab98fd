// SPDX-License-Identifier: Apache-2.0
// Curves of a loss by samples as a small SVG.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace examples {

struct Curve {
  std::string name;
  std::vector<double> loss;  ///< one per update
};

/// Writes the curves, one point every `samples` samples. False: the file could not be written.
inline bool write_loss_plot(const std::string& file, const std::vector<Curve>& curves, int samples) {
  constexpr double width = 800, height = 480, left = 70, right = 20, top = 20, bottom = 50;
  const char* colours[] = {"#4269d0", "#efb118", "#ff725c", "#3ca951"};
  constexpr double thickness[] = {9, 6, 3.5, 1.5};  // curves that coincide are seen inside one another
  double low = 1e300, high = -1e300;
  std::size_t updates = 2;
  for (const Curve& each : curves) {
    updates = std::max(updates, each.loss.size());
    for (const double loss : each.loss) low = std::min(low, loss), high = std::max(high, loss);
  }
  const auto x = [&](double update) { return left + (width - left - right) * update / double(updates - 1); };
  const auto y = [&](double loss) { return top + (height - top - bottom) * (high - loss) / (high - low); };
  std::ofstream out(file);
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words) {
    out << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" text-anchor=\"" << anchor << "\">" << words << "</text>\n";
  };
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"" << width << "\" height=\"" << height
      << "\" fill=\"white\"/>\n";
  for (int tick = 0; tick <= 4; ++tick) {
    const double loss = low + (high - low) * tick / 4;
    char label[32];
    std::snprintf(label, sizeof label, "%.3f", loss);
    out << "<line x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << y(loss) << "\" y2=\"" << y(loss)
        << "\" stroke=\"#dddddd\"/>\n";
    text(left - 8, y(loss) + 4, "end", label);
    const double update = double(updates - 1) * tick / 4;
    text(x(update), height - bottom + 20, "middle", std::to_string(int((update + 1) * samples)));
  }
  text((left + width) / 2, height - 10, "middle", "samples");
  text(left, top - 6, "start", "loss per token");
  for (std::size_t i = 0; i < curves.size(); ++i) {
    out << "<polyline fill=\"none\" stroke-width=\"" << thickness[i % 4] << "\" stroke=\"" << colours[i % 4]
        << "\" points=\"";
    for (std::size_t u = 0; u < curves[i].loss.size(); ++u) out << x(double(u)) << ',' << y(curves[i].loss[u]) << ' ';
    const double line = top + 20.0 + 20.0 * double(i);
    out << "\"/>\n<line x1=\"" << width - 330 << "\" x2=\"" << width - 290 << "\" y1=\"" << line << "\" y2=\"" << line
        << "\" stroke-width=\"" << thickness[i % 4] << "\" stroke=\"" << colours[i % 4] << "\"/>\n";
    text(width - 280, line + 4, "start", curves[i].name);
  }
  out << "</svg>\n";
  return bool(out);
}

}  // namespace examples
