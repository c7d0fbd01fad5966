// SPDX-License-Identifier: Apache-2.0
//
// Running and checking one selection.
#include "tests/numerics/harness/SelectionTrial.h"

#include "tests/numerics/harness/AttentionTrial.h"

#include <cmath>
#include <sstream>

namespace spargejit::numerics {
namespace {

std::string spell(const std::vector<std::int32_t> &blocks) {
  std::ostringstream out;
  out << "[";
  for (std::size_t i = 0; i < blocks.size(); ++i)
    out << (i == 0 ? "" : " ") << blocks[i];
  out << "]";
  return out.str();
}

/// The promises about lists that hold whatever was selected.
testing::AssertionResult hasListForm(const BlockLists &lists, std::int64_t row,
                                     std::int64_t kvBlocks) {
  const std::int64_t capacity = lists.indices.view().sizes[3];
  const std::int32_t *slots =
      lists.indices.data<std::int32_t>() + row * capacity;
  const std::int32_t count = lists.counts.data<std::int32_t>()[row];
  if (count < 0 || count > kvBlocks || count > capacity)
    return testing::AssertionFailure() << "row " << row << " counts " << count;
  for (std::int64_t t = 0; t < capacity; ++t) {
    const bool isRight = t >= count ? slots[t] == -1
                                    : slots[t] > (t == 0 ? -1 : slots[t - 1]) &&
                                          slots[t] < kvBlocks;
    if (!isRight)
      return testing::AssertionFailure()
             << "row " << row << " slot " << t << " of count " << count
             << " holds " << slots[t];
  }
  return testing::AssertionSuccess();
}

/// The case with what the back end implements in place of what it does not.
SelectionCase withinAbilities(const TestBackend &backend, SelectionCase shape) {
  const Abilities abilities = backend.abilities();
  if (!abilities.float32 && shape.dtype == DataType::Float32)
    shape.dtype = DataType::BFloat16;
  return shape;
}

} // namespace

std::string SelectionCase::describe(const SelectionRule &rule) const {
  std::ostringstream out;
  out << rule.method << " top_k " << rule.topK << " top_p " << rule.topP << " "
      << dataTypeName(dtype) << " batch " << batch << " heads " << qHeads << "/"
      << kvHeads << " length " << qLen << "x" << kvLen << " head_dim "
      << headDim << " mask block " << maskBlockQ << "x" << maskBlockKv
      << (causal ? " causal" : "");
  return out.str();
}

SelectionTrial::SelectionTrial(TestBackend &backend, const SelectionCase &c)
    : shape(withinAbilities(backend, c)),
      q(backend, shape.dtype, {c.batch, c.qHeads, c.qLen, c.headDim},
        c.placement),
      k(backend, shape.dtype, {c.batch, c.kvHeads, c.kvLen, c.headDim},
        c.placement),
      backend_(&backend) {}

AttentionConfig SelectionTrial::configOf(const SelectionRule &rule) const {
  AttentionConfig config;
  config.method = rule.method;
  config.topK = rule.topK;
  config.topP = rule.topP;
  config.customSource = rule.customSource;
  config.denseKeys = rule.denseKeys;
  config.denseRows = rule.denseRows;
  config.maskBlockQ = shape.maskBlockQ;
  config.maskBlockKv = shape.maskBlockKv;
  config.causal = shape.causal;
  config.softmaxScale = softmaxScale;
  return config;
}

Result<BlockLists> SelectionTrial::select(const SelectionRule &rule) {
  q.upload();
  k.upload();
  auto lists = selectBlocks(q.view(), k.view(), configOf(rule));
  return lists.ok() ? listsOnHost(*backend_, *lists) : lists;
}

reference::SelectionRules
SelectionTrial::rulesOf(const SelectionRule &rule) const {
  reference::SelectionRules rules;
  if (rule.method != "topp")
    rules.topK = rule.topK;
  if (rule.method == "topp" || rule.method == "spargeattention2" ||
      !rule.customSource.empty()) // whose methods take both
    // The library takes p as a float32.
    rules.topP = static_cast<double>(static_cast<float>(rule.topP));
  rules.keepDiagonal =
      rule.keepDiagonal || rule.method.ends_with("topk_diagonal.mlir");
  rules.keepFirstBlocks = rule.keepFirst;
  for (std::int64_t n = rule.denseKeys.begin; n < rule.denseKeys.end; ++n) {
    if (rules.denseEnd == 0)
      rules.denseFirst = n / shape.maskBlockKv;
    rules.denseEnd = n / shape.maskBlockKv + 1;
  }
  for (std::int64_t n = rule.denseRows.begin; n < rule.denseRows.end; ++n) {
    if (rules.denseRowEnd == 0)
      rules.denseRowFirst = n / shape.maskBlockQ;
    rules.denseRowEnd = n / shape.maskBlockQ + 1;
  }
  rules.causal = shape.causal;
  rules.softmaxScale =
      softmaxScale.value_or(1 / std::sqrt(static_cast<double>(shape.headDim)));
  rules.maskBlockQ = shape.maskBlockQ;
  rules.maskBlockKv = shape.maskBlockKv;
  return rules;
}

std::vector<reference::SelectedRow>
SelectionTrial::expected(const SelectionRule &rule) const {
  return reference::referenceSelection(q.host(), k.host(), rulesOf(rule));
}

testing::AssertionResult SelectionTrial::isRight(const SelectionRule &rule,
                                                 SelectionTally &tally) {
  const Result<BlockLists> lists = select(rule);
  if (auto result = succeeded(lists.status()); !result)
    return result << "\n  " << shape.describe(rule);
  for (const TestTensor *tensor : {&q, &k})
    if (auto result = tensor->isUnchanged(); !result)
      return result;
  if (lists->maskBlockQ != shape.maskBlockQ ||
      lists->maskBlockKv != shape.maskBlockKv || lists->qLen != shape.qLen ||
      lists->kvLen != shape.kvLen)
    return testing::AssertionFailure() << "the lists describe another problem";

  const std::vector<reference::SelectedRow> rows = expected(rule);
  double selected = 0;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto row = static_cast<std::int64_t>(at);
    if (auto result = hasListForm(*lists, row, shape.kvBlocks()); !result)
      return result << "\n  " << shape.describe(rule);
    const std::vector<std::int32_t> list = listOf(*lists, row);
    selected += static_cast<double>(list.size());
    ++tally.rows;
    if (rows[at].isNearTie())
      ++tally.nearTies;
    else if (list != rows[at].blocks)
      return testing::AssertionFailure()
             << "row " << at << "\n  selected " << spell(list)
             << "\n  expected " << spell(rows[at].blocks) << "\n  score margin "
             << rows[at].scoreMargin << " (rounding " << rows[at].scoreError
             << "), mass margin " << rows[at].massMargin << "\n  "
             << shape.describe(rule);
  }
  const double pairs =
      static_cast<double>(rows.size()) * static_cast<double>(shape.kvBlocks());
  if (std::fabs(lists->density() - selected / pairs) > 1e-12)
    return testing::AssertionFailure() << "density " << lists->density()
                                       << ", counted " << selected / pairs;
  return testing::AssertionSuccess();
}

std::vector<std::int32_t> listOf(const BlockLists &lists, std::int64_t row) {
  const std::int32_t *slots =
      lists.indices.data<std::int32_t>() + row * lists.indices.view().sizes[3];
  return {slots, slots + lists.counts.data<std::int32_t>()[row]};
}

std::vector<std::int32_t> everyEntryOf(const BlockLists &lists) {
  std::vector<std::int32_t> entries;
  for (const Tensor *tensor : {&lists.indices, &lists.counts}) {
    const std::int32_t *data = tensor->data<std::int32_t>();
    entries.insert(entries.end(), data, data + tensor->view().elementCount());
  }
  return entries;
}

} // namespace spargejit::numerics
