#pragma once

namespace phasor::cli {

/// A fault that ends this process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) is told in one line on standard error, with the plugin in
/// whose call it happened; then the process ends by that signal as it would have.
void tell_faults();

/// For commands whose work outlives its readers: where standard output or error is closed by who read it (`| head`), what is said
/// there from then on goes nowhere, and the work goes on.
void outlive_readers();
/// That this happened to standard output.
bool output_was_closed();

}  // namespace phasor::cli
