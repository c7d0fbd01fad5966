// SPDX-License-Identifier: Apache-2.0
//
// The nouns that compiler, cache and back ends exchange: KernelSpec in,
// KernelArtifact out. No MLIR, no device.
#pragma once

#include "spargejit/tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace spargejit {

/// A compile-time parameter of a kernel: a size or flag, or a data type.
using ParameterValue = std::variant<std::int64_t, DataType>;

/// A GPU target's feature that makes kernels which compute-sanitizer's
/// racecheck can follow, a few per cent slower.
inline constexpr const char *kRacecheckFeature = "racecheck";

/// What a kernel is compiled for.
struct Target {
  /// "host", or a GPU architecture with its suffix ("sm_90a").
  std::string architecture = "host";
  /// For "host": the CPU's name and features as LLVM spells them; empty means
  /// the machine that compiles. A GPU's only feature is kRacecheckFeature.
  std::string cpu;
  std::string features;

  bool isHost() const { return architecture == "host"; }
};

/// A problem reduced to what changes code. Two problems with equal specs share
/// a kernel; sequence lengths, k and p are not in it.
struct KernelSpec {
  /// Name of the tile.kernel, for example "attention_fwd".
  std::string kernel;
  /// Every symbolic parameter of the kernel text with its value, for example
  /// {"head_dim", 128}, {"elem", DataType::BFloat16}.
  std::map<std::string, ParameterValue> parameters;
  Target target;
};

/// One argument of a compiled kernel, in order.
///
/// Every argument lies in an array of int64 slots:
///   Tensor of rank r: data pointer, r sizes, r strides (elements): 1 + 2r.
///     An absent optional tensor has pointer 0.
///   Index:            the value, 1 slot.
///   Float:            the bits of a float32 in the low half, 1 slot.
struct KernelArgument {
  enum class Kind : std::uint8_t { Tensor, Index, Float };
  std::string name;
  Kind kind = Kind::Tensor;
  int rank = 0;
  int firstSlot = 0;

  int slotCount() const { return kind == Kind::Tensor ? 1 + 2 * rank : 1; }
};

/// Scratch memory, of a worker or of a CTA's shared memory, whose size is only
/// known when the kernel runs:
/// alignUp(bytesPerColumn · alignUp(args[columnsSlot], columnsMultiple), 64).
struct DynamicScratch {
  std::int64_t bytesPerColumn = 0;
  std::int64_t columnsMultiple = 1;
  int columnsSlot = 0;
  /// GPU: where there is less than all of it, the kernel makes do with one part
  /// out of so many, and reads %dynamic_smem_size to learn of it.
  std::int64_t shares = 1;
};

/// A TMA descriptor that the host builds from a tensor argument: rank and sizes
/// of the tensor, a box of boxRows x boxColumns in its last two dimensions and
/// 1 in the others; reading beyond the end gives zeros.
struct TensorMap {
  /// Number of the Tensor argument.
  int argument = 0;
  /// Type of its elements: BFloat16, Float16, Float32, or Float8E4M3 and Bool,
  /// which are copied as bytes.
  DataType elementType = DataType::BFloat16;
  std::int64_t boxRows = 0;
  /// Elements; one swizzle span at most.
  std::int64_t boxColumns = 0;
  /// 0 (none), 32, 64 or 128 bytes.
  int swizzleBytes = 0;
};

/// int32 counters in memory of a GPU, 0 between launches on its stream. The
/// first is the kernel argument "tickets", with which CTAs share a launch's
/// work out, and the second "key_tickets", for a launch that runs beside one
/// with tickets; those after kFirstProgressCounter are "progress" and, behind
/// half of them, "selected": how far a launch is, for the next.
inline constexpr std::int64_t kTicketCounters = 2;
inline constexpr std::int64_t kFirstProgressCounter = 16;
inline constexpr std::int64_t kProgressCounters = 1024;
inline constexpr std::int64_t kCounters =
    kFirstProgressCounter + kProgressCounters;

/// How to run a compiled kernel.
struct LaunchInfo {
  std::string entryName;
  std::vector<KernelArgument> arguments;
  /// Number of programs: sizes[0] · sizes[1] · ceil(sizes[2] / gridTile) of the
  /// Tensor argument number `gridArgument` (rank >= 3).
  int gridArgument = 0;
  std::int64_t gridTile = 1;
  /// Host: bytes of scratch one worker needs: the static part plus every one
  /// of dynamicScratch.
  std::int64_t staticScratchBytes = 0;
  std::vector<DynamicScratch> dynamicScratch;
  /// GPU: threads of a CTA and its dynamic shared memory, to which every one of
  /// dynamicScratch adds. The kernel's parameters are the argument slots as one
  /// struct by value, then one
  /// 128-byte tensor map for each of tensorMaps, by value.
  int threads = 0;
  std::int64_t sharedBytes = 0;
  /// GPU: launched with as many CTAs as run at once, never more than programs;
  /// otherwise with one a program.
  bool persistent = false;
  /// GPU: of a persistent kernel, at most so many CTAs on a multiprocessor, so
  /// that the next launch finds room beside them; 0 for as many as fit.
  int ctasPerMultiprocessor = 0;
  /// GPU: CTAs that run one program together, as a cluster.
  int members = 1;
  /// GPU: waits by itself for the end of the launch before it, where it must,
  /// and so may be launched before that.
  bool startsEarly = false;
  /// GPU: level of the assembler's optimiser, 0 to 3, for PTX.
  int assemblerLevel = 3;
  std::vector<TensorMap> tensorMaps;

  int slotCount() const {
    return arguments.empty()
               ? 0
               : arguments.back().firstSlot + arguments.back().slotCount();
  }
};

/// Entry point of a kernel compiled for the host. Runs program `program` of
/// the grid; batch is slowest and the tile fastest. `scratch` is 64-byte
/// aligned and belongs to the calling worker alone while the call lasts.
using HostKernelFunction = void (*)(const std::int64_t *args,
                                    std::int64_t program, void *scratch);

/// The product of a compilation; belongs to a Target, not to a device.
struct KernelArtifact {
  Target target;
  LaunchInfo launch;
  /// Host: a relocatable ELF object. GPU: PTX text, or of a kernel with stages
  /// in CUDA C++ a cubin.
  std::string code;
};

} // namespace spargejit
