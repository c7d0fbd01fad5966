// SPDX-License-Identifier: Apache-2.0
//
// Lists of key blocks drawn at random.
#include "runtime/api/tune/RandomLists.h"

#include "runtime/plan/AttentionProblem.h"

#include <random>

namespace spargejit::api {

Result<BlockLists> randomLists(const autotune::ProblemShape &shape,
                               std::uint64_t seed) {
  const std::int64_t qBlocks = plan::blockCount(shape.qLen, shape.maskBlockQ);
  const std::int64_t kvBlocks =
      plan::blockCount(shape.kvLen, shape.maskBlockKv);
  const std::int64_t count = autotune::listedBlocks(shape);
  auto indices = Tensor::allocate(DataType::Int32,
                                  {shape.batch, shape.qHeads, qBlocks, count});
  auto counts =
      Tensor::allocate(DataType::Int32, {shape.batch, shape.qHeads, qBlocks});
  if (!indices.ok() || !counts.ok())
    return indices.ok() ? counts.status() : indices.status();
  std::mt19937_64 random(seed);
  std::int32_t *slot = indices->data<std::int32_t>();
  for (std::int64_t row = 0; row < counts->view().elementCount(); ++row) {
    counts->data<std::int32_t>()[row] = static_cast<std::int32_t>(count);
    // Each block with the probability that leaves `wanted` of the rest.
    std::int64_t wanted = count;
    for (std::int64_t block = 0; wanted > 0; ++block)
      if (static_cast<std::int64_t>(
              random() % static_cast<std::uint64_t>(kvBlocks - block)) <
          wanted) {
        *slot++ = static_cast<std::int32_t>(block);
        --wanted;
      }
  }
  BlockLists lists;
  lists.indices = *std::move(indices);
  lists.counts = *std::move(counts);
  lists.maskBlockQ = shape.maskBlockQ;
  lists.maskBlockKv = shape.maskBlockKv;
  lists.qLen = shape.qLen;
  lists.kvLen = shape.kvLen;
  return lists;
}

Result<BlockLists> listsOn(Engine &engine, const BlockLists &lists,
                           Device device) {
  if (device.kind == DeviceKind::Cpu)
    return lists;
  BlockLists there = lists;
  for (Tensor *tensor : {&there.indices, &there.counts}) {
    auto copy = engine.copy(tensor->view(), device);
    if (!copy.ok())
      return copy.status();
    *tensor = *std::move(copy);
  }
  return there;
}

} // namespace spargejit::api
