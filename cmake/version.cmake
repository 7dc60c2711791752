# Run at every build: writes phasor_version.h when the commit or the state of the tree has changed.
# cmake -DSOURCE=... -DOUT=... -DVERSION=... -DFLAGS=... -DARCH=... -DHDF5=... -DJSON=... -DBOOST=... -P version.cmake
set(commit "unknown")
set(dirty "unknown")
find_program(GIT git)
if(GIT)
  # A tree unpacked by another user is still our tree.
  set(git ${GIT} -c safe.directory=* -C ${SOURCE})
  execute_process(COMMAND ${git} rev-parse HEAD OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit ${head})
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
    # A source that git does not know makes numbers too; results and notes beside them do not.
    execute_process(COMMAND ${git} ls-files --others --exclude-standard -- core plugins experiments/*.cpp experiments/*.h
                    OUTPUT_VARIABLE unknown ERROR_QUIET)
    if("${changes}${unknown}" STREQUAL "")
      set(dirty "no")
    else()
      set(dirty "yes")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT
"#pragma once
#define PHASOR_COMMIT \"${commit}\"
#define PHASOR_DIRTY \"${dirty}\"
#define PHASOR_VERSION \"${VERSION}\"
#define PHASOR_FLAGS \"${FLAGS}\"
#define PHASOR_ARCH_TEXT \"${ARCH}\"
#define PHASOR_HDF5_VERSION \"${HDF5}\"
#define PHASOR_JSON_VERSION \"${JSON}\"
#define PHASOR_BOOST_VERSION \"${BOOST}\"
")
