# cmake -D ROOT= -D LIST= -D OUT= -D COMPILER= -D API= -D CUDA= -D ARCH= -P fingerprint.cmake
# Writes core/plugin/fingerprint.h from the public headers (paths below ROOT, one a line in the file LIST). Comments and
# white space do not count; the file is not touched when nothing changed.
file(STRINGS ${LIST} headers)
set(text "")
foreach(header IN LISTS headers)
  # The preprocessor knows best where a comment ends; -fpreprocessed makes it do nothing else.
  execute_process(COMMAND ${COMPILER} -x c++ -fpreprocessed -dD -E -P ${header} WORKING_DIRECTORY ${ROOT}
                  OUTPUT_VARIABLE code RESULT_VARIABLE failed ERROR_VARIABLE reason)
  if(failed)
    message(FATAL_ERROR "${header}: ${reason}")
  endif()
  string(REGEX REPLACE "[ \t\r\n]+" " " code "${code}")
  string(REGEX REPLACE " ?([^A-Za-z0-9_ ]) ?" "\\1" code "${code}")
  string(APPEND text "${header}\n${code}\n")
endforeach()
string(SHA256 HEADERS "${text}")
string(SUBSTRING ${HEADERS} 0 16 HEADERS)
configure_file(${CMAKE_CURRENT_LIST_DIR}/fingerprint.h.in ${OUT} @ONLY)
