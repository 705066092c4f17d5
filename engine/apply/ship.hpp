// SPDX-License-Identifier: MIT
// interpreter: ship. The Python that the source's environment was made from comes to a target first, at its own path and as a tree with
// generations of its own.
#pragma once

#include "apply/host_job.hpp"
#include "python/base_python.hpp"

namespace envsync::apply {

class BaseShipment {
 public:
  /// Borrows both.
  BaseShipment(Run& run, Source& environment) : run_(&run), environment_(&environment) {}
  /// What of it kept the environment from coming too; nullopt: nothing. A target's own Python that runs is left as it is.
  std::optional<Outcome> bring(const manifest::Host& host, Ending ending);

 private:
  struct Base {
    python::BasePython python;
    std::string version;
    manifest::Manifest manifest;   // of this tree alone
    Run run;
    std::unique_ptr<Source> source;
    std::vector<std::string> needed;  // libraries that a target must have
  };
  Result<Base*> base();
  Result<void> find_base(Base& base);
  Result<bool> is_wanted(Base& base, const manifest::Host& host);

  Run* run_;
  Source* environment_;
  std::mutex mutex_;  // base_, error_
  std::unique_ptr<Base> base_;
  std::optional<Error> error_;
};

}  // namespace envsync::apply
