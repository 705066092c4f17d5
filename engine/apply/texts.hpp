// SPDX-License-Identifier: MIT
// What the controller reads of an environment's files: small texts (METADATA, RECORD, scripts), which it keeps from run to run, and
// sha256 of files, which their agents compute.
#pragma once

#include "apply/run.hpp"
#include "python/distribution_set.hpp"

namespace envsync::apply {

/// A text to read: what it is called in the answer, where the session finds it, and what it must be.
struct WantedText {
  std::string name;
  tree::RelPath path;
  content::ContentId content;
};
enum class TextPlace : u8 { tree, pool };
/// `label`: under which these texts are kept, so that the next run asks for those alone that changed. Files that are too large for
/// texts are left out.
Result<python::SmallFiles> fetch_texts(Run& run, Session& session, const std::string& label, const std::vector<WantedText>& wanted,
                                       TextPlace place = TextPlace::tree);

/// Of the session's tree; a path that cannot be read has none.
Result<python::Sums> fetch_sums(Run& run, Session& session, const std::vector<tree::RelPath>& paths);

}  // namespace envsync::apply
