// SPDX-License-Identifier: Apache-2.0
#include "md5.h"

#include <fmt/format.h>
#include <openssl/evp.h>

namespace accrue {

Result<std::string> md5_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(), nullptr) != 1)
    return fail(ErrorCode::device, "libcrypto offers no MD5 on this system, which names the index files", {},
                "Allow MD5 in OpenSSL's configuration");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace accrue
