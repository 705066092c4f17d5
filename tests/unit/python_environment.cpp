// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include "support/tree_literal.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

std::vector<std::string> found_in(const tree::Tree& tree) {
  std::vector<std::string> out;
  for (const Distribution& d : distributions(tree)) out.push_back(fmt::format("{} {} ({})", d.name, d.version, d.display_name));
  return out;
}

}  // namespace

TEST_CASE("names compare as PEP 503 says") {
  CHECK(normalize_name("Ruamel.YAML") == "ruamel-yaml");
  CHECK(normalize_name("nvidia_cublas_cu12") == "nvidia-cublas-cu12");
  CHECK(normalize_name("a-_.b__c") == "a-b-c");
  CHECK(normalize_name("") == "");
}

TEST_CASE("distributions are found by the names of their folders, sorted") {
  CHECK(found_in(test::tree({
            "lib/python3.12/site-packages/nvidia_cublas_cu12-12.8.4.1.dist-info/METADATA=m",
            "lib/python3.12/site-packages/ruamel.yaml-0.18.6.dist-info/METADATA=m",
            "lib/python3.12/site-packages/certifi-2026.10.19.post1.dist-info/METADATA=m",
            "lib/python3.12/site-packages/flash_attn_4-4.0.0b15.dist-info/METADATA=m",
            "lib/python3.12/site-packages/torch-2.11.0+cu130.dist-info/METADATA=m",
            "lib/python3.12/site-packages/zope.interface-5.4.0-py3.12-linux-x86_64.egg-info/PKG-INFO=m",
            "lib/python3.12/site-packages/py_spy-0.4.3-py3.12.egg-info/PKG-INFO=m",
            "lib/python3.12/site-packages/develop.egg-info/PKG-INFO=m",
            "lib/python3.12/site-packages/PyGObject-3.42.2.egg-info=a file",
        })) == std::vector<std::string>{
                   "certifi 2026.10.19.post1 (certifi)",
                   "develop  (develop)",
                   "flash-attn-4 4.0.0b15 (flash_attn_4)",
                   "nvidia-cublas-cu12 12.8.4.1 (nvidia_cublas_cu12)",
                   "py-spy 0.4.3 (py_spy)",
                   "pygobject 3.42.2 (PyGObject)",
                   "ruamel-yaml 0.18.6 (ruamel.yaml)",
                   "torch 2.11.0+cu130 (torch)",
                   "zope-interface 5.4.0 (zope.interface)",
               });
}

TEST_CASE("distributions of lib64 and of more than one Python are all found, by the folder they lie in") {
  const tree::Tree tree = test::tree({"lib/python3.11/site-packages/a-1.dist-info/", "lib64/python3.11/site-packages/b-1.dist-info/",
                                      "lib/python3.12/site-packages/a-2.dist-info/"});
  CHECK(found_in(tree) == std::vector<std::string>{"a 1 (a)", "a 2 (a)", "b 1 (b)"});
  CHECK(distributions(tree).at(1).folder.bytes() == "lib/python3.12/site-packages/a-2.dist-info");
}

TEST_CASE("what only looks like a distribution is none") {
  CHECK(found_in(test::tree({
                    "lib/python3.12/site-packages/~umpy-1.26.4.dist-info/METADATA=m",        // pip's leftover
                    "lib/python3.12/site-packages/setuptools/_vendor/a-1.dist-info/METADATA=m",  // vendored
                    "share/python3.12/site-packages/a-1.dist-info/METADATA=m",
                    "lib/python3.12/dist-packages/a-1.dist-info/METADATA=m",
                    "lib/python3.12/site-packages/a-1.dist-info=a file",
                    "lib/python3.12/site-packages/b-1.dist-info -> a",
                    "lib/python3.12/site-packages/-1.dist-info/",
                    "lib/python3.12/site-packages/noversion.dist-info/",
                    "lib/python3.12/site-packages/.dist-info/",
                    "a-1.dist-info/METADATA=m",
                }))
            .empty());
  CHECK(distributions(tree::Tree{}).empty());
}

TEST_CASE("pyvenv.cfg is read loosely") {
  const auto cfg = parse_pyvenv("\n home=/usr/bin \r\nVersion_Info = 3.11.2.final.0\nnot a pair\ncommand = /usr/bin/python -m venv --prompt='a=b' /x\n= x\nuv=0.13.9");
  CHECK(cfg.size() == 4);
  CHECK(cfg.at("home") == "/usr/bin");
  CHECK(cfg.at("version_info") == "3.11.2.final.0");
  CHECK(cfg.at("command") == "/usr/bin/python -m venv --prompt='a=b' /x");
  CHECK(cfg.at("uv") == "0.13.9");
}

TEST_CASE("the version of pyvenv.cfg is that of venv, of virtualenv and of uv") {
  CHECK(pyvenv_version(parse_pyvenv("version = 3.12.4\n")) == "3.12");                 // venv
  CHECK(pyvenv_version(parse_pyvenv("version_info = 3.11.2.final.0\n")) == "3.11");    // virtualenv
  CHECK(pyvenv_version(parse_pyvenv("uv = 0.13.9\nversion_info = 3.11.7\n")) == "3.11");
  CHECK(pyvenv_version(parse_pyvenv("version = 3\nversion_info = 3.10.1\n")) == "3.10");
  CHECK(pyvenv_version(parse_pyvenv("home = /usr/bin\n")) == "");
  CHECK(pyvenv_version(parse_pyvenv("version = x.y\n")) == "");
}

TEST_CASE("a pin is compared by components, not as text") {
  CHECK(version_matches("3.11", "3.11.4"));
  CHECK(version_matches("3.11", "3.11"));
  CHECK(version_matches("3", "3.11.4"));
  CHECK(version_matches("3.11.4", "3.11.4"));
  CHECK_FALSE(version_matches("3.1", "3.11.4"));
  CHECK_FALSE(version_matches("3.11", "3.1"));
  CHECK_FALSE(version_matches("3.11.4", "3.11"));
  CHECK_FALSE(version_matches("3.11.4", "3.11.40"));
  CHECK_FALSE(version_matches("3.10", ""));
  CHECK(version_matches("", "3.11"));
}
