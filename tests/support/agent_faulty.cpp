// SPDX-License-Identifier: MIT
// The agent with faults: what changes a disk fails, or kills the process, at the point that $ENVSYNC_FAULT names.
#include "agent/agent.hpp"

#include "support/faulty_files.hpp"

int main(int argc, char** argv) {
  using envsync::testing::FaultyFiles;
  FaultyFiles files(FaultyFiles::from_environment());
  return envsync::agent::main(argc, argv, files);
}
