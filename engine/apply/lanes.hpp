// SPDX-License-Identifier: MIT
// The connections to one host: the control connection, lane 0, and further ones that are opened while they bring more. Pulls and puts
// go over all of them at once; whoever asks for them need not know how many there are.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apply/ramp.hpp"
#include "protocol/endpoint.hpp"

namespace envsync::apply {

/// Of all hosts of a run together.
struct LaneGate {
  static constexpr unsigned kInAllMax = 32;  // LIMIT: further connections of one controller
  std::mutex mutex;                           // what follows
  unsigned open = 0;
  /// By first hop: held while a connection is made, since servers count those that have not logged in (MaxStartups).
  std::map<std::string, std::shared_ptr<std::mutex>> hops;
};

/// some: a lane was lost, and what it carried with it. Which that is, the target knows (Endpoint::lack).
enum class Arrived : u8 { all, some };

class Lanes {
 public:
  /// Makes a further connection and joins it to the session. Empty: there are none to this host.
  using Opener = std::function<Result<std::unique_ptr<protocol::Endpoint>>(const std::string& name, const std::string& secret, std::stop_token)>;
  using PackSink = protocol::Endpoint::PackSink;

  /// `control` outlives this.
  explicit Lanes(protocol::Endpoint& control, Opener opener = {}, std::shared_ptr<LaneGate> gate = {}, std::string hop = {});
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// So much content more will go to the host, or come from it: lanes may be opened for it.
  void expect(u64 content_bytes);
  /// As Endpoint::pull. The sink is called by one thread at a time.
  Result<Arrived> pull(const format::PullRequest&, const std::vector<format::PullItem>&, const PackSink&, std::stop_token);

  /// An open put. send() returns when a lane took the pack; one thread at a time.
  class Put {
   public:
    Put(Lanes& lanes, std::stop_token stop, protocol::Pacer pacer);
    ~Put();
    Result<void> send(std::shared_ptr<const Buffer> pack);
    /// Waits until all is written.
    struct Done { u64 bytes_written = 0; Arrived arrived = Arrived::all; };
    Result<Done> finish();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  /// Opens one now. False where there is to be none.
  bool open_one();
  unsigned count() const;             // that are open
  unsigned most() const;              // that were open at once
  std::string why_no_more() const;    // empty where nothing speaks against more
  u64 bytes_sent() const;
  u64 bytes_received() const;

 private:
  struct Lane {
    std::shared_ptr<protocol::Endpoint> endpoint;  // lane 0's is not owned
    bool is_control = false;
  };
  /// What runs on every lane, on those that come later too.
  class Work {
   public:
    virtual ~Work() = default;
    virtual void start_on(const Lane& lane) = 0;  // under the mutex
    /// How long this host alone was waited for.
    virtual Seconds waited() const = 0;
  };
  struct Pulling;
  friend struct Pulling;

  void begin(Work& work);
  void end(Work& work);
  void note_moved(ByteView pack);
  void note_lost(const std::shared_ptr<protocol::Endpoint>& endpoint);
  void refuse(std::string why);
  void watch(const std::stop_token& stop);
  Result<std::unique_ptr<protocol::Endpoint>> connect(const std::stop_token& stop);
  Ramp::Sight look() const;

  const Opener opener_;
  const std::shared_ptr<LaneGate> gate_;
  const std::string hop_;
  std::string secret_, name_;          // of the watcher
  mutable std::mutex mutex_;           // what follows
  std::condition_variable_any changed_;
  std::vector<Lane> lanes_;
  std::vector<Work*> works_;
  std::string why_no_more_;
  unsigned most_ = 1;
  u64 expected_ = 0, moved_ = 0;       // content
  u64 gone_sent_ = 0, gone_received_ = 0;  // of lanes that were lost
  Seconds waited_before_{};            // of works that are over
  std::jthread watcher_;               // last
};

}  // namespace envsync::apply
