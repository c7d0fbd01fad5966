// SPDX-License-Identifier: Apache-2.0
//
// Method text to MethodPlan: parse, run the sparge passes, read the launches.
#include "compiler/Driver/PlanMethod.h"

#include "compiler/Dialect/Sparge/Sparge.h"
#include "compiler/Driver/ParseText.h"
#include "compiler/Transforms/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace spargejit::compiler {

namespace {

namespace sparge = mlir::sparge;

/// The kind of plan value that the SSA value stands for.
PlanValue planValueOf(mlir::Value value) {
  PlanValue plan;
  if (auto parameter = value.getDefiningOp<sparge::ParameterOp>()) {
    plan.kind = PlanValue::Kind::Scalar;
    plan.name = parameter.getName().str();
    return plan;
  }
  if (auto constant = value.getDefiningOp<mlir::arith::ConstantOp>()) {
    plan.kind = PlanValue::Kind::Constant;
    plan.constant =
        mlir::cast<mlir::FloatAttr>(constant.getValue()).getValueAsDouble();
    return plan;
  }
  using Kind = PlanValue::Kind;
  plan.kind =
      llvm::TypeSwitch<mlir::Type, Kind>(value.getType())
          .Case([](sparge::CallTensorType type) {
            constexpr Kind kKinds[] = {Kind::Query,  Kind::Key,    Kind::Value,
                                       Kind::Output, Kind::DQuery, Kind::DKey,
                                       Kind::DValue, Kind::DOutput};
            return kKinds[static_cast<unsigned>(type.getRole())];
          })
          .Case([](sparge::PooledType type) {
            return type.getRole() == sparge::Role::Query ? Kind::PooledQuery
                                                         : Kind::PooledKey;
          })
          .Case([&](sparge::ListsType) {
            return value.getDefiningOp<sparge::CallerListsOp>()
                       ? Kind::CallerLists
                       : Kind::Lists;
          })
          .Case([](sparge::KeyListsType) { return Kind::KeyLists; })
          .Case([](sparge::PlacesType) { return Kind::Places; })
          .Case([](sparge::UnkeptType) { return Kind::Unkept; })
          .Case([](sparge::KeptType) { return Kind::Kept; })
          .Case([](sparge::LseType) { return Kind::Lse; })
          .Case([](sparge::DLseType) { return Kind::DLse; })
          .Case([](sparge::DeltaType) { return Kind::Delta; });
  return plan;
}

/// `name` between quotes as a C string.
std::string quoted(llvm::StringRef name) {
  std::string text = "\"";
  for (char letter : name) {
    if (letter == '"' || letter == '\\')
      text += '\\';
    text += letter;
  }
  return text + '"';
}

/// The text of a stage; #line directives say where in the method file each of
/// its lines stands.
std::string sourceText(sparge::CodeAttr code, llvm::StringRef textName) {
  std::string text;
  if (code.isFromConfig())
    return text;
  int64_t next = -1;
  for (auto [line, place] :
       llvm::zip_equal(code.getLines().getAsValueRange<mlir::StringAttr>(),
                       code.getPlaces().asArrayRef())) {
    if (place != next)
      text += "#line " + std::to_string(place) + " " + quoted(textName) + "\n";
    text += line.str() + "\n";
    next = place + 1;
  }
  return text;
}

/// Reads the launches of a planned method.
class PlanReader {
public:
  explicit PlanReader(llvm::StringRef textName) : textName_(textName) {}

  MethodPlan read(sparge::MethodOp method) {
    plan_.name = method.getSymName().str();
    mlir::Block &body = method.getBody().front();
    for (mlir::BlockArgument argument : body.getArguments())
      indexOf(argument);
    for (sparge::LaunchOp launch : body.getOps<sparge::LaunchOp>())
      plan_.launches.push_back(readLaunch(launch));
    return std::move(plan_);
  }

private:
  PlanLaunch readLaunch(sparge::LaunchOp launch) {
    PlanLaunch result;
    result.kernel = launch.getKernel().str();
    bind(result, launch.getArgumentNames(), launch.getOperands());
    bind(result, launch.getResultNames(), launch.getOutputs());
    for (mlir::NamedAttribute parameter : launch.getParameters())
      result.parameters[parameter.getName().str()] =
          mlir::cast<mlir::IntegerAttr>(parameter.getValue()).getInt();
    if (mlir::DictionaryAttr sources = launch.getSourcesAttr())
      for (mlir::NamedAttribute source : sources)
        result.sources.push_back(
            {source.getName().str(),
             sourceText(mlir::cast<sparge::CodeAttr>(source.getValue()),
                        textName_)});
    return result;
  }

  void bind(PlanLaunch &launch, mlir::ArrayAttr names,
            mlir::ValueRange values) {
    for (auto [name, value] :
         llvm::zip_equal(names.getAsValueRange<mlir::StringAttr>(), values)) {
      int index = indexOf(value);
      if (mlir::isa<sparge::ListsType>(value.getType())) {
        launch.arguments.push_back({"indices", index});
        launch.arguments.push_back({"counts", index});
      } else if (mlir::isa<sparge::KeyListsType>(value.getType())) {
        launch.arguments.push_back({"key_indices", index});
        launch.arguments.push_back({"key_counts", index});
      } else if (mlir::isa<sparge::PlacesType>(value.getType())) {
        launch.arguments.push_back({"places", index});
        launch.arguments.push_back({"row_places", index});
      } else {
        launch.arguments.push_back({name.str(), index});
      }
    }
  }

  /// The number of `value` in the plan. What every evaluation gives alike (a
  /// parameter, a constant, the caller's lists) has one number however often
  /// the method's text asks for it.
  int indexOf(mlir::Value value) {
    auto [entry, isNew] = indices_.try_emplace(value, 0);
    if (!isNew)
      return entry->second;
    PlanValue plan = planValueOf(value);
    bool shared = plan.kind == PlanValue::Kind::Scalar ||
                  plan.kind == PlanValue::Kind::Constant ||
                  plan.kind == PlanValue::Kind::CallerLists;
    auto same = llvm::find_if(plan_.values, [&](const PlanValue &other) {
      return shared && other.kind == plan.kind && other.name == plan.name &&
             other.constant == plan.constant;
    });
    entry->second = static_cast<int>(same - plan_.values.begin());
    if (same == plan_.values.end())
      plan_.values.push_back(std::move(plan));
    return entry->second;
  }

  llvm::StringRef textName_;
  MethodPlan plan_;
  llvm::DenseMap<mlir::Value, int> indices_;
};

/// The only op of the module, a sparge.method; null with an error otherwise.
sparge::MethodOp findMethod(mlir::ModuleOp module) {
  sparge::MethodOp method;
  for (mlir::Operation &op : *module.getBody()) {
    auto found = mlir::dyn_cast<sparge::MethodOp>(op);
    if (!found) {
      op.emitError() << "expects nothing but one sparge.method in a method "
                        "file, got '"
                     << op.getName() << "'";
      return {};
    }
    if (method) {
      found.emitError() << "expects one sparge.method in a method file, got "
                           "another after @"
                        << method.getSymName();
      return {};
    }
    method = found;
  }
  if (!method)
    module.emitError()
        << "expects one sparge.method in a method file, got none";
  return method;
}

} // namespace

Result<MethodPlan> planMethod(const std::string &text,
                              const std::string &textName) {
  mlir::DialectRegistry registry;
  registry.insert<sparge::SpargeDialect, mlir::arith::ArithDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  // The position says which op it is; its generic form would be noise.
  context.printOpOnDiagnostic(false);
  DiagnosticLog log(&context);

  auto parsed = parseText(text, textName, context, log);
  if (!parsed.ok())
    return parsed.status();
  mlir::OwningOpRef<mlir::ModuleOp> module = *std::move(parsed);
  sparge::MethodOp method = findMethod(*module);
  if (!method)
    return log.toStatus();

  mlir::PassManager passes(&context);
  passes.addNestedPass<sparge::MethodOp>(
      sparge::createSpargeFuseSelectionPass());
  passes.addNestedPass<sparge::MethodOp>(
      sparge::createSpargePlanLaunchesPass());
  if (mlir::failed(passes.run(*module)))
    return log.toStatus();
  return PlanReader(textName).read(method);
}

} // namespace spargejit::compiler
