// SPDX-License-Identifier: Apache-2.0
//
// Block lists on the host; rows of blocks are spread over the workers.
#include "runtime/api/BlockListOps.h"

#include "runtime/api/Engine.h"
#include "runtime/backend/cpu/WorkerPool.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <vector>

namespace spargejit {

double BlockLists::density() const {
  const TensorView &rows = counts.view();
  double pairs =
      static_cast<double>(rows.elementCount()) *
      static_cast<double>(maskBlockKv > 0 ? plan::blockCount(kvLen, maskBlockKv)
                                          : 0);
  if (counts.empty() || pairs == 0)
    return 0;
  const auto *begin = counts.data<std::int32_t>();
  std::vector<std::int32_t> copies;
  if (rows.device.kind != DeviceKind::Cpu) {
    copies.resize(static_cast<std::size_t>(rows.elementCount()));
    if (!api::readOnProcess(rows, copies.data()).ok())
      return std::numeric_limits<double>::quiet_NaN();
    begin = copies.data();
  }
  return static_cast<double>(std::accumulate(begin, begin + rows.elementCount(),
                                             std::int64_t{0})) /
         pairs;
}

} // namespace spargejit

namespace spargejit::api {

namespace {

/// Below this many list entries a helper's wake-up costs more than the work.
constexpr std::int64_t kInlineEntries = 1 << 15;

template <typename Body>
void forEachRow(std::int64_t rows, std::int64_t entriesPerRow, int threads,
                Body &&body) {
  auto range = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      body(row);
  };
  if (rows * entriesPerRow < kInlineEntries)
    range(0, rows);
  else
    cpu::WorkerPool::process().parallelFor(rows, threads, range);
}

/// Position of row number `row` of the lists.
struct RowPosition {
  std::int64_t batch, head, block;
};

RowPosition positionOf(std::int64_t row, const TensorView &counts) {
  return {row / (counts.sizes[1] * counts.sizes[2]),
          row / counts.sizes[2] % counts.sizes[1], row % counts.sizes[2]};
}

/// What is wrong with a row: nothing (slot -2), its count (slot -1), or a slot.
struct RowFault {
  static constexpr std::int64_t kNone = -2;
  static constexpr std::int64_t kCount = -1;
  std::int64_t slot = kNone;
  bool repeated = false;
};

RowFault findFault(const std::int32_t *entries, std::int64_t count,
                   std::int64_t capacity, std::int64_t kvBlocks,
                   std::vector<bool> &seen) {
  if (count < 0 || count > capacity)
    return {RowFault::kCount};
  seen.assign(static_cast<std::size_t>(kvBlocks), false);
  for (std::int64_t slot = 0; slot < count; ++slot) {
    std::int32_t block = entries[slot];
    if (block < 0 || block >= kvBlocks)
      return {slot, false};
    if (seen[static_cast<std::size_t>(block)])
      return {slot, true};
    seen[static_cast<std::size_t>(block)] = true;
  }
  return {};
}

Status describeFault(const BlockLists &lists, std::int64_t row,
                     std::int64_t kvBlocks) {
  const std::int64_t capacity = lists.indices.view().sizes[3];
  const std::int32_t count = lists.counts.data<std::int32_t>()[row];
  const auto *entries = lists.indices.data<std::int32_t>() + row * capacity;
  std::vector<bool> seen;
  RowFault fault = findFault(entries, count, capacity, kvBlocks, seen);
  RowPosition at = positionOf(row, lists.counts.view());
  std::string place =
      fmt::format("batch {}, head {}, row {}", at.batch, at.head, at.block);
  std::string message;
  if (fault.slot == RowFault::kCount)
    message = fmt::format("config.lists.counts, {}: expected 0 to {} (the "
                          "capacity of indices), got {}",
                          place, capacity, count);
  else
    message = fmt::format(
        "config.lists.indices, {}, slot {}: expected a key block from 0 to {}"
        "{}, got {}",
        place, fault.slot, kvBlocks - 1,
        fault.repeated ? " that is not in the row yet" : "",
        entries[fault.slot]);
  return Status(ErrorCode::InvalidArgument, message);
}

} // namespace

Result<BlockLists> allocateLists(const plan::AttentionProblem &problem,
                                 const Allocate &allocate) {
  const std::int64_t qBlocks = problem.qBlocks();
  auto indices = allocate(DataType::Int32, {problem.batch, problem.qHeads,
                                            qBlocks, problem.kvBlocks()});
  if (!indices.ok())
    return Status(indices.status()).withContext("block lists");
  auto counts =
      allocate(DataType::Int32, {problem.batch, problem.qHeads, qBlocks});
  if (!counts.ok())
    return Status(counts.status()).withContext("block lists");
  return BlockLists{*indices,
                    *counts,
                    problem.kind.maskBlockQ,
                    problem.kind.maskBlockKv,
                    problem.qLen,
                    problem.kvLen};
}

void listsFromMask(const TensorView &mask, const TensorView &indices,
                   const TensorView &counts, int threads) {
  const std::int64_t kvBlocks = mask.sizes[3];
  auto *allIndices = static_cast<std::int32_t *>(indices.data);
  auto *allCounts = static_cast<std::int32_t *>(counts.data);
  forEachRow(counts.elementCount(), kvBlocks, threads, [&](std::int64_t row) {
    RowPosition at = positionOf(row, counts);
    const auto *flags = static_cast<const std::uint8_t *>(mask.data) +
                        at.batch * mask.strides[0] + at.head * mask.strides[1] +
                        at.block * mask.strides[2];
    std::int32_t *entries = allIndices + row * kvBlocks;
    std::int32_t count = 0;
    for (std::int64_t j = 0; j < kvBlocks; ++j)
      if (flags[j * mask.strides[3]])
        entries[count++] = static_cast<std::int32_t>(j);
    allCounts[row] = count;
    std::fill(entries + count, entries + kvBlocks, -1);
  });
}

void listAllBlocks(const TensorView &indices, const TensorView &counts,
                   int threads) {
  const std::int64_t kvBlocks = indices.sizes[3];
  auto *allIndices = static_cast<std::int32_t *>(indices.data);
  auto *allCounts = static_cast<std::int32_t *>(counts.data);
  forEachRow(counts.elementCount(), kvBlocks, threads, [&](std::int64_t row) {
    std::int32_t *entries = allIndices + row * kvBlocks;
    std::iota(entries, entries + kvBlocks, 0);
    allCounts[row] = static_cast<std::int32_t>(kvBlocks);
  });
}

Status validateEntries(const BlockLists &lists,
                       const plan::AttentionProblem &problem, int threads) {
  const std::int64_t rows = lists.counts.view().elementCount();
  const std::int64_t capacity = lists.indices.view().sizes[3];
  const std::int64_t kvBlocks = problem.kvBlocks();
  const auto *allCounts = lists.counts.data<std::int32_t>();
  const auto *allEntries = lists.indices.data<std::int32_t>();
  // The first row at fault, whichever thread finds it.
  std::atomic<std::int64_t> first{rows};
  forEachRow(rows, capacity + kvBlocks / 64, threads, [&](std::int64_t row) {
    static thread_local std::vector<bool> seen;
    if (findFault(allEntries + row * capacity, allCounts[row], capacity,
                  kvBlocks, seen)
            .slot == RowFault::kNone)
      return;
    std::int64_t known = first.load(std::memory_order_relaxed);
    while (row < known && !first.compare_exchange_weak(
                              known, row, std::memory_order_relaxed)) {
    }
  });
  if (first.load(std::memory_order_relaxed) == rows)
    return Status();
  return describeFault(lists, first.load(std::memory_order_relaxed), kvBlocks);
}

} // namespace spargejit::api
