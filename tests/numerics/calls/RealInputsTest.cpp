// SPDX-License-Identifier: Apache-2.0
//
// q, k and v of a trained video transformer (16x32x32 tokens, head dimension
// 128, after rotary embedding; one nearly uniform head, one local): error,
// recall and density of each selection against dense attention. The files are
// looked for in SPARGEJIT_DATA, or beside the repository in shared/data.
// Without them the tests are skipped; with SPARGEJIT_REQUIRE_DATA=1 they fail.
#include "runtime/tools/spargejit/files/Safetensors.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace spargejit::numerics {
namespace {

std::string dataFolder() {
  const std::string given = environment("SPARGEJIT_DATA");
  return given.empty() ? SPARGEJIT_SHARED_DATA_FOLDER : given;
}

/// The bfloat16 tensors of a file as float32.
struct Inputs {
  Tensor q;
  Tensor k;
  Tensor v;
};

Result<Tensor> readAsFloat32(const files::SafetensorsFile &file,
                             const std::string &name) {
  Result<Tensor> stored = file.read(name);
  if (!stored.ok())
    return stored;
  const TensorView &from = stored->view();
  Result<Tensor> made =
      Tensor::allocate(DataType::Float32, {from.sizes[0], from.sizes[1],
                                           from.sizes[2], from.sizes[3]});
  if (made.ok())
    for (std::int64_t i = 0; i < from.elementCount(); ++i)
      made->data<float>()[i] = static_cast<float>(reference::loadElement(
          stored->data<std::byte>() +
              i * static_cast<std::int64_t>(dataTypeSize(from.dtype)),
          from.dtype));
  return made;
}

/// Output and lse of one call.
struct Attended {
  Tensor o;
  Tensor lse;
  BlockLists lists;
};

Result<Attended> attend(const Inputs &in, const AttentionConfig &config) {
  Attended result;
  result.lse = Tensor::allocate(DataType::Float32,
                                {in.q.view().sizes[0], in.q.view().sizes[1],
                                 in.q.view().sizes[2]})
                   .value();
  AttentionOutputs outputs;
  outputs.lse = &result.lse.view();
  outputs.lists = &result.lists;
  Result<Tensor> o =
      attention(in.q.view(), in.k.view(), in.v.view(), config, outputs);
  if (!o.ok())
    return o.status();
  result.o = *o;
  return result;
}

/// sum |dense - sparse| / sum |dense|.
double relativeL1(const Tensor &sparse, const Tensor &dense) {
  double error = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < dense.view().elementCount(); ++i) {
    const double right = dense.data<float>()[i];
    error += std::fabs(right - sparse.data<float>()[i]);
    norm += std::fabs(right);
  }
  return error / norm;
}

/// The tensors as bfloat16, which they were in the file.
Result<Inputs> asBfloat16(const Inputs &in) {
  Inputs result;
  for (const auto &[from, to] :
       {std::pair{&in.q, &result.q}, std::pair{&in.k, &result.k},
        std::pair{&in.v, &result.v}}) {
    const auto &sizes = from->view().sizes;
    Result<Tensor> made = Tensor::allocate(
        DataType::BFloat16, {sizes[0], sizes[1], sizes[2], sizes[3]});
    if (!made.ok())
      return made.status();
    for (std::int64_t i = 0; i < from->view().elementCount(); ++i)
      reference::storeElement(made->data<std::byte>() + 2 * i,
                              DataType::BFloat16, from->data<float>()[i]);
    *to = *made;
  }
  return result;
}

/// sum |dense - found| / sum |dense| of a bfloat16 result.
double relativeL1OfBfloat16(const Tensor &found, const Tensor &dense) {
  double error = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < dense.view().elementCount(); ++i) {
    const double right = dense.data<float>()[i];
    error += std::fabs(right -
                       reference::loadElement(found.data<std::byte>() + 2 * i,
                                              DataType::BFloat16));
    norm += std::fabs(right);
  }
  return error / norm;
}

/// Mean over rows of the dense probability that lies in the selected blocks:
/// exp(lse of the selection - lse of all keys).
double recall(const Tensor &sparse, const Tensor &dense) {
  double sum = 0;
  const std::int64_t rows = dense.view().elementCount();
  for (std::int64_t i = 0; i < rows; ++i)
    sum += std::exp(static_cast<double>(sparse.data<float>()[i]) -
                    static_cast<double>(dense.data<float>()[i]));
  return sum / static_cast<double>(rows);
}

struct Expectation {
  SelectionRule rule;
  std::int64_t maskBlockKv;
  double relativeL1;
  double recall;
  double density;
};

struct RealFile {
  std::string name;
  std::vector<Expectation> rows;
};

const RealFile kUniformHead = {
    "videodit_a_t3_layer2_head1.safetensors",
    {{{"topk", 0.10, 0}, 64, 1.0804, 0.1078, 0.0977},
     {{"topk", 0.05, 0}, 64, 1.2123, 0.0523, 0.0469},
     {{"topp", 0, 0.4}, 64, 0.5891, 0.3986, 0.3759},
     {{"spargeattention2", 0.03, 0.2}, 64, 0.9661, 0.1998, 0.1838},
     {{"spargeattention2", 0.05, 0.5}, 64, 0.4727, 0.4980, 0.4743},
     {{"topk", 0.10, 0}, 16, 1.0570, 0.1150, 0.0996}}};

const RealFile kLocalHead = {
    "videodit_b_t3_layer6_head3.safetensors",
    {{{"topk", 0.10, 0}, 64, 0.1469, 0.7875, 0.0977},
     {{"topk", 0.05, 0}, 64, 0.3652, 0.5434, 0.0469},
     {{"topp", 0, 0.4}, 64, 0.5112, 0.4269, 0.0358},
     {{"spargeattention2", 0.03, 0.2}, 64, 0.5959, 0.3597, 0.0273},
     {{"spargeattention2", 0.05, 0.5}, 64, 0.3008, 0.5966, 0.0547},
     {{"topk", 0.10, 0}, 16, 0.1459, 0.7917, 0.0996}}};

class RealInputs : public testing::TestWithParam<RealFile> {
protected:
  void SetUp() override {
    const std::string path = dataFolder() + "/" + GetParam().name;
    if (!std::filesystem::exists(path)) {
      if (environment("SPARGEJIT_REQUIRE_DATA") == "1")
        FAIL() << path << " is not there, and SPARGEJIT_REQUIRE_DATA is 1";
      GTEST_SKIP() << path << " is not there (SPARGEJIT_DATA names the folder)";
    }
    const auto file = files::SafetensorsFile::open(path);
    ASSERT_TRUE(succeeded(file.status()));
    for (const auto &[name, tensor] :
         {std::pair{"q", &inputs.q}, std::pair{"k", &inputs.k},
          std::pair{"v", &inputs.v}}) {
      const Result<Tensor> read = readAsFloat32(*file, name);
      ASSERT_TRUE(succeeded(read.status()));
      *tensor = *read;
    }
  }
  Inputs inputs;
};

INSTANTIATE_TEST_SUITE_P(, RealInputs,
                         testing::Values(kUniformHead, kLocalHead),
                         [](const auto &info) {
                           return info.param.name.substr(0, 10);
                         });

// cases: 45
TEST_P(RealInputs, ErrorRecallAndDensityAreAsPublished) {
  AttentionConfig config;
  config.method = "dense";
  const Result<Attended> dense = attend(inputs, config);
  ASSERT_TRUE(succeeded(dense.status()));
  for (const Expectation &expected : GetParam().rows) {
    config.method = expected.rule.method;
    config.topK = expected.rule.topK;
    config.topP = expected.rule.topP;
    config.maskBlockKv = expected.maskBlockKv;
    const Result<Attended> sparse = attend(inputs, config);
    ASSERT_TRUE(succeeded(sparse.status()));
    const double error = relativeL1(sparse->o, dense->o);
    const double kept = recall(sparse->lse, dense->lse);
    const double density = sparse->lists.density();
    std::printf("%-17s k %.2f p %.1f 128x%-3lld relative L1 %.4f recall %.4f "
                "density %.4f\n",
                config.method.c_str(), config.topK, config.topP,
                static_cast<long long>(config.maskBlockKv), error, kept,
                density);
    EXPECT_NEAR(error, expected.relativeL1, 0.003) << config.method;
    EXPECT_NEAR(kept, expected.recall, 0.003) << config.method;
    EXPECT_NEAR(density, expected.density, 0.003) << config.method;
  }
}

// Every one of the 128 rows of blocks as float64 selects it, and sampled rows
// of the result.
TEST_P(RealInputs, SelectionAndResultAreThoseOfTheReference) {
  const std::int64_t length = inputs.q.view().sizes[2];
  SelectionTally tally;
  TestBackend &cpu = *availableBackends().front();
  SelectionTrial selection(cpu,
                           {.qLen = length, .kvLen = length, .headDim = 128});
  for (const auto &[tensor, source] : {std::pair{&selection.q, &inputs.q},
                                       std::pair{&selection.k, &inputs.k}}) {
    const float *next = source->data<float>();
    tensor->fill([&next] { return static_cast<double>(*next++); });
  }
  for (const Expectation &row : GetParam().rows) {
    if (row.maskBlockKv == 64)
      EXPECT_TRUE(selection.isRight(row.rule, tally));
  }
  std::printf("%lld rows, %lld near-ties\n", static_cast<long long>(tally.rows),
              static_cast<long long>(tally.nearTies));
  EXPECT_LT(tally.nearTies * 20, tally.rows);

  Random random = randomForTest();
  AttentionTrial trial(cpu, {.qLen = length, .kvLen = length, .headDim = 128},
                       random);
  for (const auto &[tensor, source] :
       {std::pair{&trial.q, &inputs.q}, std::pair{&trial.k, &inputs.k},
        std::pair{&trial.v, &inputs.v}}) {
    const float *next = source->data<float>();
    tensor->fill([&next] { return static_cast<double>(*next++); });
  }
  const Result<BlockLists> lists =
      selection.select({"spargeattention2", 0.05, 0.5});
  ASSERT_TRUE(succeeded(lists.status()));
  trial.useLists(*lists);
  EXPECT_TRUE(trial.isRight(random));
}

// What eight bits cost on top of a selection: the increase of the error against
// dense attention over that of a bfloat16 call with the same lists.
TEST_P(RealInputs, EightBitsAddLittleToTheErrorOfSelecting) {
  AttentionConfig config;
  config.method = "dense";
  const Result<Attended> dense = attend(inputs, config);
  ASSERT_TRUE(succeeded(dense.status()));
  const Result<Inputs> half = asBfloat16(inputs);
  ASSERT_TRUE(succeeded(half.status()));
  struct Row {
    const char *method;
    double topK, topP;
  };
  for (const Row &row :
       {Row{"dense", 0, 0}, Row{"topk", 0.1, 0}, Row{"topp", 0, 0.4},
        Row{"spargeattention2", 0.03, 0.2},
        Row{"spargeattention2", 0.05, 0.5}}) {
    config = {};
    config.method = row.method;
    config.topK = row.topK;
    config.topP = row.topP;
    const Result<Attended> wide = attend(*half, config);
    ASSERT_TRUE(succeeded(wide.status()));
    const double base = relativeL1OfBfloat16(wide->o, dense->o);
    std::printf("%-17s k %.2f p %.1f bfloat16 %.4f", row.method, row.topK,
                row.topP, base);
    config.method = "block_sparse";
    config.lists = &wide->lists;
    for (const Precision precision :
         {Precision::Fp8Exact, Precision::Fp8Balanced, Precision::Fp8Fast}) {
      config.precision = precision;
      const Result<Tensor> narrow =
          attention(half->q.view(), half->k.view(), half->v.view(), config);
      ASSERT_TRUE(succeeded(narrow.status()));
      const double error = relativeL1OfBfloat16(*narrow, dense->o);
      std::printf(", %s %+.4f", precisionName(precision), error - base);
      // Where nothing is left out, rounding is all there is.
      if (precision == Precision::Fp8Exact && base > 0.1)
        EXPECT_LE(error - base, 0.02) << row.method;
      EXPECT_LE(error, base + 0.07) << row.method;
    }
    std::printf("\n");
  }
}

} // namespace
} // namespace spargejit::numerics
