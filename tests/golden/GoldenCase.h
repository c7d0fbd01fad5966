// SPDX-License-Identifier: Apache-2.0
//
// Frozen cases: a seed, a shape and a method, with what the float64 reference
// gave when the case was written. They show that nothing moved unnoticed: not
// the random numbers, not the reference, not the product.
#pragma once

#include "spargejit/attention.h"
#include "tests/reference/BlockMask.h"
#include "tests/reference/HostArray.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace spargejit::golden {

/// What is asked for.
struct GoldenCase {
  std::string name;
  std::uint64_t seed = 0;
  DataType dtype = DataType::Float32;
  std::int64_t batch = 1;
  std::int64_t qHeads = 1;
  std::int64_t kvHeads = 1;
  std::int64_t qLen = 1;
  std::int64_t kvLen = 1;
  std::int64_t headDim = 64;
  std::int64_t maskBlockQ = 128;
  std::int64_t maskBlockKv = 64;
  bool causal = false;
  std::string method;
  double topK = 0;
  double topP = 0;
};

/// What came of it.
struct GoldenValues {
  std::string inputDigest; ///< of the bits of q, k, v
  std::string maskDigest;  ///< of the mask's bytes, row-major
  std::int64_t selected = 0;
  double norm = 0; ///< L2 norm of o
  /// Elements of o, and of lse, at places spread over the whole.
  std::vector<double> o;
  std::vector<double> lse;
};

/// q, k, v of a case.
struct GoldenInputs {
  explicit GoldenInputs(const GoldenCase &which);
  reference::HostArray q;
  reference::HostArray k;
  reference::HostArray v;
};

/// FNV-1a, 64 bits, in hexadecimal.
std::string digestOf(const void *bytes, std::size_t size);

/// The values that belong to a result: o [batch, qHeads, qLen, headDim] and lse
/// [batch, qHeads, qLen] row-major, and the mask used.
GoldenValues summarise(const GoldenInputs &inputs,
                       const reference::BlockMask &mask,
                       const std::vector<double> &o,
                       const std::vector<double> &lse);

/// Selects and attends in float64. Throws std::runtime_error when float32 could
/// rightly select otherwise: such a case is not worth freezing.
GoldenValues computeByReference(const GoldenCase &which,
                                const GoldenInputs &inputs);

void from_json(const nlohmann::json &json, GoldenCase &which);
void from_json(const nlohmann::json &json, GoldenValues &values);
void to_json(nlohmann::json &json, const GoldenValues &values);

/// The file of frozen cases: an array of {"case": …, "expected": …}.
nlohmann::json readCases(const std::string &path);

} // namespace spargejit::golden
