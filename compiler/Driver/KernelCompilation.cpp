// SPDX-License-Identifier: Apache-2.0
//
// The stages of a compilation: input, specialise, tile, lower, emit.
#include "compiler/Driver/KernelCompilation.h"

#include "compiler/Conversion/TileToNvvm/LaunchAttributes.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Driver/ParseText.h"
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Target/Host/EmitObject.h"
#include "compiler/Target/Host/HostMachine.h"
#include "compiler/Target/Ptx/EmitPtx.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"

namespace spargejit::compiler {

static const mlir::DialectRegistry &kernelDialects() {
  static const mlir::DialectRegistry kRegistry = [] {
    mlir::DialectRegistry registry;
    registry.insert<mlir::tile::TileDialect, mlir::arith::ArithDialect,
                    mlir::math::MathDialect, mlir::scf::SCFDialect,
                    mlir::cf::ControlFlowDialect, mlir::ub::UBDialect,
                    mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect,
                    mlir::NVVM::NVVMDialect>();
    return registry;
  }();
  return kRegistry;
}

// No thread pool: it would not survive a fork of the host program.
KernelCompilation::KernelCompilation()
    : context_(kernelDialects(), mlir::MLIRContext::Threading::DISABLED),
      log_(&context_) {}

Status KernelCompilation::parse(const std::string &text,
                                const std::string &textName,
                                const std::string &kernel) {
  auto parsed = parseText(text, textName, context_, log_);
  if (!parsed.ok())
    return parsed.status();
  module_ = *std::move(parsed);
  bool found = false;
  for (auto op :
       llvm::make_early_inc_range(module_->getOps<mlir::tile::KernelOp>())) {
    if (op.getSymName() == kernel)
      found = true;
    else
      op.erase();
  }
  if (!found)
    return Status(ErrorCode::InvalidArgument,
                  textName + ": expected a tile.kernel named @" + kernel +
                      ", got none");
  describeArguments();
  return {};
}

/// Slots in order of arguments, as the lowering reads them.
void KernelCompilation::describeArguments() {
  auto kernel = *module_->getOps<mlir::tile::KernelOp>().begin();
  int slot = 0;
  for (auto [name, argument] :
       llvm::zip(kernel.getArgumentNames().getAsValueRange<mlir::StringAttr>(),
                 kernel.getBody().getArguments())) {
    KernelArgument entry;
    entry.name = name.str();
    entry.firstSlot = slot;
    if (auto type =
            mlir::dyn_cast<mlir::tile::GlobalType>(argument.getType())) {
      entry.kind = KernelArgument::Kind::Tensor;
      entry.rank = static_cast<int>(type.getRank());
    } else {
      entry.kind = argument.getType().isIndex() ? KernelArgument::Kind::Index
                                                : KernelArgument::Kind::Float;
    }
    slot += entry.slotCount();
    launch_.arguments.push_back(std::move(entry));
  }
  launch_.entryName = kernel.getSymName().str();
  launch_.gridArgument = static_cast<int>(kernel.getGridArgument());
}

Status KernelCompilation::runPasses(
    llvm::function_ref<void(mlir::OpPassManager &)> add) {
  auto passes = mlir::PassManager::on<mlir::ModuleOp>(&context_);
  add(passes);
  // Once a stage: after each pass it is a tenth of the time to PTX.
  passes.enableVerifier(false);
  const bool isRight = mlir::succeeded(passes.run(*module_)) &&
                       mlir::succeeded(mlir::verify(*module_));
  return isRight ? Status() : log_.toStatus();
}

Status KernelCompilation::specialise(const KernelSpec &spec) {
  std::vector<std::string> parameters;
  for (const auto &[name, value] : spec.parameters)
    parameters.push_back(name + "=" +
                         (std::holds_alternative<DataType>(value)
                              ? dataTypeName(std::get<DataType>(value))
                              : std::to_string(std::get<std::int64_t>(value))));
  Status status = runPasses([&](mlir::OpPassManager &passes) {
    mlir::sparge::addSpecialisePasses(passes, parameters);
  });
  if (!status)
    return status;
  auto kernel = *module_->getOps<mlir::tile::KernelOp>().begin();
  launch_.gridTile =
      kernel->getAttrOfType<mlir::IntegerAttr>("grid_tile").getInt();
  return {};
}

/// Hand-scheduled kernels say themselves where their tiles live.
Status KernelCompilation::tile(const KernelSpec &spec) {
  if (!spec.target.isHost())
    return {};
  return runPasses([](mlir::OpPassManager &passes) {
    mlir::sparge::addHostTilePasses(passes);
  });
}

Status KernelCompilation::lower(const KernelSpec &spec) {
  if (!spec.target.isHost()) {
    std::vector<DataType> elementTypes = argumentElementTypes();
    Status status = runPasses([&](mlir::OpPassManager &passes) {
      mlir::sparge::addNvvmLowerPasses(passes, spec.target.features ==
                                                   kRacecheckFeature);
    });
    if (status)
      describeGpuLaunch(elementTypes);
    return status;
  }
  Status status = runPasses([&](mlir::OpPassManager &passes) {
    mlir::sparge::addHostLowerPasses(passes, hostDotColumns(spec.target));
  });
  if (status)
    describeScratch();
  return status;
}

void KernelCompilation::describeScratch() {
  auto function = *module_->getOps<mlir::LLVM::LLVMFuncOp>().begin();
  launch_.staticScratchBytes =
      function->getAttrOfType<mlir::IntegerAttr>("spargejit.static_scratch")
          .getInt();
  describeDynamicScratch("spargejit.dynamic_scratch");
}

void KernelCompilation::describeDynamicScratch(const char *attribute) {
  auto function = *module_->getOps<mlir::LLVM::LLVMFuncOp>().begin();
  auto entries = function->getAttrOfType<mlir::ArrayAttr>(attribute);
  if (!entries)
    return;
  for (auto entry : entries.getAsRange<mlir::DenseI64ArrayAttr>()) {
    DynamicScratch scratch;
    scratch.bytesPerColumn = entry[0];
    scratch.columnsMultiple = entry[1];
    scratch.columnsSlot = static_cast<int>(entry[2]);
    launch_.dynamicScratch.push_back(scratch);
  }
}

/// Of the specialised kernel: for each argument its elements' type, Float32 for
/// numbers.
std::vector<DataType> KernelCompilation::argumentElementTypes() {
  auto kernel = *module_->getOps<mlir::tile::KernelOp>().begin();
  std::vector<DataType> types;
  for (mlir::Type type : kernel.getBody().getArgumentTypes()) {
    auto tensor = mlir::dyn_cast<mlir::tile::GlobalType>(type);
    mlir::Type element = tensor ? tensor.getElementType() : type;
    types.push_back(element.isBF16()        ? DataType::BFloat16
                    : element.isF16()       ? DataType::Float16
                    : element.isInteger(32) ? DataType::Int32
                    : mlir::isa<mlir::Float8E4M3FNType>(element)
                        ? DataType::Float8E4M3
                    // The TMA copies bytes, whatever they stand for.
                    : element.isInteger(8) ? DataType::Bool
                                           : DataType::Float32);
  }
  return types;
}

/// Attributes as in LaunchAttributes.h.
void KernelCompilation::describeGpuLaunch(
    const std::vector<DataType> &elementTypes) {
  auto function = *module_->getOps<mlir::LLVM::LLVMFuncOp>().begin();
  auto integer = [&](const char *name) {
    return function->getAttrOfType<mlir::IntegerAttr>(name).getInt();
  };
  launch_.threads = static_cast<int>(integer(mlir::sparge::kThreadsAttr));
  launch_.sharedBytes = integer(mlir::sparge::kSharedBytesAttr);
  launch_.persistent =
      function->getAttrOfType<mlir::BoolAttr>(mlir::sparge::kPersistentAttr)
          .getValue();
  launch_.startsEarly =
      function->getAttrOfType<mlir::BoolAttr>(mlir::sparge::kStartsEarlyAttr)
          .getValue();
  if (function->hasAttr(mlir::sparge::kMembersAttr))
    launch_.members = static_cast<int>(integer(mlir::sparge::kMembersAttr));
  if (function->hasAttr(mlir::sparge::kResidentCtasAttr))
    launch_.ctasPerMultiprocessor =
        static_cast<int>(integer(mlir::sparge::kResidentCtasAttr));
  if (function->hasAttr(mlir::sparge::kAssemblerLevelAttr))
    launch_.assemblerLevel =
        static_cast<int>(integer(mlir::sparge::kAssemblerLevelAttr));
  describeDynamicScratch(mlir::sparge::kDynamicSharedAttr);
  for (auto entry :
       function->getAttrOfType<mlir::ArrayAttr>(mlir::sparge::kTensorMapsAttr)
           .getAsRange<mlir::DenseI64ArrayAttr>()) {
    TensorMap map;
    map.argument = static_cast<int>(entry[0]);
    map.elementType = elementTypes[static_cast<std::size_t>(map.argument)];
    map.boxRows = entry[1];
    map.boxColumns = entry[2];
    map.swizzleBytes = static_cast<int>(entry[3]);
    launch_.tensorMaps.push_back(map);
  }
}

Status KernelCompilation::emit(const KernelSpec &spec) {
  llvmModule_ = translateToLlvm(*module_, llvmContext_.get());
  if (!llvmModule_)
    return log_.toStatus();
  Status status = spec.target.isHost()
                      ? optimiseForHost(*llvmModule_, spec.target)
                      : optimiseForPtx(*llvmModule_, spec.target);
  return status ? llvmContext_.status() : status;
}

Status KernelCompilation::runTo(const KernelSpec &spec, Stage last) {
  if (!spec.target.isHost() && !isPtxTarget(spec.target))
    return Status(ErrorCode::Unsupported,
                  "target.architecture: expected host or sm_90a, got " +
                      spec.target.architecture);
  using Step = Status (KernelCompilation::*)(const KernelSpec &);
  constexpr std::pair<Stage, Step> kSteps[] = {
      {Stage::Specialise, &KernelCompilation::specialise},
      {Stage::Tile, &KernelCompilation::tile},
      {Stage::Lower, &KernelCompilation::lower},
      {Stage::Emit, &KernelCompilation::emit}};
  return runGuarded([&]() -> Status {
    for (auto [stage, step] : kSteps) {
      if (stage > last)
        break;
      if (Status status = (this->*step)(spec); !status)
        return std::move(status).withContext(std::string(stageName(stage)) +
                                             " " + spec.kernel + " for " +
                                             spec.target.architecture);
    }
    return {};
  });
}

std::string KernelCompilation::print() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvmModule_)
    llvmModule_->print(stream, nullptr);
  else
    module_->print(stream);
  return text;
}

Result<std::string> KernelCompilation::emitCode(const KernelSpec &spec,
                                                bool assembly) {
  std::string code;
  Status status = runGuarded([&]() -> Status {
    Result<std::string> emitted =
        spec.target.isHost() ? emitHostCode(*llvmModule_, spec.target, assembly)
                             : emitPtx(*llvmModule_, spec.target);
    if (!emitted)
      return emitted.status();
    code = std::move(*emitted);
    return llvmContext_.status();
  });
  if (!status)
    return status;
  return code;
}

} // namespace spargejit::compiler
