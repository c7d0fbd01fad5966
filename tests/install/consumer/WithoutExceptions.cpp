// SPDX-License-Identifier: Apache-2.0
//
// The installed library in a program built with -fno-exceptions. The argument
// says whether the library has the compiler in it (1) or not (0).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <spargejit/spargejit.h>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "not true: %s\n", what);
  ++failures;
}

} // namespace

int main(int argc, char **argv) {
  const bool compiler = argc == 2 && std::strcmp(argv[1], "1") == 0;

  // One key alone: the output is its value, the lse its score.
  std::vector<float> q(8, 0.5f), k(8, 2.0f), v(8, 3.0f), o(8, NAN), lse(1, NAN);
  auto view = [](std::vector<float> &values) {
    return spargejit::TensorView::contiguous(
        values.data(), spargejit::DataType::Float32, {1, 1, 1, 8});
  };
  spargejit::TensorView lseView = spargejit::TensorView::contiguous(
      lse.data(), spargejit::DataType::Float32, {1, 1, 1});
  spargejit::AttentionConfig config;
  config.method = "dense";
  config.softmaxScale = 0.25;
  spargejit::AttentionOutputs outputs;
  outputs.lse = &lseView;
  spargejit::Status status = spargejit::attentionInto(view(o), view(q), view(k),
                                                      view(v), config, outputs);
  if (compiler) {
    expect(status.ok(), "attention runs");
    for (float value : o)
      expect(value == 3.0f, "o is v");
    expect(std::abs(lse[0] - 2.0f) < 1e-6f, "lse is the score");
  } else {
    expect(!status.ok() &&
               status.code() == spargejit::ErrorCode::ArtifactMissing,
           "ArtifactMissing");
  }

  config.topK = 2;
  auto refused = spargejit::attention(view(q), view(k), view(v), config);
  expect(!refused.ok(), "topK = 2 is refused");
  expect(refused.status().message() ==
             "config.topK: expected a share from 0 to 1, got 2",
         "with this message");
  return failures == 0 ? 0 : 1;
}
