// SPDX-License-Identifier: Apache-2.0
//
// KernelKey: a digest of everything that determines a KernelArtifact, and of
// nothing else. Sequence lengths, k, p, device numbers, paths and host names do
// not take part.
#pragma once

#include "runtime/base/Hash.h"
#include "runtime/base/KernelSpec.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spargejit::cache {

/// Names and values, in the order in which they are hashed.
using KeyFields = std::vector<std::pair<std::string, std::string>>;

class KernelKey {
public:
  /// The key of compiling `spec` from `text` by the code generator that calls
  /// itself `generator` (compiler::codeGeneratorIdentity()).
  static KernelKey of(const KernelSpec &spec, std::string_view text,
                      std::string_view generator);

  /// The key whose fields are these, for what is not a kernel and for keys read
  /// from a file.
  static KernelKey ofFields(KeyFields fields);
  /// This key with one more field.
  KernelKey with(std::string name, std::string value) const;

  const Digest &digest() const { return digest_; }
  /// 32 hexadecimal digits: the key's name on disk and in messages.
  std::string hex() const { return digest_.hex(); }
  /// What was hashed, in order, as (name, value); the kernel text is present by
  /// its digest.
  const KeyFields &fields() const { return fields_; }

  friend bool operator==(const KernelKey &a, const KernelKey &b) {
    return a.digest_ == b.digest_;
  }

private:
  Digest digest_;
  KeyFields fields_;
};

struct KernelKeyHash {
  std::size_t operator()(const KernelKey &key) const {
    return DigestHash()(key.digest());
  }
};

/// A parameter value as text: "128", "bfloat16".
std::string parameterText(const ParameterValue &value);
/// "attention_fwd for host (causal=0, elem=bfloat16, head_dim=128, …)".
std::string describeSpec(const KernelSpec &spec);

} // namespace spargejit::cache
