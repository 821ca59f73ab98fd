// SPDX-License-Identifier: Apache-2.0
// Parts of an exported Python script. Each is plain code for one spec, without code for unused features.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/code_export.h"

namespace accrue::export_detail {

/// Returns a Python literal. Text is quoted and escaped; a number keeps every digit.
std::string python(std::string_view text);
std::string python(double number);
std::string python(bool flag);
template <typename List>
std::string python_list(const List& list) {
  std::string text = "[";
  for (const auto& each : list) text += (text.size() > 1 ? ", " : "") + python(each);
  return text + "]";
}

/// Replaces every occurrence of a placeholder ("@DTYPE@") in the text.
std::string filled(std::string_view text, std::string_view place, std::string_view value);

/// class Model, and draw_weights(), which gives the initial weights of a run.
std::string model_part(const RunPlan& plan);
/// samples_of(epoch, batch, rank): the order of a run.
std::string order_part(const RunPlan& plan);
/// read(samples) -> inputs, targets; items(samples).
std::string data_part(const RunPlan& plan);
/// windows(), weights(window, rank), loss_sum(outputs, targets).
std::string window_part(const RunPlan& plan);
/// rate(update), make_optimizer(model).
std::string optimizer_part(const RunPlan& plan);
/// The loop in the target's API.
std::string loop_part(const RunPlan& plan, CodeTarget target);

}  // namespace accrue::export_detail
