// SPDX-License-Identifier: GPL-3.0-or-later
#include "command_table.h"

#include <QKeyEvent>
#include <algorithm>
#include <array>

namespace accrue::ui {

namespace {

/// Kinds of rows, as the list calls them.
namespace row_kinds {

constexpr MenuRow menu(const char* name, const char* text) {
  return {.kind = MenuRow::menu, .name = name, .text = text};
}

/// Without a family it has no choices here: a feature fills it.
constexpr MenuRow submenu(const char* name, const char* text, const char* family = "") {
  return {.kind = MenuRow::submenu, .name = name, .text = text, .family = family};
}

constexpr MenuRow choice(const char* name, const char* text, const char* keys, const char* help) {
  return {.kind = MenuRow::choice, .name = name, .text = text, .keys = keys, .help = help};
}

/// A choice that stays checked while it is in force.
constexpr MenuRow state(const char* name, const char* text) {
  return {.kind = MenuRow::choice, .name = name, .text = text, .checkable = true};
}

constexpr MenuRow clocks(Command id, const char* name, const char* keys) {
  return {MenuRow::clocks, id, name, "", keys, "", "", "", KeyPlace::inPlots, true};
}

constexpr MenuRow panels(Command id, const char* name, const char* family, const char* keys) {
  return {.kind = MenuRow::panels, .id = id, .name = name, .keys = keys, .family = family};
}

constexpr MenuRow command(Command id, const char* name, const char* text, const char* keys = "", const char* icon = "",
                          const char* help = "", KeyPlace place = KeyPlace::anywhere) {
  return {MenuRow::command, id, name, text, keys, icon, help, "", place};
}

constexpr MenuRow checkable(Command id, const char* name, const char* text, const char* keys = "",
                            const char* icon = "", const char* help = "", KeyPlace place = KeyPlace::anywhere) {
  return {MenuRow::command, id, name, text, keys, icon, help, "", place, true};
}

constexpr MenuRow keys(Command id, const char* name, const char* text, const char* keys, KeyPlace place) {
  return {MenuRow::keys_alone, id, name, text, keys, "", "", "", place};
}

constexpr MenuRow separator() {
  return {};
}

}  // namespace row_kinds

constexpr auto buildTable() {
  using enum KeyPlace;
  return std::to_array<MenuRow>({
#define COMMAND(name, ...) row_kinds::command(Command::name, #name "Action", __VA_ARGS__),
#define NAMED(kind, name, ...) row_kinds::kind(Command::name, #name "Action", __VA_ARGS__),
#define ROW(kind, ...) row_kinds::kind(__VA_ARGS__),
#include "command_list.inl.h"
  });
}

}  // namespace

std::span<const MenuRow> menuTable() {
  static constexpr auto table = buildTable();
  return table;
}

QList<QKeySequence> keysOf(const MenuRow& row) {
  QList<QKeySequence> list;
  for (const QString& keys : QString::fromUtf8(row.keys).split(QLatin1Char(' '), Qt::SkipEmptyParts))
    list.append(QKeySequence(keys));
  return list;
}

const MenuRow& rowOf(Command command) {
  return *std::ranges::find(menuTable(), std::optional(command), &MenuRow::id);
}

QList<QKeySequence> keysOf(Command command) {
  return keysOf(rowOf(command));
}

bool isKeyOf(Command command, const QKeyEvent& pressed) {
  return keysOf(command).contains(QKeySequence(pressed.keyCombination()));
}

}  // namespace accrue::ui
