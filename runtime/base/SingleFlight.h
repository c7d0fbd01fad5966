// SPDX-License-Identifier: Apache-2.0
//
// SingleFlight<Key, Value>: makes the value of each key once, however many
// threads ask; the others wait. Values are kept for the life of the object, and
// so are failures, except those of the surroundings (OutOfResources,
// DriverError, IoError), which may pass. No lock is held while a value is made.
#pragma once

#include "spargejit/status.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace spargejit {

template <typename Key, typename Value, typename Hash = std::hash<Key>>
class SingleFlight {
public:
  using Outcome = Result<std::shared_ptr<const Value>>;

  /// The outcome of `key`: kept from an earlier call, or that of `make()`,
  /// which returns an Outcome and may ask for other keys, not for its own.
  /// `*hit`, where wanted, tells whether it was kept and complete.
  template <typename Make>
  Outcome get(const Key &key, Make &&make, bool *hit = nullptr) {
    // All but the first, who share in no flight.
    if (const Outcome *kept = find(key)) {
      if (hit)
        *hit = true;
      return *kept;
    }
    Flight flight(*this, key);
    if (hit)
      *hit = !flight.first() && flight.complete();
    if (flight.first())
      flight.land(std::forward<Make>(make)());
    return flight.outcome();
  }

  /// The outcome that is kept for `key`, for the life of the object; null where
  /// there is none and while it is being made.
  const Outcome *find(const Key &key) const {
    std::lock_guard lock(mutex_);
    auto it = outcomes_.find(key);
    // What is forgotten is so before it is complete.
    return it == outcomes_.end() || !isComplete(it->second) ? nullptr
                                                            : &it->second.get();
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return outcomes_.size();
  }

private:
  using Future = std::shared_future<Outcome>;

  static bool isComplete(const Future &future) {
    return future.wait_for(std::chrono::seconds(0)) ==
           std::future_status::ready;
  }
  /// True for a failure that the next attempt need not meet.
  static bool mayPass(ErrorCode code) {
    return code == ErrorCode::OutOfResources ||
           code == ErrorCode::DriverError || code == ErrorCode::IoError;
  }

  /// One call's share in a key. Where make() leaves by an exception (out of
  /// memory), the key is forgotten and those who wait get Internal.
  class Flight {
  public:
    Flight(SingleFlight &owner, const Key &key) : owner_(owner), key_(key) {
      std::lock_guard lock(owner_.mutex_);
      auto it = owner_.outcomes_.find(key);
      first_ = it == owner_.outcomes_.end();
      if (first_) {
        promise_.emplace();
        it =
            owner_.outcomes_.emplace(key, promise_->get_future().share()).first;
      }
      future_ = it->second;
    }
    Flight(const Flight &) = delete;
    Flight &operator=(const Flight &) = delete;
    ~Flight() {
      if (!first_ || landed_)
        return;
      forget();
      promise_->set_value(
          Status(ErrorCode::Internal, "the thread that was making it gave up"));
    }

    bool first() const { return first_; }
    bool complete() const { return isComplete(future_); }
    void land(Outcome outcome) {
      if (!outcome.ok() && mayPass(outcome.status().code()))
        forget();
      promise_->set_value(std::move(outcome));
      landed_ = true;
    }
    Outcome outcome() const { return future_.get(); }

  private:
    void forget() {
      std::lock_guard lock(owner_.mutex_);
      owner_.outcomes_.erase(key_);
    }

    SingleFlight &owner_;
    const Key &key_;
    bool first_ = false;
    bool landed_ = false;
    std::optional<std::promise<Outcome>> promise_;
    Future future_;
  };

  mutable std::mutex mutex_;
  std::unordered_map<Key, Future, Hash> outcomes_;
};

} // namespace spargejit
