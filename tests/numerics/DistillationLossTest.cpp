// SPDX-License-Identifier: Apache-2.0
//
// The distillation loss and its gradient against float64.
#include "spargejit/distillation.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/numerics/harness/TypedBackendTest.h"
#include "tests/reference/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace spargejit::numerics {
namespace {

struct LossTrial {
  LossTrial(TestBackend &backend, DataType type, DataType gradientType,
            const std::vector<std::int64_t> &sizes, Random &random,
            const Placement &placement = {})
      : student(backend, type, sizes, placement),
        teacher(backend, type, sizes, placement),
        gradient(backend, gradientType, sizes, placement),
        loss(backend, DataType::Float32, {1}) {
    student.fillNormal(random);
    teacher.fillNormal(random);
  }

  Status run() {
    for (TestTensor *tensor : {&student, &teacher})
      tensor->upload();
    for (TestTensor *tensor : {&gradient, &loss}) {
      tensor->poison();
      tensor->upload();
    }
    Status status = distillationLoss(loss.view(),
                                     wantsGradient ? &gradient.view() : nullptr,
                                     student.view(), teacher.view(), config);
    for (TestTensor *tensor : {&gradient, &loss})
      tensor->download();
    return status;
  }

  testing::AssertionResult isRight() {
    if (auto result = succeeded(run()); !result)
      return result;
    for (const TestTensor *tensor : {&student, &teacher})
      if (auto result = tensor->isUnchanged(); !result)
        return result;
    for (const TestTensor *tensor : {&gradient, &loss})
      if (auto result = tensor->gapsAreIntact(); !result)
        return result;
    const std::vector<double> a = student.values();
    const std::vector<double> b = teacher.values();
    const auto n = static_cast<double>(a.size());
    double sum = 0;
    std::vector<double> slopes;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += (a[i] - b[i]) * (a[i] - b[i]);
      slopes.push_back(2 * config.lossScale * (a[i] - b[i]) / n);
    }
    const double right = a.empty() ? 0 : config.lossScale * sum / n;
    // Squares and sums of rows of at most 1024 elements, four at a time, in
    // float32; everything is positive.
    if (!(std::fabs(loss.values()[0] - right) <= 2e-6 * std::fabs(right)))
      return testing::AssertionFailure()
             << "loss " << loss.values()[0] << ", expected " << right;
    if (!wantsGradient)
      return testing::AssertionSuccess();
    const std::vector<double> found = gradient.values();
    for (std::size_t i = 0; i < slopes.size(); ++i)
      if (!(std::fabs(found[i] - slopes[i]) <= roundingBound(slopes[i])))
        return testing::AssertionFailure()
               << "gradient[" << i << "] " << found[i] << ", expected "
               << slopes[i];
    return testing::AssertionSuccess();
  }

  /// The difference, the factor and their product are rounded to float32, and
  /// the result to the gradient's type: u = 2^-8 in bfloat16, 2^-11 in float16,
  /// and there half of 2^-24 at the bottom of its range.
  double roundingBound(double slope) const {
    const DataType type = gradient.view().dtype;
    const double unit = type == DataType::BFloat16  ? 0x1p-8
                        : type == DataType::Float16 ? 0x1p-11
                                                    : 0;
    return (unit + 4 * 0x1p-24) * std::fabs(slope) +
           (type == DataType::Float16 ? 0x1p-25 : 0);
  }

  TestTensor student;
  TestTensor teacher;
  TestTensor gradient;
  TestTensor loss;
  DistillationConfig config;
  bool wantsGradient = true;
};

class DistillationLoss : public TypedBackendTest {
protected:
  /// Unlike attention, the loss takes every type on every back end.
  void SetUp() override {}
};
SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE(DistillationLoss);

TEST_P(DistillationLoss, EveryShape) {
  Random random = randomForTest();
  for (const std::vector<std::int64_t> &sizes :
       std::vector<std::vector<std::int64_t>>{{1},
                                              {7},
                                              {1031},
                                              {64, 3},
                                              {2, 16, 5},
                                              {2, 16, 13, 104},
                                              {1, 1, 40, 96},
                                              {3, 1, 1, 2},
                                              {1 << 15}}) {
    LossTrial trial(backend(), dtype(), dtype(), sizes, random);
    trial.config.lossScale = random.chance(0.5) ? 1 : 1024;
    EXPECT_TRUE(trial.isRight()) << testing::PrintToString(sizes);
    trial.wantsGradient = false;
    EXPECT_TRUE(trial.isRight()) << testing::PrintToString(sizes);
  }
}

TEST_P(DistillationLoss, EveryLayoutAndTypeOfTheGradient) {
  Random random = randomForTest();
  for (const Layout layout : {Layout::LengthMajor, Layout::PaddedRows,
                              Layout::Reversed, Layout::OddBase})
    for (const DataType type :
         {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
      LossTrial trial(backend(), dtype(), type, {2, 3, 45, 72}, random,
                      {.layout = layout});
      EXPECT_TRUE(trial.isRight()) << static_cast<int>(layout);
    }
}

TEST_P(DistillationLoss, WithoutElementsIsZero) {
  Random random = randomForTest();
  LossTrial trial(backend(), dtype(), dtype(), {2, 0, 8}, random);
  EXPECT_TRUE(trial.isRight());
}

TEST_P(DistillationLoss, TheGradientMayTakeTheStudentsPlace) {
  Random random = randomForTest();
  LossTrial trial(backend(), dtype(), dtype(), {4, 33, 40}, random);
  ASSERT_TRUE(trial.isRight());
  const std::vector<double> apart = trial.gradient.values();
  ASSERT_TRUE(
      succeeded(distillationLoss(trial.loss.view(), &trial.student.view(),
                                 trial.student.view(), trial.teacher.view())));
  trial.student.download();
  EXPECT_EQ(trial.student.values(), apart);
}

TEST_P(DistillationLoss, EveryRunHasTheSameBits) {
  Random random = randomForTest();
  LossTrial trial(backend(), dtype(), dtype(), {3, 250, 200}, random);
  ASSERT_TRUE(trial.isRight());
  const auto loss = trial.loss.bits();
  const auto gradient = trial.gradient.bits();
  for (std::int64_t run = repetitions(50, 5); run > 0; --run) {
    ASSERT_TRUE(succeeded(trial.run()));
    ASSERT_EQ(trial.loss.bits() == loss, true);
    ASSERT_EQ(trial.gradient.bits() == gradient, true);
  }
}

TEST_P(DistillationLoss, NaNReachesTheLossAndItsPlaceAlone) {
  Random random = randomForTest();
  LossTrial trial(backend(), dtype(), dtype(), {10, 64}, random);
  std::size_t at = 0;
  trial.student.fill([&] {
    return at++ == 77 ? std::numeric_limits<double>::quiet_NaN() : 0.5;
  });
  ASSERT_TRUE(succeeded(trial.run()));
  EXPECT_TRUE(std::isnan(trial.loss.values()[0]));
  const std::vector<double> slopes = trial.gradient.values();
  for (std::size_t i = 0; i < slopes.size(); ++i)
    EXPECT_EQ(std::isnan(slopes[i]), i == 77) << i;
}

TEST_P(DistillationLoss, NamesWhatIsWrong) {
  Random random = randomForTest();
  LossTrial trial(backend(), dtype(), dtype(), {10, 64}, random);
  const TensorView student = trial.student.view();
  const TensorView loss = trial.loss.view();
  TensorView teacher = trial.teacher.view();
  teacher.sizes[0] = 9;
  EXPECT_TRUE(failedWith(distillationLoss(loss, nullptr, student, teacher),
                         ErrorCode::InvalidArgument,
                         {"teacher.sizes: expected [10, 64] as in student"}));
  teacher = trial.teacher.view();
  teacher.strides[1] = 2;
  EXPECT_TRUE(failedWith(distillationLoss(loss, nullptr, student, teacher),
                         ErrorCode::InvalidArgument, {"teacher.strides[1]"}));
  teacher = trial.teacher.view();
  EXPECT_TRUE(failedWith(distillationLoss(loss, &teacher, student, teacher),
                         ErrorCode::InvalidArgument,
                         {"gradient: expected memory apart from teacher"}));
  EXPECT_TRUE(failedWith(distillationLoss(student, nullptr, student, teacher),
                         ErrorCode::InvalidArgument,
                         {"loss: expected one float32"}));
  EXPECT_TRUE(failedWith(
      distillationLoss(loss, nullptr, student, teacher, {.lossScale = NAN}),
      ErrorCode::InvalidArgument, {"config.lossScale"}));
  EXPECT_TRUE(failedWith(
      distillationLoss(loss, nullptr, student, teacher, {.threads = -1}),
      ErrorCode::InvalidArgument, {"config.threads", "-1"}));
  // Ranks beyond those that a view has places for, which would be read.
  for (const int rank : {-1, 5, 1 << 30}) {
    TensorView wrong = loss;
    wrong.rank = rank;
    EXPECT_TRUE(failedWith(distillationLoss(wrong, nullptr, student, teacher),
                           ErrorCode::InvalidArgument,
                           {"loss.rank", std::to_string(rank)}));
  }
  TensorView elsewhere = loss;
  elsewhere.device.ordinal += 1;
  EXPECT_TRUE(failedWith(distillationLoss(elsewhere, nullptr, student, teacher),
                         ErrorCode::InvalidArgument,
                         {"loss.device", "as student"}));
  // Elements whose number wraps around to none.
  TensorView many = student;
  many.rank = 3;
  many.sizes = {std::int64_t{1} << 32, std::int64_t{1} << 32, 64};
  many.strides = {0, 0, 1};
  EXPECT_TRUE(failedWith(distillationLoss(loss, nullptr, many, many),
                         ErrorCode::InvalidArgument, {"student.sizes"}));
}

} // namespace
} // namespace spargejit::numerics
