# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT: a digest of every source file below ROOT, in path order. It is
# part of each kernel's key: a changed code generator must not be served
# yesterday's kernels.
file(GLOB_RECURSE sources ${ROOT}/*.cpp ${ROOT}/*.h ${ROOT}/*.td)
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 ${source} digest)
  file(RELATIVE_PATH path ${ROOT} ${source})
  string(APPEND all "${path}:${digest}\n")
endforeach()
string(SHA256 digest "${all}")
set(text "static const char kCompilerSourceHash[] = \"${digest}\";\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
