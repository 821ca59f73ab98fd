// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// Opens /dev/null for standard streams that the process was started without. Otherwise a file opened later would get
/// their numbers and receive printed text. Call this first in main.
void open_standard_streams();

}  // namespace accrue
