# The boundary between host and plugins: the fingerprint both carry, and the function that makes a plugin.

# Seen in every folder, wherever this file is included.
set(PHASOR_API 1 CACHE INTERNAL "raised when plugins must be changed, not only rebuilt")
set(PHASOR_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map CACHE INTERNAL "what a plugin exports")
set(PHASOR_PLUGIN_FOLDER ${CMAKE_BINARY_DIR}/lib/phasor/plugins CACHE INTERNAL "where the program looks for plugins")
set(PHASOR_GENERATED ${CMAKE_BINARY_DIR}/generated CACHE INTERNAL "headers made by the build")

# phasor_generate_fingerprint(): the target that keeps core/plugin/fingerprint.h up to date with the public headers.
function(phasor_generate_fingerprint)
  set(root ${CMAKE_SOURCE_DIR})
  set(script ${root}/cmake/fingerprint.cmake)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${root}
    ${root}/core/base/error.h ${root}/core/base/hash.h ${root}/core/base/philox.h ${root}/core/base/portable_math.h
    ${root}/core/spec/json.h ${root}/core/spec/fields.h
    ${root}/core/tensor/*.h ${root}/core/graph/*.h ${root}/core/nn/*.h ${root}/core/ops/*.h ${root}/core/ops/*/*.h
    ${root}/core/plugin/registry.h ${root}/core/plugin/manifest.h)
  # Not seen by plugins: what only kernels or tests include.
  list(FILTER headers EXCLUDE REGEX "/(kernel|case|vector_math)\\.h$")
  list(SORT headers)

  set(list ${PHASOR_GENERATED}/public_headers.txt)
  list(JOIN headers "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  set(depends ${headers})
  list(TRANSFORM depends PREPEND ${root}/)
  set(cuda off)
  if(PHASOR_CUDA)
    set(cuda on)
  endif()
  set(out ${PHASOR_GENERATED}/core/plugin/fingerprint.h)
  set(stamp ${PHASOR_GENERATED}/fingerprint.stamp)
  add_custom_command(OUTPUT ${stamp} BYPRODUCTS ${out}
    COMMAND ${CMAKE_COMMAND} -D ROOT=${root} -D LIST=${list} -D OUT=${out} -D COMPILER=${CMAKE_CXX_COMPILER}
            -D API=${PHASOR_API} -D CUDA=${cuda} -D ARCH=${PHASOR_ARCH} -P ${script}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${depends} ${list} ${script} ${root}/cmake/fingerprint.h.in
    COMMENT "Fingerprint of the public headers" VERBATIM)
  add_custom_target(phasor_fingerprint DEPENDS ${stamp})
endfunction()

# phasor_add_plugin(NAME SOURCES ... [FOLDER ...]): NAME.so in the folder where the program looks for plugins, or in
# another one. It exports one symbol and must find all others in itself or in the core.
function(phasor_add_plugin name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES" ${ARGN})
  set(target plugin_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE phasor_core)
  target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,--version-script=${PHASOR_PLUGIN_MAP})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} SUFFIX .so LINK_DEPENDS ${PHASOR_PLUGIN_MAP}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(ARG_FOLDER)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ARG_FOLDER})
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PHASOR_PLUGIN_FOLDER} INSTALL_RPATH "$ORIGIN/../..")
  install(TARGETS ${target} LIBRARY DESTINATION lib/phasor/plugins)
  if(NOT TARGET phasor_plugins)
    add_custom_target(phasor_plugins ALL)
  endif()
  add_dependencies(phasor_plugins ${target})
endfunction()
