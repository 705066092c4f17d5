// SPDX-License-Identifier: MIT
// Texts that a person reads are held whole: a wording change is a reviewed diff. ENVSYNC_WRITE_GOLDEN=1 writes them anew.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

namespace envsync::test {

/// Compares with tests/unit/golden/<name>.txt.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(__FILE__).parent_path().parent_path() / "unit/golden" / (name + ".txt");
  if (std::getenv("ENVSYNC_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream held;
  held << in.rdbuf();
  INFO("golden text: ", path.string());
  REQUIRE(in.good());
  CHECK(held.str() == text);
}

}  // namespace envsync::test
