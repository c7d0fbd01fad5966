// SPDX-License-Identifier: Apache-2.0
//
// Status and Result in both styles: tested objects, and exceptions.
#include "spargejit/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace spargejit {
namespace {

Status failure() { return Status(ErrorCode::IoError, "disk is gone"); }

TEST(Status, SuccessHasNoMessage) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(static_cast<bool>(status));
  EXPECT_EQ(status.message(), "");
  EXPECT_NO_THROW(status.throwIfFailed());
}

TEST(Status, FailureKeepsCodeAndMessage) {
  Status status = failure();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::IoError);
  EXPECT_EQ(status.message(), "disk is gone");
}

TEST(Status, ContextGoesBeforeTheMessageOfAFailureAlone) {
  EXPECT_EQ(failure().withContext("while saving").message(),
            "while saving: disk is gone");
  EXPECT_TRUE(Status().withContext("while saving").ok());
}

TEST(Status, ThrowsAnErrorWithCodeAndMessage) {
  try {
    failure().throwIfFailed();
    FAIL() << "expected an Error";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::IoError);
    EXPECT_STREQ(error.what(), "disk is gone");
  }
}

TEST(Status, EveryCodeHasItsName) {
  EXPECT_STREQ(errorCodeName(ErrorCode::InvalidArgument), "InvalidArgument");
  EXPECT_STREQ(errorCodeName(ErrorCode::Unsupported), "Unsupported");
  EXPECT_STREQ(errorCodeName(ErrorCode::CompileFailed), "CompileFailed");
  EXPECT_STREQ(errorCodeName(ErrorCode::ArtifactMissing), "ArtifactMissing");
  EXPECT_STREQ(errorCodeName(ErrorCode::OutOfResources), "OutOfResources");
  EXPECT_STREQ(errorCodeName(ErrorCode::DriverError), "DriverError");
  EXPECT_STREQ(errorCodeName(ErrorCode::IoError), "IoError");
  EXPECT_STREQ(errorCodeName(ErrorCode::Internal), "Internal");
}

TEST(Result, HoldsAValueThatCanBeMovedOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 7);
  std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, HoldsAFailureAndThrowsItOnValue) {
  Result<int> result(failure());
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.status().message(), "disk is gone");
  EXPECT_THROW(result.value(), Error);
  EXPECT_THROW(std::move(result).value(), Error);
}

TEST(Result, ValueGivesTheValueInEveryForm) {
  Result<std::string> result(std::string("abc"));
  const Result<std::string> &constant = result;
  EXPECT_EQ(constant.value(), "abc");
  EXPECT_EQ(result->size(), 3u);
  result.value() += "d";
  EXPECT_EQ(std::move(result).value(), "abcd");
}

} // namespace
} // namespace spargejit
