// SPDX-License-Identifier: Apache-2.0
#include "splitter.h"

#include <algorithm>
#include <utility>

#include "pattern.h"

namespace accrue::tokenize {
namespace {

/// Words with the space before them. Source: openai/gpt-2, src/encoder.py.
constexpr const char* words_of_gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Words, and what stands between them but white space; the classes are those of \\w in Rust.
constexpr const char* words_of_rust =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\s\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+)";

/// What becomes of the matches of a pattern.
enum class Behavior { removed, isolated, with_previous, with_next, contiguous };

Result<Behavior> behavior_of(const std::string& name) {
  constexpr std::pair<const char*, Behavior> names[] = {{"Removed", Behavior::removed},
                                                        {"Isolated", Behavior::isolated},
                                                        {"MergedWithPrevious", Behavior::with_previous},
                                                        {"MergedWithNext", Behavior::with_next},
                                                        {"Contiguous", Behavior::contiguous}};
  for (const auto& [known, behavior] : names)
    if (name == known) return behavior;
  return unsupported("a Split with the behavior " + shown(name));
}

/// Joins a match to the stretch before it, of those in this order.
template <typename Join>
std::vector<Stretch> joined(const std::vector<Stretch>& stretches, Join join) {
  std::vector<Stretch> result;
  bool after_match = false;
  for (const Stretch& each : stretches) {
    const bool joins = each.matches && !after_match && !result.empty();
    after_match = each.matches;
    if (joins)
      join(result.back(), each);
    else
      result.push_back(each);
  }
  return result;
}

std::vector<Stretch> contiguous(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> result;
  for (const Stretch& each : stretches)
    if (!result.empty() && result.back().matches == each.matches)
      result.back().end = each.end;
    else
      result.push_back(each);
  return result;
}

std::vector<Stretch> arranged(std::vector<Stretch> stretches, Behavior behavior) {
  if (behavior == Behavior::removed) std::erase_if(stretches, [](const Stretch& each) { return each.matches; });
  if (behavior == Behavior::contiguous) return contiguous(stretches);
  if (behavior == Behavior::with_previous)
    return joined(stretches, [](Stretch& last, const Stretch& each) { last.end = each.end; });
  if (behavior == Behavior::with_next) {
    std::ranges::reverse(stretches);
    stretches = joined(stretches, [](Stretch& last, const Stretch& each) { last.begin = each.begin; });
    std::ranges::reverse(stretches);
  }
  return stretches;
}

/// The splitter whose divide(word) gives stretches of a word.
template <typename Divide>
Splitter by_stretches(const Divide& divide, Behavior behavior, bool invert = false) {
  return [=](std::vector<Text>& words, Place& place) -> Result<void> {
    std::vector<Text> cut;
    for (const Text& word : words) {
      Result<std::vector<Stretch>> stretches = divide(word);
      if (!stretches) return tl::unexpected(stretches.error());
      for (Stretch& each : *stretches) each.matches = each.matches != invert;
      // A match at the front is a word of its own, unless it belongs to the word before it.
      if (&word == words.data() && stretches->front().matches) {
        place.goes_on &= behavior == Behavior::with_previous;
        place.first &= behavior != Behavior::removed;
      }
      for (const Stretch& each : arranged(*std::move(stretches), behavior))
        if (each.end > each.begin) cut.push_back(word.substr(each.begin, each.end - each.begin));
    }
    words = std::move(cut);
    return {};
  };
}

/// The splitter whose matches are single characters.
template <typename Is>
Splitter by_points(Is is, Behavior behavior) {
  const auto divide = [is](const Text& word) -> Result<std::vector<Stretch>> {
    std::vector<Stretch> stretches;
    each_point(word, [&](UChar32 point, std::size_t begin, std::size_t end) {
      const bool matches = is(point);
      if (!matches && !stretches.empty() && !stretches.back().matches)
        stretches.back().end = end;
      else
        stretches.push_back({begin, end, matches});
    });
    return stretches;
  };
  return by_stretches(divide, behavior);
}

Splitter by_pattern(Pattern pattern, Behavior behavior, bool invert = false) {
  return by_stretches([pattern = std::move(pattern)](const Text& word) { return pattern.divide(word); }, behavior,
                      invert);
}

Splitter in_turn(std::vector<Splitter> steps) {
  return [steps = std::move(steps)](std::vector<Text>& words, Place& place) -> Result<void> {
    for (const Splitter& step : steps)
      if (auto done = step(words, place); !done) return done;
    return {};
  };
}

Splitter space_before() {
  return [](std::vector<Text>& words, Place& place) -> Result<void> {
    for (Text& word : words)
      if (word.front() != u' ' && !(place.goes_on && &word == words.data())) word.insert(0, u" ");
    return {};
  };
}

Result<Splitter> byte_level(const json& part) {
  std::vector<Splitter> steps;
  if (flag_of(part, "add_prefix_space", true)) steps.push_back(space_before());
  if (flag_of(part, "use_regex", true))
    steps.push_back(by_pattern(Pattern::of_regex(words_of_gpt2).value(), Behavior::isolated));
  return in_turn(std::move(steps));
}

Result<Splitter> split(const json& part) {
  auto pattern = Pattern::of(part_of(part, "pattern"));
  if (!pattern) return tl::unexpected(pattern.error());
  const auto behavior = behavior_of(text_of(part, "behavior"));
  if (!behavior) return tl::unexpected(behavior.error());
  return by_pattern(*std::move(pattern), *behavior, flag_of(part, "invert", false));
}

/// Spaces become a letter that words begin with.
Result<Splitter> metaspace(const json& part) {
  const Text letter = to_utf16(part.contains("replacement") ? text_of(part, "replacement") : "\xE2\x96\x81");
  if (letter.size() != 1) return broken("the replacement of a Metaspace is no character");
  const bool adds = flag_of(part, "add_prefix_space", true);
  const std::string scheme = part.contains("prepend_scheme") ? text_of(part, "prepend_scheme")
                             : adds                          ? "always"
                                                             : "never";
  if (scheme != "always" && scheme != "first" && scheme != "never")
    return unsupported("a Metaspace with prepend_scheme = " + shown(scheme));
  const Splitter mark = [letter, scheme](std::vector<Text>& words, Place& place) -> Result<void> {
    for (Text& word : words) {
      std::ranges::replace(word, u' ', letter[0]);
      const bool begins = &word != words.data() || !place.goes_on;
      const bool wanted = scheme == "always" || (scheme == "first" && place.first && &word == words.data());
      if (begins && wanted && word[0] != letter[0]) word.insert(0, letter);
    }
    return {};
  };
  if (!flag_of(part, "split", true)) return mark;
  const auto is_mark = [at = letter[0]](UChar32 point) { return point == at; };
  return in_turn({mark, by_points(is_mark, Behavior::with_next)});
}

Result<Splitter> sequence(const json& list) {
  std::vector<Splitter> steps;
  if (!list.is_array()) return broken("a Sequence has no list of pre_tokenizers");
  for (const json& each : list) {
    if (splits_into_bytes(each) && &each != &list.back()) return unsupported("a pre_tokenizer after ByteLevel");
    auto step = splitter_of(each);
    if (!step) return step;
    if (*step) steps.push_back(*std::move(step));
  }
  return in_turn(std::move(steps));
}

Result<Splitter> punctuation(const json& part) {
  const auto behavior = behavior_of(part.contains("behavior") ? text_of(part, "behavior") : "Isolated");
  if (!behavior) return tl::unexpected(behavior.error());
  return by_points(is_punctuation, *behavior);
}

Result<Splitter> by_delimiter(const json& part) {
  UChar32 delimiter = -1;
  each_point(to_utf16(text_of(part, "delimiter")), [&](UChar32 point, std::size_t, std::size_t) { delimiter = point; });
  return by_points([delimiter](UChar32 point) { return point == delimiter; }, Behavior::removed);
}

}  // namespace

bool splits_into_bytes(const json& part) {
  if (type_of(part) == "ByteLevel") return true;
  if (type_of(part) != "Sequence") return false;
  const json& steps = part_of(part, "pretokenizers");
  return steps.is_array() && std::ranges::any_of(steps, splits_into_bytes);
}

Result<Splitter> splitter_of(const json& part) {
  if (part.is_null()) return Splitter();
  const std::string type = type_of(part);
  if (type == "Sequence") return sequence(part_of(part, "pretokenizers"));
  if (type == "ByteLevel") return byte_level(part);
  if (type == "Split") return split(part);
  if (type == "Metaspace") return metaspace(part);
  if (type == "Punctuation") return punctuation(part);
  if (type == "CharDelimiterSplit") return by_delimiter(part);
  if (type == "WhitespaceSplit") return by_points(is_space, Behavior::removed);
  if (type == "Whitespace") return by_pattern(Pattern::of_regex(words_of_rust).value(), Behavior::removed, true);
  if (type == "Digits")
    return by_points(is_number, flag_of(part, "individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
  if (type == "BertPreTokenizer")
    return in_turn({by_points(is_space, Behavior::removed), by_points(is_punctuation, Behavior::isolated)});
  return unsupported("the pre_tokenizer " + shown(type));
}

}  // namespace accrue::tokenize
