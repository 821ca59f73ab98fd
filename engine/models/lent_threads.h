// SPDX-License-Identifier: Apache-2.0
// Threads that idle pipeline stages lend to a computation (accrue/run/window/pipeline_threads.h). Only tasks whose
// results do not depend on the number of threads use them; everything else stays on the rank's own threads. So a
// computation gives the same bits with or without lent threads. The count is OpenMP's, for the calling thread alone: it
// affects neither other threads nor LibTorch's settings. Only ranks with one thread of their own borrow more.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

namespace accrue {

/// While it lives, over_lent_threads() uses `threads` threads; 0: the rank's own. Loans do not nest. Thread: training.
class ThreadLoan {
 public:
  explicit ThreadLoan(std::int64_t threads);
  ~ThreadLoan();
  ThreadLoan(const ThreadLoan&) = delete;
  ThreadLoan& operator=(const ThreadLoan&) = delete;
};

/// Threads of the loan; 0 if there is none or it does not exceed the rank's own.
std::int64_t lent_threads();

/// Scope that uses the threads of the loan.
class OnLentThreads {
 public:
  OnLentThreads();
  ~OnLentThreads();
  OnLentThreads(const OnLentThreads&) = delete;
  OnLentThreads& operator=(const OnLentThreads&) = delete;

 private:
  int own_ = 0;  ///< 0: no loan
};

/// Does at::parallel_for() on the threads of the loan.
template <typename Task>
void over_lent_threads(std::int64_t begin, std::int64_t end, std::int64_t grain, const Task& task) {
  const OnLentThreads threads;
  at::parallel_for(begin, end, grain, task);
}

}  // namespace accrue
