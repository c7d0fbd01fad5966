// SPDX-License-Identifier: Apache-2.0
//
// Inputs, reference results and the JSON form of frozen cases.
#include "tests/golden/GoldenCase.h"

#include "tests/reference/ReferenceAttention.h"
#include "tests/reference/ReferenceSelection.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

namespace spargejit::golden {
namespace {

using reference::BlockMask;
using reference::HostArray;

constexpr std::size_t kSamples = 12;

double scaleOf(const GoldenCase &c) {
  return 1 / std::sqrt(static_cast<double>(c.headDim));
}

/// Values that every machine draws alike, with a direction for each 32 tokens
/// so that selection has something to choose from.
void drawTokens(HostArray &array, reference::Random &random) {
  std::vector<double> direction;
  array.fill([&](auto, auto, int n, int d) {
    if (n % 32 == 0 && d == 0) {
      direction.clear();
      for (std::int64_t i = 0; i < array.view().sizes[3]; ++i)
        direction.push_back(random.normal());
    }
    return direction[static_cast<std::size_t>(d)] + random.normal();
  });
}

/// The elements' bytes in row-major order.
std::vector<std::byte> bitsOf(const HostArray &array) {
  const TensorView &view = array.view();
  const auto *first = static_cast<const std::byte *>(view.data);
  const std::int64_t size = view.dtype == DataType::Float32 ? 4 : 2;
  return {first, first + view.sizes[0] * view.strides[0] * size};
}

std::vector<double> spread(const std::vector<double> &values) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < kSamples; ++i)
    samples.push_back(values[(values.size() - 1) * i / (kSamples - 1)]);
  return samples;
}

std::optional<BlockMask> maskOf(const GoldenCase &c,
                                const GoldenInputs &inputs) {
  const std::int64_t qBlocks = reference::ceilDiv(c.qLen, c.maskBlockQ);
  const std::int64_t kvBlocks = reference::ceilDiv(c.kvLen, c.maskBlockKv);
  if (c.method == "dense")
    return BlockMask(c.batch, c.qHeads, qBlocks, kvBlocks, true);
  reference::SelectionRules rules;
  if (c.method != "topp")
    rules.topK = c.topK;
  if (c.method != "topk")
    rules.topP = static_cast<double>(static_cast<float>(c.topP));
  rules.causal = c.causal;
  rules.softmaxScale = scaleOf(c);
  rules.maskBlockQ = c.maskBlockQ;
  rules.maskBlockKv = c.maskBlockKv;
  const auto rows =
      reference::referenceSelection(inputs.q.view(), inputs.k.view(), rules);
  for (const reference::SelectedRow &row : rows)
    if (row.isNearTie())
      return std::nullopt;
  return reference::maskOfRows(rows, c.batch, c.qHeads, qBlocks, kvBlocks);
}

} // namespace

GoldenInputs::GoldenInputs(const GoldenCase &c)
    : q(c.dtype, {c.batch, c.qHeads, c.qLen, c.headDim}),
      k(c.dtype, {c.batch, c.kvHeads, c.kvLen, c.headDim}),
      v(c.dtype, {c.batch, c.kvHeads, c.kvLen, c.headDim}) {
  reference::Random random(c.seed);
  drawTokens(q, random);
  drawTokens(k, random);
  drawTokens(v, random);
}

std::string digestOf(const void *bytes, std::size_t size) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < size; ++i)
    hash =
        (hash ^ static_cast<const unsigned char *>(bytes)[i]) * 0x100000001b3u;
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(hash));
  return text.data();
}

GoldenValues summarise(const GoldenInputs &inputs, const BlockMask &mask,
                       const std::vector<double> &o,
                       const std::vector<double> &lse) {
  GoldenValues values;
  std::vector<std::byte> bits;
  for (const HostArray *array : {&inputs.q, &inputs.k, &inputs.v}) {
    const std::vector<std::byte> more = bitsOf(*array);
    bits.insert(bits.end(), more.begin(), more.end());
  }
  values.inputDigest = digestOf(bits.data(), bits.size());
  values.maskDigest = digestOf(mask.bits.data(), mask.bits.size());
  for (const std::uint8_t bit : mask.bits)
    values.selected += bit;
  double squares = 0;
  for (const double value : o)
    squares += value * value;
  values.norm = std::sqrt(squares);
  values.o = spread(o);
  values.lse = spread(lse);
  return values;
}

GoldenValues computeByReference(const GoldenCase &c,
                                const GoldenInputs &inputs) {
  const std::optional<BlockMask> mask = maskOf(c, inputs);
  if (!mask)
    throw std::runtime_error(c.name + ": a row is too close to call");
  reference::AttentionArguments arguments;
  arguments.q = inputs.q.view();
  arguments.k = inputs.k.view();
  arguments.v = inputs.v.view();
  arguments.mask = &*mask;
  arguments.maskBlockQ = c.maskBlockQ;
  arguments.maskBlockKv = c.maskBlockKv;
  arguments.causal = c.causal;
  arguments.softmaxScale = scaleOf(c);
  const auto values = reference::referenceAttention(arguments);
  return summarise(inputs, *mask, values.o, values.lse);
}

void from_json(const nlohmann::json &json, GoldenCase &c) {
  json.at("name").get_to(c.name);
  json.at("seed").get_to(c.seed);
  const std::string dtype = json.at("dtype");
  c.dtype = dtype == "bfloat16"  ? DataType::BFloat16
            : dtype == "float16" ? DataType::Float16
                                 : DataType::Float32;
  json.at("batch").get_to(c.batch);
  json.at("q_heads").get_to(c.qHeads);
  json.at("kv_heads").get_to(c.kvHeads);
  json.at("q_len").get_to(c.qLen);
  json.at("kv_len").get_to(c.kvLen);
  json.at("head_dim").get_to(c.headDim);
  json.at("mask_block_q").get_to(c.maskBlockQ);
  json.at("mask_block_kv").get_to(c.maskBlockKv);
  json.at("causal").get_to(c.causal);
  json.at("method").get_to(c.method);
  json.at("top_k").get_to(c.topK);
  json.at("top_p").get_to(c.topP);
}

// JSON has no infinity: an lse of -inf is written as null.
void from_json(const nlohmann::json &json, GoldenValues &values) {
  json.at("input_digest").get_to(values.inputDigest);
  json.at("mask_digest").get_to(values.maskDigest);
  json.at("selected").get_to(values.selected);
  json.at("norm").get_to(values.norm);
  json.at("o").get_to(values.o);
  for (const nlohmann::json &value : json.at("lse"))
    values.lse.push_back(value.is_null()
                             ? -std::numeric_limits<double>::infinity()
                             : value.get<double>());
}

void to_json(nlohmann::json &json, const GoldenValues &values) {
  json = {{"input_digest", values.inputDigest},
          {"mask_digest", values.maskDigest},
          {"selected", values.selected},
          {"norm", values.norm},
          {"o", values.o},
          {"lse", values.lse}};
}

nlohmann::json readCases(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error(path + " cannot be read");
  return nlohmann::json::parse(file);
}

} // namespace spargejit::golden
