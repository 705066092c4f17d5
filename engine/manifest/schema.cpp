// SPDX-License-Identifier: MIT
// The same text as manifests/envsync.schema.json, byte by byte; a test compares them.
#include "manifest/manifest.hpp"

namespace envsync::manifest {

std::string_view schema() {
  return R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "envsync manifest",
  "description": "One Python environment, where it is and where it goes.",
  "type": "object",
  "required": ["version", "source", "targets"],
  "additionalProperties": false,
  "patternProperties": {"^x-": {"description": "Ignored; a place for anchors."}},
  "properties": {
    "version": {"const": 1, "description": "The version of the manifest's language."},
    "name": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[^/]+$", "examples": ["analytics"], "description": "How messages call the environment. Default: the last component of the path."},
    "path": {"$ref": "#/definitions/path", "description": "The environment's path on source and targets. Required unless they name theirs."},
    "source": {
      "description": "Where the environment is; target: what each target has.",
      "examples": ["ct200", "ct200:/srv/venv", "/srv/venv", "local", "target"],
      "oneOf": [{"type": "string", "minLength": 1}, {"$ref": "#/definitions/source"}]
    },
    "targets": {
      "description": "Where the environment goes.",
      "examples": [["root@b300"]],
      "oneOf": [{"$ref": "#/definitions/hosts"}, {"$ref": "#/definitions/targets"}]
    },
    "overlays": {"type": "array", "maxItems": 64, "items": {"$ref": "#/definitions/overlay"}, "examples": [[{"from": "ct129:/root/venv", "packages": ["torch"]}]], "description": "Packages of other places, laid onto the environment in this order."},
    "accept": {"type": "array", "items": {"$ref": "#/definitions/accept"}, "examples": [[{"code": "conflicts", "files": "**/cutlass/**", "why": "tested"}]], "description": "Findings of the plan that are known and fine."},
    "invariants": {"$ref": "#/definitions/invariants"},
    "settings": {"$ref": "#/definitions/settings"}
  },
  "definitions": {
    "path": {"type": "string", "pattern": "^(/|~/).+", "examples": ["/srv/venv"]},
    "hosts": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/short_or_long_host"}, "examples": [["root@b300"]]},
    "short_or_long_host": {
      "examples": ["root@b300"],
      "oneOf": [
        {"type": "string", "minLength": 1, "description": "[user@]name[:port][:path], or local; in targets gpu-[01-08] names eight hosts"},
        {"$ref": "#/definitions/host"}
      ]
    },
    "source": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "host": {"$ref": "#/definitions/short_or_long_host", "description": "Default: local."},
        "path": {"$ref": "#/definitions/path", "description": "Default: the manifest's path."},
        "exclude": {"type": "array", "items": {"type": "string", "minLength": 1}, "examples": [["*.log"]], "description": "Patterns as in .gitignore. What they match is neither sent nor deleted."},
        "bytecode": {"enum": ["leave-out", "ship"], "default": "leave-out", "description": "ship: sends __pycache__ too, and compares the mtimes of those sources."}
      }
    },
    "targets": {
      "type": "object",
      "anyOf": [{"required": ["hosts"]}, {"required": ["hosts_from"]}],
      "additionalProperties": false,
      "properties": {
        "path": {"$ref": "#/definitions/path", "description": "The path on every target that names none."},
        "hosts": {"$ref": "#/definitions/hosts"},
        "hosts_from": {"type": "string", "minLength": 1, "examples": ["fleet.txt", "-"], "description": "A file beside the manifest, or - for standard input: one host a line, # begins a comment."}
      }
    },
    "host": {
      "type": "object",
      "required": ["host"],
      "additionalProperties": false,
      "properties": {
        "host": {"type": "string", "minLength": 1, "examples": ["b300"], "description": "A name as ssh takes it, or local."},
        "user": {"type": "string", "minLength": 1, "examples": ["root"]},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535, "examples": [2222]},
        "path": {"$ref": "#/definitions/path", "description": "Default: the manifest's path."},
        "jump": {"type": "string", "minLength": 1, "examples": ["bastion"], "description": "As ssh -J."},
        "identity": {"type": "string", "pattern": "^(/|~/).+", "examples": ["~/.ssh/id_ed25519"], "description": "As ssh -i."},
        "transport": {"$ref": "#/definitions/short_or_long_transport"},
        "sudo": {"type": "boolean", "default": false, "description": "true: the agent is started by sudo -n, and is root there."},
        "gpu": {"$ref": "#/definitions/gpu", "description": "The compute capabilities of its GPUs, for overlays that ask for them."}
      }
    },
    "names": {"type": "array", "items": {"type": "string", "minLength": 1}, "examples": [["torch", "nvidia-*"]]},
    "gpu": {"type": "array", "items": {"type": ["string", "number"], "pattern": "^[0-9]{1,3}\\.[0-9]{1,3}$"}, "examples": [["10.3"]]},
    "overlay": {
      "type": "object",
      "required": ["from"],
      "additionalProperties": false,
      "properties": {
        "name": {"type": "string", "minLength": 1, "examples": ["torch 2.11"], "description": "How messages call it. Default: what 'from' says."},
        "from": {"type": "string", "minLength": 1, "examples": ["ct129:/root/venv", "/srv/venv-torch", "target:/srv/torch_overlay"], "description": "An environment, its site-packages, or a folder with packages and their dist-infos."},
        "packages": {"$ref": "#/definitions/names", "description": "What it brings: distributions by name or glob, or top-level folders."},
        "closure": {"enum": ["pinned", "none"], "default": "pinned", "description": "pinned: also what these require with ==, and what the environment does not meet."},
        "evict": {"examples": ["auto"], "oneOf": [{"const": "auto"}, {"$ref": "#/definitions/names"}], "description": "Distributions that leave besides those that only the old versions needed."},
        "roots": {"$ref": "#/definitions/names", "description": "Folders taken whole from an origin that has no dist-info for them."},
        "incomplete": {"enum": ["refuse", "base"], "default": "refuse", "description": "Files of a RECORD that the origin lacks: refuse, or keep the environment's own."},
        "conflicts": {"enum": ["error", "overlay", "base"], "default": "error", "description": "A path of a distribution that stays would get other content."},
        "unmanaged": {"enum": ["remove", "keep"], "default": "remove", "description": "Files that nobody owns inside what is replaced."},
        "hosts": {"$ref": "#/definitions/names", "examples": [["web-*"]], "description": "Only for these targets, by name or glob."},
        "gpu": {"$ref": "#/definitions/gpu", "description": "Only for targets that declare one of these compute capabilities."}
      }
    },
    "accept": {
      "type": "object",
      "required": ["code"],
      "additionalProperties": false,
      "properties": {
        "code": {"type": "string", "minLength": 1, "examples": ["conflicts"], "description": "The finding's code, as the plan prints it."},
        "files": {"type": "string", "minLength": 1, "examples": ["**/nvidia/**"], "description": "A glob of the finding's file. Default: any."},
        "hosts": {"$ref": "#/definitions/names", "examples": [["web-*"]], "description": "Targets by name or glob. Default: all."},
        "why": {"type": "string", "minLength": 1, "examples": ["both builds ship the same kernels"]}
      }
    },
    "short_or_long_transport": {
      "examples": ["openssh"],
      "oneOf": [{"enum": ["auto", "libssh", "openssh"]}, {"$ref": "#/definitions/transport"}]
    },
    "transport": {
      "type": "object",
      "required": ["command"],
      "additionalProperties": false,
      "properties": {
        "command": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}, "examples": [["pct", "exec", "200", "--"]], "description": "A program that gives a shell on the host, with its arguments."}
      }
    },
    "invariants": {
      "type": "object",
      "description": "What must hold before a host is touched.",
      "additionalProperties": false,
      "properties": {
        "same_path": {"type": "boolean", "default": true, "description": "Source and target have the same path."},
        "interpreter": {"enum": ["require", "ship", "ignore"], "default": "require", "description": "The base Python behind bin/python: it is there and runs, or it is brought first where it does not."},
        "python": {"type": ["string", "number"], "pattern": "^[0-9]+(\\.[0-9]+){0,2}$", "examples": ["3.11"], "description": "The version of Python, compared by components."},
        "atomic": {"enum": ["required"], "default": "required", "description": "The weakest commit that is accepted."},
        "in_use": {"enum": ["warn", "refuse", "ignore"], "default": "warn", "description": "Processes that use the environment while it is replaced."},
        "relocate": {"type": "boolean", "default": false, "description": "Scripts, activate scripts and pyvenv.cfg are rewritten for the target's path."},
        "record": {"enum": ["overlay", "all", "none"], "default": "overlay", "description": "Which distributions are held against the sha256 of their RECORD before the tree is swapped in."}
      }
    },
    "settings": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "owner": {"enum": ["agent", "preserve"], "default": "agent", "description": "Who owns the files: the account that envsync logs in to, or the source's numeric ids."},
        "mtime": {"enum": ["preserve", "strict", "ignore"], "default": "preserve", "description": "Modification times: written; also compared; not written."},
        "xattrs": {"enum": ["preserve", "ignore"], "default": "preserve"},
        "hardlinks": {"enum": ["preserve", "ignore"], "default": "preserve"},
        "delete_limit": {"type": ["string", "integer"], "pattern": "^[0-9]+%?$", "minimum": 0, "default": "50%", "description": "More paths than this gone from the tree need --allow-delete: a share or a count."},
        "drift": {"enum": ["ask", "replace", "refuse"], "default": "ask", "description": "Changes made on a target since the last apply."},
        "keep_generations": {"type": "integer", "minimum": 0, "maximum": 1000, "default": 2, "description": "Generations kept for rollback, beside the current one."},
        "hosts_at_once": {"type": "integer", "minimum": 1, "maximum": 256, "default": 8},
        "on_failure": {"enum": ["continue", "stop", "all-or-nothing"], "default": "continue", "description": "What happens to the other hosts when one fails; all-or-nothing: prepared everywhere, then swapped everywhere."},
        "bandwidth": {"type": "string", "pattern": "^(unlimited|[0-9]+([kMG]?B/s|[kMG]?bit/s))$", "default": "unlimited", "description": "Bytes on the wire for each target, a rate with its unit: 50MB/s, 400Mbit/s."},
        "retry_for": {"type": "string", "pattern": "^[0-9]+[smh]$", "default": "10m", "description": "How long a connection that is lost is tried again; 0s: not at all."},
        "transport": {"$ref": "#/definitions/short_or_long_transport", "description": "How hosts are reached. Default: auto."}
      }
    }
  }
}
)json";
}

}  // namespace envsync::manifest
