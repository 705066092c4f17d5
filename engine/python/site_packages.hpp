// SPDX-License-Identifier: MIT
// Private to python/: what a path below site-packages tells by its name.
#pragma once

#include <optional>
#include <string_view>

#include "python/environment.hpp"

namespace envsync::python {

struct SiteItem {
  std::string_view below;           // of site-packages; never empty
  std::string_view top() const;     // its first component
};

/// Where the path lies below lib*/python*/site-packages; borrows its bytes.
std::optional<SiteItem> site_item(std::string_view path);

/// lib*/python*/site-packages itself.
bool is_site(const tree::RelPath& path);
std::vector<tree::RelPath> sites_of(const tree::Tree& tree);

/// A site of no particular Python, lib/python3/site-packages: of unpacked wheels.
bool is_of_any_python(const tree::RelPath& site);
/// Where headers go that a wheel of `site` brings, include/site/python3.12.
tree::RelPath headers_of(const tree::RelPath& site);
/// A path below the headers of one site, below those of another; other paths as they are.
tree::RelPath with_headers_moved(const tree::RelPath& path, const tree::RelPath& from_site, const tree::RelPath& to_site);

/// From the name of a *.dist-info or *.egg-info; without the folder.
std::optional<Distribution> distribution_named(std::string_view name);

}  // namespace envsync::python
