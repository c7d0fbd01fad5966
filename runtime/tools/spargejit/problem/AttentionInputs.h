// SPDX-License-Identifier: Apache-2.0
//
// q, k and v for `run` and `check`: from files or made up, in one dtype, seen
// as [batch, heads, length, headDim] whatever order their memory has.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spargejit::problem {

/// The order of dimensions in memory: [batch, heads, length, dim] or
/// [batch, length, heads, dim]. Rank 3 is without batch, rank 2 without heads.
enum class Layout : std::uint8_t { Bhnd, Bnhd };

/// Where the inputs come from; exactly one of the three is set.
struct InputSource {
  std::string safetensors;
  std::string npyQ, npyK, npyV;
  /// "B,H,N,D"
  std::string synthetic;
  std::uint64_t seed = 1;
};

struct AttentionInputs {
  /// For people: file names, or the synthetic shape and seed.
  std::string description;
  /// The dtype that q had before conversion.
  DataType originalDtype = DataType::Float32;
  Layout layout = Layout::Bhnd;
  /// Dense tensors with the dimensions the files have.
  Tensor q, k, v;
  /// The same memory as [batch, heads, length, headDim].
  TensorView qView, kView, vView;
};

/// `tensor` (rank 2, 3 or 4, in `layout`) as [batch, heads, length, headDim].
/// InvalidArgument for another rank.
Result<TensorView> viewAsBhnd(const Tensor &tensor, Layout layout);

/// The same inputs on `device`; they share memory where they are there already.
Result<AttentionInputs> inputsOn(const AttentionInputs &inputs, Device device);

/// Four positive numbers "B,H,N,D"; InvalidArgument otherwise.
Result<std::vector<std::int64_t>> parseSyntheticShape(const std::string &text);

/// Reads or makes q, k and v and rounds them to `dtype` (when not set: q's own
/// in the file; float32 for synthetic inputs). Errors name the file and tensor.
Result<AttentionInputs> loadInputs(const InputSource &source, Layout layout,
                                   std::optional<DataType> dtype, int threads);

/// A dense bool mask [batch, heads, qBlocks, kvBlocks] from an .npy file of
/// rank 2 (all batches and heads alike), 3 (all batches alike) or 4; what is
/// alike, or has size 1, is broadcast to `batch` and `heads` by strides of 0.
/// `storage` receives the memory behind the view.
Result<TensorView> loadBlockMask(const std::string &path, std::int64_t batch,
                                 std::int64_t heads, Tensor &storage);

} // namespace spargejit::problem
