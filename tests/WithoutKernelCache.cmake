# SPDX-License-Identifier: Apache-2.0
# Runs in ctest, before its tests, which inherit the variable.
set(ENV{SPARGEJIT_CACHE} off)
