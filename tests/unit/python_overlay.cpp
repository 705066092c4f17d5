// SPDX-License-Identifier: MIT
#include "python/overlay.hpp"
#include "python/scripts.hpp"
#include "python/selection.hpp"

#include "support/python_overlay.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

using Lines = std::vector<std::string>;
using test::Laid;
using test::lay;

OverlayOptions packages(Lines names) {
  OverlayOptions out;
  out.packages = std::move(names);
  return out;
}

}  // namespace

TEST_CASE("a package is replaced whole, what it had alone goes, and its neighbours stay") {
  const Laid laid = lay(test::environment({{"torch", "2.10", {"torch/a.py=A2", "torch/new/b.py=B", "/bin/torchrun=r2"}}, {"other", "1", {"other.py=1"}}}),
                        test::environment({{"torch", "2.9", {"torch/a.py=A1", "torch/old/c.py=C", "/bin/torchrun=r1", "/bin/old=o"}}, {"numpy", "1", {"numpy/x.py=n"}}}),
                        packages({"torch"}));
  CHECK(laid.files() == Lines{"+/bin/torchrun", "numpy/x.py", "+torch/a.py", "+torch/new/b.py"});
  CHECK(laid.folders() == Lines{"numpy", "numpy-1.dist-info", "torch", "torch-2.10.dist-info"});
  CHECK(laid.steps() == Lines{"~ torch 2.9>2.10 (selected by 'torch')"});
  CHECK(laid.findings().empty());
  CHECK(laid.overlay.desired.find(*tree::RelPath::parse("lib/python3.12/site-packages/torch/old")) == nullptr);
}

TEST_CASE("packages are named in any spelling, by glob, or by a top-level folder") {
  const auto origin = test::environment({{"My_Pkg", "2", {"mine/a.py=2"}}, {"nvidia-nccl-cu13", "2", {"nvidia/nccl/x=2"}}, {"nvidia-ml-py", "2", {"pynvml.py=2"}}});
  const auto steps = [&](Lines names) { return lay(origin, test::environment({}), packages(std::move(names))).steps(); };
  CHECK(steps({"my.PKG"}) == Lines{"+ my-pkg >2 (selected by 'my.PKG')"});
  CHECK(steps({"nvidia-n*", "MY[_-]*"}) == Lines{"+ my-pkg >2 (selected by 'MY[_-]*')", "+ nvidia-nccl-cu13 >2 (selected by 'nvidia-n*')"});
  CHECK(steps({"nvidia"}) == Lines{"+ nvidia-nccl-cu13 >2 (owns files below 'nvidia')"});
  CHECK(steps({"pynvml.py"}) == Lines{"+ nvidia-ml-py >2 (owns files below 'pynvml.py')"});
}

TEST_CASE("a pattern that matches nothing is refused, and so is a folder without a dist-info") {
  const auto origin = test::environment({{"torch", "2", {"torch/a.py=2"}}}, {"lib/python3.12/site-packages/nvidia/x.so=12345", "lib/python3.12/site-packages/torch/mine=1"});
  CHECK(lay(origin, test::environment({}), packages({"tensorflow"})).findings() ==
        Lines{"e package_not_found: 'tensorflow' matches no distribution and no top-level folder of the origin"});
  CHECK(lay(origin, test::environment({}), packages({"nvidia"})).findings() == Lines{"e no_distribution: no dist-info of the origin owns the 1 files (5 B) below 'nvidia'"});
  CHECK(lay(origin, test::environment({}), packages({"torch"})).overlay.refused() == false);
}

TEST_CASE("pins come along through extras and markers, and a range where the base does not meet it") {
  const auto origin = test::environment(
      {{"torch", "2.11", {"torch.py=2"}, {"filelock", "sympy>=1.13", "networkx>=3", "cuda-toolkit[cudart]==13.0.2; platform_system == 'Linux'", "triton==3.6; sys_platform == 'linux'", "intel==1; sys_platform == 'win32'"}},
       {"cuda-toolkit", "13.0.2", {}, {"nvidia-cuda-runtime==13.0.*; extra == 'cudart'", "nvidia-npp==13.0.*; extra == 'npp'"}, {"cudart", "npp"}},
       {"nvidia-cuda-runtime", "13.0.96", {"nvidia/cu13/rt.so=13"}},
       {"nvidia-npp", "13.0", {"nvidia/cu13/npp.so=13"}},
       {"triton", "3.6", {"triton.py=3.6"}},
       {"intel", "1", {"intel.py=1"}},
       {"filelock", "4", {"filelock.py=4"}},
       {"sympy", "1.14", {"sympy.py=14"}, {"mpmath<1.4,>=1.1"}},
       {"mpmath", "1.3", {"mpmath.py=3"}},
       {"networkx", "3.6", {"networkx.py=3"}}});
  const auto base = test::environment({{"filelock", "3", {"filelock.py=3"}}, {"networkx", "3.1", {"networkx.py=3"}}, {"sympy", "1.12", {"sympy.py=12"}}});
  const Laid laid = lay(origin, base, packages({"torch"}));
  CHECK(laid.steps() == Lines{"+ cuda-toolkit >13.0.2 (torch 2.11 pins cuda-toolkit[cudart]==13.0.2)", "+ mpmath >1.3 (sympy 1.14 needs mpmath<1.4,>=1.1, which the base does not meet)",
                              "+ nvidia-cuda-runtime >13.0.96 (cuda-toolkit 13.0.2 pins nvidia-cuda-runtime==13.0.*)",
                              "~ sympy 1.12>1.14 (torch 2.11 needs sympy>=1.13, which the base does not meet)", "+ torch >2.11 (selected by 'torch')",
                              "+ triton >3.6 (torch 2.11 pins triton==3.6)"});
  CHECK(laid.findings().empty());
  OverlayOptions alone = packages({"torch"});
  alone.closure = ClosureRule::none;
  CHECK(lay(origin, base, alone).steps() == Lines{"+ torch >2.11 (selected by 'torch')"});
}

TEST_CASE("an extra of what the base has brings what the base lacks for it") {
  const Laid laid = lay(test::environment({{"app", "2", {"app.py=2"}, {"requests[socks]>=2"}}, {"requests", "2.3", {"requests.py=2"}}, {"pysocks", "1", {"socks.py=1"}}}),
                        test::environment({{"requests", "2.1", {"requests.py=1"}, {"PySocks>=1; extra == 'socks'"}, {"socks"}}}), packages({"app"}));
  CHECK(laid.steps() == Lines{"+ app >2 (selected by 'app')", "+ pysocks >1 (requests 2.1 needs PySocks>=1, which the base does not meet)"});
}

TEST_CASE("what only the old version pinned leaves, pins of pins too, and what anything else needs stays") {
  const auto base = test::environment({{"torch", "2.9", {"torch.py=1"}, {"nvidia-cublas-cu12==12.8", "nvidia-cudnn-cu12==9.10", "nvidia-nccl-cu12==2.27", "triton==3.5", "networkx"}},
                                       {"nvidia-cublas-cu12", "12.8", {"nvidia/cublas/x.so=12"}},
                                       {"nvidia-cudnn-cu12", "9.10", {"nvidia/cudnn/x.so=12"}, {"nvidia-helper==1"}},
                                       {"nvidia-helper", "1", {"nvidia/helper.so=1"}},
                                       {"nvidia-nccl-cu12", "2.27", {"nvidia/nccl/x.so=12"}},
                                       {"networkx", "3", {"networkx.py=3"}},
                                       {"triton", "3.5", {"triton.py=5"}},
                                       {"nvidia-ml-py", "1", {"pynvml.py=1"}},
                                       {"neighbour", "1", {"neighbour.py=1"}, {"nvidia-nccl-cu12", "nvidia-cublas-cu12<13; extra == 'cuda'"}, {"cuda"}}});
  const auto origin = test::environment({{"torch", "2.10", {"torch.py=2"}, {"triton==3.6", "nvidia-cublas==13"}}, {"triton", "3.6", {"triton.py=6"}}, {"nvidia-cublas", "13", {"nvidia/cu13/x.so=13"}}});
  const Laid laid = lay(origin, base, packages({"torch"}));
  CHECK(laid.steps() == Lines{"+ nvidia-cublas >13 (torch 2.10 pins nvidia-cublas==13)", "- nvidia-cublas-cu12 12.8> (only torch 2.9 needed it)",
                              "- nvidia-cudnn-cu12 9.10> (only torch 2.9 needed it)", "- nvidia-helper 1> (only torch 2.9 needed it)", "~ torch 2.9>2.10 (selected by 'torch')",
                              "~ triton 3.5>3.6 (torch 2.10 pins triton==3.6)"});
  CHECK(laid.files() == Lines{"neighbour.py", "networkx.py", "+nvidia/cu13/x.so", "nvidia/nccl/x.so", "pynvml.py", "+torch.py", "+triton.py"});
  CHECK(laid.findings() == Lines{"n evicted_optional: 'nvidia-cublas-cu12 12.8' leaves; an extra of 'neighbour 1' would need nvidia-cublas-cu12<13"});
  OverlayOptions keeping = packages({"torch"});
  keeping.evict_auto = false;
  keeping.evict = {"NVIDIA.helper", "nvidia-x*"};
  const Laid kept = lay(origin, base, keeping);
  CHECK(kept.steps().size() == 4);
  CHECK(kept.findings() == Lines{"w evict_matches_nothing: no distribution of the base matches evict 'nvidia-x*'",
                                 "w requirement_broken: 'nvidia-cudnn-cu12 9.10' stays and needs nvidia-helper==1, it is not there"});
}

TEST_CASE("both of one name leave the base, and two of one name in the origin are refused") {
  const auto twice = test::environment({{"a", "1", {"a.py=1", "a1.py=1"}}, {"A", "2", {"a.py=2", "a2.py=2"}}});
  const auto once = test::environment({{"a", "3", {"a.py=3"}}});
  const Laid laid = lay(once, twice, packages({"a"}));
  CHECK(laid.files() == Lines{"+a.py"});
  CHECK(laid.steps() == Lines{"~ a 2, 1>3 (selected by 'a')"});
  CHECK(laid.folders() == Lines{"a-3.dist-info"});
  CHECK(lay(twice, once, packages({"a"})).findings().front() == "e duplicate_distribution: the origin holds 'a' twice: A-2.dist-info and a-1.dist-info");
}

TEST_CASE("a path that a staying distribution owns with the content that is there is not removed") {
  // As cudnn for CUDA 13 was laid over cudnn for CUDA 12: one path, the later one's content.
  const Laid laid = lay(test::environment({{"torch", "2", {"torch.py=2"}}}),
                        test::environment({{"torch", "1", {"torch.py=1"}, {"cudnn-cu12==9"}}, {"cudnn-cu12", "9", {"nvidia/cudnn/x.so=cu12", "nvidia/cudnn/12.h=h"}},
                                           {"cudnn-cu13", "9", {"nvidia/cudnn/x.so=cu13"}}}),
                        packages({"torch"}));
  CHECK(laid.files() == Lines{"nvidia/cudnn/x.so", "+torch.py"});
  CHECK(laid.findings().empty());
}

TEST_CASE("evicting the owner of the content while another stays is refused, with the content kept") {
  const auto base = test::environment({{"cudnn-cu13", "9", {"nvidia/cudnn/x.so=cu13", "nvidia/cudnn/y.so=same"}}, {"torch", "1", {"torch.py=1"}, {"cudnn-cu12==9"}},
                                       {"cudnn-cu12", "9", {"nvidia/cudnn/x.so=cu12", "nvidia/cudnn/y.so=same"}}});
  const Laid laid = lay(test::environment({{"torch", "2", {"torch.py=2"}}}), base, packages({"torch"}));
  CHECK(laid.files() == Lines{"nvidia/cudnn/x.so", "nvidia/cudnn/y.so", "+torch.py"});
  CHECK(laid.findings() == Lines{"e owner_lost: 'cudnn-cu13 9' stays, and 1 file of it has the content of 'cudnn-cu12 9', which leaves"});
  // What comes in its place takes nothing from who had nothing.
  const Laid replaced = lay(test::environment({{"torch", "2", {"torch.py=2"}, {"cudnn-new==9"}}, {"cudnn-new", "9", {"nvidia/cudnn/x.so=new"}}}), base, packages({"torch"}));
  CHECK(replaced.findings().empty());
  CHECK(replaced.files() == Lines{"+nvidia/cudnn/x.so", "nvidia/cudnn/y.so", "+torch.py"});
}

TEST_CASE("a path whose owner stays does not change its content but by the rule for conflicts") {
  const auto base = test::environment({{"cudnn-cu12", "9.1", {"nvidia/cudnn/a.so=a12", "nvidia/cudnn/b.so=b12", "nvidia/__init__.py=", "nvidia/12.h=h"}}});
  const auto origin = test::environment({{"cudnn-cu13", "9.2", {"nvidia/cudnn/a.so=a13", "nvidia/cudnn/b.so=b13", "nvidia/__init__.py=", "nvidia/13.h=h"}}});
  OverlayOptions options = packages({"cudnn-cu13"});
  const Laid refused = lay(origin, base, options);
  CHECK(refused.findings() == Lines{"e conflicts: 'cudnn-cu12 9.1' stays and would lose 2 files to 'cudnn-cu13 9.2'"});
  CHECK(refused.overlay.refused());
  options.conflicts = ConflictRule::overlay;
  const Laid laid = lay(origin, base, options);
  CHECK(laid.files() == Lines{"nvidia/12.h", "+nvidia/13.h", "nvidia/__init__.py", "+nvidia/cudnn/a.so", "+nvidia/cudnn/b.so"});
  CHECK(laid.findings() == Lines{"w conflicts: 'cudnn-cu12 9.1' stays and loses 2 files to 'cudnn-cu13 9.2'"});
  options.conflicts = ConflictRule::base;
  const Laid kept = lay(origin, base, options);
  CHECK(kept.files() == Lines{"nvidia/12.h", "+nvidia/13.h", "nvidia/__init__.py", "nvidia/cudnn/a.so", "nvidia/cudnn/b.so"});
  CHECK(kept.findings() == Lines{"w conflicts: 'cudnn-cu12 9.1' stays and keeps 2 files against 'cudnn-cu13 9.2'"});
}

TEST_CASE("several owners of one path inside an origin are no finding, but one that comes without the owner of its content is") {
  const auto origin = test::environment({{"dsl-base", "1", {"dsl/x.py=old", "dsl/own.py=b"}}, {"dsl-cu13", "1", {"dsl/x.py=new"}}});
  CHECK(lay(origin, test::environment({}), packages({"dsl-*"})).findings().empty());
  CHECK(lay(origin, test::environment({}), packages({"dsl-cu13"})).findings().empty());
  CHECK(lay(origin, test::environment({}), packages({"dsl-base"})).findings() ==
        Lines{"e not_effective: 1 file of 'dsl-base 1' has the content of 'dsl-cu13 1' in the origin, which does not come"});
}

TEST_CASE("files of what comes that are not what RECORD says are refused, scripts aside") {
  const auto origin = test::environment({{"a", "1", {"a.py=abc", "/bin/a=#!/x"}}}, {"lib/python3.12/site-packages/a.py=edited by hand", "bin/a=#!/another/python"});
  CHECK(lay(origin, test::environment({}), packages({"a"})).findings() == Lines{"e record_mismatch: 1 file of 'a 1' in the origin is not what its RECORD says"});
}

TEST_CASE("files that nobody owns go with the package that they lie in, or stay by the rule") {
  const Lines others{"lib/python3.12/site-packages/torch/mine.py=m", "lib/python3.12/site-packages/torch/cache/deep/x=1", "lib/python3.12/site-packages/torch/empty/",
                     "lib/python3.12/site-packages/nvidia/notes.txt=n", "lib/python3.12/site-packages/nvidia/cudnn/hand.so=h", "lib/python3.12/site-packages/top.pth=p",
                     "share/man/mine.1=m", "bin/mine=b", "lib/python3.12/site-packages/empty/"};
  const auto base = test::environment({{"torch", "1", {"torch/a.py=1", "nvidia/cudnn/x.so=1", "/share/man/t.1=1", "/bin/t=1"}}, {"stays", "1", {"nvidia/nccl/x.so=1"}}}, others);
  const auto origin = test::environment({{"torch", "2", {"torch/a.py=2", "torch/mine.py=theirs"}}});
  OverlayOptions options = packages({"torch"});
  const Laid laid = lay(origin, base, options);
  CHECK(laid.files() == Lines{"/bin/mine", "nvidia/nccl/x.so", "nvidia/notes.txt", "top.pth", "+torch/a.py", "+torch/mine.py", "/share/man/mine.1"});
  CHECK(laid.folders() == Lines{"empty", "nvidia", "stays-1.dist-info", "torch", "torch-2.dist-info"});
  CHECK(laid.findings() == Lines{"n unmanaged: 3 files that nobody owned inside what left go"});
  options.unmanaged = UnmanagedRule::keep;
  const Laid kept = lay(origin, base, options);
  CHECK(kept.files() == Lines{"/bin/mine", "nvidia/cudnn/hand.so", "nvidia/nccl/x.so", "nvidia/notes.txt", "top.pth", "+torch/a.py", "torch/cache/deep/x", "+torch/mine.py",
                              "/share/man/mine.1"});
  CHECK(kept.findings() == Lines{"n unowned_replaced: 'torch 2' replaces 1 file that nobody owned", "n unmanaged: 3 files that nobody owned inside what left stay"});
}

TEST_CASE("a file that became a folder and a folder that became a file are both replaced") {
  const Laid laid = lay(test::environment({{"a", "2", {"a/x/deep.py=2", "a/y=2"}}}), test::environment({{"a", "1", {"a/x=1", "a/y/deep.py=1"}}}), packages({"a"}));
  CHECK(laid.files() == Lines{"+a/x/deep.py", "+a/y"});
  CHECK(laid.findings().empty());
}

TEST_CASE("what would lie below a staying file, or in the place of a staying folder, does not come") {
  const Laid below = lay(test::environment({{"a", "2", {"shared/x.py=2", "a.py=2"}}}), test::environment({{"b", "1", {"shared=1"}}}), packages({"a"}));
  CHECK(below.files() == Lines{"+a.py", "shared"});
  CHECK(below.findings() == Lines{"e path_blocked: 1 file of 'a 2' cannot come: this path is of 'b 1' and stays"});
  const Laid place = lay(test::environment({{"a", "2", {"shared=2"}}}), test::environment({{"b", "1", {"shared/x.py=1"}}}), packages({"a"}));
  CHECK(place.files() == Lines{"shared/x.py"});
  CHECK(place.findings() == Lines{"e path_blocked: 1 file of 'a 2' cannot come: this path is nobody's and stays"});
  const Laid link = lay(test::environment({{"a", "2", {"nvidia/x.py=2"}}}), test::environment({}, {"lib/python3.12/site-packages/nvidia -> /opt/nvidia"}), packages({"a"}));
  CHECK(link.findings() == Lines{"e path_blocked: 1 file of 'a 2' cannot come: this path is nobody's and stays"});
}

TEST_CASE("rows that the origin lacks are the base's equal files, scripts to generate, or a refusal") {
  const std::string entry_points = "[console_scripts]\ntorchrun = torch.run:main\n";
  const auto origin = test::environment({{"torch", "2", {"torch.py=2", "!functorch/same.py=s", "!functorch/other.py=2", "!functorch/new.py=n", "!/bin/torchrun=r"}, {}, {}, entry_points}});
  const auto base = test::environment({{"torch", "1", {"torch.py=1", "functorch/same.py=s", "functorch/other.py=1", "/bin/torchrun=old"}}});
  OverlayOptions options = packages({"torch"});
  const Laid refused = lay(origin, base, options);
  CHECK(refused.findings() == Lines{"e incomplete: 'torch 2' lacks 2 of its files in the origin: functorch/other.py, functorch/new.py"});
  CHECK(refused.files() == Lines{"functorch/same.py", "+torch.py"});
  REQUIRE(refused.overlay.scripts.size() == 1);
  CHECK(refused.overlay.scripts[0].path.bytes() == "bin/torchrun");
  CHECK(refused.overlay.scripts[0].entry_point == EntryPoint{"torchrun", "torch.run", "main"});
  options.incomplete = IncompleteRule::base;
  const Laid kept = lay(origin, base, options);
  CHECK(kept.findings() == Lines{"w incomplete: 'torch 2' lacks 1 of its files in the origin: functorch/new.py",
                                 "w incomplete: 'torch 2' lacks 1 of its files in the origin; the base's own are kept: functorch/other.py"});
  CHECK(kept.files() == Lines{"functorch/other.py", "functorch/same.py", "+torch.py"});
}

TEST_CASE("of many rows that the origin lacks the first twenty are listed") {
  Lines files = {"torch.py=2"};
  for (int i = 10; i < 33; ++i) files.push_back(fmt::format("!functorch/{}.py=1", i));
  const Laid laid = lay(test::environment({{"torch", "2", files}}), test::environment({}), packages({"torch"}));
  REQUIRE(laid.findings().size() == 1);
  CHECK(laid.findings()[0].starts_with("e incomplete: 'torch 2' lacks 23 of its files in the origin: functorch/10.py, functorch/11.py, "));
  CHECK(laid.findings()[0].ends_with(", functorch/29.py, and 3 more"));
}

TEST_CASE("requirements that were unmet before are no finding, those that the plan breaks warn") {
  const auto base = test::environment({{"torch", "2.9", {"torch.py=1"}}, {"vision", "1", {"vision.py=1"}, {"torch==2.9", "pillow"}}, {"audio", "1", {"audio.py=1"}, {"torch==2.8"}}});
  const auto origin = test::environment({{"torch", "2.10", {"torch.py=2"}, {"jinja2", "sympy>=1", "numpy; extra == 'x'"}, {"x"}}, {"sympy", "0.9", {"sympy.py=1"}}});
  const Laid laid = lay(origin, base, packages({"torch"}));
  CHECK(laid.findings() == Lines{"w requirement_unmet: 'torch 2.10' needs jinja2, it is not there; so it is in the origin",
                                 "w requirement_unmet: 'torch 2.10' needs sympy>=1, sympy 0.9 is there; so it is in the origin",
                                 "w requirement_broken: 'vision 1' stays and needs torch==2.9, torch 2.10 is there"});
  CHECK_FALSE(laid.overlay.refused());
}

TEST_CASE("a distribution whose RECORD tells nothing can neither come nor leave, and hostile rows do not come") {
  auto there = test::environment({{"a", "1", {"a.py=1"}}});
  const auto other = test::environment({{"a", "2", {"a.py=2"}}});
  there.files["lib/python3.12/site-packages/a-1.dist-info/RECORD"] = "a.py,,\n../../../../env_backup/x,,\n";
  CHECK(lay(there, other, packages({"a"})).findings() == Lines{"e record_row_refused: row '../../../../env_backup/x' of 'a 1' leaves the environment"});
  CHECK(lay(other, there, packages({"a"})).findings() == Lines{"w record_row_refused: row '../../../../env_backup/x' of 'a 1' leaves the environment"});
  there.files["lib/python3.12/site-packages/a-1.dist-info/RECORD"] = std::string(1000, '\n') + std::string(50, 'x') + std::string("\0\n", 2);
  for (int i = 0; i < 100; ++i) there.files["lib/python3.12/site-packages/a-1.dist-info/RECORD"] += "/x,,\n";
  CHECK(lay(there, other, packages({"a"})).findings().size() == 20);
  there.files.erase("lib/python3.12/site-packages/a-1.dist-info/RECORD");
  CHECK(lay(there, other, packages({"a"})).findings() == Lines{"e record_unusable: 'a 1' comes, and has no RECORD"});
  CHECK(lay(other, there, packages({"a"})).findings() ==
        Lines{"e record_unusable: 'a 1' leaves, and has no RECORD", "n unowned_replaced: 'a 2' replaces 1 file that nobody owned"});
}

TEST_CASE("packages of another Python do not come") {
  const Laid laid = lay(test::environment({{"a", "1", {"a.py=1"}}}, {}, "lib/python3.11/site-packages/"), test::environment({{"b", "1", {"b.py=1"}}}), packages({"a"}));
  CHECK(laid.findings() == Lines{"e python_mismatch: the origin's packages lie in 'lib/python3.11/site-packages', the base's in 'lib/python3.12/site-packages'"});
  CHECK(laid.files() == Lines{"b.py"});
  const Laid lib64 = lay(test::environment({{"a", "1", {"a.py=1", "/bin/a=1"}}}, {}, "lib64/python3.12/site-packages/"), test::environment({{"b", "1", {"b.py=1"}}}), packages({"a"}));
  CHECK(lib64.files() == Lines{"+/bin/a", "+a.py", "b.py"});
  CHECK(lib64.overlay.taken.back().origin_path.bytes() == "lib64/python3.12/site-packages/a.py");
}

TEST_CASE("packages of any Python, as unpacked wheels are, come into the base's site-packages, with their headers") {
  const auto wheels = test::environment({{"a", "1", {"a.py=1", "/include/site/python3/A/a.h=1", "/share/a=1"}}}, {}, "lib/python3/site-packages/");
  Laid laid = lay(wheels, test::environment({{"b", "1", {"b.py=1"}}}), packages({"a"}));
  CHECK(laid.findings().empty());
  CHECK(laid.files() == Lines{"+/include/site/python3.12/A/a.h", "+a.py", "b.py", "+/share/a"});
  REQUIRE(python::finish_scripts(laid.overlay, wheels.files, "/srv/env"));
  const std::string record = laid.overlay.made.at(*tree::RelPath::parse("lib/python3.12/site-packages/a-1.dist-info/RECORD"));
  CHECK(record.find("\n../../../include/site/python3.12/A/a.h,sha256=") != std::string::npos);
  CHECK(record.find("python3/") == std::string::npos);
  CHECK(record.find("\n../../../share/a,sha256=") != std::string::npos);
}

TEST_CASE("hard links of both sides stay links of their own side") {
  const auto base = test::environment({{"b", "1", {"b/x=1"}}});
  auto made = test::environment({{"a", "1", {"a/x=1", "a/y=1"}}});
  std::vector<tree::Entry> entries(made.tree.entries().begin(), made.tree.entries().end());
  for (tree::Entry& entry : entries)
    if (entry.path.bytes().ends_with("/a/x") || entry.path.bytes().ends_with("/a/y")) std::get<tree::File>(entry.body).link_group = 7;
  made.tree = *tree::Tree::from_unsorted(entries);
  const Laid laid = lay(made, base, packages({"a"}));
  const auto group = [&](const char* path) { return laid.overlay.desired.find(*tree::RelPath::parse("lib/python3.12/site-packages/" + std::string(path)))->file()->link_group; };
  CHECK(group("a/x") != 0);
  CHECK(group("a/x") == group("a/y"));
  CHECK(group("b/x") == 0);
}

TEST_CASE("a second overlay takes the result of the first as its base") {
  const Laid first = lay(test::environment({{"a", "2", {"a.py=2"}}}), test::environment({{"a", "1", {"a.py=1"}}, {"b", "1", {"b.py=1"}}}), packages({"a"}));
  test::Environment base{first.overlay.desired, small_files_after(first.overlay, first.base.files, first.origin.files), {}};
  CHECK(base.files.size() == 4);
  const Laid second = lay(test::environment({{"b", "2", {"b.py=2"}, {"a==2"}}}), std::move(base), packages({"b"}));
  CHECK(second.files() == Lines{"a.py", "+b.py"});
  CHECK(second.steps() == Lines{"~ b 1>2 (selected by 'b')"});
  CHECK(second.findings().empty());
}

TEST_CASE("globs match names") {
  for (const auto& [pattern, name] : {std::pair("nvidia-*", "nvidia-"), {"nvidia-*-cu12", "nvidia-a-cu12-b-cu12"}, {"*", ""}, {"a?c", "abc"}, {"[a-c]x", "bx"}, {"[!a-c]x", "dx"}, {"a**", "a"}})
    CHECK_MESSAGE(name_matches(pattern, name), pattern);
  for (const auto& [pattern, name] : {std::pair("a?c", "ac"), {"[!a-c]x", "bx"}, {"[x", "[x"}, {"a*b*c", "aXbYbZ"}, {"a", "ab"}, {"ab", "a"}, {"", "a"}})
    CHECK_MESSAGE(!name_matches(pattern, name), pattern);
}
