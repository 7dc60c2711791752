# Build-wide choices: language, warnings, instruction set, sanitizers, and the functions that make targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")  # of the program; libraries and plugins say their own

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(PHASOR_WERROR "warnings are errors" OFF)
set(PHASOR_SANITIZE "" CACHE STRING "address, undefined, thread or empty")
set(PHASOR_ARCH "x86-64-v3" CACHE STRING "-march of everything; part of the bits")

find_program(PHASOR_CCACHE ccache)
if(PHASOR_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PHASOR_CCACHE})
endif()

# GCC 12 sees overlaps in std::string concatenation that are not there (its bug 105329): -Wno-restrict.
# Plugins outside the tree share what decides the bits, not our warnings.
add_library(phasor_options INTERFACE)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wold-style-cast -Wcast-align -Wvla -Wno-restrict $<$<BOOL:${PHASOR_WERROR}>:-Werror>)
set(options -march=${PHASOR_ARCH} -ffp-contract=fast -fno-math-errno
  $<BUILD_INTERFACE:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=> "$<BUILD_INTERFACE:${warnings}>")
target_compile_options(phasor_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")
target_include_directories(phasor_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/phasor>)
install(TARGETS phasor_options EXPORT Phasor)
set_target_properties(phasor_options PROPERTIES EXPORT_NAME options)
if(PHASOR_SANITIZE)
  target_compile_options(phasor_options INTERFACE -fsanitize=${PHASOR_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(phasor_options INTERFACE -fsanitize=${PHASOR_SANITIZE})
endif()

# Kernels are compiled alike in every build type, so that a debug and a release build give the same bits.
function(phasor_kernel_sources)
  set_source_files_properties(${ARGV} PROPERTIES COMPILE_OPTIONS "-O3;-fopenmp-simd")
endfunction()

# phasor_library(NAME SOURCES ... [PUBLIC targets...] [PRIVATE targets...] [EXPORT name]): a shared library libNAME.so,
# which plugins outside the tree know as Phasor::name
function(phasor_library name)
  cmake_parse_arguments(ARG "" "EXPORT" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} SHARED ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
  target_link_libraries(${name} PUBLIC phasor_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  target_link_options(${name} PRIVATE -Wl,-z,defs)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
  if(NOT ARG_EXPORT)
    install(TARGETS ${name} LIBRARY DESTINATION lib)
    return()
  endif()
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${ARG_EXPORT})
  add_library(Phasor::${ARG_EXPORT} ALIAS ${name})
  install(TARGETS ${name} EXPORT Phasor LIBRARY DESTINATION lib)
endfunction()

# phasor_test(NAME SOURCES ... [LIBS ...] [LABEL fast|slow] [PARTS N]): one gtest binary, its cases known to ctest. With PARTS it is
# N tests of ctest, NAME.1 to NAME.N, of every N-th case each: hundreds of cases take less time than as many processes that start.
# Each case's end is in test-cases/NAME.I.xml, where tests/summary.py counts it; --gtest_filter runs one alone.
function(phasor_test name)
  cmake_parse_arguments(ARG "" "LABEL;PARTS" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE phasor_options ${ARG_LIBS} GTest::gtest_main)
  if(NOT ARG_PARTS)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600)
    return()
  endif()
  foreach(part RANGE 1 ${ARG_PARTS})
    math(EXPR index "${part} - 1")
    # One that ends before its last case, even with 0, leaves no file and fails.
    add_test(NAME ${name}.${part} COMMAND sh -c "rm -f \"$1\" && \"$0\" --gtest_output=xml:\"$1\" && test -f \"$1\""
      $<TARGET_FILE:${name}> ${CMAKE_BINARY_DIR}/test-cases/${name}.${part}.xml)
    set_tests_properties(${name}.${part} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 1800
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_PARTS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
