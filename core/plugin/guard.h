#pragma once

#include <memory>

#include "core/plugin/registry.h"

namespace phasor {

/// The same plugin, with its name in everything it throws. What it makes is wrapped alike: exceptions from making,
/// forward and backward passes become PluginFailures with name and phase, and when a destructor ends the process, `blame()`
/// says whose it was.
std::unique_ptr<EncodingPlugin> guarded(std::unique_ptr<EncodingPlugin>, const PluginInfo&);
std::unique_ptr<BackbonePlugin> guarded(std::unique_ptr<BackbonePlugin>, const PluginInfo&);
std::unique_ptr<TaskPlugin> guarded(std::unique_ptr<TaskPlugin>, const PluginInfo&);

}  // namespace phasor
