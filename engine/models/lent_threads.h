// SPDX-License-Identifier: Apache-2.0
// Threads that idle pipeline stages lend to a computation (accrue/run/pipeline_threads.h). Only tasks whose results do
// not depend on how many threads share them use these. All else stays on the rank's own, so a computation comes to the
// same bits whether anything is lent or not. The count is OpenMP's, of the calling thread alone: neither other threads
// nor LibTorch's settings see a loan. Only ranks with one thread of their own are lent more.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

namespace accrue {

/// While it lives, over_lent_threads() uses so many threads; 0: the rank's own. Loans do not nest. Thread: training.
class ThreadLoan {
 public:
  explicit ThreadLoan(std::int64_t threads);
  ~ThreadLoan();
  ThreadLoan(const ThreadLoan&) = delete;
  ThreadLoan& operator=(const ThreadLoan&) = delete;
};

/// Of the loan; 0 where none or no more than the rank's own.
std::int64_t lent_threads();

/// The threads of the loan, for a scope.
class OnLentThreads {
 public:
  OnLentThreads();
  ~OnLentThreads();
  OnLentThreads(const OnLentThreads&) = delete;
  OnLentThreads& operator=(const OnLentThreads&) = delete;

 private:
  int own_ = 0;  ///< 0: nothing was lent
};

/// at::parallel_for() on the threads of the loan.
template <typename Task>
void over_lent_threads(std::int64_t begin, std::int64_t end, std::int64_t grain, const Task& task) {
  const OnLentThreads threads;
  at::parallel_for(begin, end, grain, task);
}

}  // namespace accrue
