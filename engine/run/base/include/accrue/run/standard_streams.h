// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// Opens /dev/null in place of standard streams that the process was started without. A file that is opened later would
/// get their numbers, and what is printed would land in it. To be called first in main.
void open_standard_streams();

}  // namespace accrue
