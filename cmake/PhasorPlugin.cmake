# The boundary between host and plugins: the fingerprint both carry, and what is installed for plugins outside the tree.

# Seen in every folder, wherever this file is included.
set(PHASOR_API 1 CACHE INTERNAL "raised when plugins must be changed, not only rebuilt")
set(PHASOR_PLUGIN_FOLDER ${CMAKE_BINARY_DIR}/lib/phasor/plugins CACHE INTERNAL "where the program looks for plugins")
set(PHASOR_GENERATED ${CMAKE_BINARY_DIR}/generated CACHE INTERNAL "headers made by the build")

# phasor_generate_fingerprint(): the target that keeps core/plugin/fingerprint.h up to date with the public headers.
function(phasor_generate_fingerprint)
  set(root ${CMAKE_SOURCE_DIR})
  set(script ${root}/cmake/fingerprint.cmake)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${root}
    ${root}/core/base/error.h ${root}/core/base/hash.h ${root}/core/base/philox.h ${root}/core/base/portable_math.h
    ${root}/core/spec/json.h ${root}/core/spec/fields.h
    ${root}/core/tensor/*.h ${root}/core/graph/*.h ${root}/core/nn/*.h ${root}/core/ops/*/*.h
    ${root}/core/plugin/registry.h ${root}/core/plugin/manifest.h)
  # Of an op plugins see the header with the name of its room; what stands beside it is for kernels and tests.
  foreach(header ${headers})
    get_filename_component(name ${header} NAME_WE)
    get_filename_component(room ${header} DIRECTORY)
    get_filename_component(room ${room} NAME)
    if(header MATCHES "^core/ops/" AND NOT name STREQUAL room)
      list(REMOVE_ITEM headers ${header})
    endif()
  endforeach()
  list(SORT headers)

  set(list ${PHASOR_GENERATED}/public_headers.txt)
  list(JOIN headers "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  set(depends ${headers})
  list(TRANSFORM depends PREPEND ${root}/)
  set(cuda off)
  if(PHASOR_HAS_CUDA)
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

  foreach(header ${headers})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${root}/${header} DESTINATION include/phasor/${folder})
  endforeach()
  install(FILES ${out} DESTINATION include/phasor/core/plugin)
endfunction()

# phasor_install_package(): find_package(Phasor) for plugins outside the tree.
function(phasor_install_package)
  include(CMakePackageConfigHelpers)
  set(version_file ${PHASOR_GENERATED}/PhasorConfigVersion.cmake)
  write_basic_package_version_file(${version_file} VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
  set(folder ${CMAKE_SOURCE_DIR}/cmake)
  install(FILES ${folder}/PhasorConfig.cmake ${folder}/PhasorAddPlugin.cmake ${folder}/plugin.map ${version_file}
          DESTINATION lib/cmake/Phasor)
  install(EXPORT Phasor NAMESPACE Phasor:: FILE PhasorTargets.cmake DESTINATION lib/cmake/Phasor)
endfunction()

include(PhasorAddPlugin)

