# find_package(Phasor): the target Phasor::core and phasor_add_plugin(NAME SOURCES ...), for plugins outside the tree.
include(CMakeFindDependencyMacro)
find_dependency(fmt)
include(${CMAKE_CURRENT_LIST_DIR}/PhasorTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/PhasorAddPlugin.cmake)
