// SPDX-License-Identifier: Apache-2.0
//
// Drawing, running and checking one call of attention.
#include "tests/numerics/harness/AttentionTrial.h"

#include "tests/reference/Comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace spargejit::numerics {
namespace {

/// Products that the reference may spend on one case: about 0.1 s.
constexpr double kReferenceProducts = 6e7;

TestTensor makeTensor(TestBackend &backend, const AttentionCase &c,
                      std::int64_t heads, std::int64_t length,
                      const Placement &placement) {
  return {backend, c.dtype, {c.batch, heads, length, c.headDim}, placement};
}

double largestFinite(const std::vector<double> &values) {
  double largest = 0;
  for (const double value : values)
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  return largest;
}

bool allFinite(const std::vector<double> &values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

/// An entry that names no block and must be skipped, or, past the count, one
/// that must not be read.
std::int32_t strayEntry(Random &random, std::int64_t kvBlocks) {
  constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
  constexpr auto kHighest = std::numeric_limits<std::int32_t>::max();
  return random.pick(std::vector<std::int32_t>{
      -1, -2, static_cast<std::int32_t>(kvBlocks), 1 << 20, kLowest, kHighest});
}

std::vector<std::int32_t> rowOf(const BlockMask &mask, std::int64_t b,
                                std::int64_t h, std::int64_t i,
                                const ListStyle &style, Random &random) {
  std::vector<std::int32_t> row;
  for (std::int64_t j = 0; j < mask.kvBlocks; ++j)
    if (mask.at(b, h, i, j))
      row.push_back(static_cast<std::int32_t>(j));
  if (style.strayEntries)
    for (std::int64_t count = random.below(4); count > 0; --count)
      row.insert(row.begin() +
                     random.below(static_cast<std::int64_t>(row.size()) + 1),
                 strayEntry(random, mask.kvBlocks));
  if (style.shuffled)
    random.shuffle(row);
  return row;
}

} // namespace

double AttentionCase::scale() const {
  return softmaxScale.value_or(1 / std::sqrt(static_cast<double>(headDim)));
}

std::string AttentionCase::describe() const {
  std::ostringstream out;
  out << dataTypeName(dtype) << " batch " << batch << " heads " << qHeads << "/"
      << kvHeads << " length " << qLen << "x" << kvLen << " head_dim "
      << headDim << " mask block " << maskBlockQ << "x" << maskBlockKv
      << (causal ? " causal" : "") << " scale " << scale() << " layout "
      << static_cast<int>(inputs.layout) << "/"
      << static_cast<int>(outputs.layout)
      << (inputs.surroundings == Surroundings::Fence ? " fenced" : "");
  return out.str();
}

BlockMask AttentionCase::emptyMask() const {
  return {batch, qHeads, qBlocks(), kvBlocks(), false};
}

BlockMask AttentionCase::fullMask() const {
  return {batch, qHeads, qBlocks(), kvBlocks(), true};
}

BlockMask AttentionCase::randomMask(Random &random, double density,
                                    bool varied) const {
  BlockMask result = emptyMask();
  const auto columns = static_cast<std::size_t>(result.kvBlocks);
  double rowDensity = density;
  for (std::size_t at = 0; at < result.bits.size(); ++at) {
    if (varied && at % columns == 0)
      // A quarter of the rows is empty, full, or either end of the density.
      rowDensity = random.chance(0.15)   ? 0
                   : random.chance(0.15) ? 1
                                         : 2 * density * random.uniform();
    result.bits[at] = random.chance(rowDensity) ? 1 : 0;
  }
  return result;
}

BlockLists makeLists(const AttentionCase &shape, const BlockMask &mask,
                     const ListStyle &style, Random &random) {
  std::vector<std::vector<std::int32_t>> rows;
  std::size_t longest = 1;
  for (std::int64_t b = 0; b < mask.batch; ++b)
    for (std::int64_t h = 0; h < mask.heads; ++h)
      for (std::int64_t i = 0; i < mask.qBlocks; ++i) {
        rows.push_back(rowOf(mask, b, h, i, style, random));
        longest = std::max(longest, rows.back().size());
      }
  const std::int64_t capacity = std::max(
      static_cast<std::int64_t>(longest) + style.spareSlots, mask.kvBlocks);
  BlockLists lists;
  lists.maskBlockQ = shape.maskBlockQ;
  lists.maskBlockKv = shape.maskBlockKv;
  lists.qLen = shape.qLen;
  lists.kvLen = shape.kvLen;
  lists.indices = Tensor::allocate(DataType::Int32, {mask.batch, mask.heads,
                                                     mask.qBlocks, capacity})
                      .value();
  lists.counts =
      Tensor::allocate(DataType::Int32, {mask.batch, mask.heads, mask.qBlocks})
          .value();
  auto *slot = lists.indices.data<std::int32_t>();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    lists.counts.data<std::int32_t>()[row] =
        static_cast<std::int32_t>(rows[row].size());
    for (std::size_t t = 0; t < static_cast<std::size_t>(capacity); ++t)
      *slot++ = t < rows[row].size()   ? rows[row][t]
                : !style.garbageSuffix ? -1
                : random.chance(0.5)
                    ? static_cast<std::int32_t>(random.below(mask.kvBlocks))
                    : strayEntry(random, mask.kvBlocks);
  }
  return lists;
}

AttentionCase withinAbilities(const TestBackend &backend, AttentionCase shape) {
  const Abilities abilities = backend.abilities();
  if (!abilities.float32 && shape.dtype == DataType::Float32)
    shape.dtype = DataType::BFloat16;
  for (Placement *placement : {&shape.inputs, &shape.outputs})
    if (!abilities.anyLayout && (placement->layout == Layout::Reversed ||
                                 placement->layout == Layout::OddBase))
      placement->layout = Layout::HeadMajor;
  return shape;
}

BlockLists listsOnHost(TestBackend &backend, const BlockLists &lists) {
  BlockLists host = lists;
  for (Tensor *tensor : {&host.indices, &host.counts}) {
    const TensorView view = tensor->view();
    if (view.device.kind == DeviceKind::Cpu)
      continue;
    const std::byte *from = tensor->data<std::byte>();
    Tensor copy = Tensor::allocate(view.dtype, {view.sizes.begin(),
                                                view.sizes.begin() + view.rank})
                      .value();
    backend.read(copy.data<std::byte>(), from,
                 static_cast<std::size_t>(view.elementCount()) *
                     dataTypeSize(view.dtype));
    *tensor = copy;
  }
  return host;
}

AttentionTrial::AttentionTrial(TestBackend &backend, const AttentionCase &c,
                               Random &random)
    : shape(withinAbilities(backend, c)),
      q(makeTensor(backend, shape, c.qHeads, c.qLen, shape.inputs)),
      k(makeTensor(backend, shape, c.kvHeads, c.kvLen, shape.inputs)),
      v(makeTensor(backend, shape, c.kvHeads, c.kvLen, shape.inputs)),
      o(makeTensor(backend, shape, c.qHeads, c.qLen, shape.outputs)),
      lse(backend, DataType::Float32, {c.batch, c.qHeads, c.qLen},
          shape.outputs),
      backend_(&backend) {
  q.fillNormal(random);
  k.fillNormal(random);
  v.fillNormal(random);
  config.method = "dense";
  config.maskBlockQ = c.maskBlockQ;
  config.maskBlockKv = c.maskBlockKv;
  config.causal = c.causal;
  config.softmaxScale = c.softmaxScale;
}

void AttentionTrial::useMask(const BlockMask &m) {
  if (!backend_->abilities().masks) {
    Random unused(0); // ascending lists draw nothing
    useLists(makeLists(shape, m, {}, unused));
    return;
  }
  mask = m;
  lists_.reset();
  config.lists = nullptr;
  maskTensor_.emplace(
      *backend_, DataType::Bool,
      std::vector<std::int64_t>{m.batch, m.heads, m.qBlocks, m.kvBlocks},
      Placement{Layout::HeadMajor, shape.inputs.surroundings,
                shape.inputs.fenceAtEnd});
  std::size_t at = 0;
  maskTensor_->fill([&] { return m.bits[at++]; });
  maskTensor_->upload();
  config.blockMask = maskTensor_->view();
  config.method = "block_sparse";
}

void AttentionTrial::useLists(const BlockMask &m, Random &random,
                              const ListStyle &style) {
  useLists(makeLists(shape, m, style, random));
}

Tensor AttentionTrial::toBackend(const Tensor &tensor) const {
  const TensorView &view = tensor.view();
  if (view.device == backend_->device())
    return tensor;
  const auto bytes =
      static_cast<std::size_t>(view.elementCount()) * dataTypeSize(view.dtype);
  std::shared_ptr<std::byte> memory =
      backend_->allocate(bytes, Surroundings::Poison, false);
  backend_->write(memory.get(), tensor.data<std::byte>(), bytes);
  return Tensor::adopt(memory, view.dtype,
                       {view.sizes.begin(), view.sizes.begin() + view.rank},
                       backend_->device());
}

void AttentionTrial::useLists(const BlockLists &lists) {
  const BlockLists host = listsOnHost(*backend_, lists);
  mask = reference::maskOfLists(host.indices.view(), host.counts.view(),
                                shape.kvBlocks());
  lists_ = lists;
  lists_->indices = toBackend(lists.indices);
  lists_->counts = toBackend(lists.counts);
  config.blockMask.reset();
  config.lists = &*lists_;
  config.method = "block_sparse";
}

Status AttentionTrial::run() {
  o.poison();
  lse.poison();
  for (TestTensor *tensor : {&q, &k, &v, &o, &lse})
    tensor->upload();
  AttentionOutputs outputs;
  if (wantsLse)
    outputs.lse = &lse.view();
  Status status =
      attentionInto(o.view(), q.view(), k.view(), v.view(), config, outputs);
  o.download();
  lse.download();
  return status;
}

testing::AssertionResult AttentionTrial::memoryIsIntact() const {
  for (const auto &[name, tensor] :
       {std::pair{"q", &q}, std::pair{"k", &k}, std::pair{"v", &v}})
    if (const auto result = tensor->isUnchanged(); !result)
      return testing::AssertionFailure() << name << ": " << result.message();
  for (const auto &[name, tensor] :
       {std::pair{"o", &o}, std::pair{"lse", &lse}})
    if (const auto result = tensor->gapsAreIntact(); !result)
      return testing::AssertionFailure() << name << ": " << result.message();
  if (maskTensor_ && !maskTensor_->isUnchanged())
    return testing::AssertionFailure() << "the mask was written";
  return testing::AssertionSuccess();
}

reference::AttentionValues
AttentionTrial::expected(const std::vector<std::int64_t> &rows) const {
  reference::AttentionArguments arguments;
  arguments.q = q.host();
  arguments.k = k.host();
  arguments.v = v.host();
  arguments.mask = mask ? &*mask : nullptr;
  arguments.maskBlockQ = shape.maskBlockQ;
  arguments.maskBlockKv = shape.maskBlockKv;
  arguments.causal = shape.causal;
  arguments.softmaxScale = shape.scale();
  arguments.rows = rows;
  return reference::referenceAttention(arguments);
}

std::vector<std::int64_t> AttentionTrial::rowsToCheck(Random &random) const {
  const double perRow = static_cast<double>(shape.batch * shape.qHeads *
                                            shape.kvLen * shape.headDim) +
                        1;
  const double affordable = kReferenceProducts / perRow;
  if (affordable >= static_cast<double>(shape.qLen))
    return {};
  // Rows at the edges of blocks, then any.
  std::set<std::int64_t> rows = {0, shape.qLen - 1};
  for (const std::int64_t edge : {63, 64, 127, 128})
    if (edge < shape.qLen)
      rows.insert(edge);
  rows.insert((shape.qLen - 1) / shape.maskBlockQ * shape.maskBlockQ);
  const auto count = static_cast<std::size_t>(std::max(affordable, 12.0));
  while (rows.size() < count)
    rows.insert(random.below(shape.qLen));
  return {rows.begin(), rows.end()};
}

testing::AssertionResult
AttentionTrial::matchesReference(Random &random) const {
  return matchesReference(rowsToCheck(random));
}

testing::AssertionResult
AttentionTrial::matchesReference(const std::vector<std::int64_t> &rows) const {
  const reference::AttentionValues right = expected(rows);
  const auto count = static_cast<std::int64_t>(right.rows.size());
  const auto output = reference::compare(o.valuesOfRows(right.rows), right.o);
  if (!output.isWithin(
          reference::attentionBounds(shape.dtype, shape.largestScore)))
    return testing::AssertionFailure()
           << "o: "
           << output.describe({shape.batch, shape.qHeads, count, shape.headDim})
           << "  " << shape.describe();
  if (wantsLse) {
    const auto sums =
        reference::compare(lse.valuesOfRows(right.rows), right.lse);
    if (!sums.isWithin(reference::lseBound(
            shape.dtype,
            std::max(shape.largestScore, largestFinite(right.lse)))))
      return testing::AssertionFailure()
             << "lse: " << sums.describe({shape.batch, shape.qHeads, count})
             << "  " << shape.describe();
  }
  // Rows that the reference did not visit must at least have been written.
  if (!rows.empty() && allFinite(right.o) && !allFinite(o.values()))
    return testing::AssertionFailure()
           << "o: an element is unwritten or not finite\n  "
           << shape.describe();
  return testing::AssertionSuccess();
}

testing::AssertionResult AttentionTrial::isRight(Random &random) {
  if (!backend_->abilities().anyScale && shape.scale() <= 0)
    return failedWith(run(), ErrorCode::Unsupported, {"config.softmaxScale"});
  if (auto result = succeeded(run()); !result)
    return result << "\n  " << shape.describe();
  if (auto result = memoryIsIntact(); !result)
    return result << "\n  " << shape.describe();
  return matchesReference(random);
}

OutputBits runForBits(AttentionTrial &trial) {
  const Status status = trial.run();
  EXPECT_TRUE(succeeded(status)) << trial.shape.describe();
  EXPECT_TRUE(trial.memoryIsIntact()) << trial.shape.describe();
  if (!status.ok())
    return {};
  return {trial.o.bits(), trial.lse.bits()};
}

testing::AssertionResult succeeded(const Status &status) {
  if (status.ok())
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << errorCodeName(status.code()) << ": " << status.message();
}

testing::AssertionResult failedWith(const Status &status, ErrorCode code,
                                    const std::vector<std::string> &parts) {
  if (status.ok())
    return testing::AssertionFailure()
           << "succeeded; expected " << errorCodeName(code);
  if (status.code() != code)
    return testing::AssertionFailure()
           << "expected " << errorCodeName(code) << ", got "
           << errorCodeName(status.code()) << ": " << status.message();
  for (const std::string &part : parts)
    if (status.message().find(part) == std::string::npos)
      return testing::AssertionFailure()
             << "the message lacks '" << part << "': " << status.message();
  return testing::AssertionSuccess();
}

} // namespace spargejit::numerics
