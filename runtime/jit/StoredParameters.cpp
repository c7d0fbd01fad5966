// SPDX-License-Identifier: Apache-2.0
//
// Kernel parameters as entries.
#include "runtime/jit/StoredParameters.h"

#include "runtime/base/Log.h"
#include "runtime/cache/JsonFields.h"

namespace spargejit::jit {

using Parameters = std::vector<compiler::KernelParameter>;

cache::KernelKey parametersKey(const std::string &kernel,
                               const std::string &text,
                               const std::string &generator) {
  return cache::KernelKey::ofFields({{"key_version", "1"},
                                     {"parameters_of", kernel},
                                     {"text", hashText(text).hex()},
                                     {"generator", generator}});
}

cache::StoredEntry entryOf(const Parameters &parameters) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto &[name, isDataType] : parameters)
    list.push_back({{"name", name}, {"is_data_type", isDataType}});
  return {kParametersKind, Json({{"parameters", list}}).dump(), "", ""};
}

Result<Parameters> parametersOf(const cache::StoredEntry &entry) {
  cache::JsonFields content(entry.content);
  Parameters parameters;
  for (cache::JsonFields &item : content.objects("parameters")) {
    compiler::KernelParameter parameter;
    item.text("name", parameter.name);
    item.flag("is_data_type", parameter.isDataType);
    content.also(item);
    parameters.push_back(std::move(parameter));
  }
  if (entry.kind != kParametersKind)
    content.fail("kind");
  if (!content.ok())
    return content.status("an entry of kernel parameters");
  return parameters;
}

Result<Parameters> findOrListParameters(const cache::ArtifactStore &store,
                                        CodeGenerator &generator,
                                        const std::string &text,
                                        const std::string &textName,
                                        const std::string &kernel) {
  auto key = parametersKey(kernel, text, generator.identity());
  if (auto entry = store.find(key)) {
    auto parameters = parametersOf(*entry);
    if (parameters.ok())
      return parameters;
    warnOnce("passed over a kept entry: " + parameters.status().message());
  }
  auto parameters = generator.listKernelParameters(text, textName, kernel);
  if (parameters.ok())
    store.keep(key, entryOf(*parameters));
  return parameters;
}

} // namespace spargejit::jit
