// SPDX-License-Identifier: MIT
#include "agent/agent.hpp"

int main(int argc, char** argv) {
  envsync::os::PosixFiles files;
  return envsync::agent::main(argc, argv, files);
}
