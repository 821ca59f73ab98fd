// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/tensorboard_writer.h"

#include <cstdio>
#include <utility>

#include "accrue/run/base/printable.h"
#include "accrue/run/record/tensorboard_scalars.h"

namespace accrue {

TensorboardWriter::TensorboardWriter(const std::filesystem::path& folder, std::string program)
    : program_(std::move(program)), file_(TensorboardFile::create(folder, wall_clock_seconds()).value()) {}

void TensorboardWriter::add(const TensorboardScalars& scalars, std::int64_t update, std::int64_t samples) {
  if (!file_) return;
  const double now = wall_clock_seconds();
  auto written = file_->add(now, update, scalars);
  if (written) written = file_->add(now, samples, over_samples(scalars));
  if (written) return;
  std::fprintf(stderr, "%s: %s. No more scalars are written for TensorBoard.\n", program_.c_str(),
               printable(written.error().text()).c_str());
  file_.reset();
}

}  // namespace accrue
