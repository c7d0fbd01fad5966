// SPDX-License-Identifier: Apache-2.0
//
// One attention problem on the host: inputs, block lists, and the float64
// reference of single rows. No code shared with the product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace spargejit::gpu_trial {

/// "key=value" words of a line of a case file.
struct Settings {
  std::map<std::string, std::string> words;
  static Settings parse(const std::string &line);
  std::string text(const std::string &key, const std::string &otherwise) const;
  std::int64_t number(const std::string &key, std::int64_t otherwise) const;
  double real(const std::string &key, double otherwise) const;
};

/// A 16-bit tensor [batch, heads, length, dim] in a buffer with guards of NaN
/// before, after, and between the rows of a strided layout.
struct HostTensor {
  std::int64_t batch = 0, heads = 0, length = 0, dim = 0;
  std::int64_t strideBatch = 0, strideHead = 0, strideRow = 0; // elements
  std::int64_t first = 0; // element number of [0, 0, 0, 0] in the buffer
  std::vector<std::uint16_t> buffer;

  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t row) const {
    return first + b * strideBatch + h * strideHead + row * strideRow;
  }
};

/// Filled with guards. `layout`: bhld, or blhd with an unused head between
/// rows.
HostTensor makeTensor(std::int64_t batch, std::int64_t heads,
                      std::int64_t length, std::int64_t dim,
                      const std::string &layout);
/// Normal numbers of mean `mean`.
void randomise(HostTensor &tensor, std::uint64_t seed, float deviation,
               float mean, bool isBfloat16);

/// Of a tensor whose buffer was filled with 0xFF before a kernel wrote to it.
struct Written {
  std::int64_t unwritten = 0; ///< elements that still hold the poison
  std::int64_t outside = 0;   ///< poison beside them that was written over
};
Written writtenOf(const HostTensor &tensor,
                  const std::vector<std::uint16_t> &got);

struct Trial {
  bool isBfloat16 = true, causal = false, hasLists = true;
  std::int64_t maskBlockQ = 128, maskBlockKv = 64;
  float softmaxScale = 1.0f;
  HostTensor q, k, v, o;
  /// [batch, qHeads, qBlocks, capacity] and [batch, qHeads, qBlocks].
  std::int64_t capacity = 0, qBlocks = 0;
  std::vector<std::int32_t> indices, counts;

  std::int64_t kvBlocks() const {
    return (k.length + maskBlockKv - 1) / maskBlockKv;
  }
  /// Visited pairs of query row and key, over all heads (without causality).
  double visitedPairs() const;
};

/// Settings: batch q_heads kv_heads q_len kv_len, layout=bhld|blhd, lists=none|
/// random|shuffled|ragged|unequal|empty|garbage|all, density, spread, scale
/// (multiplies q), seed. `parameters`: those of the kernel variant.
Trial makeTrial(const Settings &settings, const Settings &parameters,
                std::uint64_t seed);

/// Keys that a row sees, in its list's order.
std::vector<std::int64_t> visibleKeys(const Trial &trial, std::int64_t batch,
                                      std::int64_t head, std::int64_t row);

/// o and lse of one row in float64 from the rounded inputs.
struct ReferenceRow {
  std::vector<double> o;
  double lse = 0;
};
ReferenceRow referenceRow(const Trial &trial, std::int64_t batch,
                          std::int64_t head, std::int64_t row);

/// Runs body(i) for i < count on all cores.
template <typename Body>
void forAll(std::int64_t count, Body body) {
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < workers; ++worker)
    threads.emplace_back([=] {
      for (std::int64_t i = worker; i < count; i += workers)
        body(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

float toFloat(std::uint16_t bits, bool isBfloat16);
std::uint16_t fromFloat(float value, bool isBfloat16);

} // namespace spargejit::gpu_trial
