# The CUDA side: whether it can be built, and the list of rooms that have kernels for it.

set(PHASOR_CUDA AUTO CACHE STRING "build libphasor_cuda.so: AUTO (where nvcc is found), ON or OFF")
set(PHASOR_CUDA_ARCH 90 CACHE STRING "compute capability that kernels are compiled for, 90 = H100 and H200")
set_property(CACHE PHASOR_CUDA PROPERTY STRINGS AUTO ON OFF)

set(PHASOR_HAS_CUDA OFF)
if(PHASOR_CUDA)
  find_program(PHASOR_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(PHASOR_NVCC)
    set(PHASOR_HAS_CUDA ON)
    set(CMAKE_CUDA_COMPILER ${PHASOR_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${PHASOR_CUDA_ARCH}-real)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one for the process, whoever else brings one
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    find_path(PHASOR_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_HOME PATH_SUFFIXES include)
    if(NOT PHASOR_CUDNN_INCLUDE)
      message(STATUS "no cudnn_graph.h: attention is our own kernel's alone")
    endif()
    # Else -isystem /usr/include comes before the headers of the C++ library, which then do not find those of C.
    list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc can do C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    # Kernels call constexpr functions of the core.
    set(cuda_options --expt-relaxed-constexpr -Xcompiler=-march=${PHASOR_ARCH} -Xcompiler=-Wall,-Wextra,-Wshadow)
    if(PHASOR_WERROR)
      list(APPEND cuda_options -Werror=all-warnings -Xcompiler=-Werror)
    endif()
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")
    if(PHASOR_CCACHE)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${PHASOR_CCACHE})
    endif()
  elseif(NOT PHASOR_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "PHASOR_CUDA=${PHASOR_CUDA}: there is no nvcc in the path or in /usr/local/cuda/bin")
  endif()
endif()

# phasor_cuda_rooms(PREFIX): sets PREFIX_sources to all cuda.cu files, PREFIX_names to their rooms, and PREFIX_list to a
# source that calls <room>_cuda(kernels) of each. A new room needs no line anywhere.
function(phasor_cuda_rooms prefix)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/*/cuda.cu ${CMAKE_SOURCE_DIR}/core/ops/*/cuda.cu)
  set(names "")
  set(declarations "")
  set(calls "")
  foreach(file ${sources})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(room ${folder} NAME)
    get_filename_component(above ${folder} DIRECTORY)
    set(space "")
    if(above STREQUAL "${CMAKE_SOURCE_DIR}/core/ops")
      set(space "::ops")
    endif()
    list(APPEND names ${room})
    string(APPEND declarations "namespace phasor${space} { void ${room}_cuda(cuda::Kernels&); }\n")
    string(APPEND calls "  phasor${space}::${room}_cuda(kernels);\n")
  endforeach()
  set(list ${CMAKE_BINARY_DIR}/generated/cuda_rooms.cpp)
  file(CONFIGURE OUTPUT ${list} CONTENT
"#include \"core/cuda/kernels.h\"
${declarations}
void phasor::cuda::add_all(Kernels& kernels) {
${calls}}
")
  set(${prefix}_sources ${sources} PARENT_SCOPE)
  set(${prefix}_names ${names} PARENT_SCOPE)
  set(${prefix}_list ${list} PARENT_SCOPE)
endfunction()
