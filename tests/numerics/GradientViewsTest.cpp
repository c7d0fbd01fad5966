// SPDX-License-Identifier: Apache-2.0
//
// Gradients through strided and expanded memory, and through the public calls
// that allocate.
#include "tests/numerics/harness/GradientTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/reference/Comparison.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace spargejit::numerics {
namespace {

class GradientViews : public BackendTest {
protected:
  void SetUp() override { SPARGEJIT_NEEDS(gradients); }
};
SPARGEJIT_ON_EVERY_BACKEND(GradientViews);

const AttentionCase kShape = {.batch = 2,
                              .qHeads = 4,
                              .kvHeads = 2,
                              .qLen = 150,
                              .kvLen = 130,
                              .headDim = 24};

// cases: 55
TEST_P(GradientViews, EveryLayout) {
  Random random = randomForTest();
  for (const Layout layout :
       {Layout::LengthMajor, Layout::PackedQkv, Layout::PaddedRows,
        Layout::Reversed, Layout::OddBase}) {
    if (!backend().abilities().anyLayout &&
        (layout == Layout::Reversed || layout == Layout::OddBase))
      continue;
    AttentionCase shape = kShape;
    shape.inputs.layout = layout;
    shape.outputs.layout = layout;
    GradientPlacement placement;
    placement.dO.layout = layout;
    placement.gradients.layout = layout;
    GradientTrial trial(backend(), shape, random, placement);
    trial.forward.useLists(trial.forward.shape.randomMask(random, 0.6), random);
    EXPECT_TRUE(trial.isRight()) << static_cast<int>(layout);
  }
}

// dO of a sum or a mean is one number, or one row, spread by strides of 0.
// cases: 55
TEST_P(GradientViews, ExpandedDO) {
  Random random = randomForTest();
  const std::int64_t dim = kShape.headDim;
  std::vector<std::vector<std::int64_t>> strides = {
      {0, 0, 0, 1}, {0, dim, 0, 1}, {kShape.qLen * dim, 0, dim, 1}};
  if (backend().device().kind == DeviceKind::Cpu)
    strides.insert(strides.end(), {{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 0, 1, 0}});
  for (const auto &dOStrides : strides) {
    GradientPlacement placement;
    placement.dOStrides = dOStrides;
    GradientTrial trial(backend(), kShape, random, placement);
    trial.forward.useLists(trial.forward.shape.randomMask(random, 0.6), random);
    EXPECT_TRUE(trial.isRight()) << testing::PrintToString(dOStrides);
  }
}

// Memory beyond a tensor's ends is not touched.
TEST_P(GradientViews, FencedMemory) {
  if (!backend().hasFences())
    GTEST_SKIP() << backend().name() << " has no fences";
  Random random = randomForTest();
  for (const bool atEnd : {true, false}) {
    AttentionCase shape = kShape;
    const Placement fenced = {.surroundings = Surroundings::Fence,
                              .fenceAtEnd = atEnd};
    shape.inputs = shape.outputs = fenced;
    for (const bool sparse : {true, false}) {
      GradientTrial trial(backend(), shape, random,
                          {.dO = fenced, .gradients = fenced});
      if (sparse)
        trial.forward.useLists(trial.forward.shape.randomMask(random, 0.6),
                               random);
      EXPECT_TRUE(trial.isRight());
    }
  }
}

// attentionForward() and attentionBackward(): results with memory of their own,
// of every kind of method.
TEST_P(GradientViews, TensorsOfTheirOwn) {
  Random random = randomForTest();
  for (const char *method : {"dense", "spargeattention2", "topp"}) {
    AttentionCase shape = kShape;
    shape.kvLen = 900;
    GradientTrial trial(backend(), shape, random);
    AttentionConfig config = trial.forward.config;
    config.method = method;
    config.topK = 0.2;
    for (TestTensor *tensor : {&trial.forward.q, &trial.forward.k,
                               &trial.forward.v, &trial.dO, &trial.dLse})
      tensor->upload();
    const auto forward =
        attentionForward(trial.forward.q.view(), trial.forward.k.view(),
                         trial.forward.v.view(), config);
    ASSERT_TRUE(succeeded(forward.status())) << method;
    const AttentionSaved saved = forward->saved();
    ASSERT_EQ(saved.lists == nullptr, method == std::string("dense"));
    const auto gradients = attentionBackward(
        trial.forward.q.view(), trial.forward.k.view(), trial.forward.v.view(),
        saved, trial.dO.view(), config, &trial.dLse.view());
    ASSERT_TRUE(succeeded(gradients.status())) << method;

    // The same lists through the trial.
    if (saved.lists)
      trial.forward.useLists(*saved.lists);
    ASSERT_TRUE(trial.isRight()) << method;
    for (const auto &[tensor, expected] :
         {std::pair(&gradients->dq, &trial.dq),
          std::pair(&gradients->dk, &trial.dk),
          std::pair(&gradients->dv, &trial.dv)}) {
      const auto host = tensor->copyTo({});
      ASSERT_TRUE(succeeded(host.status()));
      const auto *bytes = host->data<std::byte>();
      const std::vector<std::byte> right = expected->bits();
      EXPECT_EQ(std::vector<std::byte>(bytes, bytes + right.size()) == right,
                true)
          << method;
    }
  }
}

// A training loop that keeps its memory: other inputs, the same bits as in new
// memory.
TEST_P(GradientViews, ForwardIntoTheSameMemory) {
  Random random = randomForTest();
  for (const char *method : {"dense", "spargeattention2"}) {
    AttentionCase shape = kShape;
    shape.kvLen = 700;
    AttentionTrial first(backend(), shape, random);
    AttentionTrial second(backend(), shape, random);
    AttentionConfig config = first.config;
    config.method = method;
    config.topK = 0.3;
    for (AttentionTrial *trial : {&first, &second})
      for (TestTensor *tensor : {&trial->q, &trial->k, &trial->v})
        tensor->upload();
    const auto kept = attentionForward(first.q.view(), first.k.view(),
                                       first.v.view(), config);
    ASSERT_TRUE(succeeded(kept.status()));
    ASSERT_TRUE(succeeded(attentionForwardInto(
        *kept, second.q.view(), second.k.view(), second.v.view(), config)));
    const auto fresh = attentionForward(second.q.view(), second.k.view(),
                                        second.v.view(), config);
    ASSERT_TRUE(succeeded(fresh.status()));
    std::vector<std::pair<const Tensor *, const Tensor *>> pairs = {
        {&kept->o, &fresh->o}, {&kept->lse, &fresh->lse}};
    if (fresh->saved().lists)
      pairs.insert(pairs.end(), {{&kept->lists.indices, &fresh->lists.indices},
                                 {&kept->lists.counts, &fresh->lists.counts}});
    for (const auto &[a, b] : pairs) {
      const auto left = a->copyTo({});
      const auto right = b->copyTo({});
      ASSERT_TRUE(succeeded(left.status()) && succeeded(right.status()));
      const auto bytes = static_cast<std::size_t>(left->view().elementCount()) *
                         dataTypeSize(left->view().dtype);
      EXPECT_EQ(std::memcmp(left->data<char>(), right->data<char>(), bytes), 0)
          << method;
    }
    // Memory of other lengths is refused.
    TensorView shorter = second.q.view();
    shorter.sizes[2] -= 1;
    EXPECT_TRUE(failedWith(attentionForwardInto(*kept, shorter, second.k.view(),
                                                second.v.view(), config),
                           ErrorCode::InvalidArgument, {"expected"}));
  }
}

// The forward pass takes a mask, the backward pass the lists made of it.
TEST_P(GradientViews, MaskOfTheCaller) {
  SPARGEJIT_NEEDS(masks);
  Random random = randomForTest();
  GradientTrial trial(backend(), kShape, random);
  const BlockMask mask = trial.forward.shape.randomMask(random, 0.5);
  trial.forward.useMask(mask);
  for (TestTensor *tensor :
       {&trial.forward.q, &trial.forward.k, &trial.forward.v, &trial.dO})
    tensor->upload();
  const auto forward =
      attentionForward(trial.forward.q.view(), trial.forward.k.view(),
                       trial.forward.v.view(), trial.forward.config);
  ASSERT_TRUE(succeeded(forward.status()));
  const auto gradients = attentionBackward(
      trial.forward.q.view(), trial.forward.k.view(), trial.forward.v.view(),
      forward->saved(), trial.dO.view(), trial.forward.config);
  ASSERT_TRUE(succeeded(gradients.status()));
  trial.wantsDLse = false;
  const reference::Gradients right = trial.expected();
  const auto host = gradients->dk.copyTo({});
  ASSERT_TRUE(succeeded(host.status()));
  const TensorView &view = host->view();
  std::vector<double> dk;
  for (std::int64_t b = 0; b < view.sizes[0]; ++b)
    for (std::int64_t h = 0; h < view.sizes[1]; ++h)
      for (std::int64_t row = 0; row < view.sizes[2]; ++row)
        for (std::int64_t column = 0; column < view.sizes[3]; ++column)
          dk.push_back(reference::elementAt(view, b, h, row, column));
  const auto found = reference::compare(dk, right.dk);
  EXPECT_LE(found.errorL2, reference::gradientBound(view.dtype) *
                               std::max(found.expectedL2, right.dkTerms));
}

} // namespace
} // namespace spargejit::numerics
