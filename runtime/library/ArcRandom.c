// SPDX-License-Identifier: Apache-2.0
//
// arc4random for LLVM's archives, which name temporary files with it. glibc has
// it since 2.36; with this one the library also loads on older systems (Ubuntu
// 22.04 has 2.35).
#include <sys/random.h>

#include <stdint.h>
#include <stdlib.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value = 0;
  ssize_t got;
  do
    got = getrandom(&value, sizeof value, 0);
  while (got != (ssize_t)sizeof value);
  return value;
}
