// SPDX-License-Identifier: Apache-2.0
//
// A MethodPlan as an entry of the disk cache or a pack: with it there, a method
// text is not parsed.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/cache/EntryFolder.h"
#include "spargejit/status.h"

#include <string>

namespace spargejit::plan {

/// The kind of entry that holds a plan.
inline constexpr const char *kPlanKind = "plan";

/// `textDigest` is that of the method's text (MethodText::digest).
cache::KernelKey planKey(const Digest &textDigest,
                         const std::string &generator);
cache::StoredEntry entryOf(const MethodPlan &plan);
/// Internal, naming the field, for content that entryOf() does not write.
Result<MethodPlan> planOf(const cache::StoredEntry &entry);

} // namespace spargejit::plan
