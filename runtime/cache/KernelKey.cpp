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
  KeyFields fields = {{"key_version", "1"},
                      {"kernel", spec.kernel},
                      {"text", hashText(text).hex()},
                      {"generator", std::string(generator)},
                      {"architecture", spec.target.architecture},
                      {"cpu", spec.target.cpu},
                      {"features", spec.target.features}};
  for (const auto &[name, value] : spec.parameters) {
    // The kind keeps a number apart from a data type that prints alike.
    bool isType = std::holds_alternative<DataType>(value);
    fields.emplace_back(isType ? "type " + name : "size " + name,
                        parameterText(value));
  }
  return ofFields(std::move(fields));
}

KernelKey KernelKey::ofFields(KeyFields fields) {
  FieldHasher hasher;
  for (const auto &[name, value] : fields)
    hasher.field(name).field(value);
  KernelKey key;
  key.fields_ = std::move(fields);
  key.digest_ = hasher.digest();
  return key;
}

KernelKey KernelKey::with(std::string name, std::string value) const {
  KeyFields fields = fields_;
  fields.emplace_back(std::move(name), std::move(value));
  return ofFields(std::move(fields));
}

} // namespace spargejit::cache
