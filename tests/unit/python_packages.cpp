// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include "support/tree_literal.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

/// "numpy changed 1.26.4 -> 2.0.1, 3 files, 12 bytes" for each line, and the count of what stays.
std::vector<std::string> changes(const tree::Tree& from, const tree::Tree& to) {
  const PackageChanges found = package_changes(from, to, tree::diff(from, to, {}));
  std::vector<std::string> out;
  for (const PackageLine& line : found.lines) {
    static constexpr std::string_view kKinds[] = {"added", "removed", "changed", "rebuilt"};
    out.push_back(fmt::format("{} {} {}->{} {} files {} bytes", line.name, kKinds[static_cast<int>(line.kind)], line.from_version, line.to_version,
                              line.files, line.bytes));
  }
  out.push_back(fmt::format("{} unchanged", found.unchanged));
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("an upgrade is one line with both versions, its files and its new bytes") {
  CHECK(changes(test::tree({"lib/python3.12/site-packages/numpy/a.py=old", "lib/python3.12/site-packages/numpy/b.py=same",
                            "lib/python3.12/site-packages/numpy.libs/libblas-1.so=blas", "lib/python3.12/site-packages/numpy-1.26.4.dist-info/METADATA=1",
                            "lib/python3.12/site-packages/idna/a.py=x", "lib/python3.12/site-packages/idna-3.20.dist-info/METADATA=2"}),
                test::tree({"lib/python3.12/site-packages/numpy/a.py=newer", "lib/python3.12/site-packages/numpy/b.py=same",
                            "lib/python3.12/site-packages/numpy.libs/libblas-2.so=blas", "lib/python3.12/site-packages/numpy-2.0.1.dist-info/METADATA=34",
                            "lib/python3.12/site-packages/idna/a.py=x", "lib/python3.12/site-packages/idna-3.20.dist-info/METADATA=2"})) ==
        Lines{"numpy changed 1.26.4->2.0.1 5 files 7 bytes", "1 unchanged"});
}

TEST_CASE("packages come, go, and are rebuilt under the same version") {
  CHECK(changes(test::tree({"lib/python3.12/site-packages/six.py=s", "lib/python3.12/site-packages/six-1.16.0.dist-info/RECORD=r",
                            "lib/python3.12/site-packages/torch/a.so=cu128", "lib/python3.12/site-packages/torch-2.9.0.dist-info/RECORD=t"}),
                test::tree({"lib/python3.12/site-packages/typing_extensions.py=t", "lib/python3.12/site-packages/typing_extensions-4.16.0.dist-info/RECORD=u",
                            "lib/python3.12/site-packages/torch/a.so=cu130+", "lib/python3.12/site-packages/torch-2.9.0.dist-info/RECORD=t"})) ==
        Lines{"six removed 1.16.0-> 2 files 0 bytes", "torch rebuilt 2.9.0->2.9.0 1 files 6 bytes",
              "typing-extensions added ->4.16.0 2 files 1 bytes", "0 unchanged"});
}

TEST_CASE("a change of modes alone is no rebuild") {
  CHECK(changes(test::tree({"lib/python3.12/site-packages/six.py=s", "lib/python3.12/site-packages/six-1.dist-info/RECORD=r"}),
                test::tree({"0600 lib/python3.12/site-packages/six.py=s", "lib/python3.12/site-packages/six-1.dist-info/RECORD=r"})) ==
        Lines{"six changed 1->1 1 files 0 bytes", "0 unchanged"});
}

TEST_CASE("namespace folders belong to the distribution that their names join to") {
  CHECK(changes(test::tree({"lib/python3.12/site-packages/ruamel.yaml-0.18.6.dist-info/RECORD=r", "lib/python3.12/site-packages/ruamel/yaml/main.py=1",
                            "lib/python3.12/site-packages/zope.interface-5.4.0-py3.12.egg-info/PKG-INFO=z",
                            "lib/python3.12/site-packages/zope/interface/ro.py=1",
                            "lib/python3.12/site-packages/google_cloud_storage-3.0.dist-info/RECORD=g",
                            "lib/python3.12/site-packages/google/cloud/storage/blob.py=1"}),
                test::tree({"lib/python3.12/site-packages/ruamel.yaml-0.18.6.dist-info/RECORD=r", "lib/python3.12/site-packages/ruamel/yaml/main.py=2",
                            "lib/python3.12/site-packages/zope.interface-5.4.0-py3.12.egg-info/PKG-INFO=z",
                            "lib/python3.12/site-packages/zope/interface/ro.py=2",
                            "lib/python3.12/site-packages/google_cloud_storage-3.0.dist-info/RECORD=g",
                            "lib/python3.12/site-packages/google/cloud/storage/blob.py=2"})) ==
        Lines{"google-cloud-storage rebuilt 3.0->3.0 1 files 1 bytes", "ruamel-yaml rebuilt 0.18.6->0.18.6 1 files 0 bytes",
              "zope-interface rebuilt 5.4.0->5.4.0 1 files 0 bytes", "0 unchanged"});
}

TEST_CASE("a folder whose name is the beginning of one changed distribution belongs to it, on its own side of the change") {
  CHECK(changes(test::tree({"lib/python3.12/site-packages/nvidia_cublas_cu12-12.8.4.1.dist-info/RECORD=1",
                            "lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12=12",
                            "lib/python3.12/site-packages/python_dateutil-2.9.dist-info/RECORD=1", "lib/python3.12/site-packages/dateutil/parser.py=1"}),
                test::tree({"lib/python3.12/site-packages/nvidia_cublas-13.1.0.3.dist-info/RECORD=13",
                            "lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13=1313",
                            "lib/python3.12/site-packages/python_dateutil-4.0.0.dist-info/RECORD=40", "lib/python3.12/site-packages/dateutil/parser.py=2"})) ==
        Lines{"nvidia-cublas added ->13.1.0.3 2 files 6 bytes", "nvidia-cublas-cu12 removed 12.8.4.1-> 2 files 0 bytes",
              "python-dateutil changed 2.9->4.0.0 3 files 3 bytes", "0 unchanged"});
}

TEST_CASE("what no name tells stays in the line without a name") {
  CHECK(changes(test::tree({"lib/python3.12/site-packages/PyYAML-6.0.1.dist-info/RECORD=1", "lib/python3.12/site-packages/yaml/loader.py=1", "bin/tool=1",
                            "pyvenv.cfg=1",
                            "lib/python3.12/site-packages/nvidia_a-1.dist-info/RECORD=1", "lib/python3.12/site-packages/nvidia_b-1.dist-info/RECORD=1"}),
                test::tree({"lib/python3.12/site-packages/PyYAML-6.0.2.dist-info/RECORD=22", "lib/python3.12/site-packages/yaml/loader.py=333",
                            "bin/tool=4444", "pyvenv.cfg=55555",
                            "lib/python3.12/site-packages/nvidia_a-2.dist-info/RECORD=1", "lib/python3.12/site-packages/nvidia_b-2.dist-info/RECORD=1",
                            "lib/python3.12/site-packages/nvidia/shared.py=1"})) ==
        Lines{" changed -> 4 files 12 bytes", "nvidia-a changed 1->2 2 files 0 bytes", "nvidia-b changed 1->2 2 files 0 bytes",
              "pyyaml changed 6.0.1->6.0.2 2 files 2 bytes", "0 unchanged"});
}

TEST_CASE("content that the old tree holds anywhere costs nothing, and new content counts once") {
  CHECK(changes(test::tree({"lib/python3.11/site-packages/a-1.dist-info/RECORD=r", "lib/python3.11/site-packages/a/x.py=moved"}),
                test::tree({"lib/python3.12/site-packages/a-1.dist-info/RECORD=r", "lib/python3.12/site-packages/a/x.py=moved",
                            "lib/python3.12/site-packages/a/y.py=new", "lib/python3.12/site-packages/a/z.py=new"})) ==
        Lines{"a rebuilt 1->1 6 files 3 bytes", "0 unchanged"});
}

TEST_CASE("everything of a first apply is added") {
  CHECK(changes(tree::Tree{}, test::tree({"lib/python3.12/site-packages/a-1.dist-info/RECORD=r", "lib/python3.12/site-packages/a/x.py=1", "pyvenv.cfg=22"})) ==
        Lines{" changed -> 1 files 2 bytes", "a added ->1 2 files 2 bytes", "0 unchanged"});
}
