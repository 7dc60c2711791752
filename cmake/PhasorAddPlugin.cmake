# The function that makes a plugin, in the tree and outside it.

# Seen in every folder, wherever this file is included.
set(PHASOR_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map CACHE INTERNAL "what a plugin exports")

# phasor_add_plugin(NAME SOURCES ... [FOLDER ...]): NAME.so in the folder where the program of this tree looks for
# plugins, or in another one; outside the tree in the build folder. It exports one symbol and must find all others in
# itself or in the core.
function(phasor_add_plugin name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES" ${ARGN})
  set(target plugin_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE Phasor::core)
  target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,--version-script=${PHASOR_PLUGIN_MAP})
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    PREFIX "" OUTPUT_NAME ${name} SUFFIX .so LINK_DEPENDS ${PHASOR_PLUGIN_MAP}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(ARG_FOLDER)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ARG_FOLDER})
    return()
  endif()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../..")
  install(TARGETS ${target} LIBRARY DESTINATION lib/phasor/plugins)
  if(NOT DEFINED PHASOR_PLUGIN_FOLDER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PHASOR_PLUGIN_FOLDER})
  if(NOT TARGET phasor_plugins)
    add_custom_target(phasor_plugins ALL)
  endif()
  add_dependencies(phasor_plugins ${target})
endfunction()
