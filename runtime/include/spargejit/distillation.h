// SPDX-License-Identifier: Apache-2.0
//
// The loss that sparse attention is trained with: the student's velocities
// against those of the frozen dense teacher.
#pragma once

#include "spargejit/attention.h"

namespace spargejit {

/// How distillationLoss() runs.
struct DistillationConfig {
  /// Factor on loss and gradient, for losses that are scaled so that small
  /// gradients fit their type. Any finite value.
  double lossScale = 1;
  /// As in AttentionConfig.
  int threads = 0;
  void *stream = nullptr;
};

/// loss = lossScale · mean of (student - teacher)² over all n elements, and
/// where `gradient` is given
/// gradient = 2 · lossScale · (student - teacher) / n = dloss / dstudent
/// (velocity distillation of SpargeAttention2, arXiv 2602.13515, with the mean
/// for the squared norm).
///
/// student, teacher: one shape of rank 1 to 4, one dtype of float32, bfloat16,
/// float16, any strides whose last is 1. gradient: that shape, any of these
/// dtypes, any strides whose last is 1, apart from teacher and loss; it may be
/// student's own memory with student's strides and dtype. loss: float32, one
/// element, on the same device. Differences and products are float32, sums of
/// rows too, their total float64, in one order: the same bits in every run.
/// Without elements the loss is 0.
///
/// Thread-safe. Errors: InvalidArgument, naming the argument; Unsupported on a
/// GPU without these kernels; those of attention().
SPARGEJIT_API Status distillationLoss(const TensorView &loss,
                                      const TensorView *gradient,
                                      const TensorView &student,
                                      const TensorView &teacher,
                                      const DistillationConfig &config = {});

} // namespace spargejit
