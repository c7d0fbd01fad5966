// SPDX-License-Identifier: Apache-2.0
//
// FromC.h.
#include "tests/unit/runtime/c_abi/FromC.h"

const size_t kLayoutsInC[8][2] = {
    {sizeof(SpargejitTensor), offsetof(SpargejitTensor, deviceOrdinal)},
    {sizeof(SpargejitLists), offsetof(SpargejitLists, kvLen)},
    {sizeof(SpargejitConfig), offsetof(SpargejitConfig, keptBytes)},
    {sizeof(SpargejitOutputs), offsetof(SpargejitOutputs, lists)},
    {sizeof(SpargejitSaved), offsetof(SpargejitSaved, lists)},
    {sizeof(SpargejitGradients), offsetof(SpargejitGradients, dv)},
    {sizeof(SpargejitTuning), offsetof(SpargejitTuning, problem)},
    {sizeof(SpargejitCounters),
     offsetof(SpargejitCounters, compileMilliseconds)}};

SpargejitConfig configFromC(void) {
  SpargejitConfig config = {.structSize = sizeof config,
                            .method = "topk",
                            .topK = 0.5,
                            .topP = 0.25,
                            .maskBlockQ = 64,
                            .maskBlockKv = 32,
                            .causal = 1};
  return config;
}
