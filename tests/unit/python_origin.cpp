// SPDX-License-Identifier: MIT
#include "python/origin.hpp"

#include "support/python_overlay.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::python;

namespace {

using Lines = std::vector<std::string>;
using test::Laid;
using test::lay;

const tree::RelPath kSitePath = *tree::RelPath::parse("lib/python3.12/site-packages");

/// What lies in an environment's site-packages, as a folder that somebody copied; the rest stays behind.
test::Environment copied(const test::Environment& from) {
  test::Environment out;
  std::vector<tree::Entry> entries;
  for (const tree::Entry& entry : from.tree.entries()) {
    if (!kSitePath.contains(entry.path)) continue;
    entries.push_back(entry);
    entries.back().path = kSitePath.relative(entry.path);
  }
  out.tree = *tree::Tree::from_unsorted(entries);
  for (const auto& [path, text] : from.files)
    if (path.starts_with(test::kSite)) out.files.emplace(path.substr(test::kSite.size()), text);
  return out;
}

test::Environment staged(const test::Environment& folder) {
  return {*stage_as_environment(folder.tree, kSitePath), stage_as_environment(folder.files, kSitePath), {}};
}

OverlayOptions options(Lines packages, Lines roots = {}, Lines evict = {}) {
  OverlayOptions out;
  out.packages = std::move(packages);
  out.roots = std::move(roots);
  out.evict = std::move(evict);
  return out;
}

}  // namespace

TEST_CASE("an origin is told by what it holds") {
  CHECK(shape_of(test::environment({{"a", "1", {"a.py=1"}}}).tree) == OriginShape::environment);
  CHECK(shape_of(copied(test::environment({{"a", "1", {"a.py=1"}}})).tree) == OriginShape::packages);
  CHECK(shape_of(test::tree({"nvidia/x.so=1"})) == OriginShape::packages);
  CHECK(shape_of(test::tree({"a-1-py3-none-any.whl=1"})) == OriginShape::wheels);
  CHECK(shape_of(tree::Tree{}) == OriginShape::nothing);
  CHECK(site_of(test::environment({}).tree) == kSitePath);
  CHECK_FALSE(site_of(test::tree({"bin/python=1"})));
}

TEST_CASE("rows of a staged folder that lead out of it mean the target's folders") {
  const auto folder = copied(test::environment({{"torch", "2", {"torch/a.py=2", "/bin/torchrun=2", "/share/man/t.1=same", "/include/t.h=2"}, {}, {}, "[console_scripts]\ntorchrun = torch.run:main\n"}}));
  const auto base = test::environment({{"torch", "1", {"torch/a.py=1", "/bin/torchrun=1", "/share/man/t.1=same", "/include/t.h=1"}}});
  const Laid laid = lay(staged(folder), base, options({"torch"}));
  CHECK(laid.files() == Lines{"+torch/a.py", "/share/man/t.1"});
  REQUIRE(laid.overlay.scripts.size() == 1);
  CHECK(laid.overlay.scripts[0].path.bytes() == "bin/torchrun");
  CHECK(laid.findings() == Lines{"e incomplete: 'torch 2' lacks 1 of its files in the origin: include/t.h"});
  for (const TakenPath& taken : laid.overlay.taken) CHECK(folder.tree.find(kSitePath.relative(taken.origin_path)) != nullptr);
}

TEST_CASE("a folder without dist-infos is refused by name, and as a root it comes whole") {
  // As a torch was copied by hand: its nvidia folder came without dist-infos.
  const auto folder = copied(test::environment({{"torch", "2.11", {"torch/a.py=2"}, {"nvidia-cublas==13"}}},
                                               {"lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13=13", "lib/python3.12/site-packages/nvidia/cudnn/x.so=c13"}));
  const auto base = test::environment({{"torch", "2.9", {"torch/a.py=1"}, {"nvidia-cublas-cu12==12", "nvidia-cudnn-cu12==9"}},
                                       {"nvidia-cublas-cu12", "12", {"nvidia/cublas/x.so=12"}},
                                       {"nvidia-cudnn-cu12", "9", {"nvidia/cudnn/x.so=c12"}},
                                       {"nvidia-ml-py", "1", {"pynvml.py=1"}}},
                                      {"lib/python3.12/site-packages/nvidia/left.txt=l"});
  CHECK(lay(staged(folder), base, options({"torch", "nvidia"})).findings() ==
        Lines{"e no_distribution: no dist-info of the origin owns the 2 files (5 B) below 'nvidia'", "w requirement_unmet: 'torch 2.11' needs nvidia-cublas==13, it is not there; so it is in the origin",
              "n unmanaged: 1 file that nobody owned inside what left go"});
  const std::string unmet = "w requirement_unmet: 'torch 2.11' needs nvidia-cublas==13, it is not there; so it is in the origin";
  const std::string gone = "n unmanaged: 1 file that nobody owned inside what left go";
  const Laid forgotten = lay(staged(folder), base, options({"torch"}));
  CHECK(forgotten.findings() ==
        Lines{unmet, "e no_distribution: 'torch 2.11' needs nvidia-cublas==13, and no dist-info of the origin owns the 2 files (5 B) below 'nvidia'", gone});
  const Laid laid = lay(staged(folder), base, options({"torch"}, {"nvidia"}));
  CHECK(laid.findings() == Lines{unmet, gone});
  CHECK(laid.files() == Lines{"+nvidia/cu13/lib/libcublas.so.13", "+nvidia/cudnn/x.so", "pynvml.py", "+torch/a.py"});
  CHECK(laid.steps() == Lines{"- nvidia-cublas-cu12 12> (only torch 2.9 needed it)", "- nvidia-cudnn-cu12 9> (only torch 2.9 needed it)", "~ torch 2.9>2.11 (selected by 'torch')"});
  CHECK(laid.overlay.rooted.size() == 2);
  CHECK_FALSE(laid.overlay.refused());
}

TEST_CASE("a folder without dist-infos is no finding where nothing that comes lacks what it may hold") {
  const std::string site = "lib/python3.12/site-packages/";
  const auto origin = test::environment({{"torch", "2", {"torch/a.py=2"}, {"nvidia-cublas==13", "jinja2"}}}, {site + "nvidia/x.so=1", site + "nvidian/x=1", site + "jin/x=1", site + "torch/mine.py=1"});
  const std::string jinja = "w requirement_unmet: 'torch 2' needs jinja2, it is not there; so it is in the origin";
  SUBCASE("the base has it") {
    CHECK(lay(origin, test::environment({{"nvidia-cublas", "13", {"nvidia/x.so=2"}}}), options({"torch"})).findings() == Lines{jinja});
  }
  SUBCASE("nothing of what is needed is asked for") {
    OverlayOptions alone = options({"torch"});
    alone.closure = ClosureRule::none;
    CHECK_FALSE(lay(origin, test::environment({}), alone).overlay.refused());
  }
}

TEST_CASE("a distribution that stays below a root is refused with its count, unless it shares no path or only equal ones") {
  const test::Environment folder = copied(test::environment({}, {"lib/python3.12/site-packages/nvidia/cudnn/x.so=new", "lib/python3.12/site-packages/nvidia/cudnn/same.so=s", "lib/python3.12/site-packages/nvidia/y.so=y"}));
  const auto base = test::environment({{"cudnn", "9", {"nvidia/cudnn/x.so=old", "nvidia/cudnn/same.so=s"}}, {"nccl", "2", {"nvidia/nccl/x.so=1"}}}, {"lib/python3.12/site-packages/nvidia/z.so=z"});
  const Laid refused = lay(staged(folder), base, options({}, {"nvidia"}));
  CHECK(refused.findings() == Lines{"e root_conflict: 'cudnn 9' stays and would lose 1 file to the root 'nvidia'", "n unmanaged: 1 file that nobody owned inside what left go"});
  CHECK(refused.files() == Lines{"nvidia/cudnn/same.so", "nvidia/cudnn/x.so", "nvidia/nccl/x.so", "+nvidia/y.so"});
  const Laid laid = lay(staged(folder), base, options({}, {"nvidia"}, {"cudnn"}));
  CHECK(laid.findings() == Lines{"n unmanaged: 1 file that nobody owned inside what left go"});
  CHECK(laid.files() == Lines{"+nvidia/cudnn/same.so", "+nvidia/cudnn/x.so", "nvidia/nccl/x.so", "+nvidia/y.so"});
  CHECK(laid.overlay.desired.find(kSitePath.child("cudnn-9.dist-info")) == nullptr);
}

TEST_CASE("a root that a distribution of the origin owns, or that is not there, is refused") {
  const auto origin = test::environment({{"nccl", "2", {"nvidia/nccl/x.so=1"}}}, {"lib/python3.12/site-packages/nvidia/y.so=y"});
  CHECK(lay(origin, test::environment({}), options({}, {"nvidia"})).findings() == Lines{"e root_owned: 'nccl 2' owns files below the root 'nvidia' in the origin"});
  CHECK(lay(origin, test::environment({}), options({}, {"amd"})).findings() == Lines{"e root_not_found: the root 'amd' is not in the origin's site-packages"});
  CHECK(lay(origin, test::environment({}), options({}, {"../../.."})).findings() == Lines{"e root_not_found: the root '../../..' is not in the origin's site-packages"});
}
