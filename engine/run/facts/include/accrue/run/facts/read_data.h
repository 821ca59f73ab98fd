// SPDX-License-Identifier: Apache-2.0
// A scan that keeps what it reads, for a reader that needs the data as well as their facts: a rank parses a table and
// plans a corpus once.
#pragma once

#include <filesystem>

#include "accrue/run/facts/csv_table.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/indexed_corpus.h"

namespace accrue {

struct ReadData {
  DataFacts facts;
  CsvTable table;        ///< csv
  IndexedCorpus corpus;  ///< indexed
};

/// Errors and `known`: those of scan_data().
Result<ReadData> read_data(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known = {});

}  // namespace accrue
