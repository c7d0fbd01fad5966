// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous dots: wgmma of 64 rows a warpgroup.
//
// One dot is one block of inline PTX (fence, the chain of steps, commit),
// so that nothing comes between; a wait is inline PTX that takes and returns
// the results, so that nothing moves across (PTX ISA 8.0, wgmma; LLVM moved
// plain arithmetic over the wait intrinsic).
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

using namespace mlir;
using namespace mlir::sparge;

namespace {

constexpr int64_t kStepBytes = 32; // of one wgmma along k
constexpr int64_t kWarpgroupRows = 64;
constexpr int64_t kSwizzleRows = 8;   // rows after which a swizzle repeats
constexpr int64_t kPieceColumns = 64; // that `within` leaves out together
constexpr const char *kFence = "wgmma.fence.sync.aligned; ";
constexpr const char *kCommit = "wgmma.commit_group.sync.aligned; ";

/// What a matrix descriptor says beside its start address (PTX ISA 8.0,
/// "Matrix-descriptor format"), and how the start moves with k.
class Descriptor {
public:
  /// `byColumns`: k runs along the matrix's columns (K-major), else its rows.
  Descriptor(const SharedMatrix &matrix, bool byColumns)
      : matrix_(matrix), byColumns_(byColumns) {}

  /// Added to the start address / 16: the distance of panels, in bits 16-29,
  /// which matters where a step needs more than one panel along k, as it does
  /// of core matrices, or where a panel is one group of many along m or n.
  int64_t low() const {
    bool matters = !byColumns_ || matrix_.isCores();
    return (matters ? matrix_.panelBytes() / 16 : 1) << 16;
  }
  /// Distance of groups of eight rows (bits 32-45), and the swizzle (62-63).
  int64_t high() const {
    int64_t code = matrix_.swizzle == 128  ? 1
                   : matrix_.swizzle == 64 ? 2
                   : matrix_.swizzle == 32 ? 3
                                           : 0;
    return (kSwizzleRows * matrix_.swizzle / 16) | (code << 30);
  }
  /// Start of step `step`, / 16.
  int64_t offset(int64_t step) const {
    int64_t first = step * kStepBytes / matrix_.elementBytes;
    if (!byColumns_)
      return first * matrix_.swizzle / 16;
    int64_t panel = first / matrix_.panelColumns();
    int64_t column = first % matrix_.panelColumns();
    return (panel * matrix_.panelBytes() + column * matrix_.elementBytes) / 16;
  }

private:
  const SharedMatrix &matrix_;
  bool byColumns_;
};

/// The left operand in shared memory. A stack is an M-major one: core matrices
/// of eight k by eight m, groups of k 128 bytes apart (bits 16-29 of a
/// descriptor of such a matrix that is not swizzled), groups of m one panel of
/// a slab (bits 32-45).
class LeftSlot {
public:
  explicit LeftSlot(tile::DotAsyncOp op)
      : matrix_(cast<tile::SharedType>(op.getA().getType())),
        rows_(op.getType().getTensor().getDimSize(0)),
        isStacked_(op.getStacked()) {}

  int64_t low() const {
    return isStacked_ ? (SharedMatrix::kCoreBytes / 16) << 16
                      : Descriptor(matrix_, true).low();
  }
  int64_t high() const {
    return isStacked_ ? kPanelBytes / 16 : Descriptor(matrix_, true).high();
  }
  int64_t offset(int64_t step) const {
    return isStacked_ ? step * (rows_ / kPanelRows) * kPanelBytes / 16
                      : Descriptor(matrix_, true).offset(step);
  }
  /// Of a warpgroup's rows.
  int64_t warpgroupBytes() const {
    return kWarpgroupRows *
           (isStacked_ ? kPanelBytes / kPanelRows : matrix_.swizzle);
  }
  /// What the instruction says of its major dimension.
  const char *major() const { return isStacked_ ? ", 1" : ", 0"; }

private:
  static constexpr int64_t kPanelRows = 8, kPanelBytes = 256; // of a slab
  SharedMatrix matrix_;
  int64_t rows_;
  bool isStacked_;
};

/// "{$first, …}" of `count` operands.
std::string operandList(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// Operand `operand` (start / 16 with the low word's constants) moved by
/// `offset`, as 64-bit register `name`.
template <typename AnyDescriptor>
std::string descriptorText(StringRef name, int64_t operand,
                           const AnyDescriptor &descriptor, int64_t offset) {
  return "add.u32 low, $" + std::to_string(operand) + ", " +
         std::to_string(offset) + "; mov.b64 " + name.str() + ", {low, " +
         std::to_string(descriptor.high()) + "}; ";
}

/// Start address / 16 with a descriptor's low word. The address is below 2^18.
template <typename AnyDescriptor>
Value descriptorStart(PtxBuilder &p, Value address,
                      const AnyDescriptor &descriptor) {
  return p.add(p.divide(address, 16), descriptor.low());
}

/// The steps of a dot; of one that is `within` operand `end`, as few as that
/// needs. Each number of steps is a chain of its own behind a branch: of one
/// chain with steps left out the assembler makes several groups, and waits for
/// all of them.
std::string chainText(ArrayRef<std::string> steps, int64_t stepColumns,
                      std::optional<int64_t> end) {
  auto chain = [&](size_t count) {
    return kFence + llvm::join(steps.take_front(count), "") + kCommit;
  };
  if (!end)
    return chain(steps.size());
  auto perPiece = static_cast<size_t>(kPieceColumns / stepColumns);
  size_t last = (steps.size() - 1) / perPiece;
  std::string branches, chains;
  for (size_t i = last; i > 0; --i) {
    std::string name = "longer" + std::to_string(i);
    branches += "setp.gt.s32 more, $" + std::to_string(*end) + ", " +
                std::to_string(static_cast<int64_t>(i) * kPieceColumns) +
                "; @more bra.uni " + name + "; ";
    chains = "bra.uni issued; " + name + ": " +
             chain(std::min((i + 1) * perPiece, steps.size())) + chains;
  }
  return branches + chain(std::min(perPiece, steps.size())) + chains +
         "issued: ";
}

StringRef elementName(Type element) {
  return isa<Float8E4M3FNType>(element) ? "e4m3"
         : element.isBF16()             ? "bf16"
                                        : "f16";
}

/// Numbers of an asynchronous dot's operands, of which a may have several.
struct DotPlaces {
  int64_t results = 0, a = 0, b = 0;
};

/// A dot's wgmma instructions; `a` where that lies in shared memory.
SmallVector<std::string> stepTexts(tile::DotAsyncOp op, const SharedMatrix &b,
                                   const std::optional<LeftSlot> &a,
                                   DotPlaces place) {
  Descriptor bDescriptor(b, op.getTransposed());
  auto type = op.getType().getTensor();
  bool isFloat = type.getElementType().isF32();
  std::string name = elementName(op.getB().getType().getElementType()).str();
  int64_t stepColumns = kStepBytes / b.elementBytes;
  int64_t steps =
      llvm::divideCeil(op.getTransposed() ? b.columns : b.rows, stepColumns);
  std::string kind = std::to_string(type.getDimSize(1)) + "k" +
                     std::to_string(stepColumns) +
                     (isFloat ? ".f32." : ".f16.") + name + "." + name + " ";
  SmallVector<std::string> texts;
  for (int64_t step = 0; step < steps; ++step) {
    bool adds = op.getAccumulator() || step > 0;
    std::string &text = texts.emplace_back();
    text += std::string("setp.ne.b32 add, ") + (adds ? "1" : "0") + ", 0; ";
    std::string left = "left", majors = op.getTransposed() ? ", 0" : ", 1";
    if (!a) {
      left = operandList(place.a + 4 * step, 4);
    } else {
      text += descriptorText("left", place.a, *a, a->offset(step));
      majors = a->major() + majors;
    }
    if (b.elementBytes == 1) // along k alone
      majors.clear();
    text +=
        descriptorText("right", place.b, bDescriptor, bDescriptor.offset(step));
    text += "wgmma.mma_async.sync.aligned.m64n" + kind +
            operandList(0, place.results) + ", " + left + ", right, add, 1, 1" +
            majors + "; ";
  }
  return texts;
}

} // namespace

/// What is known where the op is lowered alone.
static LogicalResult verifyLowered(tile::DotAsyncOp op, const SharedMatrix &b,
                                   int64_t warps) {
  Type element = op.getB().getType().getElementType();
  int64_t rows = op.getType().getTensor().getDimSize(0);
  if (!element.isBF16() && !element.isF16() && b.elementBytes != 1)
    return op.emitOpError() << "expects bf16, f16 or f8E4M3FN, got " << element;
  if (b.isCores() && !op.getTransposed())
    return op.emitOpError()
           << "expects b transposed where its panels are of 16 bytes";
  if (rows * 4 != warps * kWarpgroupRows)
    return op.emitOpError() << "expects 64 rows a warpgroup, got " << rows
                            << " rows for " << warps << " warps";
  return success();
}

LogicalResult NvvmEmitter::emit(tile::DotAsyncOp op) {
  auto type = op.getType().getTensor();
  SharedMatrix b(op.getB().getType());
  bool inRegisters = isTile(op.getA());
  int64_t inner = op.getTransposed() ? b.columns : b.rows;
  if (failed(verifyLowered(op, b, role_.warps)))
    return failure();

  // Operands: results (and, tied to them, the accumulator), a, b.
  int64_t count = registerCount(type, Held::Matrix);
  SmallVector<Value> operands;
  std::string constraints;
  Type sum = registerType(type);
  for (int64_t i = 0; i < count; ++i)
    constraints += sum.isF32() ? "=f," : "=r,";
  if (op.getAccumulator()) {
    FailureOr<Registers> accumulator =
        registersOf(op.getAccumulator(), Held::Matrix);
    if (failed(accumulator))
      return failure();
    operands = *accumulator;
    for (int64_t i = 0; i < count; ++i)
      constraints += std::to_string(i) + ",";
  }
  int64_t firstOfA = count + static_cast<int64_t>(operands.size());
  Descriptor bDescriptor(b, op.getTransposed());
  std::optional<LeftSlot> a;
  if (inRegisters) {
    FailureOr<Registers> weights = registersOf(op.getA());
    if (failed(weights))
      return failure();
    llvm::append_range(operands, *weights);
    for (size_t i = 0; i < weights->size(); ++i)
      constraints += "r,";
  } else {
    a.emplace(op);
    Value address = p_.add(slots_[op.getA()].address,
                           p_.mul(role_.warpgroup, a->warpgroupBytes()));
    operands.push_back(descriptorStart(p_, address, *a));
    constraints += "r,";
  }
  int64_t bOperand = count + static_cast<int64_t>(operands.size());
  operands.push_back(
      descriptorStart(p_, slots_[op.getB()].address, bDescriptor));
  std::optional<int64_t> endOperand;
  APInt end;
  bool isWhole = op.getWithin() &&
                 matchPattern(op.getWithin(), m_ConstantInt(&end)) &&
                 end.sge(inner);
  if (op.getWithin() && !isWhole) {
    endOperand = bOperand + 1;
    operands.push_back(scalar(op.getWithin()));
    constraints += "r,";
  }
  constraints += "r,~{memory}";

  SmallVector<std::string> steps =
      stepTexts(op, b, a, {count, firstOfA, bOperand});
  std::string text = "{ .reg .pred add, more; .reg .b32 low; .reg .b64 left, "
                     "right; " +
                     chainText(steps, kStepBytes / b.elementBytes, endOperand) +
                     "}";
  tiles_[op.getResult()] = {
      Held::Matrix,
      p_.ptx(text, constraints, operands, SmallVector<Type>(count, sum))};
  return success();
}

/// Keeps the wait that follows behind the computation of `value`. The assembler
/// moves a wait ahead of arithmetic that needs nothing from it, but not ahead
/// of a store: here one that depends on each register and never happens, since
/// no instruction makes this NaN, nor a pair of this NaN and another number
/// (and if it did, it would write a spare word).
LogicalResult NvvmEmitter::emitBefore(Value value) {
  FailureOr<Registers> registers = registersOf(value);
  if (failed(registers))
    return failure();
  constexpr size_t kFew = 8;
  if (registers->size() > kFew)
    return emitBeforeMany(*registers);
  constexpr const char *kNever = "0x7fedbeef";
  bool isFloat =
      cast<RankedTensorType>(value.getType()).getElementType().isF32();
  std::string text = "{ .reg .pred never; setp.eq.b32 never, $0, " +
                     std::string(kNever) + "; ";
  std::string constraints = isFloat ? "f" : "r";
  for (size_t i = 1; i < registers->size(); ++i) {
    text += "setp.eq.or.b32 never, $" + std::to_string(i) + ", " + kNever +
            ", never; ";
    constraints += isFloat ? ",f" : ",r";
  }
  text += "@never st.shared.b32 [$" + std::to_string(registers->size()) +
          "], $0; }";
  SmallVector<Value> operands = *registers;
  operands.push_back(p_.add(shared_, plan_.spareWord()));
  p_.ptx(text, constraints + ",r,~{memory}", operands);
  return success();
}

/// The same for a whole tile: half an instruction a register instead of one,
/// in four chains. What the bits of all of them together are is not known, so
/// that the store may happen; its word is spare.
LogicalResult NvvmEmitter::emitBeforeMany(ArrayRef<Value> registers) {
  constexpr size_t kChains = 4;
  SmallVector<Value> words;
  std::string constraints;
  for (Value value : registers) {
    words.push_back(
        value.getType().isF32()
            ? Value(LLVM::BitcastOp::create(b_, p_.location(), p_.i32(), value))
            : value);
    constraints += "r,";
  }
  auto operand = [](size_t i) { return "$" + std::to_string(i); };
  std::string text = "{ .reg .pred never; .reg .b32 c0, c1, c2, c3; ";
  for (size_t chain = 0; chain < kChains; ++chain)
    text += "mov.b32 c" + std::to_string(chain) + ", " + operand(chain) + "; ";
  for (size_t i = kChains; i < words.size(); i += 2) {
    std::string c = "c" + std::to_string(i / 2 % kChains);
    size_t next = std::min(i + 1, words.size() - 1);
    text += "lop3.b32 " + c + ", " + operand(i) + ", " + operand(next) + ", " +
            c + ", 0xfe; ";
  }
  text += "lop3.b32 c0, c0, c1, c2, 0xfe; or.b32 c0, c0, c3; "
          "setp.eq.b32 never, c0, 0x7fedbeef; @never st.shared.b32 [" +
          operand(words.size()) + "], c0; }";
  words.push_back(p_.add(shared_, plan_.spareWord()));
  p_.ptx(text, constraints + "r,~{memory}", words);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::DotWaitOp op) {
  SmallVector<Value> operands;
  SmallVector<size_t> counts;
  for (Value operand : op.getValues()) {
    FailureOr<Registers> registers = registersOf(
        operand, isTile(operand)
                     ? heldBy(cast<RankedTensorType>(operand.getType()))
                     : Held::Matrix);
    if (failed(registers))
      return failure();
    llvm::append_range(operands, *registers);
    counts.push_back(registers->size());
  }
  std::string constraints, tied;
  SmallVector<Type> types;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    types.push_back(operand.getType());
    constraints += operand.getType().isF32() ? "=f," : "=r,";
    tied += std::to_string(i) + ",";
  }
  for (Value value : op.getAfter())
    if (failed(emitBefore(value)))
      return failure();
  std::string text =
      "wgmma.wait_group.sync.aligned " + std::to_string(op.getPending()) + ";";
  SmallVector<Value> results =
      p_.ptx(text, constraints + tied + "~{memory}", operands, types);
  ArrayRef<Value> rest = results;
  for (auto [result, count] : llvm::zip(op.getResults(), counts)) {
    hold(result, llvm::to_vector(rest.take_front(count)));
    rest = rest.drop_front(count);
  }
  return success();
}
