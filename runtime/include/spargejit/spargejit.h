// SPDX-License-Identifier: Apache-2.0
//
// The whole public surface.
#pragma once

#include "spargejit/attention.h"
#include "spargejit/distillation.h"
#include "spargejit/export.h"
#include "spargejit/library.h"
#include "spargejit/quantised.h"
#include "spargejit/status.h"
#include "spargejit/tensor.h"
#include "spargejit/training.h"
#include "spargejit/tuning.h"
