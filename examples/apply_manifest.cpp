// SPDX-License-Identifier: MIT
// `envsync apply` in forty lines, by the library alone:   apply_manifest MANIFEST [--adopt]
// Prints what happens as it happens, and exits as the command would.
#include <cstdio>
#include <string>
#include <string_view>
#include <variant>

#include <envsync/engine.hpp>

namespace {

template <class... F>
struct Cases : F... {
  using F::operator()...;
};

class Printer final : public envsync::Observer {
 public:
  void on(const envsync::Event& event) override {
    std::visit(Cases{
                   [](const envsync::PlanEvent& e) {
                     std::printf("%s: %llu files differ, at most %llu bytes to send\n", e.host.c_str(),
                                 static_cast<unsigned long long>(e.files_added + e.files_removed + e.files_changed + e.metadata_changed),
                                 static_cast<unsigned long long>(e.bytes_to_send));
                   },
                   [](const envsync::PhaseEvent& e) {
                     if (e.finished) std::printf("%s: %s took %.2f s\n", e.host.c_str(), std::string(envsync::name(e.phase)).c_str(), e.seconds);
                   },
                   [](const envsync::ProblemEvent& e) { std::printf("%s: %s\n", e.host.c_str(), e.error.what.c_str()); },
                   [](const envsync::Outcome& e) {
                     std::printf("%s: %s", e.host.c_str(), std::string(envsync::name(e.kind)).c_str());
                     if (e.generation) std::printf(", generation %u", *e.generation);
                     std::printf("%s%s\n", e.error ? ": " : "", e.error ? e.error->what.c_str() : "");
                   },
                   [](const auto&) {},  // progress and the events of other verbs
               },
               event);
  }
  /// A program has nobody to ask: the engine then refuses, and names what would allow it.
  envsync::Answer ask(const envsync::Question&) override { return envsync::Answer::cannot_ask; }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || (argc == 3 && std::string_view(argv[2]) != "--adopt")) {
    std::fprintf(stderr, "usage: %s MANIFEST [--adopt]\n", argv[0]);
    return 2;
  }
  const auto manifest = envsync::load_manifest(argv[1]);
  if (!manifest) {
    std::fprintf(stderr, "%s\n", manifest.error().what.c_str());
    return envsync::info(manifest.error().code).exit_code;
  }
  const auto engine = envsync::make_engine();
  if (const auto valid = engine->validate(*manifest); !valid) {
    for (const envsync::Error& error : valid.error())
      std::fprintf(stderr, "%s:%u: %s\n", argv[1], error.where ? error.where->line : 0, error.what.c_str());
    return envsync::info(envsync::ErrorCode::manifest_invalid).exit_code;
  }
  envsync::RunOptions options;
  options.adopt = argc == 3;
  options.batch = true;
  Printer printer;
  return engine->apply(*manifest, options, printer, std::stop_token()).exit_code;
}
