// SPDX-License-Identifier: Apache-2.0
#include "models/lent_threads.h"

#include <omp.h>

namespace accrue {
namespace {

thread_local std::int64_t on_loan = 0;

}  // namespace

ThreadLoan::ThreadLoan(std::int64_t threads) {
  on_loan = threads;
}

ThreadLoan::~ThreadLoan() {
  on_loan = 0;
}

std::int64_t lent_threads() {
  return on_loan > at::get_num_threads() && !at::in_parallel_region() ? on_loan : 0;
}

OnLentThreads::OnLentThreads() {
  if (lent_threads() == 0) return;
  own_ = at::get_num_threads();
  omp_set_num_threads(static_cast<int>(on_loan));  // of this thread alone
}

OnLentThreads::~OnLentThreads() {
  if (own_ > 0) omp_set_num_threads(own_);
}

}  // namespace accrue
