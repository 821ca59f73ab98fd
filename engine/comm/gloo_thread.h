// SPDX-License-Identifier: Apache-2.0
// Gloo's own thread throws if data have a size that its rank does not expect. The exception is uncaught and would end
// the process without a useful message. The thread is halted instead, for good, so that the waiting rank can compare
// the ranks' calls and name the difference.
#pragma once

#include <string_view>

namespace accrue {

/// Installs the handler that halts Gloo's thread; other uncaught exceptions go to the previous handler. Call once per
/// process. Thread: any.
void halt_gloo_at_errors();

/// Whether Gloo itself threw this: its texts begin with the source location in brackets. Our texts may quote them.
bool is_text_of_gloo(std::string_view text);

/// Whether the thread was halted: no operation in progress will end.
bool gloo_has_halted();

}  // namespace accrue
