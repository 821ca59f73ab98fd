// SPDX-License-Identifier: Apache-2.0
// The code is HMAC-SHA-256. The hashed text begins with a letter for its purpose, and a key's length precedes the key.
// So different purposes or pairs of key and value cannot be confused.
#include "guarded_store.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <stdexcept>

namespace accrue {
namespace {

std::string hmac(const std::string& secret, const std::string& text) {
  unsigned char code[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (::HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), code, &length) == nullptr)
    throw std::runtime_error("libcrypto offers no HMAC-SHA-256");
  return {reinterpret_cast<const char*>(code), length};
}

}  // namespace

std::string GuardedStore::name_of(const std::string& key) const {
  static const char* const digits = "0123456789abcdef";
  std::string name;
  for (const char each : hmac(secret_, "k" + key)) {
    name += digits[static_cast<unsigned char>(each) >> 4];
    name += digits[static_cast<unsigned char>(each) & 15];
  }
  return name;
}

std::vector<std::string> GuardedStore::names_of(const std::vector<std::string>& keys) const {
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(name_of(key));
  return names;
}

std::string GuardedStore::code_of(const std::string& key, const std::vector<std::uint8_t>& value) const {
  return hmac(secret_, "v" + std::to_string(key.size()) + ":" + key + std::string(value.begin(), value.end()));
}

c10::intrusive_ptr<c10d::Store> GuardedStore::clone() {
  return c10::make_intrusive<GuardedStore>(store_->clone(), secret_);
}

void GuardedStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  const std::string code = code_of(key, value);
  std::vector<std::uint8_t> signed_value(code.begin(), code.end());
  signed_value.insert(signed_value.end(), value.begin(), value.end());
  store_->set(name_of(key), signed_value);
}

std::vector<std::uint8_t> GuardedStore::get(const std::string& key) {
  const auto found = store_->get(name_of(key));
  constexpr std::size_t code_bytes = 32;
  if (found.size() >= code_bytes) {
    std::vector<std::uint8_t> value(found.begin() + code_bytes, found.end());
    if (::CRYPTO_memcmp(code_of(key, value).data(), found.data(), code_bytes) == 0) return value;
  }
  throw std::runtime_error("the ranks' store holds a value that no rank of this run has written");
}

std::int64_t GuardedStore::add(const std::string& key, std::int64_t value) {
  return store_->add(name_of(key), value);
}

bool GuardedStore::deleteKey(const std::string& key) {
  return store_->deleteKey(name_of(key));
}

bool GuardedStore::check(const std::vector<std::string>& keys) {
  return store_->check(names_of(keys));
}

std::int64_t GuardedStore::getNumKeys() {
  return store_->getNumKeys();
}

void GuardedStore::wait(const std::vector<std::string>& keys) {
  store_->wait(names_of(keys));
}

void GuardedStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  store_->wait(names_of(keys), timeout);
}

}  // namespace accrue
