// SPDX-License-Identifier: Apache-2.0
//
// Whether this build is slowed down by a sanitizer, so that times mean nothing.
#pragma once

namespace spargejit::numerics {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

} // namespace spargejit::numerics
