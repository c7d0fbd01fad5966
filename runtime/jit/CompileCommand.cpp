// SPDX-License-Identifier: Apache-2.0
//
// Specs as command lines.
#include "runtime/jit/CompileCommand.h"

#include "runtime/cache/KernelKey.h"

#include <algorithm>

namespace spargejit::jit {

std::string compileCommand(const KernelSpec &spec) {
  std::string command = "spargejit compile " + spec.kernel + " --arch " +
                        spec.target.architecture;
  for (const auto &[name, value] : spec.parameters) {
    std::string option = name == "elem" ? "dtype" : name;
    std::replace(option.begin(), option.end(), '_', '-');
    command += " --" + option + " " + cache::parameterText(value);
  }
  return command;
}

} // namespace spargejit::jit
