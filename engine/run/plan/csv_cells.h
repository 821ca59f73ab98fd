// SPDX-License-Identifier: Apache-2.0
// The lines of a table and their cells. std::from_chars reads numbers the same in every locale.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

/// The next line of a text without its end, which may be that of any system; it is taken off the text.
std::string_view next_line(std::string_view& text);
/// What separates the cells of a table that begins with this line: a semicolon, a tab or a comma.
char separator_of(std::string_view line);
/// The cells of a line; a quoted one may hold separators, and doubled quotes. Nothing where a quote is not closed.
std::optional<std::vector<std::string>> cells_of(std::string_view line, char separator);
/// A finite number.
std::optional<double> cell_number(std::string_view cell);
/// A word that is no number of any kind: "nan" and "inf" are numbers that no training data may hold, and an empty cell
/// is a hole.
bool is_word(std::string_view cell);

}  // namespace accrue
