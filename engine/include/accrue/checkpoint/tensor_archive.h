// SPDX-License-Identifier: Apache-2.0
// Named tensors on disk in the safetensors format: 8 bytes of header length, a JSON header, raw little-endian bytes.
// The reader is strict: header at most 8 MB, unique names, offsets that tile the data exactly (no overlap, no hole, no
// trailing byte), sizes that match shape and dtype. It checks before it allocates. Source: the published safetensors
// format description. Thread: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct WrittenArchive {
  std::int64_t bytes = 0;
  std::string xxh3;  ///< XXH3-128 of the whole file, hex
};

/// Writes a new file (O_EXCL) and calls fdatasync; metadata becomes __metadata__. Tensors may have any shape; they are
/// copied to the CPU. Errors: disk (with the missing space), internal (a duplicate or reserved name, a type that the
/// format lacks), out_of_memory.
Result<WrittenArchive> write_archive(const std::filesystem::path& file, const NamedTensors& tensors,
                                     const std::map<std::string, std::string>& metadata = {});

struct Archive {
  NamedTensors tensors;  ///< in file order
  std::map<std::string, std::string> metadata;
  std::string xxh3;
  const at::Tensor* find(const std::string& name) const;
};
/// Reads the whole file as CPU tensors. Errors (protocol): the fault, with the tensor; (disk): cannot be read.
Result<Archive> read_archive(const std::filesystem::path& file);

/// SHA-256 over names, dtypes, shapes and bytes in name order; weights_sha256 of run_finished.
std::string weights_sha256(const NamedTensors& tensors);

}  // namespace accrue
