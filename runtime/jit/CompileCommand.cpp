// SPDX-License-Identifier: Apache-2.0
//
// Specs as command lines.
#include "runtime/jit/CompileCommand.h"

#include "runtime/cache/KernelKey.h"

namespace spargejit::jit {

std::string compileCommand(const KernelSpec &spec) {
  std::string command = "spargejit compile " + spec.kernel + " --arch " +
                        spec.target.architecture;
  for (const auto &[name, value] : spec.parameters) {
    if (name == "elem")
      command += " --dtype ";
    else if (name == "head_dim")
      command += " --head-dim ";
    else
      command += " --set " + name + "=";
    command += cache::parameterText(value);
  }
  return command + " -o DIR";
}

} // namespace spargejit::jit
