#pragma once

#include <string>
#include <vector>

#include "core/spec/fields.h"
#include "core/spec/json.h"

namespace phasor {

/// JSON Schema (2020-12) of an object with these fields: types, ranges, choices, help and defaults, no other keys. A named
/// object has one branch for each alternative, chosen by its "name".
Json object_schema(const FieldList& fields);

/// What can be set at dotted paths of such an object ("model.encoding.theta"), with the schema of each: of whichever
/// alternative. Values of objects are patches, so their members are not required and not checked. In order of path.
struct PathSchema {
  std::string path;
  Json schema;
};
std::vector<PathSchema> path_schemas(const FieldList& fields);

}  // namespace phasor
