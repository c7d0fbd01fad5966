// SPDX-License-Identifier: Apache-2.0
//
// Step 4 of 9 in the life of a call (runtime/README.md): which kernels are the
// same kernel.
#include "runtime/cache/KernelKey.h"

namespace spargejit::cache {

std::string parameterText(const ParameterValue &value) {
  if (const auto *type = std::get_if<DataType>(&value))
    return dataTypeName(*type);
  return std::to_string(std::get<std::int64_t>(value));
}

std::string describeSpec(const KernelSpec &spec) {
  std::string text = spec.kernel + " for " + spec.target.architecture + " (";
  bool first = true;
  for (const auto &[name, value] : spec.parameters) {
    text += (first ? "" : ", ") + name + "=" + parameterText(value);
    first = false;
  }
  return text + ")";
}

KernelKey KernelKey::of(const KernelSpec &spec, std::string_view text,
                        std::string_view generator) {
  KernelKey key;
  key.fields_ = {{"key_version", "1"},
                 {"kernel", spec.kernel},
                 {"text", hashText(text).hex()},
                 {"generator", std::string(generator)},
                 {"architecture", spec.target.architecture},
                 {"cpu", spec.target.cpu},
                 {"features", spec.target.features}};
  for (const auto &[name, value] : spec.parameters) {
    // The kind keeps a number apart from a data type that prints alike.
    bool isType = std::holds_alternative<DataType>(value);
    key.fields_.emplace_back(isType ? "type " + name : "size " + name,
                             parameterText(value));
  }
  FieldHasher hasher;
  for (const auto &[name, value] : key.fields_)
    hasher.field(name).field(value);
  key.digest_ = hasher.digest();
  return key;
}

} // namespace spargejit::cache
