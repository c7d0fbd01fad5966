// SPDX-License-Identifier: Apache-2.0
//
// Workspace and argument slots of one call.
#include "runtime/plan/CallBinding.h"

#include "runtime/base/AlignedMemory.h"
#include "runtime/plan/KeptGradients.h"

#include <bit>
#include <optional>

namespace spargejit::plan {

namespace {

/// Floats of a head's pooled vectors, with room for them as tile.store_split
/// lays them out, and heads at multiples of 16 bytes; -1 when they are too
/// many.
std::int64_t pooledFloats(std::int64_t blocks, std::int64_t headDim) {
  const std::int64_t rowFloats = (headDim + 15) / 16 * 16 + 4;
  std::int64_t floats = 0;
  return __builtin_mul_overflow((blocks + 7) / 8 * 8, rowFloats, &floats)
             ? -1
             : floats;
}

/// Hands out tensors one after the other, or only counts their bytes.
class Placer {
public:
  explicit Placer(void *base) : base_(static_cast<char *>(base)) {}

  /// `matrix`: elements that the last two dimensions take, or 0 for what they
  /// have.
  void place(TensorView &view, DataType dtype, int rank,
             std::array<std::int64_t, TensorView::kMaxRank> sizes,
             std::int64_t matrix = 0) {
    if (view.data)
      return;
    TensorView dense;
    dense.dtype = dtype;
    dense.rank = rank;
    dense.sizes = sizes;
    std::int64_t count = 1;
    for (std::size_t i = static_cast<std::size_t>(rank); i-- > 0;) {
      dense.strides[i] = count;
      overflow_ |= __builtin_mul_overflow(count, sizes[i], &count);
      if (matrix != 0 && i + 2 == static_cast<std::size_t>(rank))
        count = matrix;
    }
    overflow_ |= matrix < 0;
    std::int64_t bytes = 0;
    overflow_ |= __builtin_mul_overflow(
        count, static_cast<std::int64_t>(dataTypeSize(dtype)), &bytes);
    // Half of the range is left for the rounding up and the sum.
    overflow_ |= bytes > INT64_MAX / 4 || bytes_ > INT64_MAX / 4;
    if (overflow_)
      return;
    if (base_) {
      dense.data = base_ + bytes_;
      view = dense;
    }
    bytes_ += alignUp(bytes);
  }

  bool overflow() const { return overflow_; }
  std::int64_t bytes() const { return bytes_; }

private:
  char *base_;
  std::int64_t bytes_ = 0;
  bool overflow_ = false;
};

struct Shape {
  DataType dtype;
  int rank;
  std::array<std::int64_t, TensorView::kMaxRank> sizes;
};

/// Of what attention in eight bits has between launches.
std::optional<Shape> eightBitShape(PlanValue::Kind kind,
                                   const AttentionProblem &problem) {
  using Kind = PlanValue::Kind;
  constexpr DataType kNarrow = DataType::Float8E4M3, kWide = DataType::Float32;
  const std::int64_t batch = problem.batch, headDim = problem.kind.headDim;
  const std::int64_t qHeads = problem.qHeads, kvHeads = problem.kvHeads;
  switch (kind) {
  case Kind::QuantisedQuery:
    return Shape{kNarrow, 4, {batch, qHeads, problem.qLen, headDim}};
  case Kind::QuantisedKey:
    return Shape{kNarrow, 4, {batch, kvHeads, problem.kvLen, headDim}};
  case Kind::QuantisedValue:
    return Shape{kNarrow, 4, quantisedValueSizes(problem)};
  case Kind::RoundingPeaks: {
    const std::int64_t rows =
        problem.device.kind == DeviceKind::Cpu ? 1 : kPeakRows;
    return Shape{kWide, 4, {batch, kvHeads, rows, headDim}};
  }
  case Kind::Saturated:
    return Shape{DataType::Int32, 1, {batch * kvHeads}};
  case Kind::QueryFactors:
    return Shape{kWide, 2, {batch, qHeads}};
  case Kind::KeyFactors:
    return Shape{kWide, 2, {batch, kvHeads}};
  case Kind::ValueFactors:
  case Kind::ValueScales:
    return Shape{kWide, 3, {batch, kvHeads, headDim}};
  default:
    return std::nullopt;
  }
}

void packTensor(const TensorView &view, int rank, std::int64_t *slots) {
  *slots++ = std::bit_cast<std::int64_t>(view.data);
  for (int i = 0; i < TensorView::kMaxRank; ++i) {
    if (i == rank)
      break;
    slots[i] = view.sizes[static_cast<std::size_t>(i)];
    slots[rank + i] = view.strides[static_cast<std::size_t>(i)];
  }
}

std::int64_t floatSlot(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

double numberOf(const PlanValue &value, const AttentionProblem &problem) {
  if (value.kind == PlanValue::Kind::Constant)
    return value.constant;
  return value.name == "top_k" ? problem.topK : problem.topP;
}

} // namespace

std::array<std::int64_t, TensorView::kMaxRank>
quantisedValueSizes(const AttentionProblem &problem) {
  if (problem.device.kind == DeviceKind::Cpu)
    return {problem.batch, problem.kvHeads, problem.kvLen,
            problem.kind.headDim};
  return {problem.batch, problem.kvHeads,
          blockCount(problem.kvLen, kImageKeys) *
              (problem.kind.headDim / 8 + 1),
          kImageCoreBytes};
}

Result<std::int64_t> placeWorkspace(const MethodPlan &plan,
                                    const AttentionProblem &problem, void *base,
                                    ValueTensors &tensors) {
  Placer placer(base);
  const std::int64_t qBlocks = problem.qBlocks();
  const std::int64_t kvBlocks = problem.kvBlocks();
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    int value = static_cast<int>(i);
    switch (plan.values[i].kind) {
    case PlanValue::Kind::PooledQuery:
      placer.place(
          tensors.at(value), DataType::Float32, 4,
          {problem.batch, problem.qHeads, qBlocks, problem.kind.headDim},
          pooledFloats(qBlocks, problem.kind.headDim));
      break;
    case PlanValue::Kind::PooledKey:
      placer.place(
          tensors.at(value), DataType::Float32, 4,
          {problem.batch, problem.kvHeads, kvBlocks, problem.kind.headDim},
          pooledFloats(kvBlocks, problem.kind.headDim));
      break;
    case PlanValue::Kind::CallerLists: // of a mask: the lists made from it
      if (plan.isBackward())
        break; // those of the forward pass, always
      [[fallthrough]];
    case PlanValue::Kind::Lists:
      placer.place(tensors.at(value, 0), DataType::Int32, 4,
                   {problem.batch, problem.qHeads, qBlocks, kvBlocks});
      placer.place(tensors.at(value, 1), DataType::Int32, 3,
                   {problem.batch, problem.qHeads, qBlocks, 0});
      break;
    case PlanValue::Kind::KeyLists:
      placer.place(tensors.at(value, 0), DataType::Int32, 4,
                   {problem.batch, problem.qHeads, kvBlocks, qBlocks});
      placer.place(tensors.at(value, 1), DataType::Int32, 3,
                   {problem.batch, problem.qHeads, kvBlocks, 0});
      break;
    case PlanValue::Kind::Delta:
      placer.place(tensors.at(value), DataType::Float32, 3,
                   {problem.batch, problem.qHeads, problem.qLen, 0});
      break;
    case PlanValue::Kind::Places:
      placer.place(tensors.at(value, 0), DataType::Int32, 4,
                   {problem.batch, problem.qHeads, kvBlocks, qBlocks});
      placer.place(tensors.at(value, 1), DataType::Int32, 3,
                   {problem.batch, problem.qHeads, qBlocks, 0});
      break;
    case PlanValue::Kind::Unkept:
      placer.place(tensors.at(value), DataType::Int32, 3,
                   {problem.batch, 1, problem.qHeads, 0});
      break;
    case PlanValue::Kind::Kept:
      placer.place(tensors.at(value), problem.kind.dtype, 3,
                   {keptHeadsOfQ(problem), problem.keptRoom,
                    problem.kind.maskBlockQ * problem.kind.maskBlockKv, 0});
      break;
    default: // the caller's memory, or a number
      if (auto shape = eightBitShape(plan.values[i].kind, problem))
        placer.place(tensors.at(value), shape->dtype, shape->rank,
                     shape->sizes);
    }
  }
  if (placer.overflow())
    return Status(ErrorCode::OutOfResources,
                  "the workspace of this call exceeds 2^63 bytes");
  return placer.bytes();
}

void packArguments(const MethodPlan &plan, const LaunchInfo &info,
                   const std::vector<ArgumentSource> &sources,
                   const AttentionProblem &problem, const ValueTensors &tensors,
                   std::int64_t *slots) {
  using Source = ArgumentSource::Kind;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const KernelArgument &argument = info.arguments[i];
    const ArgumentSource &source = sources[i];
    std::int64_t *slot = slots + argument.firstSlot;
    switch (source.kind) {
    case Source::Absent:
      packTensor(TensorView(), argument.rank, slot);
      break;
    case Source::Tensor:
      packTensor(tensors.at(source.value, source.part), argument.rank, slot);
      break;
    case Source::QLen:
      *slot = problem.qLen;
      break;
    case Source::KvLen:
      *slot = problem.kvLen;
      break;
    case Source::KeptRoom:
      *slot = problem.keptRoom;
      break;
    case Source::SoftmaxScale:
      *slot = floatSlot(problem.softmaxScale);
      break;
    case Source::KeptBlocks:
      *slot = keptBlocks(
          numberOf(plan.values[static_cast<std::size_t>(source.value)],
                   problem),
          problem.kvBlocks());
      break;
    case Source::Number:
      *slot = floatSlot(numberOf(
          plan.values[static_cast<std::size_t>(source.value)], problem));
      break;
    case Source::Tickets:
      packTensor(tensors.tickets(source.part), argument.rank, slot);
      break;
    case Source::Progress:
      packTensor(problem.batch *
                             (source.part ? problem.qHeads : problem.kvHeads) <=
                         ValueTensors::kMostHeads
                     ? tensors.progress(source.part)
                     : TensorView(),
                 argument.rank, slot);
      break;
    case Source::Dense:
      *slot = problem.dense[static_cast<std::size_t>(source.part)];
      break;
    case Source::Zero:
      *slot = 0;
      break;
    }
  }
}

} // namespace spargejit::plan
