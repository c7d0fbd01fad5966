// SPDX-License-Identifier: Apache-2.0
//
// Selection and attention captured once in a CUDA graph, and replayed with
// other q, k, v, other k and p.
#include "spargejit/library.h"
#include "spargejit/spargejit.h"
#include "tests/gpu/device/AttentionGpuTest.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/CudaTestBackend.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

namespace spargejit::gpu {
namespace {

using numerics::AttentionCase;
using numerics::AttentionTrial;
using numerics::OutputBits;
using numerics::Random;
using numerics::randomForTest;
using numerics::succeeded;
using numerics::TestTensor;

constexpr AttentionCase kShape{.dtype = DataType::BFloat16,
                               .batch = 2,
                               .qHeads = 4,
                               .kvHeads = 2,
                               .qLen = 1500,
                               .kvLen = 2900,
                               .headDim = 128,
                               .maskBlockKv = 16};

class CapturedSelection : public AttentionGpuTest {
protected:
  static AttentionOutputs outputsOf(AttentionTrial &trial) {
    return {.lse = &trial.lse.view(), .lists = nullptr};
  }
  static Status call(AttentionTrial &trial) {
    return attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                         trial.v.view(), trial.config, outputsOf(trial));
  }
  /// The lists that a call of now selects become the reference's mask.
  void useSelection(AttentionTrial &trial) {
    auto lists = selectBlocks(trial.q.view(), trial.k.view(), trial.config);
    ASSERT_TRUE(succeeded(lists.status()));
    const BlockLists host = numerics::listsOnHost(backend(), *lists);
    trial.mask = reference::maskOfLists(host.indices.view(), host.counts.view(),
                                        trial.shape.kvBlocks());
    density_ = host.density();
  }

  double density_ = 0;
};

TEST_F(CapturedSelection, IsReplayedWithOtherInputsAndOtherKAndP) {
  Random random = randomForTest();
  AttentionTrial trial(backend(), kShape, random);
  TestTensor kValues(backend(), DataType::Float32, {2, 4}),
      pValues(backend(), DataType::Float32, {4});
  trial.config.method = "spargeattention2";
  trial.config.topKByHead = kValues.view();
  trial.config.topPByHead = pValues.view();
  Stream stream(gpu());
  trial.config.stream = stream.handle();
  ASSERT_TRUE(succeeded(prepare(trial.q.view(), trial.k.view(), trial.v.view(),
                                trial.config, outputsOf(trial))));
  const Counters before = counters();
  stream.beginCapture(); // in which a wait or an allocation is an error
  ASSERT_TRUE(succeeded(call(trial)));
  Graph graph = stream.endCapture();
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
  EXPECT_EQ(counters().bytesAllocated, before.bytesAllocated);
  std::vector<double> densities;
  for (int draw = 0; draw < 6; ++draw) {
    for (TestTensor *tensor : {&trial.q, &trial.k, &trial.v}) {
      tensor->fillNormal(random);
      tensor->upload();
    }
    // From few blocks to many.
    kValues.fill([&] { return 0.15 * draw * random.uniform(); });
    pValues.fill([&] { return 0.15 * draw * random.uniform(); });
    kValues.upload();
    pValues.upload();
    poisonOutputs(trial);
    graph.launch(stream);
    stream.synchronise();
    const OutputBits replayed = bitsOf(trial);
    EXPECT_TRUE(trial.memoryIsIntact());
    useSelection(trial);
    densities.push_back(density_);
    EXPECT_TRUE(trial.matchesReference(random)) << draw;
    poisonOutputs(trial);
    ASSERT_TRUE(succeeded(call(trial)));
    stream.synchronise();
    EXPECT_EQ(bitsOf(trial), replayed) << draw;
  }
  EXPECT_EQ(counters().kernelsCompiled, before.kernelsCompiled);
  EXPECT_LT(densities.front(), 0.01);
  EXPECT_GT(densities.back(), 0.2);
}

} // namespace
} // namespace spargejit::gpu
