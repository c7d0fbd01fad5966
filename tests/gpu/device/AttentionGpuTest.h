// SPDX-License-Identifier: Apache-2.0
//
// Base of the suites of whole attention calls on the card.
#pragma once

#include "spargejit/attention.h"
#include "tests/gpu/device/GpuTest.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/CudaTestBackend.h"

namespace spargejit::gpu {

class AttentionGpuTest : public GpuTest {
protected:
  static numerics::TestBackend &backend() {
    return *numerics::cudaTestBackend();
  }
  /// The call alone: nothing uploaded, nothing waited for.
  static Status call(numerics::AttentionTrial &trial) {
    AttentionOutputs outputs;
    if (trial.wantsLse)
      outputs.lse = &trial.lse.view();
    return attentionInto(trial.o.view(), trial.q.view(), trial.k.view(),
                         trial.v.view(), trial.config, outputs);
  }
  static numerics::OutputBits bitsOf(numerics::AttentionTrial &trial) {
    trial.o.download();
    trial.lse.download();
    return {trial.o.bits(), trial.lse.bits()};
  }
  static void poisonOutputs(numerics::AttentionTrial &trial) {
    for (numerics::TestTensor *tensor : {&trial.o, &trial.lse}) {
      tensor->poison();
      tensor->upload();
    }
  }
};

} // namespace spargejit::gpu
