// SPDX-License-Identifier: Apache-2.0
//
// FmaLoop.h's loops: bench/CMakeLists.txt compiles this file once for each
// instruction set. It includes no other header: an inline function compiled
// here could be the copy that the linker keeps for the whole program, which
// would then run on machines that lack the instructions.
#include "bench/cpu/peak/FmaLoop.h"

namespace spargejit::bench {

namespace {

// Two pipes of latency 4 need 8 multiply-adds in flight, four need 16; more
// accumulators than registers would be stored and loaded.
#if defined(SPARGEJIT_FMA_AVX512)
constexpr int kVectorBytes = 64;
constexpr int kAccumulators = 24; // of 32 registers
#elif defined(SPARGEJIT_FMA_AVX2)
constexpr int kVectorBytes = 32;
constexpr int kAccumulators = 12; // of 16 registers
#elif defined(__x86_64__)
constexpr int kVectorBytes = 16;
constexpr int kAccumulators = 12; // of 16 registers
#else
constexpr int kVectorBytes = 16;
constexpr int kAccumulators = 24; // of 32 registers
#endif
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(float));
using Lanes [[gnu::vector_size(kVectorBytes)]] = float;

static_assert(kAccumulators * kLanes <= kMostFmasPerIteration);

bool isSupported() {
#if defined(SPARGEJIT_FMA_AVX512)
  return __builtin_cpu_supports("avx512f");
#elif defined(SPARGEJIT_FMA_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

void run(long long iterations, float start, float factor, float addend,
         float *results) {
  const Lanes factors = Lanes{} + factor;
  const Lanes addends = Lanes{} + addend;
  Lanes sums[kAccumulators];
  for (Lanes &sum : sums)
    sum = Lanes{} + start;
  for (long long i = 0; i < iterations; ++i) {
    // Unrolled, so that all accumulators are registers; each has a product of
    // its own, so that none can be shared. -ffp-contract=fast makes each line
    // one instruction.
#pragma GCC unroll 64
    for (int j = 0; j < kAccumulators; ++j)
      sums[j] = sums[j] * factors + addends;
  }
#pragma GCC unroll 64
  for (int j = 0; j < kAccumulators; ++j)
    for (int lane = 0; lane < kLanes; ++lane)
      results[j * kLanes + lane] = sums[j][lane];
}

} // namespace

#if defined(SPARGEJIT_FMA_AVX512)
extern const FmaLoop kFmaLoopAvx512{"avx512", isSupported,
                                    kAccumulators * kLanes, run};
#elif defined(SPARGEJIT_FMA_AVX2)
extern const FmaLoop kFmaLoopAvx2{"avx2", isSupported, kAccumulators * kLanes,
                                  run};
#else
extern const FmaLoop kFmaLoopBaseline{"baseline", isSupported,
                                      kAccumulators * kLanes, run};
#endif

} // namespace spargejit::bench
