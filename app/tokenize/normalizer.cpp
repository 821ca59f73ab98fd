// SPDX-License-Identifier: Apache-2.0
#include "normalizer.h"

#include <unicode/unorm2.h>

#include <utility>
#include <vector>

#include "accrue/run/data/text_dataset.h"
#include "pattern.h"
#include "precompiled_map.h"

namespace accrue::tokenize {
namespace {

/// A replacement may make a text so many times as long.
constexpr std::size_t most_growth = 64;
constexpr std::uint32_t marks = U_GC_MN_MASK | U_GC_MC_MASK | U_GC_ME_MASK;

/// Calls change(result, code point) for each code point.
template <typename Change>
Text changed(const Text& text, Change change) {
  Text result;
  result.reserve(text.size());
  each_point(text, [&](UChar32 point, std::size_t, std::size_t) { change(result, point); });
  return result;
}

/// The normalizer that changes each code point on its own.
template <typename Change>
Normalizer by_points(Change change) {
  return [change](Text& text, Place&) -> Result<void> {
    text = changed(text, change);
    return {};
  };
}

using Form = const UNormalizer2* (*)(UErrorCode*);

Normalizer in_form(Form form_of) {
  return [form_of](Text& text, Place&) -> Result<void> {
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2* const form = form_of(&error);
    const auto size = static_cast<std::int32_t>(text.size());
    if (unorm2_isNormalized(form, text.data(), size, &error) != 0) return {};
    Text result(text.size() * 2 + 32, u'\0');
    std::int32_t needed = 0;
    for (int attempt = 0; attempt < 2; ++attempt) {
      error = U_ZERO_ERROR;
      needed =
          unorm2_normalize(form, text.data(), size, result.data(), static_cast<std::int32_t>(result.size()), &error);
      if (error != U_BUFFER_OVERFLOW_ERROR) break;
      result.resize(static_cast<std::size_t>(needed));
    }
    if (U_FAILURE(error)) return fail(ErrorCode::data, "ICU cannot bring the text to its normal form");
    result.resize(static_cast<std::size_t>(needed));
    text = std::move(result);
    return {};
  };
}

void append_lower(Text& text, UChar32 point) {
  constexpr UChar32 dotted_i = 0x130;
  if (point == dotted_i)
    text += u"i\u0307";
  else
    append_utf16(text, u_tolower(point));
}

Normalizer without(std::uint32_t categories, std::uint8_t version) {
  return by_points([=](Text& text, UChar32 point) {
    if (!has_category(point, categories, version)) append_utf16(text, point);
  });
}

Normalizer in_turn(std::vector<Normalizer> steps) {
  return [steps = std::move(steps)](Text& text, Place& place) -> Result<void> {
    for (const Normalizer& step : steps)
      if (auto done = step(text, place); !done) return done;
    return {};
  };
}

bool is_control(UChar32 point) {
  if (point == '\t' || point == '\n' || point == '\r') return false;
  return has_category(point, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK, 8);
}

void append_clean(Text& text, UChar32 point) {
  if (point == 0 || point == 0xFFFD || is_control(point)) return;
  append_utf16(text, is_space(point) ? ' ' : point);
}

bool is_chinese(UChar32 point) {
  struct Block {
    UChar32 first, last;
  };
  constexpr Block blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                              {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const Block& block : blocks)
    if (point >= block.first && point <= block.last) return true;
  return false;
}

void append_apart(Text& text, UChar32 point) {
  const bool apart = is_chinese(point);
  if (apart) text.push_back(u' ');
  append_utf16(text, point);
  if (apart) text.push_back(u' ');
}

/// Source: Devlin et al., BERT; google-research/bert, tokenization.py.
Normalizer bert_normalizer(const json& part) {
  std::vector<Normalizer> steps;
  const bool lower = flag_of(part, "lowercase", true);
  if (flag_of(part, "clean_text", true)) steps.push_back(by_points(append_clean));
  if (flag_of(part, "handle_chinese_chars", true)) steps.push_back(by_points(append_apart));
  if (flag_of(part, "strip_accents", lower)) {
    steps.push_back(in_form(&unorm2_getNFDInstance));
    steps.push_back(without(U_GC_MN_MASK, 8));
  }
  if (lower) steps.push_back(by_points(append_lower));
  return in_turn(std::move(steps));
}

/// A part that others continue does not end in white space, because it was cut before some.
Normalizer strip(bool left, bool right) {
  return [left, right](Text& text, Place& place) -> Result<void> {
    std::size_t begin = 0, end = text.size();
    while (left && !place.goes_on && begin < end && is_space(text[begin])) ++begin;
    place.first &= begin == 0;
    while (right && end > begin && is_space(text[end - 1])) --end;
    text = text.substr(begin, end - begin);
    return {};
  };
}

Normalizer prepend(Text before) {
  return [before = std::move(before)](Text& text, Place& place) -> Result<void> {
    if (!text.empty() && !place.goes_on) text.insert(0, before);
    return {};
  };
}

Result<Normalizer> replace(const json& part) {
  auto pattern = Pattern::of(part_of(part, "pattern"));
  if (!pattern) return tl::unexpected(pattern.error());
  return [pattern = *std::move(pattern), content = to_utf16(text_of(part, "content"))](Text& text,
                                                                                       Place&) -> Result<void> {
    const auto stretches = pattern.divide(text);
    if (!stretches) return tl::unexpected(stretches.error());
    Text result;
    for (const Stretch& each : *stretches)
      result += each.matches ? content : text.substr(each.begin, each.end - each.begin);
    if (result.size() > most_growth * text.size() + stretch_bytes)
      return fail(ErrorCode::data, "the tokenizer's replacements make the text too long");
    text = std::move(result);
    return {};
  };
}

Result<Normalizer> sequence(const json& list) {
  std::vector<Normalizer> steps;
  if (!list.is_array()) return broken("a Sequence has no list of normalizers");
  for (const json& each : list) {
    auto step = normalizer_of(each);
    if (!step) return step;
    if (*step) steps.push_back(*std::move(step));
  }
  return in_turn(std::move(steps));
}

}  // namespace

Result<Normalizer> normalizer_of(const json& part) {
  if (part.is_null()) return Normalizer();
  const std::string type = type_of(part);
  if (type == "Sequence") return sequence(part_of(part, "normalizers"));
  if (type == "NFC") return in_form(&unorm2_getNFCInstance);
  if (type == "NFD") return in_form(&unorm2_getNFDInstance);
  if (type == "NFKC") return in_form(&unorm2_getNFKCInstance);
  if (type == "NFKD") return in_form(&unorm2_getNFKDInstance);
  if (type == "Lowercase") return by_points(append_lower);
  if (type == "StripAccents") return without(marks, 9);
  if (type == "Strip") return strip(flag_of(part, "strip_left", true), flag_of(part, "strip_right", true));
  if (type == "Prepend") return prepend(to_utf16(text_of(part, "prepend")));
  if (type == "Replace") return replace(part);
  if (type == "BertNormalizer") return bert_normalizer(part);
  if (type == "Precompiled") return precompiled_map(text_of(part, "precompiled_charsmap"));
  return unsupported("the normalizer " + shown(type));
}

}  // namespace accrue::tokenize
