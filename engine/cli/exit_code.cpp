// SPDX-License-Identifier: MIT
#include "cli/exit_code.hpp"

#include <algorithm>
#include <csignal>

namespace envsync::cli {

int combined_exit_code(const std::vector<int>& codes) {
  if (codes.empty()) return 0;
  if (std::ranges::all_of(codes, [&](int code) { return code == codes[0]; })) return codes[0];
  const auto is_success = [](int code) { return code == 0 || code == 4; };
  if (std::ranges::all_of(codes, is_success)) return 4;
  // A run that stopped on a signal stops the rest: the reason is one, whatever came before it.
  for (const int code : {143, 130})
    if (std::ranges::find(codes, code) != codes.end()) return code;
  const auto has_success = [&](int code) { return is_success(code) || code == 3; };
  return std::ranges::any_of(codes, has_success) ? 3 : 1;
}

int interrupted_exit_code(int code, int signal) {
  if (signal == 0 || code == 0) return code;
  // A check that failed, a tree swapped back, a person needed, a bug: true whatever arrived meanwhile.
  if (code == 15 || code == 16 || code == 17 || code == 70) return code;
  return signal == SIGINT ? 130 : 143;
}

}  // namespace envsync::cli
