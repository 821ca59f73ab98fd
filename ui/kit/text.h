// SPDX-License-Identifier: GPL-3.0-or-later
// Text for people: conversion of the core's texts, and tr() outside classes of Qt.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <string_view>

namespace accrue::ui {

inline QString tr(const char* text) {
  return QCoreApplication::translate("Accrue", text);
}

inline QString fromView(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

}  // namespace accrue::ui
