// SPDX-License-Identifier: Apache-2.0
//
// Step 3 of 9 in the life of a call (runtime/README.md): binds a MethodPlan to
// a class of problems, by the names of parameters and arguments.
#include "runtime/plan/Planner.h"

#include "runtime/plan/DefaultTuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spargejit::plan {

namespace {

using ParameterMap = std::map<std::string, ParameterValue>;
using ValueKind = PlanValue::Kind;

Status planError(const MethodPlan &plan, const PlanLaunch &launch,
                 const std::string &what) {
  return Status(
      ErrorCode::CompileFailed,
      fmt::format("method {}, kernel {}: {}", plan.name, launch.kernel, what));
}

const PlanValue &valueOf(const MethodPlan &plan, const PlanArgument &argument) {
  return plan.values[static_cast<std::size_t>(argument.value)];
}

const PlanArgument *findArgument(const PlanLaunch &launch,
                                 const std::string &name) {
  for (const PlanArgument &argument : launch.arguments)
    if (argument.name == name)
      return &argument;
  return nullptr;
}

bool isLists(const PlanValue &value) {
  return value.kind == ValueKind::Lists || value.kind == ValueKind::CallerLists;
}

bool isBlockLists(const PlanValue &value) {
  return isLists(value) || value.kind == ValueKind::KeyLists;
}

bool isPlaces(const PlanValue &value) {
  return value.kind == ValueKind::Places;
}

/// Two tensors, of rank 4 and 3.
bool isListPair(const PlanValue &value) {
  return isBlockLists(value) || isPlaces(value);
}

bool isNumber(const PlanValue &value) {
  return value.kind == ValueKind::Scalar || value.kind == ValueKind::Constant;
}

bool bindsAny(const MethodPlan &plan, const PlanLaunch &launch,
              bool (*predicate)(const PlanValue &)) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                     [&](const PlanArgument &argument) {
                       return predicate(valueOf(plan, argument));
                     });
}

/// Whether a value takes part in attention in eight bits.
bool isOfEightBits(const PlanValue &value) {
  return value.kind >= ValueKind::QuantisedQuery &&
         value.kind <= ValueKind::ValueScales;
}

/// What the problem and the launch say, without the method's own parameters.
ParameterMap problemParameters(const MethodPlan &plan, const PlanLaunch &launch,
                               const ProblemClass &kind, const Target &target) {
  ParameterMap known =
      classParameters(kind, target, bindsAny(plan, launch, isBlockLists),
                      bindsAny(plan, launch, isPlaces));
  // Whoever pools for select_blocks alone writes what that one multiplies.
  known["split_means"] =
      std::int64_t{std::ranges::none_of(plan.launches, &PlanLaunch::isCustom)};
  return known;
}

std::string names(const ParameterMap &parameters) {
  std::string text;
  for (const auto &[name, value] : parameters)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Rank of a tensor value, or 0 for a number.
int rankOf(const PlanValue &value, int part) {
  if (isNumber(value))
    return 0;
  if (isListPair(value))
    return part == 0 ? 4 : 3;
  switch (value.kind) {
  case ValueKind::Saturated:
    return 1;
  case ValueKind::QueryFactors:
  case ValueKind::KeyFactors:
    return 2;
  case ValueKind::Lse:
  case ValueKind::DLse:
  case ValueKind::Delta:
  case ValueKind::Unkept:
  case ValueKind::Kept:
  case ValueKind::ValueFactors:
  case ValueKind::ValueScales:
    return 3;
  default:
    return 4;
  }
}

/// "k_values" and "p_values" are the values by head of what the launch binds to
/// "k" and "p", where that is a setting of the call.
ArgumentSource valuesByHead(const MethodPlan &plan, const PlanLaunch &launch,
                            const KernelArgument &argument) {
  const PlanArgument *number = findArgument(launch, argument.name.substr(0, 1));
  if (!number || valueOf(plan, *number).kind != ValueKind::Scalar)
    return {};
  return {ArgumentSource::Kind::Tensor, number->value};
}

/// Whether the launch that forms the gradient of q forms delta too.
bool formsDelta(const MethodPlan &plan) {
  return std::ranges::any_of(plan.launches, [&](const PlanLaunch &launch) {
    return launch.kernel == "attention_bwd_q" && !hasPlaces(plan, launch);
  });
}

/// Pooling counts its progress where one launch reads all that it pools, waits
/// for it by head and leaves the counters at 0: select_blocks. So does a kernel
/// that forms delta, for attention_bwd_kv. Whatever else a launch makes nobody
/// would wait for.
ArgumentSource progressOf(const MethodPlan &plan, const PlanLaunch &launch) {
  if (launch.kernel == "attention_bwd_q" || launch.kernel == "attention_bwd_kv")
    return formsDelta(plan) ? ArgumentSource{ArgumentSource::Kind::Progress}
                            : ArgumentSource();
  if (launch.kernel != "pool" && launch.kernel != "select_blocks")
    return {};
  std::size_t pools = 0, readers = 0;
  for (const PlanLaunch &other : plan.launches) {
    pools += other.kernel == "pool";
    readers += other.kernel == "select_blocks";
    if (other.isCustom())
      return {};
  }
  if (pools != 1 || readers != 1)
    return {};
  return {ArgumentSource::Kind::Progress};
}

/// select_blocks counts its rows by head where the next launch attends to what
/// it selects, and waits for it by head and leaves the counters at 0.
ArgumentSource selectedOf(const MethodPlan &plan, const PlanLaunch &launch) {
  if (launch.kernel != "select_blocks" && launch.kernel != "attention_fwd")
    return {};
  const auto select =
      std::ranges::find(plan.launches, "select_blocks", &PlanLaunch::kernel);
  if (select == plan.launches.end() || select + 1 == plan.launches.end() ||
      select[1].kernel != "attention_fwd" || select->isCustom() ||
      select[1].isCustom())
    return {};
  const PlanArgument *made = findArgument(*select, "indices");
  const PlanArgument *read = findArgument(select[1], "indices");
  if (!made || !read || made->value != read->value)
    return {};
  // Another launch of these kernels would not know of the counters.
  const auto others =
      std::ranges::count_if(plan.launches, [](const PlanLaunch &other) {
        return other.kernel == "select_blocks" ||
               other.kernel == "attention_fwd";
      });
  if (others != 2)
    return {};
  return {ArgumentSource::Kind::Progress, 0, 1};
}

/// The source of an argument that the launch does not list.
Result<ArgumentSource> impliedSource(const MethodPlan &plan,
                                     const PlanLaunch &launch,
                                     const KernelArgument &argument) {
  using Source = ArgumentSource::Kind;
  using Argument = KernelArgument::Kind;
  if (argument.kind == Argument::Tensor && argument.rank == 1 &&
      (argument.name == "tickets" || argument.name == "key_tickets"))
    return ArgumentSource{Source::Tickets, 0, argument.name != "tickets"};
  if (argument.kind == Argument::Tensor && argument.name == "progress" &&
      argument.rank == 1)
    return progressOf(plan, launch);
  if (argument.kind == Argument::Tensor && argument.name == "selected" &&
      argument.rank == 1)
    return selectedOf(plan, launch);
  if (argument.kind == Argument::Tensor && argument.rank == 3 &&
      (argument.name == "k_values" || argument.name == "p_values"))
    return valuesByHead(plan, launch, argument);
  if (argument.kind == Argument::Tensor)
    return ArgumentSource{Source::Absent};
  if (argument.kind == Argument::Float && argument.name == "softmax_scale")
    return ArgumentSource{Source::SoftmaxScale};
  if (argument.kind == Argument::Index && argument.name == "q_len")
    return ArgumentSource{Source::QLen};
  if (argument.kind == Argument::Index && argument.name == "kv_len")
    return ArgumentSource{Source::KvLen};
  if (argument.kind == Argument::Index && argument.name == "kept_room")
    return ArgumentSource{Source::KeptRoom};
  constexpr std::array kDense{"dense_first", "dense_end", "dense_row_first",
                              "dense_row_end"};
  for (std::size_t i = 0; i < kDense.size(); ++i)
    if (argument.kind == Argument::Index && argument.name == kDense[i])
      return ArgumentSource{Source::Dense, 0, static_cast<int>(i)};
  if ((argument.kind == Argument::Index && argument.name == "k") ||
      (argument.kind == Argument::Float && argument.name == "p"))
    return ArgumentSource{Source::Zero};
  return planError(plan, launch,
                   fmt::format("nothing gives the argument {}", argument.name));
}

Result<ArgumentSource> listedSource(const MethodPlan &plan,
                                    const PlanLaunch &launch,
                                    const KernelArgument &argument,
                                    const PlanArgument &given) {
  const PlanValue &value = valueOf(plan, given);
  ArgumentSource source;
  source.value = given.value;
  source.part = isListPair(value) && (argument.name == "counts" ||
                                      argument.name == "key_counts" ||
                                      argument.name == "row_places")
                    ? 1
                    : 0;
  if (value.kind == ValueKind::Scalar && value.name != "top_k" &&
      value.name != "top_p")
    return planError(plan, launch,
                     fmt::format("argument {}: expected the setting top_k or "
                                 "top_p, got {}",
                                 argument.name, value.name));
  int rank = rankOf(value, source.part);
  int expected =
      argument.kind == KernelArgument::Kind::Tensor ? argument.rank : 0;
  auto shape = [](int tensorRank) {
    return tensorRank ? fmt::format("a tensor of rank {}", tensorRank)
                      : std::string("a number");
  };
  if (rank != expected)
    return planError(plan, launch,
                     fmt::format("argument {}: expected {}, got {}",
                                 argument.name, shape(expected), shape(rank)));
  if (rank)
    source.kind = ArgumentSource::Kind::Tensor;
  else
    // The one index that a method can give is the share of key blocks.
    source.kind = argument.kind == KernelArgument::Kind::Index
                      ? ArgumentSource::Kind::KeptBlocks
                      : ArgumentSource::Kind::Number;
  return source;
}

} // namespace

std::map<std::string, ParameterValue> classParameters(const ProblemClass &kind,
                                                      const Target &target,
                                                      bool hasLists,
                                                      bool hasPlaces) {
  ParameterMap known;
  for (const auto &[name, value] :
       defaultTuning(kind, target, hasLists, hasPlaces))
    known[name] = value;
  known["elem"] = kind.dtype;
  known["head_dim"] = kind.headDim;
  known["mask_block_q"] = kind.maskBlockQ;
  known["mask_block_kv"] = kind.maskBlockKv;
  known["causal"] = std::int64_t{kind.causal};
  known["has_dense"] = std::int64_t{kind.hasDense};
  known["has_lists"] = std::int64_t{hasLists};
  known["has_places"] = std::int64_t{hasPlaces};
  // Where nothing is kept, the gradient of q comes first.
  known["forms_delta"] = std::int64_t{!hasPlaces};
  if (!kind.isEightBit())
    return known;
  const bool isExact = kind.precision == Precision::Fp8Exact;
  known["score"] = isExact ? DataType::Float32 : DataType::Float16;
  known["half"] = std::int64_t{!isExact};
  known["fast"] = std::int64_t{kind.precision == Precision::Fp8Fast};
  return known;
}

std::int64_t keptBlocks(double share, std::int64_t kvBlocks) {
  auto blocks =
      static_cast<std::int64_t>(share * static_cast<double>(kvBlocks));
  return std::min(std::max<std::int64_t>(blocks, 1), kvBlocks);
}

Result<KernelSpec>
specialiseLaunch(const MethodPlan &plan, const PlanLaunch &launch,
                 const ProblemClass &kind, const Target &target,
                 const std::vector<compiler::KernelParameter> &parameters) {
  ParameterMap known = problemParameters(plan, launch, kind, target);
  for (const auto &[name, value] : launch.parameters) {
    bool declared = std::any_of(
        parameters.begin(), parameters.end(),
        [&](const auto &parameter) { return parameter.name == name; });
    if (!declared)
      return planError(plan, launch,
                       "the method sets parameter " + name +
                           ", which the kernel does not declare");
    auto [entry, isNew] = known.emplace(name, value);
    if (!isNew && entry->second != ParameterValue(value))
      return planError(plan, launch,
                       "the method sets parameter " + name +
                           " to another value than the problem");
  }
  KernelSpec spec;
  spec.kernel = launch.kernel;
  spec.target = target;
  for (const compiler::KernelParameter &parameter : parameters) {
    auto it = known.find(parameter.name);
    if (it == known.end())
      return planError(plan, launch,
                       fmt::format("expected a parameter out of {}, got {}",
                                   names(known), parameter.name));
    if (parameter.isDataType != std::holds_alternative<DataType>(it->second))
      return planError(
          plan, launch,
          fmt::format("parameter {}: expected it declared as {}",
                      parameter.name,
                      parameter.isDataType ? "a size" : "a data type"));
    spec.parameters.emplace(*it);
  }
  return spec;
}

Result<std::vector<ArgumentSource>> bindArguments(const MethodPlan &plan,
                                                  const PlanLaunch &launch,
                                                  const LaunchInfo &info) {
  std::vector<ArgumentSource> sources;
  for (const KernelArgument &argument : info.arguments) {
    const PlanArgument *given = findArgument(launch, argument.name);
    auto source = given ? listedSource(plan, launch, argument, *given)
                        : impliedSource(plan, launch, argument);
    if (!source.ok())
      return source.status();
    sources.push_back(*source);
  }
  for (const PlanArgument &argument : launch.arguments) {
    // Of two tensors that are one value a kernel may read one.
    bool exists = std::any_of(
        info.arguments.begin(), info.arguments.end(), [&](const auto &known) {
          const PlanArgument *given = findArgument(launch, known.name);
          return given && given->value == argument.value &&
                 (given->name == argument.name ||
                  isListPair(valueOf(plan, argument)));
        });
    if (!exists)
      return planError(plan, launch,
                       "the method gives the argument " + argument.name +
                           ", which the kernel does not have");
  }
  return sources;
}

bool isSelection(const MethodPlan &plan, const PlanLaunch &launch) {
  return !bindsAny(plan, launch, [](const PlanValue &value) {
    return value.kind == ValueKind::Value || value.kind == ValueKind::Output ||
           value.kind == ValueKind::Lse || isOfEightBits(value);
  });
}

bool hasPlaces(const MethodPlan &plan, const PlanLaunch &launch) {
  return bindsAny(plan, launch, isPlaces);
}

bool keepsGradients(const MethodPlan &plan, const PlanLaunch &launch) {
  return bindsAny(plan, launch, [](const PlanValue &value) {
    return value.kind == ValueKind::Kept;
  });
}

int attendedLists(const MethodPlan &plan) {
  for (const PlanLaunch &launch : plan.launches)
    if (!isSelection(plan, launch))
      for (const PlanArgument &argument : launch.arguments)
        if (isLists(valueOf(plan, argument)))
          return argument.value;
  return -1;
}

bool readsSetting(const MethodPlan &plan, const std::string &name) {
  return std::any_of(plan.launches.begin(), plan.launches.end(),
                     [&](const PlanLaunch &launch) {
                       return std::any_of(
                           launch.arguments.begin(), launch.arguments.end(),
                           [&](const PlanArgument &argument) {
                             const PlanValue &value = valueOf(plan, argument);
                             return value.kind == ValueKind::Scalar &&
                                    value.name == name;
                           });
                     });
}

bool takesCallerLists(const MethodPlan &plan) {
  return std::any_of(plan.values.begin(), plan.values.end(),
                     [](const PlanValue &value) {
                       return value.kind == ValueKind::CallerLists;
                     });
}

} // namespace spargejit::plan
