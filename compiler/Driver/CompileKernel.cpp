// SPDX-License-Identifier: Apache-2.0
//
// Step 5 of 9 in the life of a call (runtime/README.md).
// The compiler's entry: see CompileKernel.h.
#include "compiler/Driver/CompileKernel.h"

#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Driver/KernelCompilation.h"

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/AttrTypeSubElements.h"

#include <array>
#include <utility>

namespace spargejit::compiler {

static constexpr std::array<std::pair<Stage, const char *>, 6> kStageNames = {
    {{Stage::Input, "input"},
     {Stage::Specialise, "specialise"},
     {Stage::Tile, "tile"},
     {Stage::Lower, "lower"},
     {Stage::Emit, "emit"},
     {Stage::Assembly, "asm"}}};

const char *stageName(Stage stage) {
  for (auto [value, name] : kStageNames)
    if (value == stage)
      return name;
  return "unknown";
}

Result<Stage> stageFromName(const std::string &name) {
  std::string all;
  for (auto [value, known] : kStageNames) {
    if (name == known)
      return value;
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return Status(ErrorCode::InvalidArgument,
                "stage: expected one of " + all + ", got '" + name + "'");
}

Result<KernelArtifact> compileKernel(const std::string &text,
                                     const std::string &textName,
                                     const KernelSpec &spec) {
  KernelCompilation compilation;
  Status status = compilation.parse(text, textName, spec.kernel);
  if (status)
    status = compilation.runTo(spec, Stage::Emit);
  if (!status)
    return status;
  Result<std::string> code = compilation.emitCode(spec, /*assembly=*/false);
  if (!code)
    return code.status();
  KernelArtifact artifact;
  artifact.target = spec.target;
  artifact.launch = compilation.launch();
  artifact.code = std::move(*code);
  return artifact;
}

Result<std::string> dumpKernel(const std::string &text,
                               const std::string &textName,
                               const KernelSpec &spec, Stage stage) {
  KernelCompilation compilation;
  Status status = compilation.parse(text, textName, spec.kernel);
  if (status)
    status = compilation.runTo(spec, stage);
  if (!status)
    return status;
  if (stage == Stage::Assembly)
    return compilation.emitCode(spec, /*assembly=*/true);
  return compilation.print();
}

Result<std::vector<KernelParameter>>
listKernelParameters(const std::string &text, const std::string &textName,
                     const std::string &kernel) {
  KernelCompilation compilation;
  if (Status status = compilation.parse(text, textName, kernel); !status)
    return status;
  auto op = *compilation.module().getOps<mlir::tile::KernelOp>().begin();
  // A parameter is a data type where an element type names it.
  llvm::StringSet<> dataTypes;
  mlir::AttrTypeWalker walker;
  walker.addWalk(
      [&](mlir::tile::ElementType type) { dataTypes.insert(type.getName()); });
  for (mlir::Type type : op.getBody().getArgumentTypes())
    walker.walk(type);
  op.getBody().walk([&](mlir::Operation *inner) {
    for (mlir::Type type : inner->getResultTypes())
      walker.walk(type);
  });
  std::vector<KernelParameter> parameters;
  for (llvm::StringRef name :
       op.getParameters().getAsValueRange<mlir::StringAttr>())
    parameters.push_back({name.str(), dataTypes.contains(name)});
  return parameters;
}

} // namespace spargejit::compiler
