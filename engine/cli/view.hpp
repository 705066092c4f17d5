// SPDX-License-Identifier: MIT
// How this run is shown: what was asked for, and which names are needed to tell hosts and environments apart.
#pragma once

#include <string>

#include <fmt/format.h>

#include "cli/text.hpp"
#include "cli/vocabulary.hpp"

namespace envsync::cli {

struct View {
  Verb verb = Verb::plan;
  std::string manifest;          // as given
  std::string manifest_words;    // what a hinted command needs to mean the same manifest: " fleet.yaml --set a=b"
  std::string connection_words = {};  // and reach its hosts the same way: " --ssh-config lab.conf"
  std::string host_words;        // and the same hosts: " --host web-01"
  std::string consent_words;     // and, of apply, the same consent: " --adopt"
  bool shows_host = false;       // more than one target
  bool shows_environment = false;  // more than one manifest
  bool has_json = false, is_quiet = false, is_verbose = false, lists_files = false, has_exit_code = false;

  std::string command(std::string_view verb_name, std::string_view more = {}) const {
    return fmt::format("envsync {}{}{}{}{}", verb_name, manifest_words, connection_words, host_words, more);
  }
  /// "web-01 'analytics' ", or as much of it as this run needs.
  std::string subject(const std::string& host, const std::string& environment) const {
    std::string out = shows_host ? safe(host) + " " : "";
    if (shows_environment && !environment.empty()) out += "'" + safe(environment) + "' ";
    return out;
  }
};

}  // namespace envsync::cli
