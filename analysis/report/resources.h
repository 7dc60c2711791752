#pragma once

namespace phasor::analysis {

/// The files of analysis/report, as CMake found them.
extern const char* const report_html;
extern const char* const report_css;
extern const char* const report_js;

}  // namespace phasor::analysis
