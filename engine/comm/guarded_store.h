// SPDX-License-Identifier: Apache-2.0
// A store over TCP answers any client: it lists its keys and accepts values. Here each key is replaced by its code
// under the run's secret, and each value carries a code over key and value. So a stranger can name no key, and write no
// value that a rank accepts. Values can still be read, and the store can be disturbed; the counters of add() carry no
// code.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <utility>

namespace accrue {

class GuardedStore final : public c10d::Store {
 public:
  GuardedStore(c10::intrusive_ptr<c10d::Store> store, std::string secret)
      : store_(std::move(store)), secret_(std::move(secret)) {}

  c10::intrusive_ptr<c10d::Store> clone() override;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  /// Throws std::runtime_error if the value is not from a rank.
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  const std::chrono::milliseconds& getTimeout() const noexcept override { return store_->getTimeout(); }
  void setTimeout(const std::chrono::milliseconds& timeout) override { store_->setTimeout(timeout); }

 private:
  std::string name_of(const std::string& key) const;
  std::vector<std::string> names_of(const std::vector<std::string>& keys) const;
  std::string code_of(const std::string& key, const std::vector<std::uint8_t>& value) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::string secret_;
};

}  // namespace accrue
