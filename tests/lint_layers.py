#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the source to the rules that a compiler does not know.

    lint_layers.py ROOT        checks the tree; one line a finding, exit status 1 if there is any
    lint_layers.py --self-test proves that each rule finds its sample, and finds nothing in a good file

The rooms and what each may use are read from engine/CMakeLists.txt, which also makes the build's targets of them.
"""
import pathlib
import re
import sys
import tempfile

LINES_MAX = 500
FORBIDDEN_ROOMS = {"util", "utils", "common", "helpers", "core", "manager"}
# A foreign header's first match decides which rooms may include it; None: every room.
FOREIGN = [
    (r"^(xxhash\.h|zstd.*\.h)$", {"content"}),
    (r"^(google/protobuf/.*|messages\.pb\.h)$", {"format"}),
    (r"^yaml-cpp/.*", {"manifest"}),
    (r"^minizip/.*", {"wheel"}),
    (r"^librsync\.h$", {"delta"}),
    (r"^(libssh/.*|openssl/.*)$", {"transport"}),
    (r"^(CLI/.*|nlohmann/.*|spdlog/.*)$", {"cli"}),
    (r"^(fmt/.*|tl/.*)$", None),
    # File and process calls on trees live in one room, so that a test can let each of them fail. A channel makes its descriptors
    # non-blocking; the command line, which uses no room, reads and writes a person's own files.
    (r"^poll\.h$", {"os", "channel", "transport", "cli"}),
    (r"^(sys/socket\.h|sys/un\.h|sys/uio\.h)$", {"os", "channel", "transport"}),
    (r"^fcntl\.h$", {"os", "channel", "transport", "cli"}),
    (r"^sys/stat\.h$", {"os", "cli"}),
    (r"^(dirent\.h|ftw\.h|glob\.h|spawn\.h|sched\.h|sys/(file|mman|mount|sendfile|statfs|statvfs|syscall|vfs|wait|xattr)\.h|linux/.*)$", {"os"}),
    (r"^(fstream|filesystem)$", {"os", "cli"}),
]
# Written in halves, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) + r")\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
CXX = {".cpp", ".hpp"}
TEXT = CXX | {".proto", ".py", ".sh", ".cmake", ".txt"}
SPDX = re.compile(r"^(//|#) SPDX-License-Identifier: MIT$")


def rooms_of(cmake):
    """{room: rooms it may use}, from the lines `room(name USES a b FOREIGN c)`."""
    rooms = {}
    for line in cmake.splitlines():
        match = re.match(r"^room\(\s*(\w+)(?:\s+USES\s+([\w\s]*?))?(?:\s+FOREIGN\s+[^)]*)?\)", line)
        if match:
            rooms[match.group(1)] = set((match.group(2) or "").split())
    return rooms


def foreign_rooms(header):
    for pattern, rooms in FOREIGN:
        if re.match(pattern, header):
            return rooms
    return None


def check_includes(where, text, room, rooms):
    """`room` is a room's name, or "public" for include/envsync."""
    for kind, header in INCLUDE.findall(text):
        first = header.split("/")[0]
        if first == "envsync":
            continue
        if kind == '"' and first in rooms:
            if room == "public":
                yield f"{where}: the public headers include '{header}' of a room"
            elif first != room and first not in rooms[room]:
                allowed = ", ".join(sorted(rooms[room])) or "public alone"
                yield f"{where}: room '{room}' includes '{header}', it may use: {allowed}"
            continue
        if kind == '"' and header != "messages.pb.h":
            yield f"{where}: '{header}' names no room; write \"room/file.hpp\""
        owners = foreign_rooms(header)
        if owners is not None and room not in owners:
            yield f"{where}: '{header}' belongs to {', '.join(sorted(owners))}, not to '{room}'"


def check_text(where, path, text):
    lines = text.split("\n")
    count = len(lines) - (1 if lines[-1] == "" else 0)
    if count > LINES_MAX:
        yield f"{where}: {count} lines, the limit is {LINES_MAX}"
    head = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    if path.suffix in CXX | {".proto", ".py", ".sh"} and not SPDX.match(head):
        yield f"{where}: does not begin with 'SPDX-License-Identifier: MIT'"
    if path.suffix == ".hpp" and not re.search(r"^#pragma once$", text, re.M):
        yield f"{where}: a header without '#pragma once'"
    if path.suffix == ".hpp" and re.search(r"^using namespace ", text, re.M):
        yield f"{where}: a header with a using-directive"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield f"{where}:{number}: '{UNFINISHED.search(line).group(0)}' marks unfinished work"


def files_below(root, folder):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in TEXT and path.is_file() and "__pycache__" not in path.parts:
            yield path


def check(root):
    rooms = rooms_of((root / "engine/CMakeLists.txt").read_text())
    if not rooms:
        yield "engine/CMakeLists.txt: no room(...) line"
    for room, uses in rooms.items():
        if room in FORBIDDEN_ROOMS:
            yield f"engine/CMakeLists.txt: '{room}' does not say what a room owns"
        for used in sorted(uses - set(rooms)):
            yield f"engine/CMakeLists.txt: room '{room}' uses '{used}', which is no room"
    for folder in sorted(p for p in (root / "engine").iterdir() if p.is_dir()):
        if folder.name not in rooms:
            yield f"engine/{folder.name}: a folder without a room(...) line"
    for folder in ("engine", "include", "examples", "tests"):
        for path in files_below(root, folder):
            where, text = path.relative_to(root), path.read_text(errors="replace")
            yield from check_text(where, path, text)
            parts = where.parts
            if path.suffix not in CXX:
                continue
            if parts[0] == "engine" and len(parts) > 2 and parts[1] in rooms:
                yield from check_includes(where, text, parts[1], rooms)
            if parts[0] == "include":
                yield from check_includes(where, text, "public", rooms)


def self_test():
    spdx = "// SPDX-License-Identifier: MIT\n"
    cmake = "room(base)\nroom(os USES base)\nroom(content USES base FOREIGN libzstd.a)\nroom(scan USES base os)\n"
    assert rooms_of(cmake) == {"base": set(), "os": {"base"}, "content": {"base"}, "scan": {"base", "os"}}
    good = {
        "engine/scan/a.hpp": spdx + "#pragma once\n#include <envsync/types.hpp>\n#include <fmt/format.h>\n#include \"os/fd.hpp\"\n",
        "engine/os/a.cpp": spdx + "#include <fcntl.h>\n#include <linux/stat.h>\n",
        "engine/content/a.cpp": spdx + "#include <zstd.h>\n",
        "include/envsync/a.hpp": spdx + "#pragma once\n#include <envsync/types.hpp>\n#include <tl/expected.hpp>\n",
    }
    bad = [
        ("engine/scan/b.cpp", spdx + '#include "content/digest.hpp"\n', "may use: base, os"),
        ("engine/os/b.cpp", spdx + '#include "scan/scan.hpp"\n', "room 'os' includes"),
        ("engine/scan/b.cpp", spdx + "#include <zstd.h>\n", "belongs to content"),
        ("engine/scan/b.cpp", spdx + "#include <xxhash.h>\n", "belongs to content"),
        ("engine/scan/b.cpp", spdx + '#include "messages.pb.h"\n', "belongs to format"),
        ("engine/scan/b.cpp", spdx + "#include <google/protobuf/message_lite.h>\n", "belongs to format"),
        ("engine/scan/b.cpp", spdx + "#include <yaml-cpp/yaml.h>\n", "belongs to manifest"),
        ("engine/scan/b.cpp", spdx + "#include <nlohmann/json.hpp>\n", "belongs to cli"),
        ("engine/scan/b.cpp", spdx + "#include <sys/stat.h>\n", "belongs to cli, os"),
        ("engine/scan/b.cpp", spdx + "#include <dirent.h>\n", "belongs to os"),
        ("engine/scan/b.cpp", spdx + "#include <fcntl.h>\n", "belongs to channel, cli, os, transport"),
        ("engine/scan/b.cpp", spdx + "#include <sys/socket.h>\n", "belongs to channel, os, transport"),
        ("engine/scan/b.cpp", spdx + '#include "neighbour.hpp"\n', "names no room"),
        ("include/envsync/b.hpp", spdx + '#pragma once\n#include "base/bytes.hpp"\n', "the public headers include"),
        ("engine/scan/b.cpp", "int x;\n", "SPDX"),
        ("engine/scan/b.hpp", spdx + "int x;\n", "pragma once"),
        ("engine/scan/b.hpp", spdx + "#pragma once\nusing namespace std;\n", "using-directive"),
        ("engine/scan/b.cpp", spdx + "int x;\n" * LINES_MAX, "the limit is"),
        ("engine/scan/b.cpp", spdx + "// " + "TO" + "DO: later\n", "unfinished"),
        ("tests/unit/b.cpp", spdx + "// " + "HA" + "CK\n", "unfinished"),
        ("tests/b.sh", "#!/bin/sh\necho\n", "SPDX"),
        ("engine/spare/b.cpp", spdx, "without a room"),
        ("engine/CMakeLists.txt", cmake + "room(common USES base)\n", "does not say what"),
        ("engine/CMakeLists.txt", cmake + "room(plan USES tree)\n", "which is no room"),
    ]
    for sample in [None] + bad:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {"engine/CMakeLists.txt": cmake, **good}
            files.update({sample[0]: sample[1]} if sample else {})
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = list(check(root))
            if sample is None:
                assert not found, found
            else:
                assert len(found) == 1 and sample[2] in found[0], (sample, found)
    print(f"lint_layers: {len(bad)} bad samples found, one good sample passed")


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if len(arguments) != 1:
        print("usage: lint_layers.py ROOT | --self-test", file=sys.stderr)
        return 2
    found = list(check(pathlib.Path(arguments[0])))
    for line in found:
        print(line)
    print(f"lint_layers: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
