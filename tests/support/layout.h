// SPDX-License-Identifier: Apache-2.0
// Division of a model and its batches over ranks, as named in a test's rows and as assignments of a spec.
#pragma once

#include <string>
#include <vector>

namespace accrue::test {

struct Layout {
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  int chunks = 1;
  bool sequence = false;
  int zero = 0;
  int split = 0;  ///< a T5's first stage of the decoder; 0: left out
  int world() const { return data * tensor * pipeline; }
};

inline std::string setting(const char* key, int value) {
  return std::string(key) + "=" + std::to_string(value);
}

/// Assignments as accrue-run's --set takes them, and more of them.
inline std::vector<std::string> settings_of(const Layout& layout, const std::vector<std::string>& more) {
  std::vector<std::string> settings{setting("parallel.data", layout.data),
                                    setting("parallel.tensor", layout.tensor),
                                    setting("parallel.pipeline", layout.pipeline),
                                    setting("parallel.virtual_pipeline", layout.chunks),
                                    setting("parallel.zero", layout.zero),
                                    std::string("parallel.sequence=") + (layout.sequence ? "true" : "false")};
  if (layout.split > 0) settings.push_back(setting("parallel.split_stage", layout.split));
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace accrue::test
