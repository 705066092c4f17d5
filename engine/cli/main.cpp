// SPDX-License-Identifier: MIT
#include <memory>
#include <string>
#include <vector>

#include "cli/process_io.hpp"
#include "cli/run.hpp"
#include "cli/signals.hpp"

int main(int argc, char** argv) {
  using namespace envsync;
  cli::ProcessIo process;  // first: it sees to it that descriptors 0 to 2 are open
  const cli::Signals signals;
  const std::unique_ptr<Engine> engine = make_engine();
  cli::Services services{.engine = *engine,
                         .load = [](const std::string& file, std::vector<std::string> overrides) { return load_manifest(file, std::move(overrides)); },
                         .schema = manifest_schema(), .version = version()};
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const cli::Interruption interruption{.stop = signals.stop(), .signal = [&] { return signals.first(); }};
  return process.check_output(cli::run(arguments, services, process.io(), interruption));
}
