// SPDX-License-Identifier: Apache-2.0
// Gloo's own thread throws at data of a size that its rank does not expect, and nobody catches that: the process would
// end there without a word about who called what. The thread is halted instead, for good, so that the rank that waits
// can compare what the ranks call and name the difference.
#pragma once

#include <string_view>

namespace accrue {

/// Halts Gloo's thread where it would end the process; other uncaught exceptions go to the handler that was there
/// before. Once for each process. Thread: any.
void halt_gloo_at_errors();

/// Whether Gloo itself threw this: its texts begin with the place in its sources, in brackets. Ours may quote them.
bool is_text_of_gloo(std::string_view text);

/// Whether that has happened: no operation under way will end.
bool gloo_has_halted();

}  // namespace accrue
