// SPDX-License-Identifier: Apache-2.0
//
// SPARGEJIT_API marks what the shared library exports; all else in it is
// hidden.
#pragma once

#define SPARGEJIT_API __attribute__((visibility("default")))
