// A driver without a device: what cuDNN asks of libcuda while it makes a plan. It compiles kernels by itself; here they are
// "loaded", and everything that would need a device fails.

#include <cstddef>

namespace {
constexpr int done = 0, no_device = 100, not_supported = 801;
int something;

int give(void** to) {
  *to = &something;
  return done;
}
}  // namespace

extern "C" {
int cuInit(unsigned) { return no_device; }
int cuGetExportTable(const void**, const void*) { return not_supported; }
int cuGetProcAddress_v2(const char*, void**, int, unsigned long, void*) { return not_supported; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return done;
}
int cuGetErrorString(int, const char** text) {
  *text = "there is no device";
  return done;
}
int cuGetErrorName(int, const char** text) {
  *text = "no device";
  return done;
}
int cuLibraryLoadData(void** library, ...) { return give(library); }
int cuLibraryUnload(void*) { return done; }
int cuLibraryGetKernel(void** kernel, ...) { return give(kernel); }
int cuKernelGetFunction(void** function, ...) { return give(function); }
int cuKernelSetAttribute(...) { return done; }
int cuKernelGetAttribute(int* value, ...) {
  *value = 0;
  return done;
}

// Looked up, and not called while plans are made.
#define PHASOR_ABSENT(name) \
  int name(...) { return no_device; }
PHASOR_ABSENT(cuCtxGetCurrent)
PHASOR_ABSENT(cuCtxGetLimit)
PHASOR_ABSENT(cuCtxPopCurrent)
PHASOR_ABSENT(cuCtxPushCurrent)
PHASOR_ABSENT(cuDeviceGet)
PHASOR_ABSENT(cuDeviceGetCount)
PHASOR_ABSENT(cuLaunchCooperativeKernel)
PHASOR_ABSENT(cuLaunchKernel)
PHASOR_ABSENT(cuLaunchKernelEx)
PHASOR_ABSENT(cuLibraryLoadFromFile)
PHASOR_ABSENT(cuLinkAddData)
PHASOR_ABSENT(cuLinkComplete)
PHASOR_ABSENT(cuLinkCreate)
PHASOR_ABSENT(cuLinkDestroy)
PHASOR_ABSENT(cuOccupancyMaxPotentialClusterSize)
PHASOR_ABSENT(cuStreamGetCtx)
}
